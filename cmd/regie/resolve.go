package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
)

// resolveCommand lets a person settle a call whose outcome nobody knows (decision 5).
func (c *command) resolveCommand() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "resolve CALL happened|did-not-happen", Args: usage(cobra.ExactArgs(2)),
		Short: c.text.T("Say what became of a call whose outcome nobody knows"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := regie.ParseID(args[0])
			if err != nil {
				return err
			}
			as := regie.ResolvedAs(strings.ReplaceAll(args[1], "-", "_"))
			conn, err := c.connect(cmd.Context(), app.Options{StoreOnly: true})
			if err != nil {
				return err
			}
			err = conn.Resolve(cmd.Context(), dispatch.ResolveRequest{CallID: id, As: as, Note: note})
			if closing := conn.Close(); err == nil {
				err = closing
			}
			if err == nil {
				fmt.Fprintln(c.stdout, c.text.T("call %s is resolved: %s", id, args[1]))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&note, "note", "", c.text.T("how you know"))
	return cmd
}
