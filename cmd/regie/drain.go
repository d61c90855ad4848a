package main

import (
	"context"
	"fmt"
	"os"

	"github.com/regie-run/regie/internal/app"
)

// drain waits, before the engine of this process is closed, for the model calls of other processes' runs that are under way in it. A signal, or
// the end of ctx, has it leave at once.
func (c *command) drain(ctx context.Context, conn *app.Conn, signals <-chan os.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	conn.Drain(ctx, func() {
		fmt.Fprintln(c.stderr, c.text.T("waiting for a model call of another run in this engine (Ctrl-C: leave at once, and it is made again)"))
	})
}
