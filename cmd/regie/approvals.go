package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func (c *command) approvalsCommand() *cobra.Command {
	var all, asJSON bool
	list := &cobra.Command{
		Use: "approvals", Args: usage(cobra.NoArgs), Short: c.text.T("What waits for your approval or answer"),
		Long: c.text.T("What waits for your approval or answer in this workspace, oldest first.\n\nAn ID is written as its last characters (four or more), as it is shown; last is the newest of this workspace."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := c.inbox(cmd.Context(), asJSON, all, func(conn *app.Conn, root string) (store.Inbox, error) {
				if all {
					root = ""
				}
				return conn.Inbox(cmd.Context(), store.InboxFilter{Root: root, Brief: !asJSON})
			}, (*chat.Page).Inbox)
			if err != nil {
				return err
			}
			root, err := c.scope(cmd.Context(), all)
			if err != nil {
				return err
			}
			runs, err := c.stuckRuns(cmd.Context(), root)
			c.tellStuck(runs)
			return err
		},
	}
	show := &cobra.Command{
		Use: "show ID", Args: usage(cobra.ExactArgs(1)),
		Short: c.text.T("One of them with its diffs, and what an answer for longer can cover"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.inbox(cmd.Context(), asJSON, true, func(conn *app.Conn, root string) (store.Inbox, error) {
				return chat.Find(cmd.Context(), conn, root, args[0])
			}, (*chat.Page).Show)
		},
	}
	list.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	list.PersistentFlags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	list.AddCommand(show)
	return list
}

// inbox reads what waits and prints it.
func (c *command) inbox(ctx context.Context, asJSON, everywhere bool, read func(*app.Conn, string) (store.Inbox, error),
	show func(*chat.Page, store.Inbox),
) error {
	root, _, err := c.workspace(ctx, true)
	if err != nil {
		return err
	}
	inbox, err := look(ctx, c, store.Inbox{}, func(conn *app.Conn) (store.Inbox, error) { return read(conn, root) })
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(c.stdout, inbox)
	}
	page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now, Everywhere: everywhere}
	show(page, inbox)
	return page.Err()
}

// stuckRuns are the runs among the newest of a workspace that wait for settings of a provider which
// are not here any more.
func (c *command) stuckRuns(ctx context.Context, root string) ([]store.RoundSummary, error) {
	runs, err := look(ctx, c, nil, func(conn *app.Conn) ([]store.RoundSummary, error) {
		return conn.List(ctx, store.RoundFilter{Root: root, Limit: stuckSought})
	})
	return slices.DeleteFunc(runs, func(r store.RoundSummary) bool { return !r.Stuck }), err
}

// stuckSought bounds how many of the newest runs are looked at.
const stuckSought = 200

// tellStuck prints the runs that wait for settings, and what to do about each.
func (c *command) tellStuck(runs []store.RoundSummary) {
	for i := range runs {
		id := chat.Short(runs[i].Round.ID)
		c.tell(c.text.T(
			"! the run %s waits: it was started with another address or key of %s. Bring these settings back and run: regie run --resume %s",
			id, runs[i].Round.Provider, id))
	}
}

// decideFlags are those of approve, deny and answer.
type decideFlags struct {
	session, always, edit, noContinue bool
	scope                             int
	arguments, reason, until          string
}

func (c *command) approveCommand() *cobra.Command {
	var f decideFlags
	cmd := &cobra.Command{
		Use: "approve ID [CALL…]", Args: usage(cobra.MinimumNArgs(1)),
		Short: c.text.T("Allow what an agent asks for, and go on with its run"),
		Long:  c.text.T("Allow calls of an approval, by their numbers; without numbers, all that nobody has decided.\n\nWhere no other regie runs, the run goes on here until it ends or waits again, like regie run, with its exit codes."),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer := regie.AnswerAllow
			switch {
			case f.session && f.always:
				return regie.Errorf(codeUsage, "--session and --always exclude each other")
			case f.session:
				answer = regie.AnswerSession
			case f.always:
				answer = regie.AnswerAlways
			case cmd.Flags().Changed("scope"):
				return regie.Errorf(codeUsage, "--scope says what --session or --always covers: give one of them")
			case cmd.Flags().Changed("for"):
				return regie.Errorf(codeUsage, "--for says how long --session or --always holds: give one of them")
			}
			if f.edit && cmd.Flags().Changed("arguments") {
				return regie.Errorf(codeUsage, "--edit and --arguments exclude each other")
			}
			return c.decide(cmd.Context(), f, args, answer)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.session, "session", false, c.text.T("also for the rest of this session"))
	flags.BoolVar(&f.always, "always", false, c.text.T("also in every session of the workspace, from now on"))
	flags.IntVar(&f.scope, "scope", 1, c.text.T(
		"what --session or --always covers: a number that regie approvals show lists"))
	flags.StringVar(&f.until, "for", "",
		c.text.T("how long --session or --always holds, such as 24h or 7d; else until regie rules revoke"))
	flags.BoolVar(&f.edit, "edit", false, c.text.T("edit the arguments of one call first ($VISUAL, $EDITOR)"))
	flags.StringVar(&f.arguments, "arguments", "", c.text.T("run one call with these arguments, as JSON"))
	c.decideFlags(cmd, &f)
	return cmd
}

