package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
)

// newWebCommand opens the web pages of the running server.
func newWebCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "web", Args: checkArgCount(0, 0),
		Short: env.T("Open the web pages of regie serve in a browser"),
		Long:  env.T("Make a link that logs one browser in, once, within 15 minutes, print it and open it. regie serve must run on this data directory; regie token browser only prints it."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := writeStore(cmd.Context(), env, func(conn *app.Conn) (string, error) {
				link, err := conn.Tokens.LinkBrowser(cmd.Context())
				return link.URL, err
			})
			if err != nil {
				return err
			}
			if openBrowser(cmd.Context(), url) != nil {
				env.notef("no browser could be opened: open the link yourself")
			}
			_, err = fmt.Fprintln(env.stdout, url)
			return err
		},
	}
}

// openBrowser opens an address in the person's browser, which outlives this process.
func openBrowser(ctx context.Context, url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	return exec.CommandContext(context.WithoutCancel(ctx), name, args...).Start()
}
