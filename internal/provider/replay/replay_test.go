package replay_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/demo"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/replay"
)

var update = flag.Bool("update", false, "write the golden files anew")

func said(text string) provider.Turn {
	return provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: text}}}
}

var head = provider.Head{
	Model: "m", Level1: "You are.\nYou help.", Level2: "They are.", MaxOutput: 10, ReasoningEffort: "low",
	Tools: []provider.Tool{{Name: "files__list_files", Description: "List.", Parameters: []byte(`{"type":"object"}`)}, {Name: "files__read_file"}, {Name: "files__write_file"}},
}

func open(t *testing.T, p provider.Provider, head provider.Head, turns ...provider.Turn) provider.Conversation {
	t.Helper()
	c, err := p.Open(head)
	if err != nil {
		t.Fatal(err)
	}
	c.Append(turns...)
	return c
}

// send returns what came, with the text that was streamed.
func send(t *testing.T, c provider.Conversation) (*provider.Reply, string, error) {
	t.Helper()
	var streamed strings.Builder
	reply, err := c.Send(t.Context(), func(d provider.Delta) { streamed.WriteString(d.Thinking + d.Text) })
	return reply, streamed.String(), err
}

func talk(t *testing.T, p provider.Provider, text string) (*provider.Reply, string, error) {
	t.Helper()
	return send(t, open(t, p, head, said(text)))
}

