package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// endings are the signals that end a command in order. Who started it with nohup wants it to
// outlive the terminal.
func endings() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// signals gives a command the first signal of its person to obey. The second ends the process at
// once, whatever it waits for: all that was acknowledged is stored, and the next engine goes on
// from there as after a crash.
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
				// a terminal that closes may say so twice, by its shell and by the system
				if obeyed == syscall.SIGHUP && s == obeyed {
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

// stays has Ctrl-Z refused once this process is the engine, which engine tells, until end is
// called: runs would stand still with it, and other programs wait for it. refuse says so. Before
// that the system stops the process, as it does any: Go cannot give a signal back to it.
func stays(refuse func()) (engine, end func()) {
	asked, done := make(chan os.Signal, 1), make(chan struct{})
	engine = func() {
		if signal.Ignored(syscall.SIGTSTP) {
			return
		}
		signal.Notify(asked, syscall.SIGTSTP)
		go func() {
			for {
				select {
				case <-asked:
					refuse()
					// an editor, or the other end of a pipe, was stopped by the same key
					_ = syscall.Kill(0, syscall.SIGCONT)
				case <-done:
					return
				}
			}
		}()
	}
	return engine, func() {
		signal.Stop(asked)
		close(done)
	}
}

// chatStays is stays for a chat, which says it itself. In a drawn one Ctrl-Z is a key, and a signal
// while the person's editor has the terminal.
func chatStays(signals chan<- os.Signal) (engine, end func()) {
	return stays(func() {
		select {
		case signals <- syscall.SIGTSTP:
		default:
		}
	})
}

// runStays is stays for a command that follows a run.
func (c *command) runStays() (engine, end func()) {
	return stays(func() {
		fmt.Fprintln(c.stderr, "\n"+c.text.T("no Ctrl-Z: runs go on in this program. Ctrl-C interrupts this one"))
	})
}
