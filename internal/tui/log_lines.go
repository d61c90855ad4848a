package tui

import (
	"context"
	"strings"
	"sync"

	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
)

// maxAside bounds what waits to be shown, in lines; of more the oldest go.
const maxAside = 200

// Aside takes what the rest of the process would write to the terminal, its log for example, while
// the chat has that: it is shown as lines above the prompt. The zero value is not ready: see
// NewAside.
type Aside struct {
	mu    sync.Mutex
	lines []string
	begun string // a line without its end
	wake  chan struct{}
}

// NewAside returns one that nobody reads yet.
func NewAside() *Aside { return &Aside{wake: make(chan struct{}, 1)} }

// Write implements io.Writer. It never blocks and never fails.
func (a *Aside) Write(data []byte) (int, error) {
	a.mu.Lock()
	lines := strings.Split(a.begun+string(data), "\n")
	a.begun = lines[len(lines)-1]
	a.lines = append(a.lines, lines[:len(lines)-1]...)
	a.lines = a.lines[max(0, len(a.lines)-maxAside):]
	a.mu.Unlock()
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return len(data), nil
}

// Take returns the lines that were not shown yet.
func (a *Aside) Take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	lines := a.lines
	a.lines = nil
	return lines
}

// aside shows what others write, and waits for more.
func (m *model) aside() {
	if m.config.Aside == nil {
		return
	}
	for _, line := range m.config.Aside.Take() {
		m.Note(plain.Strip(line))
	}
	wake := m.config.Aside.wake
	m.Do(chat.Beside, func(ctx context.Context) func() {
		select {
		case <-wake:
			return m.aside
		case <-ctx.Done():
			return nil
		}
	})
}
