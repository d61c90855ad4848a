package main

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
	// forgetTermios sets them and forgets what was typed and not read: the rest of a paste.
	forgetTermios = unix.TCSETSF
)
