package providertest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Conform is the shared test suite of all HTTP codecs: it checks the contract between provider and
// engine.
func Conform(t *testing.T, f *Format) {
	t.Helper()
	t.Run("answers", f.answers)
	t.Run("calls", f.calls)
	if !f.NoTools {
		t.Run("growing", f.growing)
		t.Run("tail", f.tails)
	}
	t.Run("images", f.images)
	t.Run("cut", f.cuts)
	t.Run("refusals", f.refusals)
	t.Run("garbage", f.garbage)
	t.Run("huge", f.huge)
	if !f.Vendor { // it is not the vendor who is silent
		t.Run("silence", f.silence)
	}
	t.Run("stopped", f.stopped)
	t.Run("offline", f.offline)
	t.Run("models", f.lists)
}

var (
	callTwo = []provider.Call{
		{ID: "call_a", Name: "files__read_file", Arguments: `{"path":"é \"x\".md"}`},
		{ID: "call_b", Name: "files__list_files", Arguments: `{}`},
	}
	aTool = []provider.Tool{
		{
			Name: "files__read_file", Description: "Read.",
			Parameters: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`),
		},
		{Name: "files__list_files", Description: "List.", Parameters: []byte(`{"type":"object"}`)},
	}
)

// own is the self-hosted software; all else is paid, even behind an address of this machine
// (decision 29).
var own = []string{"ollama", "vllm", "lmstudio", "llamacpp"}

func (f *Format) open(t *testing.T, address string, idle time.Duration) provider.Conversation {
	t.Helper()
	p, err := f.Open(address, idle)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name() != f.Name || p.Capabilities("scripted").Free != slices.Contains(own, f.Name) ||
		p.Capabilities("scripted").NativeTools == f.NoTools {
		t.Errorf("%s: %+v", p.Name(), p.Capabilities("scripted"))
	}
	head := provider.Head{
		Model: "scripted", Level1: "You are.", Level2: "They are.", Tools: aTool,
		MaxOutput: 4096, ParallelCalls: true,
	}
	if f.NoTools {
		head.Tools = nil
	}
	c, err := p.Open(head)
	if err != nil {
		t.Fatal(err)
	}
	c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "go"}}})
	return c
}

// send plays a scene to one request and returns the provider's reply.
func (f *Format) send(t *testing.T, scene Scene, sink func(provider.Delta)) (*provider.Reply, error) {
	t.Helper()
	s := NewServer(t, f, scene)
	return f.open(t, s.URL, 5*time.Second).Send(t.Context(), sink)
}

// sketch is a reply without what formats differ in.
func sketch(parts []provider.Part) (out []string) {
	for _, part := range parts {
		switch last := len(out) - 1; {
		case part.Type == regie.PartCall:
			out = append(out, part.Call.ID+" "+part.Call.Name+part.Call.Arguments)
		case part.Type == regie.PartText && last >= 0 && strings.HasPrefix(out[last], "text "):
			// signed text is a separate part
			out[last] += part.Text
		default:
			out = append(out, string(part.Type)+" "+part.Text)
		}
	}
	return out
}

func (f *Format) answers(t *testing.T) {
	var text, thinking []string
	scene := Scene{
		Thinking: "I weigh.", Signature: "c2ln", Text: []string{"Hello", " you, ", "é\u0000\u2028!"},
		Input: 120, Output: 13, CacheRead: 100,
	}
	reply, err := f.send(t, scene, func(d provider.Delta) {
		if d.Text != "" {
			text = append(text, d.Text)
		}
		if d.Thinking != "" {
			thinking = append(thinking, d.Thinking)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	thought, parts := "I weigh.", []string{"thinking I weigh.", "text Hello you, é\uFFFD\u2028!"}
	if f.NoThinking {
		thought, parts = "", parts[1:]
	}
	if diff := cmp.Diff(parts, sketch(reply.Parts)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !f.NoThinking && reply.Parts[0].Provider != f.Name {
		t.Errorf("thinking of %q", reply.Parts[0].Provider)
	}
	if len(text) != 3 || strings.Join(thinking, "") != thought {
		t.Errorf("streamed %q and %q", text, thinking)
	}
	want := regie.Usage{Input: 120, Output: 13}
	if f.HasCache {
		want.CacheRead = 100
	}
	if reply.Usage != want {
		t.Errorf("usage %+v, want %+v", reply.Usage, want)
	}
	if reply.FirstByte <= 0 || reply.StopReason == "" {
		t.Errorf("first byte after %s, ended for %q", reply.FirstByte, reply.StopReason)
	}
}

func (f *Format) calls(t *testing.T) {
	for name, c := range map[string]struct {
		scene Scene
		want  []string
		code  regie.Code
	}{
		"two at once": {
			Scene{Text: []string{"I look."}, Calls: callTwo},
			[]string{"text I look.", `call_a files__read_file{"path":"é \"x\".md"}`, "call_b files__list_files{}"},
			"",
		},
		"without arguments": {Scene{Calls: []provider.Call{{ID: "a", Name: "f"}}}, []string{"a f{}"}, ""},
		"without an id":     {Scene{Calls: []provider.Call{{Name: "f", Arguments: "{}"}}}, []string{" f{}"}, ""},
		"stop, and calls": {
			Scene{Calls: callTwo[:1], Reason: "stop"},
			[]string{`call_a files__read_file{"path":"é \"x\".md"}`},
			"",
		},
		"an answer that is cut": {Scene{Text: []string{"And so"}, Reason: "length"}, []string{"text And so"}, ""},
		"nothing":               {Scene{}, nil, regie.CodeEmptyReply},
		"blanks":                {Scene{Text: []string{" \n"}}, nil, regie.CodeEmptyReply},
		"thinking and no more":  {Scene{Thinking: "Hm.", Signature: "c2ln"}, nil, regie.CodeEmptyReply},
		"thinking, out of tokens": {
			Scene{Thinking: "Hm.", Signature: "c2ln", Reason: "length"},
			nil,
			regie.CodeEmptyReply,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if f.NoTools && len(c.scene.Calls) > 0 {
				return
			}
			reply, err := f.send(t, c.scene, nil)
			if c.code != "" {
				if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok ||
					failed.Code != c.code || !failed.Retryable {
					t.Fatalf("got %v, %v, want %s", reply, err, c.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, sketch(reply.Parts)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if reply.Cut != (c.scene.Reason == "length") {
				t.Errorf("cut: %v, ended for %q", reply.Cut, reply.StopReason)
			}
		})
	}
	if f.WholeCalls || f.NoTools {
		return // there a call comes whole or not at all
	}
	// A call that was cut at the reply's limit before its first argument looks like one without
	// arguments.
	for _, arguments := range []string{"", `{"path":"a`} {
		scene := Scene{Calls: []provider.Call{{ID: "a", Name: "f", Arguments: arguments}}, Reason: "length"}
		if reply, err := f.send(t, scene, nil); reply != nil || provider.CodeOf(err) != regie.CodeBadReply {
			t.Errorf("a call that was cut at %q: %v, %v", arguments, reply, err)
		}
	}
}

// growing goes through an exchange. It compares the hash with the sent request, and a resumed
// conversation with the growing one.
func (f *Format) growing(t *testing.T) {
	first := Scene{Thinking: "I weigh.", Signature: "c2ln", Text: []string{"I look."}, Calls: callTwo}
	s := NewServer(t, f, first, Scene{Calls: []provider.Call{{
		ID: "call_c", Name: "files__list_files",
		Arguments: "{}",
	}}}, Scene{Text: []string{"Done."}})
	c := f.open(t, s.URL, 5*time.Second)
	var turns []provider.Turn
	for step := range 3 {
		hash, size := c.Request()
		again, _ := c.Request()
		reply, err := c.Send(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := s.Requests()[step]
		if regie.HashOf(sent) != hash || again != hash || len(sent) != size {
			t.Errorf("step %d: the hash or size is not that of what was sent", step)
		}
		resumed := f.open(t, s.URL, 5*time.Second)
		resumed.Append(turns...)
		if other, _ := resumed.Request(); other != hash {
			t.Errorf("step %d: a resumed conversation has other bytes", step)
		}
		more := []provider.Turn{{Role: provider.RoleAssistant, Parts: reply.Parts}}
		if results := resultsOf(reply); len(results) > 0 {
			more = append(more, provider.Turn{Role: provider.RoleTool, Results: results})
		}
		c.Append(more...)
		turns = append(turns, more...)
	}
	if key := s.Header(); !strings.Contains(strings.Join(slices.Concat(key["Authorization"], key["X-Api-Key"],
		key["X-Goog-Api-Key"]), " "), "sk-canary") {
		t.Error("the key was not sent")
	}
}

// images sends a message with images, then one without: the text comes before the images, each is
// sent once, whole and valid, its size is its weight, and later turns leave the bytes unchanged.
func (f *Format) images(t *testing.T) {
	s := NewServer(t, f, Scene{Text: []string{"A cat."}})
	c := f.open(t, s.URL, 5*time.Second)
	_, before := c.Request()
	var images [2]string
	turn := provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "look <b>"}}}
	for i, kind := range []string{"image/png", "image/jpeg"} {
		data := bytes.Repeat([]byte{byte(i), 0xff, 'é', '"'}, 5000)
		images[i] = base64.StdEncoding.EncodeToString(data)
		turn.Parts = append(turn.Parts, provider.Part{
			Type: regie.PartMedia, Media: &provider.Media{Type: kind, Blob: regie.HashOf(data), Data: data},
		})
	}
	c.Append(turn)
	var sent []byte
	for i := range 2 {
		if i > 0 {
			and := provider.Part{Type: regie.PartText, Text: "and?"}
			c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{and}})
			c.EndWith(provider.Tail{Guidance: "In short."})
		}
		hash, size := c.Request()
		if _, err := c.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if sent = s.Requests()[i]; regie.HashOf(sent) != hash {
			t.Error("the hash is not that of what was sent")
		}
		want := len(sent) - len(images[0]) - len(images[1]) + 2*provider.ImageWeight
		if size != want || size <= before {
			t.Errorf("the size is %d, want %d", size, want)
		}
		at := bytes.Index(sent, []byte("look"))
		for _, image := range images {
			next := bytes.Index(sent, []byte(image))
			if next < at || at < 0 || bytes.Count(sent, []byte(image)) != 1 {
				t.Fatalf("request %d: an image at %d, behind %d", i, next, at)
			}
			at = next
		}
		if kept := at + len(images[1]); !bytes.Equal(s.Requests()[0][:kept], sent[:kept]) {
			t.Error("later turns change the bytes of an image's message")
		}
	}
	if !bytes.Contains(sent, []byte(`and?`)) || !bytes.Contains(sent, []byte("In short.")) {
		t.Errorf("what follows is lost: %s", sent[len(sent)-300:])
	}
}

