package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// endSignals returns the signals that end a command in order. nohup ignores SIGHUP.
func endSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// signals hands a command the first signal. The second ends the process at once: what was
// acknowledged is stored, and the next engine goes on from there as after a crash.
type signals struct {
	first  <-chan os.Signal
	ending *atomic.Bool // the first signal ends the process: it is no Ctrl-C
	stop   func()
}

func catchSignals() signals {
	ending := new(atomic.Bool)
	received, first, done := make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(received, endSignals()...)
	go func() {
		for obeyed := os.Signal(nil); ; {
			select {
			case s := <-received:
				// a terminal that closes may signal twice, by its shell and by the system
				if obeyed == syscall.SIGHUP && s == obeyed {
					continue
				}
				if obeyed != nil {
					os.Exit(exitInterrupted)
				}
				obeyed = s
				ending.Store(s != os.Interrupt)
				first <- s
			case <-done:
				return
			}
		}
	}()
	return signals{first: first, ending: ending, stop: func() {
		signal.Stop(received)
		close(done)
	}}
}
