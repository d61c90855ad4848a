package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestWokenDocument: a run that waited for a person goes on with AGENTS.md as it is then, also in
// another process, and what was sent before can still be shown (decision 53).
func TestWokenDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string // "" is no file
		levels        int    // events that tell it
	}{
		"changed":   {"Seals are red.\n", "Seals are blue.\n", 1},
		"appeared":  {"", "Seals are blue.\n", 1},
		"went":      {"Seals are red.\n", "", 1},
		"unchanged": {"Seals are red.\n", "Seals are red.\n", 0},
		"never was": {"", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, says("", write("a", "a.txt", "one\n")), says("Done."))
			b := newBed(t, m)
			path := filepath.Join(b.root, "AGENTS.md")
			document := func(text string) {
				t.Helper()
				err := os.WriteFile(path, []byte(text), 0o600)
				if text == "" {
					err = os.Remove(path)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			document(c.before + " ")
			document(c.before)
			conn := b.connect()
			run, err := conn.Submit(t.Context(), b.request(approval.Policy{}))
			if err == nil {
				err = conn.Wait(t.Context(), run.RoundID)
			}
			if err != nil {
				t.Fatal(err)
			}
			first := m.last()
			document(c.after + " ")
			document(c.after)
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
			conn = b.connect()
			defer conn.Close()
			b.approveAll(conn)
			if err := conn.Wait(t.Context(), run.RoundID); err != nil {
				t.Fatal(err)
			}
			for when, prompt := range map[string]string{c.before: first, c.after: m.last()} {
				if says := strings.TrimSpace(when); says != "" && !strings.Contains(prompt, says) {
					t.Errorf("%q is not in %s", says, prompt)
				}
			}
			if c.before != c.after && c.before != "" && strings.Contains(m.last(), strings.TrimSpace(c.before)) {
				t.Errorf("the model was told what is no longer so: %s", m.last())
			}
			told := 0
			for _, e := range b.events(run.SessionID) {
				if e.Type == regie.EventLevels {
					told++
				}
			}
			if told != c.levels {
				t.Errorf("told %d times", told)
			}
			b.shown(conn, run, 2)
			if reports, err := conn.Verify(t.Context(), store.LogFilter{ID: run.SessionID}); err != nil || len(reports) == 0 || reports[0].Error != "" {
				t.Errorf("%+v %v", reports, err)
			}
			removed, err := conn.Remove(t.Context(), dispatch.RemoveRequest{SessionID: run.SessionID})
			want := int64(0)
			for _, text := range []string{c.before, c.after} {
				if text != "" {
					want++
				}
			}
			if c.before == c.after && want == 2 {
				want = 1
			}
			if err != nil || removed.Blobs != want {
				t.Errorf("%d texts went with the session, want %d; %v", removed.Blobs, want, err)
			}
		})
	}
}

// approveAll says yes to all that waits.
func (b *bed) approveAll(conn *app.Conn) {
	b.t.Helper()
	inbox, err := conn.Inbox(b.t.Context(), store.InboxFilter{Root: b.root})
	if err != nil || len(inbox.Approvals) == 0 {
		b.t.Fatalf("%+v, %v", inbox, err)
	}
	for _, asked := range inbox.Approvals {
		var all []regie.Decision
		for _, review := range asked.Reviews {
			all = append(all, regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow})
		}
		if _, err := conn.Decide(b.t.Context(), decide(asked, "x", all...)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// shown has the prompts of a round rebuilt from the store, each the very bytes that were sent.
func (b *bed) shown(conn *app.Conn, run dispatch.Run, exchanges int) {
	b.t.Helper()
	for n := range exchanges {
		p, err := conn.Prompt(b.t.Context(), dispatch.PromptRequest{RoundID: run.RoundID, Exchange: n + 1})
		if err != nil || !p.Exact() {
			b.t.Errorf("exchange %d is not what was sent: %v\n%s", n+1, err, p.Body)
		}
	}
}