// tails changes the end of the request each time: the thread before it keeps its bytes, and the
// sent bytes match the hash.
func (f *Format) tails(t *testing.T) {
	scenes := []Scene{{Text: []string{"I look."}, Calls: callTwo}}
	ends := []provider.Tail{
		{},
		{Withheld: true, Guidance: `Answer "now".`},
		{Withheld: true},
		{Guidance: "In short."},
		{},
	}
	for range ends {
		scenes = append(scenes, Scene{Text: []string{"Done."}})
	}
	s := NewServer(t, f, scenes...)
	c := f.open(t, s.URL, 5*time.Second)
	reply, err := c.Send(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Append(provider.Turn{Role: provider.RoleAssistant, Parts: reply.Parts},
		provider.Turn{Role: provider.RoleTool, Results: resultsOf(reply)})
	for i, end := range ends {
		c.EndWith(end)
		hash, size := c.Request()
		if _, err := c.Send(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		sent := s.Requests()[i+1]
		if regie.HashOf(sent) != hash || len(sent) != size {
			t.Errorf("%+v: the hash or size is not that of what was sent", end)
		}
		plain := s.Requests()[1]
		kept := bytes.LastIndex(plain, []byte("ok <b>")) + len("ok <b>")
		if len(sent) < kept || !bytes.Equal(sent[:kept], plain[:kept]) ||
			end == (provider.Tail{}) && !bytes.Equal(sent, plain) {
			t.Errorf("%+v changes the thread:\n%s", end, sent)
		}
		if said, _ := json.Marshal(end.Guidance); end.Guidance != "" && bytes.Count(sent, said) != 1 {
			t.Errorf("%+v is not said once:\n%s", end, sent)
		}
		if forbids := regexp.MustCompile(`"tool_choice":("none"|\{"type":"none"\})|"mode":"NONE"`).
			Match(sent); forbids != (end.Withheld && f.chat != "/api/chat") {
			t.Errorf("%+v forbids calls: %v", end, forbids)
		}
		if !bytes.Contains(sent, []byte(`"tools":[`)) {
			t.Errorf("%+v takes the declarations away", end)
		}
	}
}

func resultsOf(reply *provider.Reply) (out []provider.Result) {
	for _, part := range reply.Parts {
		if part.Call != nil {
			out = append(out, provider.Result{
				CallID: part.Call.ID, Content: "ok <b>&\u2028",
				IsError: part.Call.Name == "files__read_file",
			})
		}
	}
	return out
}

// cuts ends a stream after every byte: an incomplete stream gives no reply (spec 12.6, trap 1).
func (f *Format) cuts(t *testing.T) {
	scene, wanted := Scene{
		Thinking: "Hm.", Signature: "c2ln", Text: []string{"I look."},
		Calls: callTwo, Input: 7, Output: 3,
	}, 4
	if f.NoTools {
		scene.Calls, wanted = nil, 2
	}
	if f.NoThinking {
		wanted--
	}
	whole := f.Whole(scene)
	text := whole
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.Serve(text)(w, r) }))
	defer server.Close()
	c := f.open(t, server.URL, 5*time.Second)
	end := len(strings.TrimRight(whole, "\n")) // what follows the last mark changes nothing
	for cut := range end {
		text = whole[:cut]
		reply, err := c.Send(t.Context(), nil)
		if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok || !failed.Retryable {
			t.Fatalf("cut after %d of %d bytes: %+v, %v", cut, len(whole), reply, err)
		}
	}
	for _, text = range []string{
		whole, strings.ReplaceAll(strings.ReplaceAll(whole, "\r\n", "\n"), "\n", "\r\n"),
		strings.ReplaceAll(whole, "\r\n", "\n"),
	} {
		if reply, err := c.Send(t.Context(), nil); err != nil || len(reply.Parts) != wanted {
			t.Fatalf("the whole stream: %+v, %v", reply, err)
		}
	}
	// An error of a broken connection carries the text so far.
	scene.Text, scene.Cut = []string{"I was about"}, true
	_, err := f.send(t, scene, nil)
	if failed, ok := errors.AsType[*provider.Error](err); !ok || failed.Code != regie.CodeTruncatedStream ||
		failed.Partial != "I was about" {
		t.Errorf("a broken connection: %+v", failed)
	}
}

