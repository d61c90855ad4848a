package main

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/regie-run/regie"
)

// newManCommand writes a manual page for each command, in the user's language (spec 11.5).
func newManCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Args: checkArgCount(1, 1), Short: env.T("Write the manual pages into a directory"),
		PersistentPreRunE: skipConfig,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := os.MkdirAll(args[0], 0o755)
			if err == nil {
				cmd.Root().DisableAutoGenTag = true
				header := &doc.GenManHeader{Source: "regie " + version, Manual: "Regie"}
				err = doc.GenManTree(cmd.Root(), header, args[0])
			}
			if err != nil {
				return regie.Errorf(regie.CodeNoPermission, "%s cannot be written: %v", args[0], err)
			}
			return nil
		},
	}
}
