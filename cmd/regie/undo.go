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
	chat, force, yes, dry bool
	json                  bool
}

// newUndoCommand takes back what a run did to files (decision 16).
func newUndoCommand(env *environment) *cobra.Command {
	var f undoFlags
	cmd := &cobra.Command{
		Use: "undo [ID]", Args: checkArgCount(0, 1),
		Short: env.T("Undo the file changes of a run"),
		Long:  env.T("Undo all file changes of a run: the newest run of this workspace with changes that are not undone, or the named one. You see the effect on each file first, and are asked.\n\nIf a file has changed since the run, nothing is undone; --force restores it anyway and keeps its present content. Other effects of the run are listed and stay.\nNothing is lost: regie undo with the ID of an undo reverts it, and restores the work."),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := dispatch.UndoRequest{Chat: f.chat, Force: f.force}
			if len(args) == 0 {
				return undoRun(cmd.Context(), env, in, f)
			}
			if err := chat.UndoNamed(&in, args[0]); err != nil {
				return err
			}
			return undoRun(cmd.Context(), env, in, f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.chat, "chat", false, env.T("also remove that run's messages from the conversation"))
	flags.BoolVar(&f.force, "force", false,
		env.T("restore files that have changed since; their present content is kept"))
	flags.BoolVarP(&f.yes, "yes", "y", false, env.T("do not ask"))
	flags.BoolVar(&f.dry, "dry-run", false, env.T("only show what would be done"))
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
	addJSONFlag(env, cmd, &f.json)
	return cmd
}

// undoRun shows what would be done, asks, and has the running engine do it, or this process, which
// then runs nothing else.
func undoRun(ctx context.Context, env *environment, in dispatch.UndoRequest, f undoFlags) error {
	none := regie.UndoPlan{}
	plan, err := readWorkspace(ctx, env, false, none, func(conn *app.Conn, root string) (regie.UndoPlan, error) {
		in.Root = root
		return conn.Undos.Plan(ctx, in)
	})
	if err == nil && plan.RoundID.IsZero() {
		err = regie.Errorf(regie.CodeNotFound, "no run here has changed files that can be put back")
	}
	if err == nil {
		err = showUndoPlan(env, &plan, f)
	}
	if err != nil {
		return err
	}
	if len(plan.Conflicts(f.force)) > 0 {
		if f.yes && !f.json {
			env.newPage(env.stderr).UndoPlan(&plan, 1)
		}
		fmt.Fprintln(env.stderr, "regie: "+chat.UndoInTheWay(env.text, &plan, "--force"))
		return exit{exitError}
	}
	if f.dry {
		return nil
	}
	if !f.yes {
		if err := env.askConfirmation(env.T("Undo this? [y/N] "), env.T("nothing was undone")); err != nil {
			return err
		}
	}
	_, err = writeStore(ctx, env, func(conn *app.Conn) (any, error) {
		done, err := conn.Undos.Undo(ctx, chat.Agreed(in, &plan))
		if err != nil {
			return nil, err
		}
		if f.json {
			err = writeJSON(env.stdout, done)
		} else {
			page := env.newPage(env.stdout)
			page.Undone(&done)
			err = page.Err()
		}
		if done.Left() > 0 {
			err = errors.Join(err, exit{exitError})
		}
		return nil, err
	})
	return err
}

// showUndoPlan shows a plan to the person who confirms it or asked only for the plan.
func showUndoPlan(env *environment, plan *regie.UndoPlan, f undoFlags) error {
	switch {
	case f.json && f.dry:
		return writeJSON(env.stdout, plan)
	case f.json, f.yes:
		return nil
	}
	page := env.newPage(env.stderr)
	if f.dry {
		page.W = env.stdout
	}
	page.UndoPlan(plan, 0)
	return page.Err()
}
