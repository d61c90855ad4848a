package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// newSessionsCommand is about stored sessions: it calls no model and no tool.
func newSessionsCommand(env *environment) *cobra.Command {
	sessions := &cobra.Command{
		Use: "sessions", Short: env.T("What was said: list, show, fork, export and remove sessions"),
		Long: env.T("What was said: list, show, fork, export and remove sessions.\n\nAn ID is that of a session or of one of its runs, written as its last characters (four or more); last is the session of this workspace where something happened last."),
	}
	var all, asJSON bool
	list := &cobra.Command{
		Use: "list", Args: arguments(0, 0), Short: env.T("The sessions of this workspace, with what is new in them"),
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
		Use: "show ID|last", Args: arguments(1, 1),
		Short: env.T("One session: who said what, and what was called, in order"),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, err := withSession(cmd.Context(), env, app.Options{ReadOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.SessionView, error) { return conn.Session(cmd.Context(), id) })
			return printResult(env, asJSON, view, err, func(p *chat.Page) { p.Session(&view) })
		},
	}
	addJSONFlag(env, show, &asJSON)
	rename := &cobra.Command{
		Use: "rename ID NAME", Args: arguments(2, 2), Short: env.T("Give a session another name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := withSession(cmd.Context(), env, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (any, error) {
					return nil, conn.Rename(cmd.Context(), dispatch.RenameRequest{SessionID: id, Name: args[1]})
				})
			return err
		},
	}
	sessions.AddCommand(list, show, newForkCommand(env), newExportCommand(env), rename, newRemoveCommand(env))
	return sessions
}

// withSession calls do with a connection and the named session of this workspace.
func withSession[T any](ctx context.Context, env *environment, o app.Options, name string,
	do func(*app.Conn, regie.ID) (T, error),
) (out T, err error) {
	root, err := env.scope(ctx, false)
	if err != nil {
		return out, err
	}
	return withConn(ctx, env, o, func(conn *app.Conn) (T, error) {
		found, err := chat.FindSession(ctx, conn.Client, root, name)
		if err != nil {
			return out, err
		}
		return do(conn, found.ID)
	})
}

