package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// hide stops a terminal from showing what is typed until show is called, also where the program is
// interrupted meanwhile.
func hide(file *os.File) (show func()) {
	fd := int(file.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return func() {}
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	restore := func() { _ = unix.IoctlSetTermios(fd, forgetTermios, before) }
	interrupted, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(interrupted, os.Interrupt, unix.SIGTERM)
	go func() {
		select {
		case <-interrupted:
			restore()
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	_ = unix.IoctlSetTermios(fd, setTermios, &hidden)
	return func() {
		signal.Stop(interrupted)
		close(done)
		restore()
	}
}