// refusalCases are refusals of a server, and the provider's errors for them.
var refusalCases = map[string]struct {
	scene     Scene
	code      regie.Code
	retryable bool
	wish      time.Duration
	kinds     bool // only where the format has kinds of errors
}{
	"the key": {
		Scene{Status: 401, Kind: "authentication_error", Message: "invalid key"},
		regie.CodeProviderAuth, false, 0, false,
	},
	"not allowed": {
		Scene{Status: 403, Kind: "permission_error", Message: "no"},
		regie.CodeProviderAuth, false, 0, false,
	},
	"the request": {
		Scene{Status: 400, Kind: "invalid_request_error", Message: "messages: too long"},
		regie.CodeProviderRejected, false, 0, false,
	},
	"no such model": {
		Scene{Status: 404, Kind: "not_found_error", Message: "model: x"},
		regie.CodeProviderRejected, false, 0, false,
	},
	"too large": {
		Scene{Status: 413, Kind: "request_too_large", Message: "x"},
		regie.CodeContextTooLarge, false, 0, false,
	},
	"too many": {
		Scene{Status: 429, Kind: "rate_limit_error", Message: "slow down", RetryAfter: "7"},
		regie.CodeProviderBusy, true, 7 * time.Second, false,
	},
	"pay": {
		Scene{Status: 402, Kind: "billing_error", Message: "pay"},
		regie.CodeProviderQuota, false, 0, false,
	},
	"a bug of theirs": {
		Scene{Status: 500, Kind: "api_error", Message: "oh"},
		regie.CodeProviderBusy, true, 0, false,
	},
	"unavailable": {
		Scene{
			Status:  503,
			Message: "server busy, please try again.  maximum pending requests exceeded",
		},
		regie.CodeProviderBusy, true, 0, false,
	},
	"overloaded": {
		Scene{Status: 529, Kind: "overloaded_error", Message: "Overloaded"},
		regie.CodeProviderBusy, true, 0, false,
	},
	"moved": {Scene{Status: 307, Message: "x"}, regie.CodeProviderRejected, false, 0, false},
	"overloaded at once": {
		Scene{InBand: true, Kind: "overloaded_error", Message: "Overloaded"},
		regie.CodeProviderBusy, true, 0, false,
	},
	"overloaded midway": {Scene{
		Text: []string{"a"}, InBand: true, Kind: "overloaded_error",
		Message: "Overloaded",
	}, regie.CodeProviderBusy, true, 0, false},
	"no credit, in a body": {Scene{
		Status: 429, Kind: "insufficient_quota",
		Message: "Your credit balance is too low",
	}, regie.CodeProviderQuota, false, 0, true},
}

