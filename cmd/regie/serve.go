package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
)

func (c *command) serveCommand() *cobra.Command {
	var s app.ServeConfig
	cmd := &cobra.Command{
		Use: "serve", Annotations: map[string]string{ofThisMachine: "yes"}, Args: usage(cobra.NoArgs),
		Short: c.text.T("Serve agents to browsers, editors and programs, over HTTP"),
		Long:  c.text.T("Serve the API, its streams and everything that speaks to it, until Ctrl-C or SIGTERM. This process is the engine of the data directory; other commands become its clients, and interrupted runs go on. Requests show the token of the data directory (api.token); the link that is printed lets one browser in, once."),
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context(), s) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Addr, "addr", "", c.text.T("where to listen (listen in regie.yaml; 127.0.0.1:7333)"))
	flags.StringSliceVar(&s.Hosts, "host", nil,
		c.text.T("a name under which the server is reached, beside those of this machine; may be repeated"))
	flags.StringVar(&s.CertFile, "tls-cert", "", c.text.T("speak HTTPS with this certificate"))
	flags.StringVar(&s.KeyFile, "tls-key", "", c.text.T("the certificate's key"))
	flags.BoolVar(&s.PlainHTTP, "plain-http", false,
		c.text.T("listen beyond this machine without HTTPS: something in front of it encrypts"))
	flags.StringVar(&s.OnApproval, "on-approval", "",
		c.text.T("what happens where a client of OpenAI's format needs an approval: deny (the agent is told; the default) or park (the answer names it)"))
	c.modelFlags(cmd)
	return cmd
}

func (c *command) serve(ctx context.Context, s app.ServeConfig) error {
	if (s.CertFile == "") != (s.KeyFile == "") {
		return regie.Errorf(codeUsage, "--tls-cert and --tls-key go together")
	}
	s.Addr, s.Version = cmp.Or(s.Addr, c.config.File.Listen, config.DefaultListen), version
	c.settle(ctx)
	if root, foundBy, err := c.workspace(ctx, false); err == nil { // at home, a directory of Regie's own
		s.Root, s.FoundBy = root, foundBy
	}
	if _, err := s.Check(); err != nil { // before another process is waited for
		return err
	}
	signals := c.signals()
	defer signals.stop()
	engine, err := waitEngine(ctx, signals.first, c.options(app.Options{Resumed: func(rounds []regie.ID) {
		for _, id := range rounds {
			fmt.Fprintln(c.stderr, c.text.T("resuming the interrupted run %s", id))
		}
	}}), func(by error) { fmt.Fprintln(c.stderr, plain.Strip(c.text.Error(by))) })
	if err != nil {
		return err
	}
	served, err := engine.Serve(ctx, s)
	if err != nil {
		_ = engine.Close() // why it is not served matters more
		return err
	}
	fmt.Fprintln(c.stdout, c.text.T("Regie listens on %s", served.URL))
	fmt.Fprintln(c.stderr, c.text.T("token: %s", app.TokenPath(c.config.DataDir)))
	fmt.Fprintln(c.stderr, c.text.T("for a browser, once, within 15 minutes: %s", served.Setup))
	if err := c.config.RequireModel(); err != nil {
		fmt.Fprintln(c.stderr, plain.Strip(
			c.text.T("no model is configured yet: runs are refused until regie setup, and a restart")))
	}
	select {
	case err = <-served.Ended:
	case <-signals.first:
		fmt.Fprintln(c.stderr, c.text.T("stopping… (once more to leave at once; nothing is lost either way)"))
	case <-ctx.Done():
	}
	if closing := engine.Close(); err == nil {
		err = closing
	}
	return err
}

// waitEngine is app.WaitEngine, which the first signal ends: nothing is being done yet that had to
// end in order.
func waitEngine(ctx context.Context, first <-chan os.Signal, o app.Options,
	waiting func(by error),
) (*app.Engine, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	opened := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		select {
		case <-first:
			end(exit{exitInterrupted})
		case <-opened:
		}
	})
	engine, err := app.WaitEngine(ctx, o, waiting)
	close(opened)
	over.Wait()
	if why := context.Cause(ctx); errors.As(why, new(exit)) {
		if err == nil { // both at once
			_ = engine.Close()
		}
		return nil, why
	}
	return engine, err
}

// options are those of an engine of this command.
func (c *command) options(o app.Options) app.Options {
	o.Config = c.config
	o.Log = slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: c.level}))
	return o
}
