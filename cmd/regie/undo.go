package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

type undoFlags struct {
	session               string
	chat, force, yes, dry bool
	json                  bool
}

// newUndoCommand takes back what a run did to files (decision 16).
func newUndoCommand(env *environment) *cobra.Command {
	var f undoFlags
	var series chat.UndoSeries
	cmd := &cobra.Command{
		Use: "undo [ID...]", Args: arguments(0, chat.MaxSeries),
		Short: env.T("Take back what a run did to files"),
		Long:  env.T("Take back all that a run did to files: the newest run of this workspace that changed some and is not undone, or the one that is named. What becomes of each file is shown first, and asked.\n\nWhere a file is not as the run left it nothing is undone; --force puts it back all the same and keeps what it holds now, and leaves what cannot be put back as it is. What a run did otherwise is listed and stays.\nSeveral runs are undone together, the newest first: the last ones with --runs, all since a run with --to, or those that are named, in that order. All of it is shown first, and where something is in the way nothing is done.\nNothing is lost: regie undo with the ID of an undo takes that back, and so does the work again."),
		RunE: func(cmd *cobra.Command, args []string) error {
			series.Names = args
			switch {
			case len(args) > 0 && f.session != "":
				return regie.Errorf(codeUsage, "--session and an ID exclude each other")
			case len(args) > 0 && (series.Runs != 0 || series.Back != ""):
				return regie.Errorf(codeUsage, "an ID, --runs and --to exclude each other")
			case series.Runs < 0:
				return regie.Errorf(codeUsage, "--runs must be 1 or more")
			}
			return undoRuns(cmd.Context(), env, series, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", env.T("the newest run of this session: its id, or the end of it, or last"))
	flags.IntVar(&series.Runs, "runs", 0, env.T("so many of the newest runs"))
	flags.StringVar(&series.Back, "to", "",
		env.T("back to before this run: all that its session has done since"))
	flags.BoolVar(&f.chat, "chat", false, env.T("also take what was said in that run out of the conversation"))
	flags.BoolVar(&f.force, "force", false,
		env.T("put files back that were changed since, and leave those that cannot be; what they hold now is kept"))
	flags.BoolVarP(&f.yes, "yes", "y", false, env.T("do not ask"))
	flags.BoolVar(&f.dry, "dry-run", false, env.T("only show what would be done"))
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
	cmd.MarkFlagsMutuallyExclusive("runs", "to")
	addJSONFlag(env, cmd, &f.json)
	return cmd
}

// undoRuns shows what would be done, asks, and has the running engine do it, or this process, which
// then runs nothing else.
func undoRuns(ctx context.Context, env *environment, series chat.UndoSeries, f undoFlags) error {
	in := dispatch.UndoRequest{Chat: f.chat, Force: f.force}
	plans, err := planUndos(ctx, env, &in, series, f)
	if err != nil {
		return err
	}
	last := &plans[len(plans)-1]
	conflict := len(last.Conflicts(f.force)) > 0
	if series.Runs > len(plans) && !conflict {
		fmt.Fprintln(env.stderr, "regie: "+env.T("%d of the %d runs that were asked for can be undone here",
			len(plans), series.Runs))
	}
	for i := range plans {
		if err := showUndoPlan(env, &plans[i], f); err != nil {
			return err
		}
	}
	if conflict {
		if f.yes && !f.json {
			env.page(env.stderr).UndoPlan(last, 1)
		}
		fmt.Fprintln(env.stderr, "regie: "+chat.UndoInTheWay(env.text, last, f.force, "--force"))
		return exit{exitError}
	}
	if f.dry {
		return nil
	}
	if !f.yes {
		if err := env.confirm(env.T("Undo this? [y/N] "), env.T("nothing was undone")); err != nil {
			return err
		}
	}
	_, err = writeStore(ctx, env, func(conn *app.Conn) (any, error) {
		return nil, applyUndos(ctx, env, conn.Client, in, plans, f)
	})
	return err
}

// applyUndos does the undos one after the other; each is whole, whatever happens to those after it.
func applyUndos(ctx context.Context, env *environment, conn chat.Control, in dispatch.UndoRequest,
	plans []regie.UndoPlan, f undoFlags,
) error {
	page := env.page(env.stdout)
	var all []regie.Undo
	left := false
	for i := range plans {
		done, err := conn.Undo(ctx, chat.Agreed(in, &plans[i]))
		if err == nil && f.json {
			err = writeJSON(env.stdout, done)
		}
		if err != nil {
			return err
		}
		if !f.json {
			page.Undone(&done)
		}
		all, left = append(all, done), left || done.Left() > 0
		// more than the plan said: what follows may rest on it
		if done.Left() > 0 && (!f.force || done.Left() != plans[i].Stuck()) {
			return errors.Join(page.Err(), exit{exitError})
		}
	}
	if !f.json {
		page.Redo(all)
	}
	if left {
		return errors.Join(page.Err(), exit{exitError})
	}
	return page.Err()
}

// planUndos asks what would be done.
func planUndos(ctx context.Context, env *environment, in *dispatch.UndoRequest, series chat.UndoSeries,
	f undoFlags,
) (plans []regie.UndoPlan, err error) {
	for _, name := range series.Names {
		if err := chat.UndoNamed(&dispatch.UndoRequest{}, name); err != nil {
			return nil, err
		}
	}
	plans, err = readWorkspace(ctx, env, false, nil, func(conn *app.Conn, root string) ([]regie.UndoPlan, error) {
		in.Root = root
		if f.session != "" {
			found, err := chat.FindSession(ctx, conn.Client, in.Root, f.session)
			if err != nil {
				return nil, err
			}
			in.SessionID = found.ID
		}
		return chat.UndoPlans(ctx, conn.Client, *in, series)
	})
	if err == nil && len(plans) == 0 {
		err = regie.Errorf(regie.CodeNotFound, "no run here has changed files that can be put back")
	}
	return plans, err
}

// showUndoPlan shows a plan to who is asked, or wanted to see it only.
func showUndoPlan(env *environment, plan *regie.UndoPlan, f undoFlags) error {
	switch {
	case f.json && f.dry:
		return writeJSON(env.stdout, plan)
	case f.json, f.yes:
		return nil
	}
	page := env.page(env.stderr)
	if f.dry {
		page.W = env.stdout
	}
	page.UndoPlan(plan, 0)
	return page.Err()
}
