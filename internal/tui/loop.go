package tui

import (
	"context"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/chat"
)

// done is what work hands back to the loop: what is to happen there.
type done func() tea.Cmd

// loop runs work beside the program's loop.
type loop struct {
	ctx     context.Context
	cmds    []tea.Cmd   // what the library has not got
	ops     []chat.Work // what is said to the Control, in order
	busyOps bool
}

// beside runs work on a goroutine of the library, and what it returns in the loop.
func (l *loop) beside(work chat.Work) tea.Cmd {
	return func() tea.Msg {
		then := work(l.ctx)
		if then == nil {
			return nil
		}
		return done(func() tea.Cmd {
			then()
			return l.drain()
		})
	}
}

// nextOp begins the next of what happens in the order in which the person said it.
func (l *loop) nextOp() {
	if l.busyOps || len(l.ops) == 0 {
		return
	}
	next := l.ops[0]
	l.ops, l.busyOps = l.ops[1:], true
	l.run(l.beside(func(ctx context.Context) func() {
		then := next(ctx)
		return func() {
			l.busyOps = false
			if then != nil {
				then()
			}
			l.nextOp()
		}
	}))
}

// run has the library run a command once the loop is done with a message.
func (l *loop) run(cmd tea.Cmd) {
	if cmd != nil {
		l.cmds = append(l.cmds, cmd)
	}
}

// drain are the commands that the library has not got.
func (l *loop) drain() tea.Cmd {
	cmds := l.cmds
	l.cmds = nil
	return tea.Batch(cmds...)
}
