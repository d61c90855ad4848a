package tui

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// calls is an approval of some calls, each of which writes a file of its own.
func calls(names ...string) *approving {
	a := batch(regie.Approval{ID: regie.NewID(), State: regie.ApprovalOpen})
	for _, name := range names {
		arguments, _ := json.Marshal(map[string]string{"path": name})
		a.Asked.Reviews = append(a.Asked.Reviews, regie.Review{
			CallID: regie.NewID(), Tool: "files.write_file", Verdict: regie.VerdictAsk, Arguments: arguments,
			Preview: regie.Preview{
				Sentence: regie.Say("write 1 line to %s (new file)", name), Diff: "+of " + name + "\n",
				Scopes: []regie.Scope{{Tool: "files.write_file", Kind: regie.ScopeAny, Sentence: regie.Say("any file of this workspace")}},
			},
		})
	}
	return a
}

// opened is a chat in which an approval has just been put to the person.
func opened(t *testing.T, a *approving, width int) *model {
	t.Helper()
	m := newModel(t.Context(), Config{Config: chat.Config{Text: i18n.New("en")}})
	m.handleMessage(tea.WindowSizeMsg{Width: width, Height: 24})
	m.State = regie.SessionWaitingValidation
	m.puts(a)
	return m
}

// batch is an approval that no chat asks about yet.
func batch(asked regie.Approval) *approving {
	return newApproving(&model{Conversation: &chat.Conversation{}}, &asked)
}

// attach has a chat ask about it.
func (a *approving) attach(m *model) { a.m, a.Control, a.Page = m, m.Control, m.Page }

func (m *model) puts(a *approving) {
	a.attach(m)
	m.openDialog(a)
	m.armed = true
	a.Begin()
}

// proposed is such a chat of an engine whose model wants to write files. decided are the answers
// that are stored.
func proposed(t *testing.T, files ...string) (m *model, a *approving, decided func() []regie.Decision) {
	t.Helper()
	m, _ = parked(t, files...)
	inbox := func(of store.InboxFilter) regie.Approval {
		t.Helper()
		found, err := m.Control.Inbox(t.Context(), of)
		if err != nil || len(found.Approvals) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		return found.Approvals[0]
	}
	a = batch(inbox(store.InboxFilter{SessionID: m.Session}))
	id := a.Asked.ID
	m.puts(a)
	return m, a, func() (out []regie.Decision) {
		t.Helper()
		for _, review := range inbox(store.InboxFilter{ID: id}).Reviews {
			if review.Decision != nil {
				out = append(out, *review.Decision)
			}
		}
		return out
	}
}

// answers gives keys to the dialogue, each once the person has looked, with all that follows.
func answers(m *model, keys ...string) {
	for _, key := range keys {
		m.typed = time.Now().Add(-quiet)
		m.handleDue()
		if key == "Enter" {
			works(m, m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter}))
			continue
		}
		m.handleMessage(pressed([]rune(key)[0]))
		if m.letter.name != "" {
			m.letterStands(m.letter.serial)
			works(m, m.takeCommands())
		}
	}
}

func scrollback(m *model) string { return ansi.Strip(strings.Join(m.paper.out, "\n")) + "\n" }

