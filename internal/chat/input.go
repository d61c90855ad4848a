package chat

import (
	"bytes"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/regie-run/regie"
)

const (
	// together is how long after a line another one counts as pasted with it, in milliseconds.
	together = 30
	// maxLine limits one message, in bytes; longer input is cut into several.
	maxLine = 1 << 20
)

// Input reads a person's lines from a terminal, or a program's from a pipe. A line that ends in a
// backslash goes on with the next; at a terminal, lines that arrive at once, as a paste does, are
// one message.
type Input struct {
	file     *os.File
	terminal bool
	lines    chan string
	quit     chan struct{}
	wake     [2]*os.File // a byte here ends the waiting for input
	gate     sync.Mutex  // held during reads and between Pause and Resume
	left     []byte      // read and not yet a line
	ended    bool
}

// NewInput starts to read. Lines is closed at the end of the input.
func NewInput(file *os.File, terminal bool) (*Input, error) {
	in := &Input{file: file, terminal: terminal, lines: make(chan string), quit: make(chan struct{})}
	var err error
	if in.wake[0], in.wake[1], err = os.Pipe(); err != nil {
		return nil, regie.Errorf(regie.CodeInternal, "the terminal cannot be read: %v", err)
	}
	go in.readInput()
	return in, nil
}

// Lines are the messages of the person.
func (in *Input) Lines() <-chan string { return in.lines }

// Pause leaves the terminal alone until the returned function is called: an editor is about to have
// it.
func (in *Input) Pause() (resume func()) {
	in.gate.Lock()
	return in.gate.Unlock
}

// Close ends the reading.
func (in *Input) Close() {
	close(in.quit)
	_ = in.wake[1].Close()
}

// readInput is the goroutine of an Input.
func (in *Input) readInput() {
	defer in.wake[0].Close()
	defer close(in.lines)
	var message []string
	for {
		line, ok := in.nextLine()
		line, more := strings.CutSuffix(line, "\\")
		if ok {
			message = append(message, line)
		}
		if ok && (more || in.terminal && (bytes.IndexByte(in.left, '\n') >= 0 || in.pollInput(together))) {
			continue
		}
		if len(message) > 0 {
			select {
			case in.lines <- strings.Join(message, "\n"):
			case <-in.quit:
				return
			}
		}
		if message = nil; !ok {
			return
		}
	}
}

// nextLine returns the next line. At the end of the input, a rest without a line feed counts as a
// line.
func (in *Input) nextLine() (string, bool) {
	for {
		line, rest, found := bytes.Cut(in.left, []byte("\n"))
		if found || len(line) >= maxLine || in.ended && len(line) > 0 {
			in.left = rest
			return strings.TrimSuffix(string(line), "\r"), true
		}
		if in.ended {
			return "", false
		}
		in.fillBuffer()
	}
}

// fillBuffer waits for input and reads it. Another reader may have taken the input meanwhile.
func (in *Input) fillBuffer() {
	in.pollInput(-1)
	in.gate.Lock()
	defer in.gate.Unlock()
	select {
	case <-in.quit:
		in.left, in.ended = nil, true
	default:
		if in.pollInput(0) {
			buffer := make([]byte, 4096)
			n, err := in.file.Read(buffer)
			in.left, in.ended = append(in.left, buffer[:n]...), err != nil
		}
	}
}

// pollInput waits some milliseconds, or without end for -1, and reports whether there is something
// to read, be it the end. Close ends it.
func (in *Input) pollInput(milliseconds int) bool {
	fds := []unix.PollFd{
		{Fd: int32(in.file.Fd()), Events: unix.POLLIN},
		{Fd: int32(in.wake[0].Fd()), Events: unix.POLLIN},
	}
	_, err := unix.Poll(fds, milliseconds)
	return err == nil && fds[0].Revents != 0
}
