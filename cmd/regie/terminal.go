package main

import (
	"io"
	"os"
	"os/signal"

	"github.com/charmbracelet/x/ansi"
	"github.com/mattn/go-isatty"
	"golang.org/x/sys/unix"
)

// isTerminal reports whether a person can be reached through a stream.
func isTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(file.Fd())
}

// isAttended reports whether a person can be asked: input and output are both a terminal.
func isAttended(in *os.File, out io.Writer) bool { return isTerminal(in) && isTerminal(out) }

// output is standard output that remembers write errors: a command fails if its answer was not
// written.
type output struct {
	file   *os.File
	failed error
}

// Write implements io.Writer.
func (o *output) Write(data []byte) (int, error) {
	n, err := o.file.Write(data)
	if err != nil && o.failed == nil {
		o.failed = err
	}
	return n, err
}

// Fd is the descriptor, for those who ask whether it is a terminal.
func (o *output) Fd() uintptr { return o.file.Fd() }

// readRaw has a terminal hand over each key, unshown, until restore is called, also where the
// program is terminated meanwhile. restoring is setTermios or forgetTermios.
func readRaw(file *os.File, restoring uint) (restore func()) {
	fd := int(file.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	raw := *before
	raw.Iflag &^= unix.ICRNL | unix.IXON
	raw.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG | unix.IEXTEN
	put := func() { _ = unix.IoctlSetTermios(fd, restoring, before) }
	interrupted, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(interrupted, os.Interrupt, unix.SIGTERM)
	go func() {
		select {
		case <-interrupted:
			put()
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	_ = unix.IoctlSetTermios(fd, setTermios, &raw)
	return func() {
		signal.Stop(interrupted)
		close(done)
		put()
	}
}

// terminalWidth returns how wide a terminal is; 0 where none is, or none says so.
func terminalWidth(stream io.Writer) int {
	file, ok := stream.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// foldLines breaks lines between words, so that a terminal does not break them in the middle of
// one.
func foldLines(text string, width int) string {
	if width <= 0 {
		return text
	}
	return ansi.Wordwrap(text, width, "")
}
