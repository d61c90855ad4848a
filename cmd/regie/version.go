package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// newVersionCommand prints the version of this program, with broken settings too.
func newVersionCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Args: checkArgCount(0, 0), PersistentPreRunE: skipConfig,
		Short: env.T("Print the version"),
		RunE: func(*cobra.Command, []string) error {
			out := map[string]string{
				"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			}
			return printLines(env, asJSON, out, nil, func(p *printer) {
				p.printLine("regie %s (%s, %s/%s)", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			})
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}
