package tui

import (
	"context"
	"strings"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
)

// Aside takes what the rest of the process would write to the terminal, its log for example, while
// the chat has that: it is shown as lines above the prompt. What comes while 200 lines wait is
// lost.
type Aside chan string

// NewAside returns one without a reader.
func NewAside() Aside { return make(Aside, 200) }

// Write implements io.Writer. It never blocks and never fails.
func (a Aside) Write(data []byte) (int, error) {
	for line := range strings.Lines(string(data)) {
		select {
		case a <- strings.TrimSuffix(line, "\n"):
		default:
		}
	}
	return len(data), nil
}

// handleLog takes in what comes from outside the conversation: what the rest of the process writes,
// and the signals of the operating system.
func (m *model) handleLog() {
	m.Do(chat.Beside, func(ctx context.Context) func() {
		select {
		case line := <-m.config.Aside: // nil never has one
			return func() {
				m.Note(plain.Strip(line))
				m.handleLog()
			}
		case signal := <-m.Signals:
			return func() {
				m.handleSignal(signal)
				m.handleLog()
			}
		case <-ctx.Done():
			return nil
		}
	})
}
