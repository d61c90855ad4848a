package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// endings are the signals that end a command in order. Who started it with nohup wants it to outlive the terminal.
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

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
	signal.Notify(received, endings()...)
	go func() {
		for obeyed := os.Signal(nil); ; {
			select {
			case s := <-received:
				if obeyed == syscall.SIGHUP && s == obeyed { // a terminal that closes may say so twice, by its shell and by the system
					continue
				}
				if obeyed != nil {
					os.Exit(exitInterrupted)
				}
				obeyed = s
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

// stopGrace is how long Ctrl-Z may take to stop this process; where nobody could continue it the system does not stop it.
const stopGrace = 100 * time.Millisecond

// stays has Ctrl-Z stop this process only where it is no engine, until the function that it returns is called: runs would stand still with it, and other
// programs wait for it. refuse says so.
func stays(isEngine func() bool, refuse func()) (end func()) {
	if signal.Ignored(syscall.SIGTSTP) {
		return func() {}
	}
	asked, continued, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGTSTP)
	signal.Notify(continued, syscall.SIGCONT)
	go func() {
		for {
			select {
			case <-asked:
			case <-done:
				return
			}
			if isEngine() {
				refuse()
				_ = syscall.Kill(0, syscall.SIGCONT) // an editor, or the other end of a pipe, was stopped by the same key
				continue
			}
			signal.Reset(syscall.SIGTSTP)
			_ = syscall.Kill(os.Getpid(), syscall.SIGTSTP)
			select {
			case <-continued:
			case <-time.After(stopGrace):
			}
			signal.Notify(asked, syscall.SIGTSTP)
		}
	}()
	return func() {
		signal.Stop(asked)
		signal.Stop(continued)
		close(done)
	}
}

// staysFor is stays for a command that follows a run.
func (c *command) staysFor(isEngine func() bool) (end func()) {
	return stays(isEngine, func() {
		fmt.Fprintln(c.stderr, "\n"+c.text.T("no Ctrl-Z: runs go on in this program. Ctrl-C interrupts this one"))
	})
}
