package tui

import (
	"context"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/text"
)

// edit has the person change the arguments in their editor.
func (a *approving) edit(m *model) {
	a.Busy = true
	run := &editing{ctx: m.ctx, editor: m.Editor, arguments: a.Review().Arguments, draft: a.Edit.Draft}
	m.run(tea.Exec(run, func(error) tea.Msg {
		return done(func() tea.Cmd {
			a.Edited(run.edited, run.err)
			return m.drain()
		})
	}))
}

// editedKeys are those of a call that was edited.
func editedKeys(t *text.Printer, e *chat.EditedCall) []string {
	if e.Refused {
		return []string{
			t.T("[e] edit again"), t.T("[b] as it was proposed"), t.T("[n] no"),
			t.T("[r] no, because…"), t.T("[l] later"),
		}
	}
	list := []string{t.T("[y] once, as edited"), t.T("[e] edit"), t.T("[n] no"), t.T("[r] no, because…")}
	if e.Cut {
		list = append(list, t.T("[v] whole diff"))
	}
	return append(list, t.T("[l] later"))
}

// editing is a person's editor with the arguments of a call; it has the terminal to itself.
type editing struct {
	ctx              context.Context
	editor           chat.Editor
	arguments, draft []byte
	edited           []byte
	err              error
}

// Run implements tea.ExecCommand.
func (e *editing) Run() error {
	e.edited, e.err = chat.Edit(e.ctx, e.editor, e.arguments, e.draft)
	return nil
}

// SetStdin, SetStdout and SetStderr implement tea.ExecCommand: the editor has the process's own.
func (e *editing) SetStdin(io.Reader)  {}
func (e *editing) SetStdout(io.Writer) {}
func (e *editing) SetStderr(io.Writer) {}
