package main

import (
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// endSignals are the signals that end a command in order. nohup ignores SIGHUP.
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

// catchStops refuses Ctrl-Z from the call of engine to the call of end, because the runs of an
// engine would stand still with it; refuse says so. Before that the system stops the process: Go
// cannot give a signal back to it.
func catchStops(refuse func()) (engine, end func()) {
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

// refuseStopInChat is catchStops for a chat, which reports it itself. In a drawn chat Ctrl-Z is a
// key, and a signal while the person's editor has the terminal.
func refuseStopInChat(signals chan<- os.Signal) (engine, end func()) {
	return catchStops(func() {
		select {
		case signals <- syscall.SIGTSTP:
		default:
		}
	})
}

// refuseStop is catchStops for a command that follows a run.
func refuseStop(env *environment) (engine, end func()) {
	return catchStops(func() {
		env.tell("\n" + env.T("no Ctrl-Z: runs go on in this program. Ctrl-C interrupts this one"))
	})
}
