package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// ask submits a request, waits for the end of its round and returns what happened.
func (b *bed) ask(in dispatch.RunRequest) store.RoundView {
	b.t.Helper()
	conn := b.connect()
	run := b.send(conn, in)
	return b.await(conn, run)
}

// inJSON is a request whose model replies in the JSON dialect.
func (b *bed) inJSON(policy approval.Policy) dispatch.RunRequest {
	in := b.request(policy)
	in.Dialect = regie.DialectJSON
	return in
}

// events reads the whole log of a session.
func (b *bed) events(session regie.ID) []regie.Event {
	b.t.Helper()
	conn := b.connect()
	rounds, err := conn.List(b.t.Context(), store.RoundFilter{Root: b.root, Limit: 1})
	if err != nil || len(rounds) == 0 || rounds[0].Session.ID != session {
		b.t.Fatalf("the newest run is %+v, %v", rounds, err)
	}
	view := b.round(conn, rounds[0].Round.ID)
	return b.eventsOf(conn, view)
}

func (b *bed) eventsOf(conn service, view store.RoundView) (out []regie.Event) {
	b.t.Helper()
	b.until(conn, view.Session.ID, func(e *regie.Event) bool {
		out = append(out, *e)
		return e.Seq >= view.Head
	})
	return out
}

// messages are those of a log, in order.
func messages(events []regie.Event) (out []regie.Message) {
	for i := range events {
		var m regie.Message
		if events[i].Type == regie.EventMessage && json.Unmarshal(events[i].Body, &m) == nil {
			out = append(out, m)
		}
	}
	return out
}

const writeX = `{"type":"files.write_file","params":{"path":"x.txt","content":"one\n"}}`

// TestJSON goes through the priorities of spec 3.1 in the JSON dialect.
func TestJSON(t *testing.T) {
	t.Parallel()
	t.Run("an answer", func(t *testing.T) {
		m := newModel(t, says("Sure!\n```json\n{\"pre_text\": \"It is done.\"}\n```"))
		b := newBed(t, m)
		view := b.ask(b.inJSON(everything))
		expect(t, view, regie.EndAnswered)
		reply := view.Exchanges[0].Reply.AI
		if view.Round.Dialect != regie.DialectJSON || reply.Text() != "It is done." || !strings.Contains(reply.Verbatim, "Sure!") {
			t.Errorf("%s: %+v", view.Round.Dialect, reply)
		}
		for _, want := range []string{"exactly one JSON object", "files.write_file", "10 replies in this run, 3 replies in a row that only read", "3 corrections in a row"} {
			if !strings.Contains(m.last(), want) {
				t.Errorf("the model is not told %q", want)
			}
		}
		if strings.Contains(m.last(), `"tools":`) || strings.Contains(m.last(), `\"completed\"`) {
			t.Error("tools are declared, or a chat may complete")
		}
	})
	t.Run("queries, then an answer with a plan", func(t *testing.T) {
		m := newModel(t, says(`{"pre_text":"I look.","data_commands":[{"type":"files.list_files"},{"type":"files.read_file","params":{"path":"nothing"}}]}`),
			says(`{"pre_text":"There is nothing.","plan":{"steps":[{"text":"look","status":"done"}]}}`))
		b := newBed(t, m)
		view := b.ask(b.inJSON(everything))
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "FAILED", "SUCCEEDED")
		if view.Round.Counters != (regie.Counters{Total: 2, Queries: 1}) || !strings.Contains(m.last(), "[DATA_ADDED]") || !strings.Contains(m.last(), "[Guidance") {
			t.Errorf("%+v, read %s", view.Round.Counters, m.last())
		}
		plans := 0
		for _, e := range b.events(view.Session.ID) {
			if e.Type == regie.EventPlan {
				plans++
			}
		}
		if plans != 1 {
			t.Errorf("%d plans are shown", plans)
		}
	})
	t.Run("actions end with their post text", func(t *testing.T) {
		m := newModel(t, says(`{"pre_text":"I write.","action_commands":[`+writeX+`],"post_text":"Written."}`))
		b := newBed(t, m)
		view := b.ask(b.inJSON(everything))
		expect(t, view, regie.EndAnswered, "SUCCEEDED")
		all := messages(b.events(view.Session.ID))
		if last := all[len(all)-1]; last.Text != "Written." || last.Sender != regie.SenderAI || !last.ExcludeFromPrompt || m.count() != 1 {
			t.Errorf("after %d calls of the model the last message is %+v", m.count(), last)
		}
		if data, _ := os.ReadFile(filepath.Join(b.root, "x.txt")); string(data) != "one\n" {
			t.Errorf("the file holds %q", data)
		}
	})
	t.Run("unless the model keeps control", func(t *testing.T) {
		m := newModel(t, says(`{"pre_text":"I write.","action_commands":[`+writeX+`],"post_text":"Written.","keep_control":true}`), says(`{"pre_text":"And now?"}`))
		b := newBed(t, m)
		view := b.ask(b.inJSON(everything))
		expect(t, view, regie.EndAnswered, "SUCCEEDED")
		if len(view.Exchanges) != 2 || !strings.Contains(m.last(), "[ACTIONS_EXECUTED]") {
			t.Errorf("%d exchanges", len(view.Exchanges))
		}
	})
	t.Run("or one of them fails", func(t *testing.T) {
		m := newModel(t, says(`{"pre_text":"I write.","action_commands":[{"type":"files.write_file","params":{"path":".git/x","content":"x"}}],"post_text":"Written."}`), says(`{"pre_text":"I must not."}`))
		b := newBed(t, m)
		view := b.ask(b.inJSON(everything))
		expect(t, view, regie.EndAnswered, "FAILED")
		for _, said := range messages(b.events(view.Session.ID)) {
			if said.Text == "Written." {
				t.Error("the post text was said")
			}
		}
		if view.Round.Counters.Retries != 1 {
			t.Errorf("%+v", view.Round.Counters)
		}
	})
}

