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

// versions is what regie version says.
type versions struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	// Server is the one that is asked in place of an engine of this machine; nil where none is.
	Server *client.Version `json:"server,omitempty"`
}

// versionCommand says which program this is, and which the server is that it asks. Broken settings
// do not keep it from that: it is what people are asked for when something does not work.
func (c *command) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Args: usage(cobra.NoArgs),
		Short:             c.text.T("The version of this program, and of the server that it asks"),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := versions{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			var err error
			if c.config, err = config.Load(os.Getenv, c.flags); err == nil && c.config.Server != "" {
				out.Server, err = c.serverVersion(cmd)
			} else if c.flags.Server == "" {
				err = nil
			}
			if asJSON {
				return errors.Join(writeJSON(c.stdout, out), err)
			}
			p := &printer{w: c.stdout}
			p.line("regie %s (%s, %s/%s)", out.Version, out.Go, out.OS, out.Arch)
			if out.Server != nil {
				p.line("%s", c.pair(c.config.Server, fmt.Sprintf("regie %s (%s, API %s)",
					plain.Line(out.Server.Version), plain.Line(out.Server.Go), plain.Line(out.Server.API))))
			}
			return errors.Join(p.err, err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	return cmd
}

func (c *command) serverVersion(cmd *cobra.Command) (*client.Version, error) {
	conn, err := c.attach(cmd.Context(), app.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	out, err := conn.Version(cmd.Context())
	if err := errors.Join(err, conn.Close()); err != nil {
		return nil, err
	}
	return &out, nil
}
