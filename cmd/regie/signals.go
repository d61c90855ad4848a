package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signals gives a command the first signal of its person to obey. The second ends the process at once, whatever it waits for: all that
// was acknowledged is stored, and the next engine goes on from there as after a crash.
type signals struct {
	first <-chan os.Signal
	ended *atomic.Bool // one of them ends the process, and is no Ctrl-C
	stop  func()
}

func (c *command) signals() signals {
	ended := new(atomic.Bool)
	received, first, done := make(chan os.Signal, 2), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	go func() {
		for count := 0; ; count++ {
			select {
			case s := <-received:
				if count > 0 {
					os.Exit(exitInterrupted)
				}
				ended.Store(s != os.Interrupt)
				first <- s
			case <-done:
				return
			}
		}
	}()
	return signals{first: first, ended: ended, stop: func() {
		signal.Stop(received)
		close(done)
	}}
}
