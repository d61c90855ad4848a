package tui

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/sanitize"
)

// Run holds the conversation until the person leaves. It returns the errors of Control that the
// chat cannot handle; a refused message is shown, and the chat continues.
func Run(ctx context.Context, c Config) (chat.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newModel(ctx, c)
	defer func() {
		m.StopFollowing()
		m.MarkRead(ctx)
	}()
	out := &terminal{File: c.Out, live: m.screen.lastDrawn}
	m.screen.stands = out.drawn.Load
	if _, err := fmt.Fprintf(c.Out, "\r%s\x1b[K\r\n", formatGreeting(m)); err != nil {
		return m.result, err
	}
	program := tea.NewProgram(
		m, tea.WithContext(ctx), tea.WithInput(c.In), tea.WithOutput(out), tea.WithEnvironment(c.Env),
		tea.WithoutSignalHandler(), tea.WithFilter(reflowCursor(m, out)),
		tea.WithFPS(120), // a key is seen within 9 ms
	)
	_, err := program.Run()
	m.result.Last = m.Last
	switch {
	case m.err != nil:
		err = m.err
	case errors.Is(err, tea.ErrProgramKilled) && context.Cause(ctx) != nil && m.leaving:
		err = nil
	}
	return m.result, err
}

// formatGreeting returns the line that says where the chat is. It is written before the first
// drawing, so that the live part never begins on the terminal's first line: some terminals (tmux)
// keep text erased from there.
func formatGreeting(m *model) string {
	m.paper.wrote = true
	return paintLine([]span{
		{"regie ", style{bold: true}},
		{sanitize.Line(m.Text.T("%s in %s", m.Request.Agent, m.Request.Root)), style{faint: true}},
	}, m.screen.colours)
}
