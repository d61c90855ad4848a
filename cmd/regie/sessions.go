package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// newSessionsCommand returns about stored sessions: it calls no model and no tool.
func newSessionsCommand(env *environment) *cobra.Command {
	sessions := &cobra.Command{
		Use: "sessions", Short: env.T("List, show, fork, export and remove sessions"),
		Long: env.T("List, show, fork, export and remove sessions.\n\nAn ID is that of a session or of one of its runs, written as its last characters (four or more); last is the session of this workspace with the newest activity."),
	}
	var all, asJSON bool
	list := &cobra.Command{
		Use: "list", Args: checkArgCount(0, 0), Short: env.T("List the sessions of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := readWorkspace(cmd.Context(), env, all, []store.SessionSummary{},
				func(conn *app.Conn, root string) ([]store.SessionSummary, error) {
					return conn.Sessions(cmd.Context(), store.SessionFilter{Root: root})
				})
			return printResult(env, asJSON, found, err, func(p *chat.Page) { p.Everywhere = all; p.Sessions(found) })
		},
	}
	addViewFlags(env, list, &all, &asJSON)
	show := &cobra.Command{
		Use: "show ID|last", Args: checkArgCount(1, 1),
		Short: env.T("Show the messages and calls of one session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, err := withSession(cmd.Context(), env, app.Options{ReadOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.SessionView, error) { return conn.Session(cmd.Context(), id) })
			if err == nil && isAttended(env.stdin, env.stdout) { // a person reads it; that it is noted is not needed
				_, _ = writeStore(cmd.Context(), env, func(conn *app.Conn) (any, error) {
					return nil, conn.MarkRead(cmd.Context(), dispatch.ReadRequest{SessionID: view.ID, Seq: view.Head})
				})
			}
			return printResult(env, asJSON, view, err, func(p *chat.Page) { p.Session(&view) })
		},
	}
	addJSONFlag(env, show, &asJSON)
	sessions.AddCommand(list, show, newForkCommand(env), newExportCommand(env), newRemoveCommand(env))
	return sessions
}

// withSession calls do with a connection and the named session of this workspace.
func withSession[T any](ctx context.Context, env *environment, o app.Options, name string,
	do func(*app.Conn, regie.ID) (T, error),
) (T, error) {
	return withNamed(ctx, env, o, name, chat.FindSession, func(conn *app.Conn, found *store.SessionSummary) (T, error) {
		return do(conn, found.ID)
	})
}

// withNamed calls do with a connection and what find finds by a name, in this workspace.
func withNamed[F, T any](ctx context.Context, env *environment, o app.Options, name string,
	find func(ctx context.Context, control chat.Control, root, name string) (F, error),
	do func(*app.Conn, *F) (T, error),
) (out T, err error) {
	root, err := env.commandRoot(ctx, false)
	if err != nil {
		return out, err
	}
	return withConn(ctx, env, o, func(conn *app.Conn) (T, error) {
		found, err := find(ctx, conn.Client, root, name)
		if err != nil {
			return out, err
		}
		return do(conn, &found)
	})
}

// newForkCommand copies a session up to a point.
func newForkCommand(env *environment) *cobra.Command {
	var in dispatch.ForkRequest
	var asJSON bool
	cmd := &cobra.Command{
		Use: "fork ID|last", Args: checkArgCount(1, 1),
		Short: env.T("Fork a session at an earlier point"),
		Long:  env.T("Copy the messages of a session, up to a point, into a new session. The original stays unchanged.\n\nThe point is the number that regie sessions show prints before each message (--at); by default, the end. A reply is copied with the results of its calls or not at all.\nApprovals, rules, waits and runs are not copied, and neither are files: the workspace stays as it is."),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := withSession(cmd.Context(), env, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (out store.Forked, err error) {
					in.From = id
					return conn.Fork(cmd.Context(), in)
				})
			if err != nil || asJSON {
				return orJSON(env, out, err)
			}
			if out.Open {
				env.notef("the calls of the reply at that point are not all settled: the fork ends before it")
			}
			env.notef("the files of the workspace were not forked")
			env.notef("continue this chat: regie chat -r %s", chat.Short(out.Session.ID))
			from := out.Session.ForkedFrom
			return env.printf("session %s: %s, forked from %s at %s", out.Session.ID,
				chat.Messages(env.text, out.Messages), chat.Short(from.SessionID), strconv.FormatInt(from.Seq, 10))
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&in.At, "at", 0, env.T("up to this number"))
	flags.StringVar(&in.Name, "name", "", env.T("the name of the new session"))
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

// newRemoveCommand erases a session.
func newRemoveCommand(env *environment) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "rm ID|last", Args: checkArgCount(1, 1), Short: env.T("Erase the content of sessions"),
		Long: env.T("Erase the content of sessions: messages, calls and results. The log keeps that the session existed, and still verifies.\nSessions of its sub-agents are erased too. Forks have their own copies and stay. A session with an open run is refused.\nBackups keep their content, and an agent's changes to files are not undone."),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := withSession(cmd.Context(), env, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.Removed, error) {
					if !yes {
						question := env.T("Remove the session %s for good? [y/N] ", chat.Short(id))
						if err := env.askConfirmation(question, env.T("not removed")); err != nil {
							return store.Removed{}, err
						}
					}
					return conn.Remove(cmd.Context(), dispatch.RemoveRequest{SessionID: id})
				})
			for _, id := range out.SessionIDs {
				if err == nil {
					err = env.printf("session %s is removed; its log still verifies", chat.Short(id))
				}
			}
			return err
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, env.T("do not ask"))
	return cmd
}

// newExportCommand writes a session out.
func newExportCommand(env *environment) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "export ID|last", Args: checkArgCount(1, 1),
		Short: env.T("Export a session as JSON or Markdown"),
		Long:  env.T("Export a session. JSON contains everything that can be verified: messages, calls, runs, requests and answers, and its log with every hash (docs/export.md describes it). Markdown is for reading.\nSecrets in a session are in its export too."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "json" && format != "markdown" {
				return regie.Errorf(codeUsage, "--format is json or markdown")
			}
			export, err := withSession(cmd.Context(), env, app.Options{ReadOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.SessionExport, error) {
					return conn.Export(cmd.Context(), id)
				})
			if err != nil {
				return err
			}
			if format == "json" {
				return writeJSON(env.stdout, export)
			}
			chat.Markdown(env.stdout, env.text, &export)
			return nil // Main returns the error of standard output
		},
	}
	cmd.Flags().StringVar(&format, "format", "json", env.T("json or markdown"))
	return cmd
}