// newForkCommand copies a session up to a point.
func newForkCommand(env *environment) *cobra.Command {
	var in dispatch.ForkRequest
	var round string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "fork ID|last", Args: arguments(1, 1),
		Short: env.T("Go on from an earlier point in a session of its own"),
		Long:  env.T("Copy what was said in a session, up to a point, into a new session. The session itself stays as it is.\n\nThe point is a number that regie sessions show has before each message (--at), or the end of a run (--at-round); without one it is now. A reply is copied with the results of its calls, or not at all.\nApprovals, rules, waits and runs are not copied, and neither are files: the workspace is as it is now."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && in.At < 1 {
				return regie.Errorf(codeUsage, "--at is a number that regie sessions show has before a message")
			}
			out, err := withSession(cmd.Context(), env, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (out store.Forked, err error) {
					in.From = id
					if round != "" {
						if in.RoundID, err = findRoundOf(cmd.Context(), conn, id, round); err != nil {
							return out, err
						}
					}
					return conn.Fork(cmd.Context(), in)
				})
			if err != nil || asJSON {
				return orJSON(env, out, err)
			}
			if out.Open {
				env.notef("the calls of the reply at that point are not all settled: the fork ends before it")
			}
			env.notef("the files of the workspace were not forked")
			env.notef("go on with this chat: regie chat -r %s", chat.Short(out.Session.ID))
			from := out.Session.ForkedFrom
			return env.printf("session %s: %s, forked from %s at %s", out.Session.ID,
				chat.Messages(env.text, out.Messages), chat.Short(from.SessionID), strconv.FormatInt(from.Seq, 10))
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&in.At, "at", 0, env.T("up to this number"))
	flags.StringVar(&round, "at-round", "", env.T("up to the end of this run: its id, or the end of it"))
	flags.StringVar(&in.Name, "name", "", env.T("the name of the new session"))
	cmd.MarkFlagsMutuallyExclusive("at", "at-round")
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

// findRoundOf finds a run of a session by its name.
func findRoundOf(ctx context.Context, conn *app.Conn, session regie.ID, name string) (regie.ID, error) {
	view, err := conn.Session(ctx, session)
	if err != nil {
		return regie.ID{}, err
	}
	known := make([]regie.ID, len(view.History))
	for i := range view.History {
		known[i] = view.History[i].ID
	}
	if name == "last" && len(known) > 0 {
		return known[len(known)-1], nil
	}
	id, err := chat.PickID(known, name)
	if regie.CodeOf(err) == regie.CodeNotFound {
		err = regie.Errorf(regie.CodeNotFound, "there is no run %s in this session", name)
	}
	return id, err
}

// newRemoveCommand erases a session.
func newRemoveCommand(env *environment) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "rm ID|last", Args: arguments(1, 1), Short: env.T("Erase what a session held"),
		Long: env.T("Erase what a session held: what was said, what was called, and what came of it. That it was there stays in its log, which still verifies.\nSessions of its sub-agents go with it. Forks of it have their own copies and stay. It is refused while a run of it is open.\nBackups keep what they hold, and what an agent did to files is not undone."),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := withSession(cmd.Context(), env, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.Removed, error) {
					if err := confirmRemove(cmd.Context(), env, conn, id, yes); err != nil {
						return store.Removed{}, err
					}
					return conn.Remove(cmd.Context(), dispatch.RemoveRequest{SessionID: id})
				})
			for _, fork := range out.Forks {
				env.notef("its fork %s stays: it has its own copy", chat.Short(fork))
			}
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

// confirmRemove asks whether a session is to be removed.
func confirmRemove(ctx context.Context, env *environment, conn *app.Conn, id regie.ID, yes bool) error {
	if yes {
		return nil
	}
	view, err := conn.Session(ctx, id)
	if err != nil {
		return err
	}
	return env.confirm(env.T("Remove the session \"%s\" with %s for good? [y/N] ", plain.Line(view.Name),
		chat.Messages(env.text, view.Messages)), env.T("not removed"))
}

// newExportCommand writes a session out.
func newExportCommand(env *environment) *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use: "export ID|last", Args: arguments(1, 1),
		Short: env.T("Write a session out: all of it as JSON, or to be read as Markdown"),
		Long:  env.T("Write a session out. JSON holds all that can be checked of it: messages, calls, runs, what was asked and answered, and its log with every hash (docs/export.md describes it). Markdown is for reading.\nWithout -o it goes to standard output. What is secret in a session is secret in its export."),
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
			var data bytes.Buffer
			if format == "json" {
				err = writeJSON(&data, export)
			} else {
				chat.Markdown(&data, env.text, &export)
			}
			switch {
			case err != nil:
				return err
			case out != "":
				return writePrivate(out, data.Bytes())
			}
			_, err = data.WriteTo(env.stdout)
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "json", env.T("json or markdown"))
	cmd.Flags().StringVarP(&out, "output", "o", "", env.T("write into this file, which only you can read"))
	return cmd
}

// writePrivate writes a file as a whole or not at all, readable by its owner only. It replaces the
// old file, and refuses links and special files.
func writePrivate(path string, data []byte) error {
	if there, err := os.Lstat(path); err == nil && !there.Mode().IsRegular() {
		return regie.Errorf(regie.CodeSpecialFile,
			"%s is a link, a directory or a device: name the file itself, or leave -o out for standard output", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".regie-export-*")
	if err == nil {
		_, err = f.Write(data)
		if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
			err = os.Rename(f.Name(), path)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
	if err != nil {
		return regie.Errorf(regie.CodeNoPermission, "the export cannot be written: %v", err)
	}
	return nil
}
