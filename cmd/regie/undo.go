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
		Use: "undo [ID]", Args: usage(cobra.MaximumNArgs(1)), Short: c.text.T("Take back what a run did to files"),
		Long: c.text.T("Take back all that a run did to files: the newest run of this workspace that changed some and is not undone, or the one that is named. What becomes of each file is shown first, and asked.\n\nWhere a file is not as the run left it nothing is undone; --force puts it back all the same and keeps what it holds now. What a run did otherwise is listed and stays.\nNothing is lost: regie undo with the ID of an undo takes that back, and so does the work again."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dry && f.yes {
				return regie.Errorf(codeUsage, "--dry-run and --yes exclude each other")
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			if name != "" && f.session != "" {
				return regie.Errorf(codeUsage, "--session and an ID exclude each other")
			}
			return c.undo(cmd.Context(), name, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.session, "session", "", c.text.T("the newest run of this session: its id, or the end of it, or last"))
	flags.BoolVar(&f.chat, "chat", false, c.text.T("also take what was said in that run out of the conversation"))
	flags.BoolVar(&f.force, "force", false, c.text.T("put files back that were changed since; what they hold now is kept"))
	flags.BoolVarP(&f.yes, "yes", "y", false, c.text.T("do not ask"))
	flags.BoolVar(&f.dry, "dry-run", false, c.text.T("only show what would be done"))
	flags.BoolVar(&f.json, "json", false, c.text.T("print JSON"))
	return cmd
}

// undo shows a plan, asks, and has it carried out: by the engine that runs, or by this process, which then is the engine and runs nothing else.
func (c *command) undo(ctx context.Context, name string, f undoFlags) error {
	in := dispatch.UndoRequest{UndoID: regie.NewID(), Chat: f.chat, Force: f.force}
	plan, err := c.undoPlan(ctx, &in, name, f)
	if err != nil {
		return err
	}
	if f.dry || !f.yes {
		if err := c.showUndo(&plan, f); err != nil {
			return err
		}
	}
	if len(plan.Conflicts(f.force)) > 0 {
		if f.yes && !f.json {
			page := &chat.Page{W: c.stderr, Text: c.text, Now: time.Now}
			page.UndoPlan(&plan, 1)
		}
		fmt.Fprintln(c.stderr, "regie: "+chat.UndoInTheWay(c.text, &plan, f.force, "--force"))
		return exit{exitError}
	}
	if f.dry {
		return nil
	}
	if !f.yes {
		if err := c.agreed(c.text.T("Undo this? [y/N] "), c.text.T("nothing was undone")); err != nil {
			return err
		}
	}
	in.Target, in.Short, in.Plan = plan.RoundID, "", plan.Plan
	if !plan.Undoes.IsZero() {
		in.Target = plan.Undoes
	}
	conn, err := c.attach(ctx, app.Options{StoreOnly: true})
	if err != nil {
		return err
	}
	done, err := conn.Undo(ctx, in)
	if err = errors.Join(err, conn.Close()); err != nil {
		return err
	}
	if f.json {
		err = writeJSON(c.stdout, done)
	} else {
		page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now}
		page.Undone(&done)
		err = page.Err()
	}
	if err == nil && done.Left() > 0 {
		return exit{exitError}
	}
	return err
}

// undoPlan asks what would be done, beside whatever engine there is.
func (c *command) undoPlan(ctx context.Context, in *dispatch.UndoRequest, name string, f undoFlags) (regie.UndoPlan, error) {
	var plan regie.UndoPlan
	var err error
	if in.Root, _, err = c.workspace(true); err == nil {
		err = chat.UndoNamed(in, name)
	}
	if err != nil {
		return plan, err
	}
	conn, err := c.attach(ctx, app.Options{ReadOnly: true})
	if regie.CodeOf(err) == regie.CodeNotFound { // nothing has run yet
		return plan, regie.Errorf(regie.CodeNotFound, "no run here has changed files that can be put back")
	}
	if err != nil {
		return plan, err
	}
	if f.session != "" {
		found, failed := chat.FindSession(ctx, conn, in.Root, f.session)
		in.SessionID, err = found.ID, failed
	}
	if err == nil {
		plan, err = conn.PlanUndo(ctx, *in)
	}
	return plan, errors.Join(err, conn.Close())
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
