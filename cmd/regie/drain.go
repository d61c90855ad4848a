package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/regie-run/regie/internal/app"
)

// drainGrace is what model calls may still take where a signal ends the process: who sent it may
// kill it soon.
const drainGrace = 5 * time.Second

// drain waits, before the engine of this process is closed, for the model calls and actions that
// runs have under way in it: other processes' ones, and one that a chat leaves as it is. A further
// signal, or the end of ctx, has it leave at once; hurried is after one that ends the process.
func (c *command) drain(ctx context.Context, conn *app.Conn, signals <-chan os.Signal, hurried bool) {
	ctx, cancel := context.WithCancel(ctx)
	if hurried {
		ctx, cancel = context.WithTimeout(ctx, drainGrace)
	}
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn.Drain(ctx, func() {
		fmt.Fprintln(c.stderr,
			c.text.T("a run in this engine is in the middle of a model call or an action: waiting for its end, at most a minute (Ctrl-C: leave at once; a model call is made again then)"))
	})
}
