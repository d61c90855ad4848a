package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/plain"
)

// versions is the output of regie version.
type versions struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	// Server is that of the server that this command asks; nil without one.
	Server *client.Version `json:"server,omitempty"`
}

// newVersionCommand prints the version of this program and of the server that it asks, with broken
// settings too.
func newVersionCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Args: arguments(0, 0), PersistentPreRunE: skipConfig,
		Short: env.T("The version of this program, and of the server that it asks"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := versions{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			var err error
			if env.config, err = config.Load(os.Getenv, env.flags); err == nil && env.config.Server != "" {
				var server client.Version
				server, err = readStore(cmd.Context(), env,
					func(conn *app.Conn) (client.Version, error) { return conn.Version(cmd.Context()) })
				if err == nil {
					out.Server = &server
				}
			} else if env.flags.Server == "" {
				err = nil
			}
			if asJSON {
				return errors.Join(writeJSON(env.stdout, out), err)
			}
			p := env.printer()
			p.line("regie %s (%s, %s/%s)", out.Version, out.Go, out.OS, out.Arch)
			if s := out.Server; s != nil {
				p.line("%s", env.pair(env.config.Server, plain.Line(fmt.Sprintf("regie %s (%s, API %s)", s.Version, s.Go, s.API))))
			}
			return errors.Join(p.err, err)
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}
