package anthropic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
)

// TestCutUsage: a call that is cut says what its vendor had counted by then (decision 72).
func TestCutUsage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":40,"cache_read_input_tokens":60,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I was about"}}

`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	p, err := anthropic.New(anthropic.Config{BaseURL: server.URL, APIKey: "k"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.Open(provider.Head{Model: "m", MaxOutput: 100})
	if err != nil {
		t.Fatal(err)
	}
	c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "hi"}}})
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("the person")
	_, err = c.Send(ctx, func(provider.Delta) { stop(why) })
	cut, ok := errors.AsType[*provider.Cut](err)
	if !ok || !errors.Is(err, why) || cut.Received != len("I was about") || cut.Usage.Input != 100 || cut.Usage.CacheRead != 60 {
		t.Errorf("got %+v", err)
	}
}
