package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

type undoFlags struct {
	session string
	to      string
	runs    int
	chat    bool
	force   bool
	yes     bool
	dry     bool
	json    bool
}

// undoCommand takes back what a run did to files (decision 16).
func (c *command) undoCommand() *cobra.Command {
	var f undoFlags
	cmd := &cobra.Command{
		Use: "undo [ID...]", Args: usage(cobra.MaximumNArgs(chat.MaxSeries)),
		Short: c.text.T("Take back what a run did to files"),
		Long:  c.text.T("Take back all that a run did to files: the newest run of this workspace that changed some and is not undone, or the one that is named. What becomes of each file is shown first, and asked.\n\nWhere a file is not as the run left it nothing is undone; --force puts it back all the same and keeps what it holds now, and leaves what cannot be put back as it is. What a run did otherwise is listed and stays.\nSeveral runs are undone together, the newest first: the last ones with --runs, all since a message with --to, or those that are named, in that order. All of it is shown first, and where something is in the way nothing is done.\nNothing is lost: regie undo with the ID of an undo takes that back, and so does the work again."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dry && f.yes {
				return regie.Errorf(codeUsage, "--dry-run and --yes exclude each other")
			}
			series := chat.UndoSeries{Names: args, Runs: f.runs, Back: f.to}
			switch {
			case len(args) > 0 && f.session != "":
				return regie.Errorf(codeUsage, "--session and an ID exclude each other")
			case len(args) > 0 && (f.runs != 0 || f.to != ""), f.to != "" && f.runs != 0:
				return regie.Errorf(codeUsage, "an ID, --runs and --to exclude each other")
			case f.runs < 0:
				return regie.Errorf(codeUsage, "--runs must be 1 or more")
			}
			return c.undo(cmd.Context(), series, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "",
		c.text.T("the newest run of this session: its id, or the end of it, or last"))
	flags.IntVar(&f.runs, "runs", 0, c.text.T("so many of the newest runs"))
	flags.StringVar(&f.to, "to", "",
		c.text.T("back to before this message (its number, with --session, or its id) or this run: all that its session has done since"))
	flags.BoolVar(&f.chat, "chat", false, c.text.T("also take what was said in that run out of the conversation"))
	flags.BoolVar(&f.force, "force", false,
		c.text.T("put files back that were changed since, and leave those that cannot be; what they hold now is kept"))
	flags.BoolVarP(&f.yes, "yes", "y", false, c.text.T("do not ask"))
	flags.BoolVar(&f.dry, "dry-run", false, c.text.T("only show what would be done"))
	flags.BoolVar(&f.json, "json", false, c.text.T("print JSON"))
	return cmd
}

// undo shows what would be done, asks, and has it carried out: by the engine that runs, or by this
// process, which then is the engine and runs nothing else.
func (c *command) undo(ctx context.Context, series chat.UndoSeries, f undoFlags) error {
	in := dispatch.UndoRequest{Chat: f.chat, Force: f.force}
	plans, err := c.undoPlans(ctx, &in, series, f)
	if err != nil {
		return err
	}
	if f.runs > len(plans) && len(plans[len(plans)-1].Conflicts(f.force)) == 0 {
		fmt.Fprintln(c.stderr, "regie: "+c.text.T("%d of the %d runs that were asked for can be undone here",
			len(plans), f.runs))
	}
	for i := range plans {
		if !f.dry && f.yes {
			break
		}
		if err := c.showUndo(&plans[i], f); err != nil {
			return err
		}
	}
	if last := &plans[len(plans)-1]; len(last.Conflicts(f.force)) > 0 {
		if f.yes && !f.json {
			page := &chat.Page{W: c.stderr, Text: c.text, Now: time.Now}
			page.UndoPlan(last, 1)
		}
		fmt.Fprintln(c.stderr, "regie: "+chat.UndoInTheWay(c.text, last, f.force, "--force"))
		return exit{exitError}
	}
	if leaves := chat.UndoLeaves(c.text, plans, f.force); leaves != "" && !f.json {
		fmt.Fprintln(c.stderr, "regie: "+leaves)
	}
	if f.dry {
		return nil
	}
	if !f.yes {
		if err := c.agreed(c.text.T("Undo this? [y/N] "), c.text.T("nothing was undone")); err != nil {
			return err
		}
	}
	conn, err := c.attach(ctx, app.Options{StoreOnly: true})
	if err != nil {
		return err
	}
	return errors.Join(c.undoAll(ctx, conn, in, plans, f), conn.Close())
}

// undoAll carries out what was agreed to, one undo after the other; each is whole, whatever becomes
// of those after it.
func (c *command) undoAll(ctx context.Context, conn chat.Control, in dispatch.UndoRequest,
	plans []regie.UndoPlan, f undoFlags,
) error {
	page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now}
	var all []regie.Undo
	left := false
	for i := range plans {
		done, err := conn.Undo(ctx, chat.Agreed(in, &plans[i]))
		if err != nil {
			return err
		}
		if f.json {
			if err := writeJSON(c.stdout, done); err != nil {
				return err
			}
		} else {
			page.Undone(&done)
		}
		all, left = append(all, done), left || done.Left() > 0
		// more than was said beforehand: what follows may rest on it
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

// undoPlans asks what would be done, beside whatever engine there is.
func (c *command) undoPlans(ctx context.Context, in *dispatch.UndoRequest, series chat.UndoSeries,
	f undoFlags,
) ([]regie.UndoPlan, error) {
	var err error
	if in.Root, _, err = c.workspace(ctx, true); err != nil {
		return nil, err
	}
	for _, name := range series.Names {
		if err := chat.UndoNamed(&dispatch.UndoRequest{}, name); err != nil {
			return nil, err
		}
	}
	conn, err := c.attach(ctx, app.Options{ReadOnly: true})
	if regie.CodeOf(err) == regie.CodeNotFound { // nothing has run yet
		return nil, regie.Errorf(regie.CodeNotFound, "no run here has changed files that can be put back")
	}
	if err != nil {
		return nil, err
	}
	if f.session != "" {
		found, failed := chat.FindSession(ctx, conn, in.Root, f.session)
		in.SessionID, err = found.ID, failed
	}
	var plans []regie.UndoPlan
	if err == nil {
		plans, err = chat.UndoPlans(ctx, conn, *in, series)
	}
	return plans, errors.Join(err, conn.Close())
}

func (c *command) showUndo(plan *regie.UndoPlan, f undoFlags) error {
	if f.json {
		if f.dry {
			return writeJSON(c.stdout, plan)
		}
		return nil
	}
	page := &chat.Page{W: c.stderr, Text: c.text, Now: time.Now}
	if f.dry {
		page.W = c.stdout
	}
	page.UndoPlan(plan, 0)
	return page.Err()
}
