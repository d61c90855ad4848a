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
	// maxLine bounds what is taken as one message, in bytes; what is longer is cut into several.
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
	gate     sync.Mutex  // held while the file is read, and while somebody else has it
	left     []byte      // read and not yet a line
}

// NewInput starts to read. Lines is closed at the end of the input.
func NewInput(file *os.File, terminal bool) (*Input, error) {
	in := &Input{file: file, terminal: terminal, lines: make(chan string), quit: make(chan struct{})}
	var err error
	if in.wake[0], in.wake[1], err = os.Pipe(); err != nil {
		return nil, regie.Errorf(regie.CodeInternal, "the terminal cannot be read: %v", err)
	}
	go in.read()
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

// read is the goroutine of an Input.
func (in *Input) read() {
	defer in.wake[0].Close()
	defer close(in.lines)
	var message []string
	for {
		line, ok := in.line()
		if !ok {
			if len(message) > 0 {
				in.send(strings.Join(message, "\n"))
			}
			return
		}
		if goesOn, more := strings.CutSuffix(line, "\\"); more {
			message = append(message, goesOn)
			continue
		}
		message = append(message, line)
		if in.terminal && (bytes.IndexByte(in.left, '\n') >= 0 || in.poll(together)) {
			continue
		}
		if !in.send(strings.Join(message, "\n")) {
			return
		}
		message = nil
	}
}

func (in *Input) send(message string) bool {
	select {
	case in.lines <- message:
		return true
	case <-in.quit:
		return false
	}
}

// line returns the next line. At the end of the input what is left is one too, if it is any.
func (in *Input) line() (string, bool) {
	for {
		if line, rest, found := bytes.Cut(in.left, []byte("\n")); found || len(in.left) >= maxLine {
			in.left = rest
			return strings.TrimSuffix(string(line), "\r"), true
		}
		in.poll(-1)
		if in.closed() {
			return "", false
		}
		if err := in.fill(); err != nil {
			line := string(in.left)
			in.left = nil
			return line, line != ""
		}
	}
}

// fill reads what is there. What was there a moment ago may have gone to somebody else meanwhile.
func (in *Input) fill() error {
	in.gate.Lock()
	defer in.gate.Unlock()
	if !in.poll(0) {
		return nil
	}
	buffer := make([]byte, 4096)
	n, err := in.file.Read(buffer)
	in.left = append(in.left, buffer[:n]...)
	return err
}

func (in *Input) closed() bool {
	select {
	case <-in.quit:
		return true
	default:
		return false
	}
}

// poll waits some milliseconds, or without end for -1, and reports whether there is something to
// read, be it the end. Close ends it.
func (in *Input) poll(milliseconds int) bool {
	fds := []unix.PollFd{
		{Fd: int32(in.file.Fd()), Events: unix.POLLIN},
		{Fd: int32(in.wake[0].Fd()), Events: unix.POLLIN},
	}
	_, err := unix.Poll(fds, milliseconds)
	return err == nil && fds[0].Revents != 0
}