func (f *Format) refusals(t *testing.T) {
	for name, c := range refusalCases {
		t.Run(name, func(t *testing.T) {
			if c.kinds && !f.HasKinds {
				return
			}
			if f.Name == "openrouter" && c.scene.Status == http.StatusForbidden { // there it is moderation, not the key
				c.code = regie.CodeProviderRejected
			}
			reply, err := f.send(t, c.scene, nil)
			failed, ok := errors.AsType[*provider.Error](err)
			if reply != nil || !ok || failed.Code != c.code || failed.Retryable != c.retryable ||
				failed.RetryAfter != c.wish || failed.Offline {
				t.Fatalf("got %v, %+v", reply, failed)
			}
			if !strings.Contains(failed.Message, strings.Join(strings.Fields(c.scene.Message), " ")) ||
				strings.Contains(failed.Message, "sk-canary") {
				t.Errorf("it says %q", failed.Message)
			}
		})
	}
	f.notStreams(t)
}

// notStreams answers with pages that are no stream.
func (f *Format) notStreams(t *testing.T) {
	t.Helper()
	for _, c := range []struct{ kind, body, says string }{
		{"text/html", "<html>\x1b[31mlogin", "text/html, which is not how that API streams: <html>"},
		{"text/plain", "", "text/plain, which is not how that API streams"},
		{"text/json", `{"error":{"message":"overloaded"}}`, "which is not how that API streams: overloaded"},
		{"text/json", `{"choices":[{"message":{"content":"hi"}}]}`, "which is not how that API streams"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			_, _ = w.Write([]byte(c.body))
		}))
		_, err := f.open(t, server.URL, time.Second).Send(t.Context(), nil)
		server.Close()
		if provider.CodeOf(err) != regie.CodeProviderRejected || strings.ContainsRune(err.Error(), 0x1b) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s in place of a stream: %v", c.kind, err)
		}
	}
}

