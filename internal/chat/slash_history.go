package chat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// maxHistory is how many slash commands are kept, of all workspaces; twice as many are written
	// before the file is cut.
	maxHistory = 500
	// maxHistoryFile and maxHistoryLine bound what is read and written, in bytes.
	maxHistoryFile, maxHistoryLine = 4 << 20, 2 << 10
)

// History keeps the slash commands that a person types, in a private file next to the store, which
// has their messages. It is a convenience: what cannot be read or written is left out.
type History struct {
	mu   sync.Mutex
	file string
}

// Typed is a slash command that was typed.
type Typed struct {
	At   time.Time `json:"at"`
	Root string    `json:"root"`
	Text string    `json:"text"`
}

// NewHistory returns the history in a data directory.
func NewHistory(dataDir string) *History {
	return &History{file: filepath.Join(dataDir, "slash_commands.jsonl")}
}

// Add remembers a line that was typed in a workspace.
func (h *History) Add(root, line string) {
	if h == nil || len(line) > maxHistoryLine {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	data, err := json.Marshal(Typed{time.Now(), root, line})
	if err != nil {
		return
	}
	if old := h.read(); bytes.Count(old, []byte("\n")) >= 2*maxHistory {
		lines := bytes.SplitAfter(old, []byte("\n"))
		_ = os.WriteFile(h.file, bytes.Join(lines[len(lines)-maxHistory:], nil), 0o600)
	}
	file, err := os.OpenFile(h.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.Write(append(data, '\n'))
}

// Typed returns the slash commands of a workspace, the oldest first.
func (h *History) Typed(root string) (out []Typed) {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for line := range bytes.Lines(h.read()) {
		var one Typed
		if json.Unmarshal(line, &one) == nil && one.Root == root {
			out = append(out, one)
		}
	}
	return out
}

func (h *History) read() []byte {
	if info, err := os.Stat(h.file); err != nil || info.Size() > maxHistoryFile {
		return nil
	}
	data, _ := os.ReadFile(h.file)
	return data
}
