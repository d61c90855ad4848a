package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// sessionsCommand is about stored sessions: nothing of it calls a model or a tool.
func (c *command) sessionsCommand() *cobra.Command {
	sessions := &cobra.Command{
		Use: "sessions", Short: c.text.T("What was said: list, show, fork, export and remove sessions"),
		Args: usage(cobra.NoArgs),
		Long: c.text.T("What was said: list, show, fork, export and remove sessions.\n\nAn ID is that of a session or of one of its runs, written as its last characters (four or more); last is the session of this workspace where something happened last."),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var all, asJSON bool
	list := &cobra.Command{
		Use: "list", Args: usage(cobra.NoArgs),
		Short: c.text.T("The sessions of this workspace, with what is new in them"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var filter store.SessionFilter
			var err error
			if !all {
				if filter.Root, _, err = c.workspace(cmd.Context(), true); err != nil {
					return err
				}
			}
			found, err := look(cmd.Context(), c, []store.SessionSummary{},
				func(conn *app.Conn) ([]store.SessionSummary, error) {
					return conn.Sessions(cmd.Context(), filter)
				})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, found)
			}
			page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now, Everywhere: all}
			page.Sessions(found)
			return page.Err()
		},
	}
	list.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	list.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	var showJSON bool
	show := &cobra.Command{
		Use: "show ID|last", Args: usage(cobra.ExactArgs(1)),
		Short: c.text.T("One session: who said what, and what was called, in order"),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, err := withSession(cmd.Context(), c, app.Options{ReadOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.SessionView, error) {
					return conn.Session(cmd.Context(), id)
				})
			if err != nil {
				return err
			}
			if showJSON {
				return writeJSON(c.stdout, view)
			}
			page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now}
			page.Session(&view)
			return page.Err()
		},
	}
	show.Flags().BoolVar(&showJSON, "json", false, c.text.T("print JSON"))
	rename := &cobra.Command{
		Use: "rename ID NAME", Args: usage(cobra.ExactArgs(2)), Short: c.text.T("Give a session another name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := withSession(cmd.Context(), c, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (struct{}, error) {
					return struct{}{}, conn.Rename(cmd.Context(), dispatch.RenameRequest{SessionID: id, Name: args[1]})
				})
			return err
		},
	}
	sessions.AddCommand(list, show, c.forkCommand(), c.exportCommand(), rename, c.removeCommand())
	return sessions
}

// withSession attaches, finds the session that a person names in this workspace, and does something
// with it.
func withSession[T any](ctx context.Context, c *command, o app.Options, name string,
	do func(*app.Conn, regie.ID) (T, error),
) (T, error) {
	var out T
	root, _, err := c.workspace(ctx, true)
	if err != nil {
		return out, err
	}
	conn, err := c.connect(ctx, o)
	if err != nil {
		return out, err
	}
	found, err := chat.FindSession(ctx, conn, root, name)
	if err == nil {
		out, err = do(conn, found.ID)
	}
	return out, errors.Join(err, conn.Close())
}

func (c *command) forkCommand() *cobra.Command {
	var at int64
	var round, name string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "fork ID|last", Args: usage(cobra.ExactArgs(1)),
		Short: c.text.T("Go on from an earlier point in a session of its own"),
		Long:  c.text.T("Copy what was said in a session, up to a point, into a new session. The session itself stays as it is.\n\nThe point is a number that regie sessions show has before each message (--at), or the end of a run (--at-round); without one it is now. A reply is copied with the results of its calls, or not at all.\nApprovals, rules, waits and runs are not copied, and neither are files: the workspace is as it is now."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && round != "" {
				return regie.Errorf(codeUsage, "--at and --at-round exclude each other")
			}
			if cmd.Flags().Changed("at") && at < 1 {
				return regie.Errorf(codeUsage, "--at is a number that regie sessions show has before a message")
			}
			out, err := withSession(cmd.Context(), c, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.Forked, error) {
					in := dispatch.ForkRequest{From: id, At: at, Name: name}
					if round != "" {
						var err error
						if in.RoundID, err = roundIn(cmd.Context(), conn, id, round); err != nil {
							return store.Forked{}, err
						}
					}
					return conn.Fork(cmd.Context(), in)
				})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, out)
			}
			return c.forked(out)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&at, "at", 0, c.text.T("up to this number"))
	flags.StringVar(&round, "at-round", "", c.text.T("up to the end of this run: its id, or the end of it"))
	flags.StringVar(&name, "name", "", c.text.T("the name of the new session"))
	flags.BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	return cmd
}

