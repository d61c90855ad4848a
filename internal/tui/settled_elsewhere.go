package tui

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
)

// moves is a dialog about something that others can settle too, or time.
type moves interface {
	dialog
	// heard takes in what the log says of what is asked.
	heard(m *model, body json.RawMessage)
	// written is what the person has typed into the dialog.
	written() string
}

// overtaken closes a dialog whose question is settled without it. What the person has typed stands
// in the prompt, where nothing is lost; and as with a dialog that opens, Enter does nothing there
// before they have paused: it was meant for the dialog, and would begin a run.
func (m *model) overtaken(d moves) {
	written := d.written()
	armed := m.armed
	m.closeDialog()
	if armed {
		m.sweep(written)
	}
}

// sweep gives the keyboard to the prompt, with what was typed elsewhere.
func (m *model) sweep(written string) {
	m.armed, m.letter.typed, m.typed = false, "", time.Now()
	if m.Interrupting { // they have given it up themselves; Up has it
		m.history.add(written)
		return
	}
	m.swept = true
	if written == "" {
		return
	}
	m.draft.at = len(m.draft.text)
	if !m.draft.empty() {
		m.draft.put("\n")
	}
	m.draft.place(written, recalledLines)
	m.hint = m.Text.T("what you have typed stands in the prompt; it is not sent")
}

// heldBack reports whether an Enter was typed for a dialog that has just gone.
func (m *model) heldBack() bool {
	if m.swept {
		m.hint = m.Text.T("not sent: what this answered is settled; Enter again sends it as a message")
	}
	return m.swept
}

func (a *approving) written() string {
	if a.mode != reasoning {
		return ""
	}
	return a.reason.value()
}

func (a *approving) heard(_ *model, body json.RawMessage) { a.Heard(body) }

func (q *questioning) written() string { return q.text.value() }

// heard takes in that somebody else has answered, or that nobody has.
func (q *questioning) heard(m *model, body json.RawMessage) {
	var event struct {
		ID    regie.ID             `json:"question_id"`
		State regie.WaitState      `json:"state"`
		Reply *regie.QuestionReply `json:"reply"`
	}
	if json.Unmarshal(body, &event) != nil || event.ID != q.asked.ID || event.State == regie.WaitOpen || q.busy {
		return
	}
	if event.Reply != nil {
		said := chat.ReplyWords(m.Text, event.Reply)
		m.Note("     → " + m.Text.T("elsewhere, by %s: %s", plain.Line(event.Reply.By), said))
	}
	m.overtaken(q)
	m.Due = m.Waiting()
}
