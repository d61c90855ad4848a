package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// tokenCommand makes, lists and revokes what programs show to regie serve (spec 11.2).
func (c *command) tokenCommand() *cobra.Command {
	token := &cobra.Command{
		Use: "token", Short: c.text.T("What programs and browsers show to regie serve"), Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	token.AddCommand(c.tokenAddCommand(), c.tokenListCommand(), c.tokenRevokeCommand(), c.tokenBrowserCommand())
	return token
}

// tokenFlags are what a new token may do.
type tokenFlags struct {
	scopes, places      []string
	expires, onApproval string
	asJSON              bool
}

func (c *command) tokenAddCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use: "add NAME", Args: usage(cobra.ExactArgs(1)), Short: c.text.T("Make a token; it is shown this once"),
		Long: c.text.T("Make a token for a program. It is printed this once: what is stored is its hash.\n\nScopes, none of which implies another:\n  read         lists, logs, streams, queries of a workspace\n  chat         sessions, messages, control words, undo\n  approve      decisions, answers, and what allows calls beforehand\n  admin        tokens, rules, removal, the cache, undo by force, new workspaces\n  completions  the OpenAI-compatible endpoint, /v1\n  mcp          the MCP server, /mcp\n  metrics      /metrics"),
		RunE: func(cmd *cobra.Command, args []string) error { return c.addToken(cmd.Context(), args[0], &f) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.scopes, "scope", []string{string(regie.ScopeRead)},
		c.text.T("what it opens; several with commas, or all"))
	flags.StringSliceVar(&f.places, "in", nil,
		c.text.T("a workspace that it sees, by its directory; may be repeated; left out, all of them"))
	flags.StringVar(&f.expires, "expires", strconv.Itoa(int(control.TokenLife.Hours()/24))+"d",
		c.text.T("after how long it ends: 12h, 30d, 8w, or never"))
	flags.StringVar(&f.onApproval, "on-approval", "",
		c.text.T("what happens where its client of OpenAI's format needs an approval: deny or park; left out, as regie serve says"))
	flags.BoolVar(&f.asJSON, "json", false, c.text.T("print JSON"))
	return cmd
}

// request is what the flags ask for, without its workspaces.
func (f *tokenFlags) request(name string, now time.Time) (control.TokenRequest, error) {
	in := control.TokenRequest{Name: name, OnApproval: f.onApproval}
	for _, word := range f.scopes {
		if word = strings.TrimSpace(word); word == "all" {
			in.Scopes = regie.TokenScopes()
			break
		}
		in.Scopes = append(in.Scopes, regie.TokenScope(word))
	}
	if f.expires == "never" {
		in.NeverExpires = true
		return in, nil
	}
	life, err := chat.Span(f.expires)
	in.ExpiresAt = now.Add(life).UTC()
	return in, err
}

func (c *command) addToken(ctx context.Context, name string, f *tokenFlags) error {
	in, err := f.request(name, time.Now())
	if err != nil {
		return err
	}
	conn, err := c.attach(ctx, app.Options{StoreOnly: true})
	if err != nil {
		return err
	}
	made, err := func() (control.MadeToken, error) {
		for _, path := range f.places {
			place, err := c.placeAt(ctx, conn, path)
			if err != nil {
				return control.MadeToken{}, err
			}
			in.Workspaces = append(in.Workspaces, place.ID)
		}
		return conn.Tokens.Add(ctx, in)
	}()
	if closing := conn.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return writeJSON(c.stdout, made)
	}
	fmt.Fprintln(c.stderr, c.text.T("This is shown once: keep it where secrets are kept."))
	fmt.Fprintln(c.stderr, c.text.T("opens: %s", regie.ScopeWords(made.Token.Scopes)))
	if made.Token.ExpiresAt.IsZero() {
		fmt.Fprintln(c.stderr, c.text.T("It does not end by itself: regie token revoke %s ends it.",
			chat.Short(made.Token.ID)))
	} else {
		fmt.Fprintln(c.stderr, c.text.T("until %s, or regie token revoke %s",
			made.Token.ExpiresAt.Local().Format("2006-01-02 15:04"), chat.Short(made.Token.ID)))
	}
	_, err = fmt.Fprintln(c.stdout, made.Secret)
	return err
}

// placeAt is the workspace of a directory: of this machine, or of the server's.
func (c *command) placeAt(ctx context.Context, conn *app.Conn, path string) (regie.Workspace, error) {
	if c.config.Server == "" {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return regie.Workspace{}, err
		}
		path = absolute
	}
	return conn.OpenWorkspace(ctx, dispatch.WorkspaceRequest{Path: path, Here: true})
}

func (c *command) tokenListCommand() *cobra.Command {
	var filter store.TokenFilter
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Args: usage(cobra.NoArgs),
		Short: c.text.T("The tokens that open something, and the browsers that are known"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			type found struct {
				tokens []regie.Token
				places []regie.Workspace
			}
			all, err := look(cmd.Context(), c, found{tokens: []regie.Token{}},
				func(conn *app.Conn) (out found, err error) {
					if out.tokens, err = conn.Tokens.List(cmd.Context(), filter); err == nil {
						out.places, err = conn.Workspaces(cmd.Context())
					}
					return out, err
				})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, all.tokens)
			}
			page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now}
			page.Tokens(all.tokens, all.places)
			return page.Err()
		},
	}
	list.Flags().BoolVar(&filter.Ended, "ended", false, c.text.T("also those that have expired or were revoked"))
	list.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	return list
}

func (c *command) tokenRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID…", Args: usage(cobra.MinimumNArgs(1)),
		Short: c.text.T("End tokens, and the logins of browsers"),
		Long:  c.text.T("End tokens, all of them or none. They open nothing any more, on no server of the database; what they have open ends within seconds.\n\nAn ID is written as its last characters (four or more), as regie token list shows it; a name will do where only one has it."),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.revokeTokens(cmd.Context(), args) },
	}
}

func (c *command) tokenBrowserCommand() *cobra.Command {
	return &cobra.Command{
		Use: "browser", Args: usage(cobra.NoArgs),
		Short: c.text.T("A link that lets one browser in, once, within 15 minutes"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			conn, err := c.attach(cmd.Context(), app.Options{StoreOnly: true})
			if err != nil {
				return err
			}
			link, err := conn.Tokens.LinkBrowser(cmd.Context())
			if closing := conn.Close(); err == nil {
				err = closing
			}
			if err == nil {
				_, err = fmt.Fprintln(c.stdout, link.URL)
			}
			return err
		},
	}
}

func (c *command) revokeTokens(ctx context.Context, names []string) error {
	conn, err := c.attach(ctx, app.Options{StoreOnly: true})
	if err != nil {
		return err
	}
	found, err := func() ([]regie.Token, error) {
		var found []regie.Token
		var in control.RevokeTokensRequest
		for _, name := range names {
			token, err := chat.FindToken(ctx, conn.Tokens, name)
			if err != nil {
				return nil, err
			}
			found, in.TokenIDs = append(found, token), append(in.TokenIDs, token.ID)
		}
		return found, conn.Tokens.Revoke(ctx, in)
	}()
	if closing := conn.Close(); err == nil {
		err = closing
	}
	for i := range found {
		if err == nil {
			_, err = fmt.Fprintln(c.stdout, c.text.T("revoked: %s", cmp.Or(found[i].Name, chat.Short(found[i].ID))))
		}
	}
	return err
}
