//go:build faults

package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// The stages of an entry.
const (
	sent    = "sent"
	acked   = "acked"
	refused = "refused"
)

// entry is something that the person said, or heard in return. Exactly one of what follows At is set.
type entry struct {
	Key    string                  `json:"key"` // the request's own id
	Stage  string                  `json:"stage"`
	Code   regie.Code              `json:"code,omitempty"` // why it was refused
	PID    int                     `json:"pid"`
	At     time.Time               `json:"at"`
	Decide *dispatch.DecideRequest `json:"decide,omitempty"`
	Answer *dispatch.AnswerRequest `json:"answer,omitempty"`
	Note   *dispatch.Run           `json:"note,omitempty"` // what was answered
	Word   *word                   `json:"word,omitempty"`
}

// word is a stopping word, or "RESUME".
type word struct {
	Word  regie.StopRequest `json:"word"`
	Round regie.ID          `json:"round"`
}

const resume regie.StopRequest = "RESUME"

// journal is what the person remembers over the deaths of their processes. Each entry is one write, so that two processes can share it.
type journal struct {
	file    *os.File
	earlier []entry
}

func openJournal(path string) (*journal, error) {
	earlier, err := readJournal(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return &journal{file: file, earlier: earlier}, err
}

func (j *journal) write(e entry) error {
	e.At, e.PID = time.Now(), os.Getpid()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	return err
}

func readJournal(path string) ([]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []entry
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, lines.Err()
}
