package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"
)

// isTerminal reports whether a person can be reached through a stream.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// attended reports whether a person can be asked: they read what is written and type what is read.
func attended(in *os.File, out io.Writer) bool { return isTerminal(in) && isTerminal(out) }