func shown(m *model) string {
	var out strings.Builder
	m.armed = true
	for _, line := range m.renderDialog(m.screen.height) {
		for _, s := range line {
			out.WriteString(s.text)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// TestYesToAllShowsAll: all calls are named when an approval opens, and none runs by Y whose
// preview was not shown (decision 20).
func TestYesToAllShowsAll(t *testing.T) {
	m, _, decided := proposed(t, "harmless.txt", "precious.txt", "third.txt")
	if out := scrollback(m); !strings.Contains(out, "  2  write 1 line to precious.txt") || strings.Contains(out, "+of precious.txt") {
		t.Errorf("the head does not name the calls:\n%s", out)
	}
	answers(m, "Y")
	if n := len(decided()); n > 0 || m.armed {
		t.Fatalf("%d answers were stored before the previews were shown; the keyboard is the dialogue's: %v", n, m.armed)
	}
	for _, name := range []string{"precious.txt", "third.txt"} {
		if n := strings.Count(scrollback(m), "│ +of "+name); n != 1 {
			t.Errorf("the preview of %s is written %d times:\n%s", name, n, scrollback(m))
		}
	}
	if view := shown(m); !strings.Contains(view, "[Y] again allows these 3 calls") {
		t.Errorf("it is not asked again:\n%s", view)
	}
	answers(m, "b") // back to the first one
	if view := shown(m); !strings.Contains(view, "[y] once") {
		t.Errorf("there is no way back:\n%s", view)
	}
	answers(m, "Y")
	if got := decided(); len(got) != 3 || got[2].Answer != regie.AnswerAllow {
		t.Fatalf("all is shown, and it is asked again: %+v", got)
	}
}

// TestLongerAnswerShowsAll: an answer for longer allows no other call of the same approval that was
// not shown.
func TestLongerAnswerShowsAll(t *testing.T) {
	m, a, decided := proposed(t, "docs/a.txt", "docs/b.txt")
	answers(m, "a")
	for range a.Review().Preview.Scopes[1:] { // the widest one is the last
		works(m, m.handleMessage(tea.KeyPressMsg{Code: tea.KeyDown}))
	}
	answers(m, "Enter")
	if out := scrollback(m); len(decided()) > 0 || !strings.Contains(out, "│ +of docs/b.txt") || !strings.Contains(out, "this also allows the calls 2 as shown") {
		t.Fatalf("%d answers were stored before the preview was shown:\n%s", len(decided()), out)
	}
	answers(m, "Enter")
	if got := decided(); len(got) != 2 || got[0].Answer != regie.AnswerAlways || got[1].Answer != regie.AnswerAllow {
		t.Errorf("%+v", got)
	}
}

// TestEditedIsShown: what an edited call would do is written, and nothing is decided before the
// person has said yes to that.
func TestEditedIsShown(t *testing.T) {
	m, a, decided := proposed(t, "a.txt", "b.txt")
	const edited = `{"content":"zwei\n","mode":"overwrite","path":"old.txt"}`
	name := filepath.Join(m.Request.Root, "old.txt")
	holds := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	holds("old\n")
	m.Editor = func(_ context.Context, path string) error {
		return os.WriteFile(filepath.Clean(path), []byte(edited), 0o600)
	}
	draft, err := chat.Edit(t.Context(), m.Editor, a.Review().Arguments, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Edited(draft, nil)
	works(m, m.takeCommands())
	if out := scrollback(m); len(decided()) > 0 || !strings.Contains(out, "│ +zwei") {
		t.Fatalf("%d answers were stored; the scrollback has:\n%s", len(decided()), out)
	}
	if view := shown(m); !strings.Contains(view, "[y] once, as edited") || strings.Contains(view, "[Y]") || strings.Contains(view, "[s]") {
		t.Errorf("the keys of an edited call:\n%s", view)
	}
	answers(m, "Y") // which is for the calls as they were proposed, and begins a message here
	if len(decided()) > 0 || a.answer != "" || a.reasons || m.draft.fullText() != "Y" {
		t.Fatalf("%+v, the prompt holds %q", decided(), m.draft.fullText())
	}
	m.draft = editor{}
	holds("moved\n")
	answers(m, "y")
	if out := scrollback(m); len(decided()) > 0 || !strings.Contains(out, "│ -moved") {
		t.Fatalf("what is otherwise by now is not shown:\n%s", out)
	}
	if err := errors.Join(os.Remove(name), os.Mkdir(name, 0o700)); err != nil {
		t.Fatal(err)
	}
	m.paper.out = nil
	answers(m, "y")
	if out := scrollback(m); len(decided()) > 0 || strings.Count(out, "✗") != 1 {
		t.Fatalf("that it cannot be done any more is not said once:\n%s", out)
	}
	answers(m, "y") // which was for the call as it is written, and is none for it as it was proposed
	if view := shown(m); len(decided()) > 0 || m.dialog == nil || !strings.Contains(view, "[b] as it was proposed") || strings.Contains(view, "[y]") {
		t.Fatalf("%+v\n%s", decided(), view)
	}
	a.Edited([]byte(`{"path":`), regie.Errorf(regie.CodeBadArguments, "the edited arguments are not JSON"))
	works(m, m.takeCommands())
	answers(m, "y")
	if view := shown(m); len(decided()) > 0 || !strings.Contains(view, "[b] as it was proposed") {
		t.Fatalf("%+v\n%s", decided(), view)
	}
	m.paper.out = nil
	answers(m, "b")
	if out, view := scrollback(m), shown(m); !strings.Contains(out, "│ +of a.txt") || !strings.Contains(view, "[y] once") || strings.Contains(view, "edited") {
		t.Fatalf("as it was proposed:\n%s\n%s", out, view)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	holds("once more\n")
	a.Edited(draft, nil)
	works(m, m.takeCommands())
	answers(m, "y")
	if got := decided(); len(got) != 1 || string(got[0].Arguments) != edited {
		t.Fatalf("%+v", got)
	}
	if a.At != 1 || a.Edit.Review != nil {
		t.Errorf("call %d is asked about, edited: %v", a.At+1, a.Edit.Review != nil)
	}
}
