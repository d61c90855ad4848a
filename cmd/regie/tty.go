package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// isTerminal reports whether a person can be reached through a stream.
func isTerminal(stream any) bool {
	file, ok := stream.(interface{ Fd() uintptr })
	return ok && isatty.IsTerminal(file.Fd())
}

// attended reports whether a person can be asked: they read what is written and type what is read.
func attended(in *os.File, out io.Writer) bool { return isTerminal(in) && isTerminal(out) }

// output is standard output that remembers what could not be written: a command whose answer went
// nowhere has not done its job.
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
