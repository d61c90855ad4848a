package tui

import (
	"context"
	"strings"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/sanitize"
)

// Aside takes terminal output of the rest of the process, such as its log, while the chat owns the
// terminal. The chat shows it as lines above the prompt. It drops lines while 200 wait.
type Aside chan string

// NewAside returns an Aside without a reader.
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

// handleLog handles input from outside the conversation: output of the rest of the process, and
// signals.
func (m *model) handleLog() {
	m.Do(chat.Beside, func(ctx context.Context) func() {
		select {
		case line := <-m.config.Aside: // nil never has one
			return func() {
				m.Note(sanitize.Strip(line))
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