func tape(t *testing.T, path string, secrets ...string) *replay.Tape {
	t.Helper()
	out, err := replay.NewTape(path, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func player(t *testing.T, path string) *replay.Player {
	t.Helper()
	out, err := replay.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mismatched(t *testing.T, err error, wants ...string) {
	t.Helper()
	failed, ok := errors.AsType[*provider.Error](err)
	if !ok || failed.Code != regie.CodeReplayMismatch || failed.Retryable {
		t.Fatalf("got %v", err)
	}
	for _, want := range wants {
		if !strings.Contains(failed.Message, want) {
			t.Errorf("no %q in %s", want, failed.Message)
		}
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// withoutIDs is a reply as a recording has it.
func withoutIDs(reply *provider.Reply) *provider.Reply {
	out := *reply
	out.FirstByte, out.Parts = 0, append([]provider.Part(nil), reply.Parts...)
	for i, part := range out.Parts {
		if part.Call != nil {
			out.Parts[i].Call = &provider.Call{Name: part.Call.Name, Arguments: part.Call.Arguments}
		}
	}
	return &out
}

// TestRecordAndReplay records a provider, over two openings of the file, and gets the same from the
// recording, in any order, and nothing that was not asked for.
func TestRecordAndReplay(t *testing.T) {
	path, again := filepath.Join(t.TempDir(), "tape"), filepath.Join(t.TempDir(), "again")
	requests := []string{"list files in notes/", "hello"}
	var replies []*provider.Reply
	var texts []string
	for _, request := range requests {
		for _, file := range []string{again, path} {
			reply, text, err := talk(t, tape(t, file).Record(demo.New()), request)
			if err != nil {
				t.Fatal(err)
			}
			if file == path {
				replies, texts = append(replies, withoutIDs(reply)), append(texts, text)
			}
		}
	}
	if diff := cmp.Diff(content(t, path), content(t, again)); diff != "" {
		t.Errorf("the same calls give another recording:\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the recording's mode is %v, %v", info.Mode(), err)
	}
	p := player(t, path)
	_, _, err := talk(t, p, "hello, you")
	mismatched(t, err, "holds no answer to this request; its call 1 is the next one", "-    \"text\": \"list files in notes/\"\n+    \"text\": \"hello, you\"")
	for _, i := range []int{1, 0} {
		reply, text, err := talk(t, p, requests[i])
		if err != nil || text != texts[i] {
			t.Fatalf("%v, %q, want %q", err, text, texts[i])
		}
		if diff := cmp.Diff(replies[i], withoutIDs(reply)); diff != "" {
			t.Errorf("reply %d (-recorded +replayed):\n%s", i, diff)
		}
	}
	_, _, err = talk(t, p, "hello")
	mismatched(t, err, "no further answer")
}

// server is a model server that gives one answer after the other: a stream, or a status and what it
// says.
func server(t *testing.T, key string, answers ...string) provider.Provider {
	t.Helper()
	next := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := answers[next%len(answers)]
		next++
		if refusal, is := strings.CutPrefix(answer, "503 "); is {
			http.Error(w, refusal, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	p, err := openai.New(openai.Config{Name: "scripted", BaseURL: s.URL + "/v1", APIKey: key})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func stream(reason string, deltas ...string) string {
	var b strings.Builder
	for _, delta := range deltas {
		fmt.Fprintf(&b, `data: {"choices":[{"index":0,"delta":%s,"finish_reason":null}]}`+"\n\n", delta)
	}
	return b.String() + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}],"usage":{"prompt_tokens":7,"completion_tokens":8}}` + "\n\ndata: [DONE]\n\n"
}

// aThread talks with a provider whose first answer makes two calls, whose second is a failure and
// whose third ends; id is what differs from run to run. It returns the replies.
func aThread(t *testing.T, p provider.Provider, id string) (replies []*provider.Reply) {
	t.Helper()
	opened := said("What is in notes/?\n\n\tTabs, trailing blanks  \nand \x1b[31mmore")
	opened.Parts = slices.Insert(opened.Parts, 0, provider.Part{Type: regie.PartText, Text: "[ROUND_START] day " + id + ", 09:1" + id + "\n", Opening: true})
	c := open(t, p, head, opened)
	first, streamed, err := send(t, c)
	if err != nil || streamed != "I look.In notes/:\n" {
		t.Fatalf("%q, %v", streamed, err)
	}
	results := provider.Turn{Role: provider.RoleTool}
	for i, said := range []string{"a.md of 2026-11-22T08:00:0" + id + "Z, task 01a1fd57-6d04-72ce-bd06-a3e1e4eaf89" + id + "\n", "there is no é.md"} {
		results.Results = append(results.Results, provider.Result{CallID: first.Parts[2+i].Call.ID, Content: said, IsError: i == 1})
	}
	c.Append(provider.Turn{Role: provider.RoleAssistant, Parts: first.Parts}, results)
	c.EndWith(provider.Tail{Withheld: true, Guidance: "Answer now."})
	_, _, err = send(t, c)
	if failed, ok := errors.AsType[*provider.Error](err); !ok || failed.Code != regie.CodeProviderBusy || failed.Status != http.StatusServiceUnavailable || !failed.Retryable {
		t.Fatal(err)
	}
	second, _, err := send(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return append(replies, first, second)
}

func answers(id string) []string {
	call := func(index int, id, name, arguments string) string {
		return fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"function":{"name":%q,"arguments":%q}}]}`, index, id, name, arguments)
	}
	return []string{
		stream("tool_calls", `{"reasoning_content":"I "}`, `{"reasoning_content":"look."}`, `{"content":"In "}`, `{"content":"notes/:\n"}`,
			call(0, "call_a"+id, "files__list_files", `{"path":"notes"}`), call(1, "call_b"+id, "files__read_file", `{"path":"é.md"}`)),
		"503 overloaded\n",
		stream("stop", `{"content":"One file."}`),
	}
}

// TestRecording_Golden compares a recording byte for byte: it is the same in another run with other
// ids and times, and a run with others again replays it.
func TestRecording_Golden(t *testing.T) {
	golden := filepath.Join("testdata", "thread.jsonl")
	for _, id := range []string{"1", "2"} {
		path := filepath.Join(t.TempDir(), "tape")
		replies := aThread(t, tape(t, path).Record(server(t, "", answers(id)...)), id)
		if *update {
			if err := os.WriteFile(golden, []byte(content(t, path)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(content(t, golden), content(t, path)); diff != "" {
			t.Errorf("run %s (-update writes it anew), -want +got:\n%s", id, diff)
		}
		for i, reply := range aThread(t, player(t, path), "3") {
			if diff := cmp.Diff(withoutIDs(replies[i]), withoutIDs(reply)); diff != "" {
				t.Errorf("reply %d (-recorded +replayed):\n%s", i, diff)
			}
		}
	}
}

// TestKeysAreNotRecorded: a key is nowhere in the recording, wherever it came from.
func TestKeysAreNotRecorded(t *testing.T) {
	const key = "sk-very-secret-key"
	path := filepath.Join(t.TempDir(), "tape")
	p := tape(t, path, "", key, "sk-very").Record(server(t, key,
		stream("tool_calls", `{"reasoning_content":"`+key+`"}`, `{"content":"`+key[:6]+`"}`, `{"content":"`+key[6:]+`"}`,
			`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"key\":\"`+key+`\"}"}}]}`),
		"503 "+key))
	with := head
	with.Level1, with.Level2 = "Your key is "+key, key
	c := open(t, p, with, said("my key is "+key))
	c.EndWith(provider.Tail{Guidance: key})
	reply, _, err := send(t, c)
	if err != nil || !strings.Contains(reply.Parts[2].Call.Arguments, key) {
		t.Fatal("the run itself has what was said: ", reply, err)
	}
	c.Append(provider.Turn{Role: provider.RoleAssistant, Parts: reply.Parts}, provider.Turn{Role: provider.RoleTool, Results: []provider.Result{{CallID: "a", Content: key}}})
	if _, _, err = send(t, c); err == nil {
		t.Fatal("no failure")
	}
	if text := content(t, path); strings.Contains(text, "secret") || !strings.Contains(text, "[the API key]") {
		t.Error(text)
	}
}

// TestDialect: what was recorded of a model that writes objects is not answered as if it called.
func TestDialect(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape")
	spoken := head
	spoken.Dialect = regie.DialectJSON
	recorded := tape(t, path).Record(server(t, "", stream("stop", `{"content":"{\"pre_text\":\"Hello.\"}"}`)))
	if _, _, err := send(t, open(t, recorded, spoken, said("hello"))); err != nil {
		t.Fatal(err)
	}
	p := player(t, path)
	if p.Capabilities("").NativeTools {
		t.Error("the recording's model takes tools")
	}
	native := head
	native.Dialect = regie.DialectNative
	_, _, err := send(t, open(t, p, native, said("hello")))
	mismatched(t, err, "in the dialect json", "in native")
	if reply, _, err := send(t, open(t, p, spoken, said("hello"))); err != nil || reply.Parts[0].Text != `{"pre_text":"Hello."}` {
		t.Error(reply, err)
	}
}

// TestBadRecordings opens files that are no recordings; each is refused with its line.
func TestBadRecordings(t *testing.T) {
	const first = `{"format":"regie-recording-3"}` + "\n"
	const answer = `"reply":{"parts":[{"type":"text","text":"b"}],"usage":{"input":1,"output":1}}`
	call := func(fields ...string) string {
		fields = append(fields, `"provider":"p"`, `"head":{"model":"m","dialect":"native","max_output":1,"parallel_calls":true}`)
		return "{" + strings.Join(fields, ",") + "}\n"
	}
	with := func(arguments string) string {
		return first + call(`"call":1`, `"reply":{"parts":[{"type":"call","call":{"name":"f","arguments":`+arguments+`}}],"usage":{"input":1,"output":1}}`)
	}
	whole := first + call(`"call":1`, answer)
	for name, c := range map[string]struct{ file, says string }{
		"empty":               {"", "line 1"},
		"only a header":       {first, "no model call"},
		"another file":        {"hello\n", "line 1"},
		"the first format":    {`{"format":"regie-recording-1"}` + "\n", "record it again"},
		"the second format":   {"regie-recording 2\nprovider p\nmodel m\ndialect native\n", "record it again"},
		"no dialect":          {strings.Replace(whole, "native", "greek", 1), `line 2: "greek" is not a dialect`},
		"cut off":             {whole[:len(whole)-1], "line 2: it is cut off"},
		"garbage":             {first + "{]\n", "line 2"},
		"an unknown field":    {first + call(`"call":1`, answer, `"surprise":1`), "surprise"},
		"a field twice":       {first + call(`"call":1`, answer, `"call":1`), "duplicate"},
		"nothing":             {whole + "{}\n", "line 3: call 0"},
		"no answer":           {first + call(`"call":1`), "neither a reply nor a failure"},
		"half a call":         {with(`"{\"a\":"`), "not a JSON object"},
		"a list":              {with(`"[]"`), "not a JSON object"},
		"no arguments":        {with(`""`), "not a JSON object"},
		"a call without call": {strings.Replace(whole, `"text"`, `"call"`, 1), "not a JSON object"},
		"another number":      {first + call(`"call":2`, answer), "call 1 is wanted"},
		"after nothing":       {first + call(`"call":1`, `"after":1`, answer), "does not stand before it"},
		"no head":             {strings.Replace(whole, `"head"`, `"head_of":1,"head"`, 1), "does not stand before it"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tape")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := replay.Open(path); regie.CodeOf(err) != regie.CodeReplayMismatch || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if _, err := replay.NewTape(path, nil); c.file != "" && regie.CodeOf(err) != regie.CodeBadRequest {
				t.Errorf("it would be written to: %v", err)
			}
		})
	}
}

// TestRecordedImages: a recording names an image by its hash and holds none of its bytes; its
// player takes images, and knows one from another.
func TestRecordedImages(t *testing.T) {
	picture := func(data string) provider.Turn {
		turn := said("what is this?")
		turn.Parts = append(turn.Parts, provider.Part{Type: regie.PartMedia, Media: &provider.Media{
			Type: "image/png", Blob: regie.HashOf([]byte(data)), Data: []byte(data),
		}})
		return turn
	}
	path := filepath.Join(t.TempDir(), "tape")
	inner := server(t, "", stream("stop", `{"content":"A cat."}`))
	if _, _, err := send(t, open(t, tape(t, path).Record(inner), head, picture("secret bytes"))); err != nil {
		t.Fatal(err)
	}
	if text := content(t, path); strings.Contains(text, "secret") || strings.Contains(text, "c2VjcmV0") || !strings.Contains(text, regie.HashOf([]byte("secret bytes")).String()) {
		t.Errorf("recorded: %s", text)
	}
	p := player(t, path)
	if !p.Capabilities("m").Images {
		t.Error("the player takes no images")
	}
	_, _, err := send(t, open(t, p, head, picture("other bytes")))
	mismatched(t, err, "holds no answer")
	c := open(t, p, head, picture("secret bytes"))
	if _, size := c.Request(); size < provider.ImageWeight {
		t.Errorf("the size is %d", size)
	}
	if _, text, err := send(t, c); err != nil || text != "A cat." {
		t.Errorf("%q, %v", text, err)
	}
	plain := filepath.Join(t.TempDir(), "plain")
	if _, _, err := talk(t, tape(t, plain).Record(inner), "hello"); err != nil {
		t.Fatal(err)
	}
	if player(t, plain).Capabilities("m").Images {
		t.Error("a recording without images takes some")
	}
}
