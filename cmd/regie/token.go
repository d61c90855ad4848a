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

// newTokenCommand makes, lists and revokes API tokens (spec 11.2).
func newTokenCommand(env *environment) *cobra.Command {
	token := &cobra.Command{Use: "token", Short: env.T("Manage the tokens and browser logins of regie serve")}
	revoke := &cobra.Command{
		Use: "revoke ID…", Args: checkArgCount(1, -1),
		Short: env.T("Revoke tokens and browser logins"),
		Long:  env.T("Revoke tokens, all of them or none. They stop working on every server of the database; their open connections end within seconds.\n\nAn ID is written as its last characters (four or more), as regie token list shows it; a name works too if it is unique."),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := revokeTokens(cmd.Context(), env, args)
			for i := range found {
				if err == nil {
					err = env.printf("revoked: %s", cmp.Or(found[i].Name, chat.Short(found[i].ID)))
				}
			}
			return err
		},
	}
	browser := &cobra.Command{
		Use: "browser", Args: checkArgCount(0, 0),
		Short: env.T("Print a link that logs one browser in once, within 15 minutes"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			url, err := writeStore(cmd.Context(), env, func(conn *app.Conn) (string, error) {
				link, err := conn.Tokens.LinkBrowser(cmd.Context())
				return link.URL, err
			})
			if err == nil {
				_, err = fmt.Fprintln(env.stdout, url)
			}
			return err
		},
	}
	token.AddCommand(newTokenAddCommand(env), newTokenListCommand(env), revoke, browser)
	return token
}

// tokenFlags are the properties of a new token.
type tokenFlags struct {
	scopes, places      []string
	expires, onApproval string
	asJSON              bool
}

func newTokenAddCommand(env *environment) *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use: "add NAME", Args: checkArgCount(1, 1), Short: env.T("Create a token and show it once"),
		Long: env.T("Create a token for a program. It is printed once; only its hash is stored.\n\nScopes, none of which implies another:\n  read         lists, logs, streams, queries of a workspace\n  chat         sessions, messages, run control, undo\n  approve      decisions, answers, and rules that allow calls\n  admin        tokens, rules, removal, the cache, undo by force, new workspaces\n  completions  the OpenAI-compatible endpoint, /v1\n  mcp          the MCP server, /mcp\n  metrics      /metrics"),
		RunE: func(cmd *cobra.Command, args []string) error {
			made, err := addToken(cmd.Context(), env, args[0], &f)
			if err != nil || f.asJSON {
				return orJSON(env, made, err)
			}
			env.notef("This is shown once: keep it where secrets are kept.")
			env.notef("opens: %s; regie token revoke %s ends it", regie.ScopeWords(made.Token.Scopes),
				chat.Short(made.Token.ID))
			_, err = fmt.Fprintln(env.stdout, made.Secret)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.scopes, "scope", []string{string(regie.ScopeRead)},
		env.T("its scopes, separated by commas, or all"))
	flags.StringSliceVar(&f.places, "in", nil,
		env.T("a workspace that the token can access, by its directory; may be repeated; by default, all of them"))
	flags.StringVar(&f.expires, "expires", strconv.Itoa(int(control.TokenLife.Hours()/24))+"d",
		env.T("when it expires: after 12h, 30d or 8w, or never"))
	flags.StringVar(&f.onApproval, "on-approval", "",
		env.T("how approvals are handled for the token's OpenAI clients: deny or park; by default as regie serve says"))
	addJSONFlag(env, cmd, &f.asJSON)
	return cmd
}

// addToken makes a token.
func addToken(ctx context.Context, env *environment, name string, f *tokenFlags) (made control.MadeToken, err error) {
	in := control.TokenRequest{Name: name, OnApproval: f.onApproval, NeverExpires: f.expires == "never"}
	for _, word := range f.scopes {
		if word = strings.TrimSpace(word); word == "all" {
			in.Scopes = regie.TokenScopes()
			break
		}
		in.Scopes = append(in.Scopes, regie.TokenScope(word))
	}
	if !in.NeverExpires {
		life, err := chat.Span(f.expires)
		if err != nil {
			return made, err
		}
		in.ExpiresAt = time.Now().Add(life).UTC()
	}
	return writeStore(ctx, env, func(conn *app.Conn) (control.MadeToken, error) {
		for _, path := range f.places {
			if env.config.Server == "" {
				if path, err = filepath.Abs(path); err != nil {
					return made, err
				}
			}
			place, err := conn.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: path, Here: true})
			if err != nil {
				return made, err
			}
			in.Workspaces = append(in.Workspaces, place.ID)
		}
		return conn.Tokens.Add(ctx, in)
	})
}

func newTokenListCommand(env *environment) *cobra.Command {
	var filter store.TokenFilter
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Args: checkArgCount(0, 0),
		Short: env.T("List the tokens and browser logins"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var places []regie.Workspace
			tokens, err := readStoreOr(cmd.Context(), env, []regie.Token{},
				func(conn *app.Conn) (out []regie.Token, err error) {
					if out, err = conn.Tokens.List(cmd.Context(), filter); err == nil {
						places, err = conn.Workspaces.List(cmd.Context())
					}
					return out, err
				})
			return printResult(env, asJSON, tokens, err, func(p *chat.Page) { p.Tokens(tokens, places) })
		},
	}
	list.Flags().BoolVar(&filter.Ended, "ended", false, env.T("also those that have expired or were revoked"))
	addJSONFlag(env, list, &asJSON)
	return list
}

func revokeTokens(ctx context.Context, env *environment, names []string) ([]regie.Token, error) {
	return writeStore(ctx, env, func(conn *app.Conn) (found []regie.Token, _ error) {
		var in control.RevokeTokensRequest
		for _, name := range names {
			token, err := chat.FindToken(ctx, conn.Client, name)
			if err != nil {
				return nil, err
			}
			found, in.TokenIDs = append(found, token), append(in.TokenIDs, token.ID)
		}
		return found, conn.Tokens.Revoke(ctx, in)
	})
}