func (c *command) denyCommand() *cobra.Command {
	var f decideFlags
	cmd := &cobra.Command{
		Use: "deny ID [CALL…]", Args: usage(cobra.MinimumNArgs(1)), Short: c.text.T("Refuse what an agent asks for"),
		Long: c.text.T("Refuse calls of an approval, by their numbers; without numbers, all that nobody has decided. With a reason the agent goes on and is told it; where everything is refused without one, the run ends."),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.decide(cmd.Context(), f, args, regie.AnswerDeny)
		},
	}
	cmd.Flags().StringVar(&f.reason, "reason", "", c.text.T("what the agent is told"))
	c.decideFlags(cmd, &f)
	return cmd
}

func (c *command) decideFlags(cmd *cobra.Command, f *decideFlags) {
	cmd.Flags().BoolVar(&f.noContinue, "no-continue", false,
		c.text.T("only store it; the run goes on with the next regie that runs"))
	c.modelFlags(cmd)
}

// decide stores a person's word on calls of an approval, and goes on with the run.
func (c *command) decide(ctx context.Context, f decideFlags, args []string, answer regie.Answer) error {
	return c.resolve(ctx, f, args[0], func(conn *app.Conn, inbox store.Inbox) (store.Resolved, error) {
		if len(inbox.Approvals) == 0 {
			return store.Resolved{}, regie.Errorf(codeUsage, "%s is a question: regie answer %s", args[0], args[0])
		}
		a := &inbox.Approvals[0]
		decisions, err := choose(a, args[1:])
		if err != nil {
			return store.Resolved{}, err
		}
		if err := c.fill(ctx, f, a, decisions, answer); err != nil {
			return store.Resolved{}, err
		}
		request := decideRequest(a.ID, decisions)
		if f.edit {
			if err := c.showEdited(ctx, conn, a, &request); err != nil {
				return store.Resolved{}, err
			}
		}
		out, err := conn.Decide(ctx, request)
		if err != nil {
			return out, err
		}
		if answer == regie.AnswerDeny {
			fmt.Fprintln(c.stderr, c.text.T("denied: %d call(s)", len(decisions)))
		} else {
			fmt.Fprintln(c.stderr, c.text.T("allowed: %d call(s)", len(decisions)))
		}
		return out, nil
	})
}

// showEdited shows what an edited call would do before it is allowed (decision 20), and asks once
// more where somebody is there.
func (c *command) showEdited(ctx context.Context, conn *app.Conn, a *regie.Approval,
	request *dispatch.DecideRequest,
) error {
	// it was decided before, and that is told
	if len(request.Decisions) != 1 || len(request.Decisions[0].Arguments) == 0 {
		return nil
	}
	found, err := conn.Review(ctx, *request)
	if err != nil || len(found.Reviews) != 1 {
		return err
	}
	page := &chat.Page{W: c.stderr, Text: c.text, Now: time.Now}
	for i := range a.Reviews {
		if a.Reviews[i].CallID == found.Reviews[0].CallID {
			page.Edited(i+1, &found.Reviews[0])
		}
	}
	request.Shown = chat.ShownEdit(&found.Reviews[0])
	if err := page.Err(); err != nil || !attended(c.stdin, c.stderr) {
		return err
	}
	return c.agreed(c.text.T("Allow this? [y/N] "), c.text.T("not allowed; nothing is decided"))
}

// choose returns a decision for each call that is named by its number or its id; for all that are
// open where none is named. Where none is open either it returns all, so that the person is told
// who has decided.
func choose(a *regie.Approval, names []string) ([]regie.Decision, error) {
	var out []regie.Decision
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil || len(name) > 3 { // the digits of an id
			n = 0
			for i := range a.Reviews {
				if id := a.Reviews[i].CallID; name == id.String() || name == chat.Short(id) {
					n = i + 1
				}
			}
		}
		if n < 1 || n > len(a.Reviews) {
			return nil, regie.Errorf(codeUsage, "the approval has no call %s: it has the calls 1 to %d", name,
				len(a.Reviews))
		}
		out = append(out, regie.Decision{CallID: a.Reviews[n-1].CallID})
	}
	if len(names) > 0 {
		return out, nil
	}
	for i := range a.Reviews {
		if a.Reviews[i].Decision == nil {
			out = append(out, regie.Decision{CallID: a.Reviews[i].CallID})
		}
	}
	if len(out) == 0 {
		for i := range a.Reviews {
			out = append(out, regie.Decision{CallID: a.Reviews[i].CallID})
		}
	}
	return out, nil
}