// TestJSONFormatErrors meets replies that are none: each is stored, corrected, counted, and at the
// limit they end the round.
func TestJSONFormatErrors(t *testing.T) {
	t.Parallel()
	t.Run("corrected", func(t *testing.T) {
		m := newModel(t, says("Hello there."),
			says(`{"pre_text":"x","data_commands":[{"type":"files.write_file","params":{"path":"a","content":"b"}}]}`),
			says(`{"pre_text":"x","data_commands":[{"type":"files.list_files"}],"action_commands":[`+writeX+`]}`),
			says(`{"pre_text":"Now."}`))
		b := newBed(t, m)
		view := b.ask(b.inJSON(everything))
		expect(t, view, regie.EndAnswered)
		if c := view.Round.Counters; c != (regie.Counters{Total: 4}) || view.Exchanges[1].Reason != regie.ExchangeFormatError {
			t.Errorf("%+v, %s", c, view.Exchanges[1].Reason)
		}
		if got := view.Exchanges[0].Reply.AI.Text(); got != regie.InvalidFormat+"\nHello there." {
			t.Errorf("the first reply is stored as %q", got)
		}
		for _, want := range []string{"[FORMAT_ERROR]", "data_commands[0].type", "put it into action_commands", "either data_commands or action_commands", "Hello there."} {
			if !strings.Contains(m.last(), want) {
				t.Errorf("the model is not told %q", want)
			}
		}
		if strings.Contains(m.last(), regie.InvalidFormat) {
			t.Error("the model reads our own mark")
		}
	})
	t.Run("calls by the API's own way never run", func(t *testing.T) {
		m := newModel(t, says(`{"pre_text":"x"}`, call{"a", "files__write_file", `{"path":"x.txt","content":"x"}`}), says(`{"pre_text":"So."}`))
		b := newBed(t, m)
		expect(t, b.ask(b.inJSON(everything)), regie.EndAnswered)
		if _, err := os.Stat(filepath.Join(b.root, "x.txt")); err == nil {
			t.Error("it was written")
		}
	})
}

// TestJSONDeltas streams the text of the object, and nothing else of it.
func TestJSONDeltas(t *testing.T) {
	t.Parallel()
	joined := make(chan struct{})
	pieces := func(w http.ResponseWriter, r *http.Request) {
		<-joined
		w.Header().Set("Content-Type", "text/event-stream")
		for _, piece := range []string{`{"pre_te`, `xt":"It `, `is so\n`, `\u00e9."`, `,"plan":null}`} {
			chunk(w, map[string]any{"content": piece})
		}
		says("")(w, r)
	}
	b := newBed(t, newModel(t, pieces))
	conn := b.connect()
	in := b.inJSON(everything)
	run := b.send(conn, in)
	var streamed strings.Builder
	err := conn.Events(t.Context(), run.SessionID, 0, func(item dispatch.Item) error {
		if item.Delta != nil {
			streamed.WriteString(item.Delta.Content)
		}
		if item.Event != nil && item.Event.Seq == 1 {
			close(joined)
		}
		var m regie.Message
		if item.Event != nil && item.Event.Type == regie.EventMessage && json.Unmarshal(item.Event.Body, &m) == nil && m.AI != nil {
			return errSeen
		}
		return nil
	})
	if want := "It is so\né."; streamed.String() != want {
		t.Errorf("streamed %q (%v), want %q", streamed.String(), err, want)
	}
}
