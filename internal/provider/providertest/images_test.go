package providertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/demo"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/ollama"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/responses"
)

// pictured is a person's turn of two parts of text and two images.
func pictured() provider.Turn {
	turn := say(provider.RoleUser, "[ROUND_START]\n")
	turn.Parts[0].Opening = true
	turn.Parts = append(turn.Parts, provider.Part{Type: regie.PartText, Text: "look"})
	for _, media := range []provider.Media{{Type: "image/png", Data: []byte("\x89PNG")}, {Type: "image/jpeg", Data: []byte("jp")}} {
		turn.Parts = append(turn.Parts, provider.Part{Type: regie.PartMedia, Media: &media})
	}
	return turn
}

// shower is a conversation that shows its request.
type shower interface {
	provider.Conversation
	provider.Shower
}

// TestImageBytes is what each API is sent of a person's turns with images, byte for byte, and that
// turns without any have the bytes that they always had.
func TestImageBytes(t *testing.T) {
	mistral, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1/v1", Vendor: "mistral"})
	fatal(t, err)
	chat, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1/v1"})
	fatal(t, err)
	responding, err := responses.New(responses.Config{})
	fatal(t, err)
	claude, err := anthropic.New(anthropic.Config{})
	fatal(t, err)
	google, err := gemini.New(gemini.Config{})
	fatal(t, err)
	const list = `[{"type":"text","text":"[ROUND_START]\nlook"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw=="}},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,anA="}}]`
	for name, c := range map[string]struct {
		open func(head provider.Head) (provider.Conversation, error)
		want string
	}{
		"openai": {
			chat.Open,
			`"messages":[{"role":"user","content":"hi"},{"role":"user","content":` + list + `},{"role":"assistant","content":"ok"},{"role":"user","content":"and?"}`,
		},
		"strict order": {
			mistral.Open,
			`"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"(noted)"},{"role":"user","content":` + list + `},{"role":"assistant","content":"ok"},{"role":"user","content":"and?"}`,
		},
		"responses": {
			responding.Open,
			`"input":[{"type":"message","role":"user","content":"hi"},{"type":"message","role":"user","content":[{"type":"input_text","text":"[ROUND_START]\nlook"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw=="},{"type":"input_image","image_url":"data:image/jpeg;base64,anA="}]},` +
				`{"type":"message","role":"assistant","content":"ok"},{"type":"message","role":"user","content":"and?"}]`,
		},
		"anthropic": {
			claude.Open,
			`"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"[ROUND_START]\nlook"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"anA="}}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"ok"}]},{"role":"user","content":[{"type":"text","text":"and?","cache_control":{"type":"ephemeral"}}]}]`,
		},
		"gemini": {
			google.Open,
			`"contents":[{"role":"user","parts":[{"text":"hi"},{"text":"[ROUND_START]\nlook"},{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"inlineData":{"mimeType":"image/jpeg","data":"anA="}}]},{"role":"model","parts":[{"text":"ok"}]},{"role":"user","parts":[{"text":"and?"}]}]`,
		},
		"ollama": {
			func(head provider.Head) (provider.Conversation, error) {
				return ollama.NewRequest(head, ollama.Options{}), nil
			},
			`"messages":[{"role":"user","content":"hi"},{"role":"user","content":"[ROUND_START]\nlook","images":["iVBORw==","anA="]},{"role":"assistant","content":"ok"},{"role":"user","content":"and?"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := c.open(provider.Head{Model: "m", MaxOutput: 100})
			fatal(t, err)
			request, ok := opened.(shower)
			if !ok {
				t.Fatal("it shows no request")
			}
			request.Append(say(provider.RoleUser, "hi"), pictured(), say(provider.RoleAssistant, "ok"), say(provider.RoleUser, "and?"))
			if body := string(request.Body()); !strings.Contains(body, c.want) {
				t.Errorf("got  %s\nwant %s", body, c.want)
			}
		})
	}
}

// TestImageCacheMark: where an image is the end of a request to Anthropic, the mark stands on it,
// within its turn.
func TestImageCacheMark(t *testing.T) {
	request, err := anthropic.NewRequest(provider.Head{Model: "m", MaxOutput: 100}, anthropic.Options{})
	fatal(t, err)
	request.Append(say(provider.RoleUser, "hi"), pictured())
	if body := string(request.Body()); !strings.Contains(body, `"data":"anA="},"cache_control":{"type":"ephemeral"}}]}]`) || strings.Count(body, "cache_control") != 1 {
		t.Errorf("%s", body)
	}
	if marks := request.Marks(); fmt.Sprint(marks.Turns) != "[1]" {
		t.Errorf("%+v", marks)
	}
}

// TestTakesImages is which models are known to take images: the vendors' own at their own
// addresses, those of which a server says so, and what the settings say.
func TestTakesImages(t *testing.T) {
	yes, no := true, false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 1000)
		n, _ := r.Body.Read(body)
		can := `"completion"`
		if strings.Contains(string(body[:n]), "llava") {
			can += `,"vision"`
		}
		_, _ = fmt.Fprintf(w, `{"capabilities":[%s]}`, can)
	}))
	t.Cleanup(server.Close)
	claude := func(address string, images *bool) (provider.Provider, error) {
		return anthropic.New(anthropic.Config{BaseURL: address, Images: images})
	}
	google := func(address string, images *bool) (provider.Provider, error) {
		return gemini.New(gemini.Config{BaseURL: address, Images: images})
	}
	responding := func(address string, images *bool) (provider.Provider, error) {
		return responses.New(responses.Config{BaseURL: address, Images: images})
	}
	chat := func(address string, images *bool) (provider.Provider, error) {
		return openai.New(openai.Config{BaseURL: address, Images: images})
	}
	local := func(address string, images *bool) (provider.Provider, error) {
		return ollama.New(ollama.Config{BaseURL: address, Images: images})
	}
	for _, c := range []struct {
		open    func(address string, images *bool) (provider.Provider, error)
		address string
		model   string
		setting *bool
		want    bool
	}{
		{claude, "", "claude-opus-5-5", nil, true},
		{claude, "", "claude-haiku-4-5-20251001", nil, true},
		{claude, "", "claude-2.1", nil, false},
		{claude, "", "claude-opus-5-5", &no, false},
		{claude, "https://proxy.example", "claude-opus-5-5", nil, false},
		{claude, "https://proxy.example", "claude-opus-5-5", &yes, true},
		{google, "", "gemini-3-pro", nil, true},
		{google, "", "gemma-3-1b-it", nil, false},
		{google, "http://127.0.0.1:1", "gemini-3-pro", nil, false},
		{responding, "", "gpt-5.6-terra", nil, true},
		{responding, "https://eu.api.openai.com/v1", "gpt-4o", nil, true},
		{responding, "", "o4-mini", nil, true},
		{responding, "", "o3-mini", nil, false},
		{responding, "", "gpt-4-0613", nil, false},
		{responding, "", "gpt-3.5-turbo", &yes, true},
		{responding, "http://127.0.0.1:1/v1", "gpt-5.6-terra", nil, false},
		{chat, "http://127.0.0.1:1/v1", "gpt-5.6-terra", nil, false},
		{chat, "http://127.0.0.1:1/v1", "m", &yes, true},
		{local, server.URL, "llava", nil, true},
		{local, server.URL, "qwen3", nil, false},
		{local, server.URL, "llava", &no, false},
		{local, "http://127.0.0.1:1", "llava", nil, false},
		{local, "http://127.0.0.1:1", "llava", &yes, true},
	} {
		p, err := c.open(c.address, c.setting)
		fatal(t, err)
		if got := p.Capabilities(c.model).Images; got != c.want {
			t.Errorf("%T at %q: %s takes images: %v", p, c.address, c.model, got)
		}
	}
	if demo.New().Capabilities("demo").Images {
		t.Error("the demo takes images")
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