// garbage is a page under the content type of a stream: it gives no reply.
func (f *Format) garbage(t *testing.T) {
	text := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.Serve(text)(w, r) }))
	defer server.Close()
	c := f.open(t, server.URL, 5*time.Second)
	for _, text = range []string{
		"<html><body>502 Bad Gateway</body></html>\n", "data: <html>\n\n", "data: 7\n\n",
		"data: []\n\n", "\x00\xff\n\n", "{}\n",
	} {
		reply, err := c.Send(t.Context(), nil)
		if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok || !failed.Retryable {
			t.Errorf("%q: %+v, %v", text, reply, err)
		}
	}
}

// huge is a model that does not end: it is left at the bound of a reply, long before its 100 MB.
func (f *Format) huge(t *testing.T) {
	const mark = "0123456789"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != f.chat {
			f.models(w, r, []string{"scripted"})
			return
		}
		w.Header().Set("Content-Type", f.kind)
		for _, piece := range f.stream(&Scene{Text: []string{strings.Repeat(mark, 100<<10)}}) {
			times := 1
			if strings.Contains(piece, mark) {
				times = 100
			}
			for range times {
				if _, err := io.WriteString(w, piece); err != nil {
					return
				}
			}
		}
	}))
	defer server.Close()
	reply, err := f.open(t, server.URL, 30*time.Second).Send(t.Context(), nil)
	if failed, ok := errors.AsType[*provider.Error](err); reply != nil || !ok ||
		failed.Code != regie.CodeReplyTooLarge || failed.Retryable {
		t.Errorf("got %v, %v", reply != nil, err)
	}
}

