package tui

import (
	"context"
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
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

// heard takes in what others have decided.
func (a *approving) heard(m *model, body json.RawMessage) {
	var event struct {
		ID    regie.ID            `json:"approval_id"`
		State regie.ApprovalState `json:"state"`
		Calls []regie.Decision    `json:"calls"`
	}
	if json.Unmarshal(body, &event) != nil || event.ID != a.asked.ID || a.busy {
		return
	}
	a.news(m, event.Calls)
	switch {
	case event.State != regie.ApprovalOpen:
		m.overtaken(a)
		m.Due = m.Waiting()
	case a.review().Decision != nil:
		if m.armed {
			m.sweep(a.written())
		}
		a.advance(m)
	}
}

// news takes in decisions that others have made, and tells of each that was not known. It reports
// whether there were any.
func (a *approving) news(m *model, decisions []regie.Decision) (some bool) {
	news := map[regie.Answer][]regie.Decision{}
	for i := range decisions {
		d := &decisions[i]
		for n := range a.asked.Reviews {
			if review := &a.asked.Reviews[n]; review.CallID == d.CallID && review.Decision == nil && d.Answer != "" {
				review.Decision = d
				news[d.Answer] = append(news[d.Answer], *d)
			}
		}
	}
	for _, answer := range []regie.Answer{
		regie.AnswerAllow, regie.AnswerSession,
		regie.AnswerAlways, regie.AnswerDeny,
	} {
		if list := news[answer]; len(list) > 0 {
			m.Note("     → " + m.Text.T("elsewhere, by %s: %s", plain.Line(list[0].By),
				m.decision(&list[0], len(list))))
			some = true
		}
	}
	return some
}

// again reads the approval, where a decision was refused because somebody else had decided: who did
// is told, or else why it was.
func (a *approving) again(m *model, why error) {
	id := a.asked.ID
	m.Do(chat.Beside, func(ctx context.Context) func() {
		inbox, err := m.Control.Inbox(ctx, store.InboxFilter{ID: id})
		return func() {
			switch {
			case err != nil:
				m.ShowError(why)
			case m.dialog == dialog(a) && !a.busy:
				a.read(m, inbox.Approvals, why)
			}
		}
	})
}

// read takes the approval as it is now; none: it is gone. What the log said of it went by while
// this person's own answer was on its way.
func (a *approving) read(m *model, now []regie.Approval, why error) {
	var decided []regie.Decision
	for i := range now {
		for _, review := range now[i].Reviews {
			if review.Decision != nil {
				decided = append(decided, *review.Decision)
			}
		}
	}
	if !a.news(m, decided) {
		m.ShowError(why)
	}
	if len(now) == 0 || now[0].State != regie.ApprovalOpen {
		m.overtaken(a)
		m.Due = m.Waiting()
		return
	}
	a.asked = now[0]
	if a.review().Decision != nil {
		if m.armed {
			m.sweep(a.written())
		}
		a.advance(m)
	}
}

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
		m.Note("     → " + m.Text.T("elsewhere, by %s: %s", plain.Line(event.Reply.By), m.answer(event.Reply)))
	}
	m.overtaken(q)
	m.Due = m.Waiting()
}