// fill says what each decision is.
func (c *command) fill(ctx context.Context, f decideFlags, a *regie.Approval,
	decisions []regie.Decision, answer regie.Answer,
) error {
	if (f.edit || f.arguments != "") && len(decisions) != 1 {
		return regie.Errorf(codeUsage, "--edit and --arguments are for one call: name its number")
	}
	var expires time.Time
	if f.until != "" {
		span, err := chat.Span(f.until)
		if err != nil {
			return err
		}
		expires = time.Now().Add(span)
	}
	for i := range decisions {
		d := &decisions[i]
		d.Answer, d.Reason, d.ExpiresAt = answer, f.reason, expires
		review := reviewOf(a, d.CallID)
		if answer == regie.AnswerSession || answer == regie.AnswerAlways {
			scopes := review.Preview.Scopes
			if len(scopes) == 0 {
				return regie.Errorf(codeUsage, "this call can only be allowed once: its tool proposes nothing wider")
			}
			if f.scope < 1 || f.scope > len(scopes) {
				return regie.Errorf(codeUsage, "there is no scope %d for this call: regie approvals show %s lists them",
					f.scope, chat.Short(a.ID))
			}
			d.Scope = &scopes[f.scope-1]
		}
		switch {
		case f.arguments != "":
			if !json.Valid([]byte(f.arguments)) {
				return regie.Errorf(codeUsage, "--arguments is not JSON")
			}
			d.Arguments = json.RawMessage(f.arguments)
		case f.edit && review.Decision == nil:
			edited, err := chat.Edit(ctx, chat.Command(chat.EditorLine(os.Getenv)), review.Arguments, nil)
			if err != nil {
				return err
			}
			d.Arguments = edited
		}
	}
	return nil
}

func reviewOf(a *regie.Approval, call regie.ID) *regie.Review {
	for i := range a.Reviews {
		if a.Reviews[i].CallID == call {
			return &a.Reviews[i]
		}
	}
	return &regie.Review{}
}

// resolve finds what a person answers, has it stored, and goes on with its run where this process
// is the engine (decision 1).
func (c *command) resolve(ctx context.Context, f decideFlags, name string,
	say func(conn *app.Conn, inbox store.Inbox) (store.Resolved, error),
) error {
	root, _, err := c.workspace(ctx, true)
	if err != nil {
		return err
	}
	c.level.Set(slog.LevelError) // that the run cannot go on here is said by this command
	conn, err := c.connect(ctx, app.Options{StoreOnly: f.noContinue})
	if err != nil {
		return err
	}
	outcome, err := func() (outcome, err error) {
		inbox, err := chat.Find(ctx, conn, root, name)
		if err != nil {
			return nil, err
		}
		round := roundOf(inbox)
		before, err := conn.Get(ctx, round)
		if err != nil {
			return nil, err
		}
		out, err := say(conn, inbox)
		if err != nil {
			return nil, err
		}
		return c.goOn(ctx, f, conn, out, before)
	}()
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return errors.Join(outcome, err)
}

// goOn goes on with a run that somebody has answered.
func (c *command) goOn(ctx context.Context, f decideFlags, conn *app.Conn, out store.Resolved,
	before store.RoundView,
) (outcome, err error) {
	now, err := conn.Get(ctx, out.RoundID)
	if err != nil {
		return nil, err
	}
	// Its queries may still run, while other calls of it are undecided.
	left, err := conn.Inbox(ctx, store.InboxFilter{SessionID: out.SessionID, Brief: true})
	if err != nil {
		return nil, err
	}
	undecided := len(left.Approvals)+len(left.Questions) > 0
	switch {
	case now.Session.State == regie.SessionPaused:
		fmt.Fprintln(c.stderr, c.text.T("the run is paused. Go on with: regie run --resume %s", out.RoundID))
		return nil, nil
	case !out.Ready && (undecided || now.Round.State == regie.RoundWaiting):
		fmt.Fprintln(c.stderr, c.text.T("the run still waits: see regie approvals"))
		return nil, nil
	case f.noContinue:
		fmt.Fprintln(c.stderr, c.text.T("stored. Go on with: regie run --resume %s", out.RoundID))
		return nil, nil
	case !conn.IsEngine():
		fmt.Fprintln(c.stderr, c.text.T("stored; the regie that is running goes on with it"))
		return nil, nil
	}
	signals := c.signals()
	defer signals.stop()
	engine, end := c.runStays()
	defer end()
	engine()
	// It goes on already, unless it cannot: then this says why.
	if err := conn.Resume(ctx, out.RoundID); err != nil {
		return nil, regie.Errorf(regie.CodeOf(err), "the answer is stored, but the run does not go on here: %v", err)
	}
	w := &follower{
		command: c, control: conn, round: out.RoundID, session: out.SessionID,
		after: before.Head, signals: signals.first,
	}
	w.note(c.text.T("going on with run %s", out.RoundID))
	outcome, err = w.watch(ctx)
	c.drain(ctx, conn, signals.first, signals.ended.Load())
	return outcome, err
}

func roundOf(inbox store.Inbox) regie.ID {
	if len(inbox.Approvals) > 0 {
		return inbox.Approvals[0].RoundID
	}
	return inbox.Questions[0].RoundID
}
