package tui

import (
	"context"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/text"
)

// edit has the person change the arguments in their editor.
func (a *approving) edit(m *model) {
	a.busy = true
	review := *a.review()
	run := &editing{ctx: m.ctx, editor: m.Editor, review: &review, draft: a.edited.draft}
	m.run(tea.Exec(run, func(error) tea.Msg {
		return done(func() tea.Cmd {
			a.edits(m, run)
			return m.drain()
		})
	}))
}

// edits takes what the person has written.
func (a *approving) edits(m *model, run *editing) {
	shown := a.edited.review != nil || a.edited.refused
	a.busy, a.edited = false, edit{draft: run.edited}
	if run.err == nil {
		a.preview(m)
		return
	}
	m.ShowError(run.err)
	switch {
	case regie.CodeOf(run.err) != regie.CodeConflict && len(run.edited) > 0:
		a.edited.refused = true
	case shown: // it is as it was proposed again
		m.Page.Call(&a.asked, a.i, a.seen)
	}
	m.askAgain()
}

// edit is a call with the arguments that the person has written, as it would run; review is nil
// where there is none.
type edit struct {
	draft  []byte
	review *regie.Review
	cut    bool // its diff was shortened
	// refused says that it cannot run as it is written. It is not asked about as it was proposed
	// before the person wants that: they have corrected it.
	refused bool
}

// asProposed reports whether a call is asked about as it was proposed.
func (e *edit) asProposed() bool { return e.review == nil && !e.refused }

// arguments are the edited ones that were shown.
func (e *edit) arguments() []byte {
	if e.review == nil {
		return nil
	}
	return e.draft
}

// keys are those of a call that was edited.
func (e *edit) keys(t *text.Printer) []string {
	if e.refused {
		return []string{
			t.T("[e] edit again"), t.T("[b] as it was proposed"), t.T("[n] no"),
			t.T("[r] no, because…"), t.T("[l] later"),
		}
	}
	list := []string{t.T("[y] once, as edited"), t.T("[e] edit"), t.T("[n] no"), t.T("[r] no, because…")}
	if e.cut {
		list = append(list, t.T("[v] whole diff"))
	}
	return append(list, t.T("[l] later"))
}

// preview shows what the call would do with the arguments that the person has written: nothing runs
// that was not shown (decision 20).
func (a *approving) preview(m *model) {
	a.busy = true
	call, i := a.review().CallID, a.i
	in := dispatch.DecideRequest{ApprovalID: a.asked.ID, Decisions: []regie.Decision{
		{CallID: call, Answer: regie.AnswerAllow, Arguments: a.edited.draft},
	}}
	m.Do(chat.Held, func(ctx context.Context) func() {
		found, err := m.Control.Review(ctx, in)
		return func() {
			a.busy, a.edited.review = false, nil
			switch {
			case regie.CodeOf(err) == regie.CodeConflict:
				a.again(m, err)
			case err != nil:
				m.ShowError(err)
				a.refuse(m)
			case m.dialog == dialog(a) && len(found.Reviews) == 1:
				a.edited.review = &found.Reviews[0]
				a.edited.cut = m.Page.Edited(i+1, a.edited.review)
				m.askAgain()
			}
		}
	})
}

// refuse has the person say what is to become of a call that cannot run as they have written it.
func (a *approving) refuse(m *model) {
	a.edited.review, a.edited.refused = nil, true
	m.askAgain()
}

// refusedKey is the keyboard then. It reports whether it was one of its keys.
func (a *approving) refusedKey(m *model, typed string) (is bool) {
	switch typed {
	case "y", "o":
		m.hint = m.Text.T("it cannot run as you have edited it: e edits it again, b is as it was proposed")
	case "b":
		a.edited = edit{draft: a.edited.draft}
		m.Page.Call(&a.asked, a.i, a.seen)
		m.askAgain()
	default:
		return false
	}
	return true
}

// editing is a person's editor with the arguments of a call; it has the terminal to itself.
type editing struct {
	ctx    context.Context
	editor chat.Editor
	review *regie.Review
	draft  []byte
	edited []byte
	err    error
}

// Run implements tea.ExecCommand.
func (e *editing) Run() error {
	e.edited, e.err = chat.Edit(e.ctx, e.editor, e.review.Arguments, e.draft)
	return nil
}

// SetStdin, SetStdout and SetStderr implement tea.ExecCommand: the editor has the process's own.
func (e *editing) SetStdin(io.Reader)  {}
func (e *editing) SetStdout(io.Writer) {}
func (e *editing) SetStderr(io.Writer) {}
