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
func (b *harness) ask(in dispatch.RunRequest) store.RoundView {
	b.t.Helper()
	conn := b.connect()
	run := b.send(conn, in)
	return b.await(conn, run)
}

// inJSON is a request whose model replies in the JSON dialect.
func (b *harness) inJSON(policy approval.Policy) dispatch.RunRequest {
	in := b.request(policy)
	in.Dialect = regie.DialectJSON
	return in
}

// events reads the whole log of a session.
func (b *harness) events(session regie.ID) []regie.Event {
	b.t.Helper()
	conn := b.connect()
	rounds, err := conn.List(b.t.Context(), store.RoundFilter{Root: b.root, Limit: 1})
	if err != nil || len(rounds) == 0 || rounds[0].Session.ID != session {
		b.t.Fatalf("the newest run is %+v, %v", rounds, err)
	}
	view := b.round(conn, rounds[0].Round.ID)
	return b.eventsOf(conn, view)
}

func (b *harness) eventsOf(conn service, view store.RoundView) (out []regie.Event) {
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
		m := newModel(t, replyWith("Sure!\n```json\n{\"pre_text\": \"It is done.\"}\n```"))
		b := newHarness(t, m)
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
		m := newModel(t, replyWith(`{"pre_text":"I look.","data_commands":[{"type":"files.list_files"},{"type":"files.read_file","params":{"path":"nothing"}}]}`),
			replyWith(`{"pre_text":"There is nothing.","plan":{"steps":[{"text":"look","status":"done"}]}}`))
		b := newHarness(t, m)
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
		m := newModel(t, replyWith(`{"pre_text":"I write.","action_commands":[`+writeX+`],"post_text":"Written."}`))
		b := newHarness(t, m)
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
		m := newModel(t, replyWith(`{"pre_text":"I write.","action_commands":[`+writeX+`],"post_text":"Written.","keep_control":true}`), replyWith(`{"pre_text":"And now?"}`))
		b := newHarness(t, m)
		view := b.ask(b.inJSON(everything))
		expect(t, view, regie.EndAnswered, "SUCCEEDED")
		if len(view.Exchanges) != 2 || !strings.Contains(m.last(), "[ACTIONS_EXECUTED]") {
			t.Errorf("%d exchanges", len(view.Exchanges))
		}
	})
	t.Run("or one of them fails", func(t *testing.T) {
		m := newModel(t, replyWith(`{"pre_text":"I write.","action_commands":[{"type":"files.write_file","params":{"path":".git/x","content":"x"}}],"post_text":"Written."}`), replyWith(`{"pre_text":"I must not."}`))
		b := newHarness(t, m)
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

// TestSeedNames calls tools by the names of the seeds, in either dialect (decision 64).
func TestSeedNames(t *testing.T) {
	t.Parallel()
	for _, dialect := range []regie.Dialect{regie.DialectNative, regie.DialectJSON} {
		m := newModel(t, replyWith("", call{"a", "list_files", `{}`}, call{"b", "read_file", `{"path":"a.txt"}`}, call{"c", "search_text", `{"query":"note"}`}), replyWith("Done."))
		if dialect == regie.DialectJSON {
			m.steps = []http.HandlerFunc{
				replyWith(`{"pre_text":"I look.","data_commands":[{"type":"list_files"},{"type":"read_file","params":{"path":"a.txt"}},{"type":"search_text","params":{"query":"note"}}]}`),
				replyWith(`{"pre_text":"Done."}`),
			}
		}
		b := newHarness(t, m)
		b.holds("note\n")
		in := b.request(everything)
		in.Dialect = dialect
		view := b.ask(in)
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
		want := map[regie.Dialect]string{regie.DialectNative: "files__read_file", regie.DialectJSON: "files.read_file"}[dialect]
		if told := m.last(); !strings.Contains(told, `\"name\":\"`+want+`\",\"success\":true,\"duration_ms\":`) {
			t.Errorf("%s: the model was told %s", dialect, told)
		}
	}
}
