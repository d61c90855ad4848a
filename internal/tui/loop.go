package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/chat"
)

// done is the function that finished work hands back to the loop.
type done func()

// delayCommand returns a command that has something happen in the loop after a while.
func delayCommand(d time.Duration, then done) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return then })
}

// loop runs work outside the program's loop.
type loop struct {
	ctx  context.Context
	cmds []tea.Cmd     // what the library has not got
	last chan struct{} // closed once the last work is done that waits for the work before it
}

// runBeside runs work on a goroutine of the library, and its result in the loop.
func (l *loop) runBeside(work chat.Work) {
	l.queueCommand(func() tea.Msg { return done(work(l.ctx)) })
}

// inOrder runs work after the work before it, in the order of the person's commands.
func (l *loop) inOrder(work chat.Work) {
	before, over := l.last, make(chan struct{})
	l.last = over
	l.runBeside(func(ctx context.Context) func() {
		if before != nil {
			select {
			case <-before:
			case <-ctx.Done():
			}
		}
		then := work(ctx)
		return func() {
			if then != nil {
				then()
			}
			close(over)
		}
	})
}

// queueCommand has the library run a command once the loop is done with a message.
func (l *loop) queueCommand(cmd tea.Cmd) {
	if cmd != nil {
		l.cmds = append(l.cmds, cmd)
	}
}

// takeCommands returns the commands that the library has not got.
func (l *loop) takeCommands() tea.Cmd {
	cmds := l.cmds
	l.cmds = nil
	return tea.Batch(cmds...)
}
