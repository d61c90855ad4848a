//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package main

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
	// forgetTermios sets them and forgets what was typed and not read: the rest of a paste.
	forgetTermios = unix.TIOCSETAF
)
