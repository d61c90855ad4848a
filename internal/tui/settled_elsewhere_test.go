package tui

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

// asked is a model whose person has the keyboard in a dialog.
func asked(t *testing.T, d dialog) *model {
	t.Helper()
	m := newModel(t.Context(), Config{Config: chat.Config{Text: i18n.New("en")}})
	m.handleMessage(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.State = regie.SessionWaitingValidation
	if a, is := d.(*approving); is {
		a.attach(m)
	}
	m.openDialog(d)
	m.armed = true
	return m
}

// happens has an event reach the chat.
func happens(t *testing.T, m *model, kind regie.EventType, body any) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	m.handleItem(dispatch.Item{Event: &regie.Event{Seq: m.Seen + 1, Type: kind, Body: data}})
}

// typing types a text, and Enter.
func typing(m *model, said string) {
	for _, r := range said {
		m.handleMessage(pressed(r))
	}
	m.handleMessage(tea.KeyPressMsg{Code: tea.KeyEnter})
}

// What is settled elsewhere says so, and Up has what was typed for it.
func TestSettledElsewhere(t *testing.T) {
	first, second := regie.NewID(), regie.NewID()
	approval := func() *approving {
		a := batch(regie.Approval{ID: regie.NewID(), State: regie.ApprovalOpen, Reviews: []regie.Review{{CallID: first}, {CallID: second}}})
		a.reasons = true
		a.reason.insertText("because of")
		return a
	}
	allowed := func(id regie.ID) map[string]any {
		return map[string]any{"call_id": id, "decision": regie.AnswerAllow, "by": "alice"}
	}
	a := approval()
	q := &questioning{writes: true, asked: regie.Question{ID: regie.NewID(), State: regie.WaitOpen}}
	q.text.insertText("because of")
	b := approval()
	for _, row := range []struct {
		name  string
		d     dialog
		kind  regie.EventType
		body  map[string]any
		said  string
		stays bool // another call is asked about
	}{
		{"approval", a, regie.EventApproval, map[string]any{
			"approval_id": a.Asked.ID, "state": regie.ApprovalDecided, "calls": []any{allowed(first), allowed(second)},
		}, "elsewhere, by alice: allowed once", false},
		{"one call", b, regie.EventApproval, map[string]any{"approval_id": b.Asked.ID, "state": regie.ApprovalOpen, "calls": []any{allowed(first)}}, "elsewhere, by alice: allowed once", true},
		{"question", q, regie.EventQuestion, map[string]any{
			"question_id": q.asked.ID, "state": regie.WaitResolved, "reply": map[string]any{"text": "blue", "by": "alice"},
		}, "elsewhere, by alice: blue", false},
		{"state", approval(), regie.EventSessionState, map[string]any{"state": regie.SessionActive}, "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := asked(t, row.d)
			happens(t, m, row.kind, row.body)
			if (m.dialog != nil) != row.stays || m.armed {
				t.Fatalf("the dialog stands there: %v, with the keyboard: %v", m.dialog != nil, m.armed)
			}
			if m.last != nil || !m.draft.isEmpty() || !slices.Contains(m.history.list, "because of") {
				t.Errorf("the prompt holds %q, and %q is known", m.draft.fullText(), m.history.list)
			}
			if out := strings.Join(m.paper.out, "\n"); !strings.Contains(out, row.said) {
				t.Errorf("%q is not said:\n%s", row.said, out)
			}
		})
	}
}
