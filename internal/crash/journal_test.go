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

	"github.com/regie-run/regie/internal/invariant"
)

// journal is what the person remembers over the deaths of their processes. Each entry is one write,
// so that two processes can share it. A death can cut a write between two pages of the file: such
// an entry ends at the line feed with which the next one begins, and was never written. What it
// would have said is said after it, so it was not said either; what was heard and is not there is
// heard again.
type journal struct {
	file    *os.File
	earlier []invariant.Entry
}

func openJournal(path string) (*journal, error) {
	earlier, err := readJournal(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return &journal{file: file, earlier: earlier}, err
}

func (j *journal) write(e invariant.Entry) error {
	e.At, e.Holder = time.Now(), os.Getpid()
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(append([]byte{'\n'}, line...), '\n'))
	}
	return err
}

func readJournal(path string) ([]invariant.Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []invariant.Entry
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e invariant.Entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			out = append(out, e)
		}
	}
	return out, lines.Err()
}
