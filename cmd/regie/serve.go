package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sanitize"
)

// newServeCommand serves the API, the streams and the pages.
func newServeCommand(env *environment) *cobra.Command {
	var s app.ServeConfig
	cmd := &cobra.Command{
		Use: "serve", Annotations: map[string]string{localOnly: "yes"}, Args: checkArgCount(0, 0),
		Short: env.T("Serve the API and its streams over HTTP"),
		Long:  env.T("Serve the API, its streams and every protocol until Ctrl-C or SIGTERM. This process is the engine of the data directory; other commands become its clients, and interrupted runs continue. Requests carry the token of the data directory (api.token); the printed link logs one browser in, once."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if env.logLevel == "" {
				env.level.Set(slog.LevelInfo)
			}
			return runServer(cmd.Context(), env, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.Addr, "addr", "", env.T("where to listen (listen in regie.yaml; 127.0.0.1:7333)"))
	flags.StringSliceVar(&s.Hosts, "host", nil,
		env.T("an additional host name of the server; may be repeated"))
	flags.StringVar(&s.CertFile, "tls-cert", "", env.T("speak HTTPS with this certificate"))
	flags.StringVar(&s.KeyFile, "tls-key", "", env.T("the certificate's key"))
	flags.BoolVar(&s.PlainHTTP, "plain-http", false,
		env.T("listen beyond this machine without HTTPS, behind a proxy that encrypts"))
	flags.StringVar(&s.OnApproval, "on-approval", "",
		env.T("how approvals are handled for OpenAI clients: deny (the agent is told; the default) or park (the answer names it)"))
	addModelFlags(env, cmd)
	return cmd
}

func runServer(ctx context.Context, env *environment, s app.ServeConfig) error {
	if (s.CertFile == "") != (s.KeyFile == "") {
		return regie.Errorf(codeUsage, "--tls-cert and --tls-key go together")
	}
	s.Addr, s.Version = cmp.Or(s.Addr, env.config.File.Listen, config.DefaultListen), version
	env.detectModel(ctx)
	env.offerModel(ctx)
	if root, foundBy, err := env.findWorkspace(ctx, "", false); err == nil { // at home, a directory of Regie's own
		s.Root, s.FoundBy = root, foundBy
	}
	if _, err := s.Check(); err != nil { // before the wait for another process
		return err
	}
	signals := catchSignals()
	defer signals.stop()
	waiting, stop := signal.NotifyContext(ctx, endSignals()...)
	engine, err := app.WaitEngine(waiting, env.connOptions(app.Options{
		Resumed: env.tellResumed(regie.ID{}), Schedules: true,
	}),
		func(by error) { fmt.Fprintln(env.stderr, sanitize.Strip(env.text.Error(by))) })
	interrupted := waiting.Err() != nil
	stop()
	if err == nil && interrupted {
		_ = engine.Close() // it has done nothing yet
	}
	if interrupted {
		return exit{exitInterrupted}
	}
	if err != nil {
		return err
	}
	served, err := engine.Serve(ctx, s)
	if err != nil {
		_ = engine.Close() // the first error matters more
		return err
	}
	_ = env.printf("Regie listens on %s", served.URL) // Main returns the error
	env.notef("token: %s", app.TokenPath(env.config.DataDir))
	env.notef("for a browser, once, within 15 minutes: %s", served.Setup)
	if env.config.RequireModel() != nil {
		env.notef("no model is configured yet: runs are refused until regie setup, and a restart")
	}
	select {
	case err = <-served.Ended:
	case <-signals.first:
		env.notef("stopping… (once more to leave at once; nothing is lost either way)")
	case <-ctx.Done():
	}
	if closing := engine.Close(); err == nil {
		err = closing
	}
	return err
}
