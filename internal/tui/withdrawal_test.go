package tui

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// parked is a chat whose run waits for an approval, which was put off, of calls that write files.
// asked are the texts of all messages that a model was asked with.
func parked(t *testing.T, files ...string) (*model, func() string) {
	t.Helper()
	calls := make([]string, len(files))
	for i, name := range files {
		arguments, err := json.Marshal(map[string]string{"path": name, "content": "of " + name + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		calls[i] = fmt.Sprintf(`{"index":%d,"id":"c%d","type":"function","function":{"name":"files__write_file","arguments":%q}}`, i, i, arguments)
	}
	var asked []string
	var held sync.Mutex
	c := engine(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		held.Lock()
		defer held.Unlock()
		asked = append(asked, string(body))
		said, finish := `"tool_calls":[`+strings.Join(calls, ",")+`]`, "tool_calls"
		if len(asked) > 1 {
			said, finish = `"content":"Fine."`, "stop"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, `data: {"choices":[{"index":0,"delta":{%s},"finish_reason":%q}]}`+"\n\ndata: [DONE]\n\n", said, finish)
	})
	request := c.Request
	request.SessionID, request.ClientID, request.Text = regie.NewID(), regie.NewID().String(), "write"
	run, err := c.Control.Submit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	becomes(t, c, request.SessionID, run.Seq, regie.SessionWaitingValidation)
	m := newModel(t.Context(), c)
	m.handleMessage(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Session, m.State, m.Seen, m.Round = request.SessionID, regie.SessionWaitingValidation, run.Seq, run.RoundID
	m.Feed = chat.Follow(t.Context(), c.Control, m.Session, run.Seq)
	t.Cleanup(m.Feed.Stop)
	return m, func() string {
		held.Lock()
		defer held.Unlock()
		return strings.Join(asked, "\n")
	}
}

// becomes waits for a state of a session.
func becomes(t *testing.T, c Config, session regie.ID, after int64, state regie.SessionState) {
	t.Helper()
	hears(t, chat.Follow(t.Context(), c.Control, session, after), regie.EventSessionState, map[string]string{"state": string(state)})
}

// enterText types a message, and has what follows happen.
func enterText(m *model, said string) {
	for _, r := range said {
		works(m, m.handleMessage(pressed(r)))
	}
	works(m, m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter}))
}

// alone presses a letter, which stands alone.
func alone(m *model, r rune) {
	m.handleMessage(pressed(r))
	m.letterStands(m.letter.serial)
	works(m, m.takeCommands())
}

// Nothing is lost of several messages that are written while something waits: they are one that is
// sent, or stands in the prompt.
func TestSecondMessageWhileWaiting(t *testing.T) {
	m, asked := parked(t, "a.txt")
	enterText(m, "first important message")
	if _, ok := m.dialog.(*confirming); !ok || !m.armed {
		t.Fatalf("%T asks, with the keyboard: %v", m.dialog, m.armed)
	}
	enterText(m, "second message")
	alone(m, 'n')
	if m.dialog != nil || m.draft.fullText() != "first important message\nsecond message" {
		t.Fatalf("the prompt holds %q", m.draft.fullText())
	}
	m.handleMessage(ctrl('u'))
	m.draft = editor{}
	enterText(m, "one more")
	works(m, m.handleMessage(tea.PasteMsg{Content: "and another"}))
	m.handleMessage(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	if m.dialog != nil || m.draft.fullText() != "one more\nand another" {
		t.Fatalf("Ctrl-C leaves %q", m.draft.fullText())
	}
	works(m, m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter}))
	alone(m, 'y')
	ends(t, chat.Follow(t.Context(), m.Control, m.Session, m.Seen), m.Round)
	if got := asked(); !strings.Contains(got, `one more\nand another`) || !m.draft.isEmpty() {
		t.Errorf("the prompt holds %q, the model was asked\n%s", m.draft.fullText(), got)
	}
}

// Of two messages of which the first is still being looked into the second one is asked about, and
// nothing of what is being written in the meantime is lost.
func TestMessageOnItsWay(t *testing.T) {
	m, _ := parked(t, "a.txt")
	types(m, "first")
	one := m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter})
	types(m, "second")
	two := m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter})
	types(m, "thi")
	works(m, tea.Batch(one, two))
	if _, ok := m.dialog.(*confirming); !ok || m.armed {
		t.Fatalf("%T asks, with the keyboard: %v", m.dialog, m.armed)
	}
	types(m, "rd")
	m.Start(regie.NewID())
	if m.draft.fullText() != "second\nfirst\nthird" {
		t.Errorf("in another chat the prompt holds %q", m.draft.fullText())
	}
}

// A message that was not sent comes back without anything of what has been written since going, and
// is the message that it was.
func TestNotSent(t *testing.T) {
	for _, row := range []struct{ not, written, want string }{
		{"one", "", "one"},
		{"one", "two", "one\ntwo"},
		{"/one", "two", "//one\ntwo"},
		{strings.Repeat("one\n", 100), "two", strings.Repeat("one\n", 100) + "\ntwo"},
	} {
		m := looking(t)
		m.handleMessage(tea.PasteMsg{Content: row.written})
		surface{m}.Sent(&chat.Outgoing{Session: m.Session, Typed: row.not}, dispatch.Run{}, regie.Errorf(regie.CodeInternal, "no"))
		if got := m.draft.fullText(); got != row.want || m.draft.at != len(m.draft.text) {
			t.Errorf("the prompt holds %q, the cursor at %d", got, m.draft.at)
		}
	}
	m := looking(t)
	types(m, "two")
	surface{m}.Sent(&chat.Outgoing{Session: m.Session, Typed: "!rm one", Command: true}, dispatch.Run{}, regie.Errorf(regie.CodeInternal, "no"))
	if got := m.draft.fullText(); got != "two" || !slices.Contains(m.history.list, "!rm one") {
		t.Errorf("a command and a message are one: %q", got)
	}
}