func (f *Format) silence(t *testing.T) {
	s := NewServer(t, f, Scene{Text: []string{"I was", " about"}, Silent: true})
	c := f.open(t, s.URL, 300*time.Millisecond)
	_, err := c.Send(t.Context(), nil)
	failed, ok := errors.AsType[*provider.Error](err)
	if !ok || failed.Code != regie.CodeTimeout || !failed.Retryable || failed.Partial != "I was about" {
		t.Errorf("got %v, %+v", err, failed)
	}
	// A slow stream is not a silent one: each piece counts anew.
	s = NewServer(t, f, Scene{Text: []string{"a", "b", "c", "d", "e", "f"}, Pause: 400 * time.Millisecond})
	if reply, err := f.open(t, s.URL, 2*time.Second).Send(t.Context(), nil); err != nil ||
		reply.Parts[0].Text != "abcdef" {
		t.Errorf("a slow stream: %+v, %v", reply, err)
	}
}

func (f *Format) stopped(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	s := NewServer(t, f, Scene{Text: []string{"I"}, Silent: true})
	why := errors.New("the person")
	_, err := f.open(t, s.URL, 5*time.Second).Send(ctx, func(provider.Delta) { stop(why) })
	if !errors.Is(err, why) {
		t.Errorf("got %v, want the cause", err)
	}
	if cut, ok := errors.AsType[*provider.Cut](err); !ok || cut.Unsent || cut.Received != len("I") {
		t.Errorf("it can be booked at %+v", cut)
	}
}

// nobody is an address without a listener: a port that a test just released may belong to another
// test.
// test.
const nobody = "http://127.0.0.1:1"

func (f *Format) offline(t *testing.T) {
	_, err := f.open(t, nobody, time.Second).Send(t.Context(), nil)
	failed, ok := errors.AsType[*provider.Error](err)
	if !ok || failed.Code != regie.CodeProviderOffline || !failed.Offline || !failed.Retryable ||
		!strings.Contains(failed.Message, "start") {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"nowhere", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h#x"} {
		if _, err := f.Open(bad, 0); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("the address %q: %v", bad, err)
		}
	}
	p, err := f.Open(nobody, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for name, head := range map[string]provider.Head{"no model": {MaxOutput: 1}, "no bound": {Model: "m"}} {
		if _, err := p.Open(head); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func (f *Format) lists(t *testing.T) {
	s := NewServer(t, f, Scene{})
	s.Models = []string{"one", "two"}
	p, err := f.Open(s.URL, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	lister, ok := p.(provider.Lister)
	if !ok {
		t.Fatal("it cannot be asked for its models")
	}
	models, err := lister.Models(t.Context())
	if f.NoTools { // it has no list: its models are known
		if err != nil || len(models) == 0 || models[0].NativeTools {
			t.Errorf("got %+v, %v", models, err)
		}
	} else if err != nil || len(models) != 2 || models[1].Name != "two" || !models[1].NativeTools {
		t.Errorf("got %+v, %v", models, err)
	}
	if p, err = f.Open(nobody, time.Second); err != nil {
		t.Fatal(err)
	}
	if lister, ok = p.(provider.Lister); !ok {
		t.Fatal("it cannot be asked for its models")
	}
	if _, err := lister.Models(t.Context()); provider.CodeOf(err) != regie.CodeProviderOffline {
		t.Errorf("nobody there: %v", err)
	}
}