// roundIn finds a run of a session.
func roundIn(ctx context.Context, conn *app.Conn, session regie.ID, name string) (regie.ID, error) {
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

// forked says what was made, and what was not.
func (c *command) forked(out store.Forked) error {
	if out.Open {
		fmt.Fprintln(c.stderr,
			c.text.T("the calls of the reply at that point are not all settled: the fork ends before it"))
	}
	fmt.Fprintln(c.stderr, c.text.T("the files of the workspace were not forked"))
	fmt.Fprintln(c.stderr, c.text.T("go on with this chat: regie chat -r %s", chat.Short(out.Session.ID)))
	_, err := fmt.Fprintln(c.stdout, c.text.T("session %s: %s, forked from %s at %s", out.Session.ID,
		chat.Messages(c.text, out.Messages),
		chat.Short(out.Session.ForkedFrom.SessionID), strconv.FormatInt(out.Session.ForkedFrom.Seq, 10)))
	return err
}

func (c *command) removeCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "rm ID|last", Args: usage(cobra.ExactArgs(1)), Short: c.text.T("Erase what a session held"),
		Long: c.text.T("Erase what a session held: what was said, what was called, and what came of it. That it was there stays in its log, which still verifies.\nSessions of its sub-agents go with it. Forks of it have their own copies and stay. It is refused while a run of it is open.\nBackups keep what they hold, and what an agent did to files is not undone."),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := withSession(cmd.Context(), c, app.Options{StoreOnly: true}, args[0],
				func(conn *app.Conn, id regie.ID) (store.Removed, error) {
					if err := c.confirm(cmd.Context(), conn, id, yes); err != nil {
						return store.Removed{}, err
					}
					return conn.Remove(cmd.Context(), dispatch.RemoveRequest{SessionID: id})
				})
			if err != nil {
				return err
			}
			for _, fork := range out.Forks {
				fmt.Fprintln(c.stderr, c.text.T("its fork %s stays: it has its own copy", chat.Short(fork)))
			}
			for _, id := range out.SessionIDs {
				fmt.Fprintln(c.stdout, c.text.T("session %s is removed; its log still verifies", chat.Short(id)))
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, c.text.T("do not ask"))
	return cmd
}

// confirm asks the person whether a session is to be removed; without one it must have been said.
func (c *command) confirm(ctx context.Context, conn *app.Conn, id regie.ID, yes bool) error {
	if yes {
		return nil
	}
	view, err := conn.Session(ctx, id)
	if err != nil {
		return err
	}
	question := c.text.T("Remove the session \"%s\" with %s for good? [y/N] ", plain.Line(view.Name),
		chat.Messages(c.text, view.Messages))
	return c.agreed(question, c.text.T("not removed"))
}

// agreed asks the person a question that only a yes passes, at a terminal; without one it must have
// been said.
func (c *command) agreed(question, refused string) error {
	if !attended(c.stdin, c.stderr) {
		return regie.Errorf(codeUsage, "nobody can be asked here: say --yes")
	}
	fmt.Fprint(c.stderr, question)
	line, err := bufio.NewReader(c.stdin).ReadString('\n')
	if err != nil {
		fmt.Fprintln(c.stderr)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", "o", "oui":
		return nil
	}
	fmt.Fprintln(c.stderr, refused)
	return exit{exitError}
}
