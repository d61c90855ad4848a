package main

import (
	"context"
	"encoding/json"
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

// decision holds the flags of approve and deny about calls.
type decision struct {
	answer                   regie.Answer
	edit, noContinue         bool
	scope                    int
	arguments, reason, until string
}

// newApproveCommand allows calls of an approval.
func newApproveCommand(env *environment) *cobra.Command {
	var d decision
	var session, always bool
	cmd := &cobra.Command{
		Use: "approve ID [CALL…]", Args: checkArgCount(1, -1),
		Short: env.T("Allow what an agent asks for and resume its run"),
		Long:  env.T("Allow calls of an approval by their numbers; without numbers, all undecided ones.\n\nIf no other regie process runs, the run continues here until it ends or waits again, like regie run, with its exit codes."),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case session:
				d.answer = regie.AnswerSession
			case always:
				d.answer = regie.AnswerAlways
			case cmd.Flags().Changed("scope") || cmd.Flags().Changed("for"):
				return regie.Errorf(codeUsage, "--scope and --for need --session or --always")
			default:
				d.answer = regie.AnswerAllow
			}
			return decideCalls(cmd.Context(), env, d, args)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&session, "session", false, env.T("also for the rest of this session"))
	flags.BoolVar(&always, "always", false, env.T("also in every session of the workspace, from now on"))
	flags.IntVar(&d.scope, "scope", 1,
		env.T("what --session or --always covers: a number that regie approvals show lists"))
	flags.StringVar(&d.until, "for", "",
		env.T("how long --session or --always lasts, such as 24h or 7d; by default until regie rules revoke"))
	flags.BoolVar(&d.edit, "edit", false, env.T("edit the arguments of one call first ($VISUAL, $EDITOR)"))
	flags.StringVar(&d.arguments, "arguments", "", env.T("run one call with these arguments, as JSON"))
	cmd.MarkFlagsMutuallyExclusive("session", "always")
	cmd.MarkFlagsMutuallyExclusive("edit", "arguments")
	addContinueFlags(env, cmd, &d.noContinue)
	return cmd
}

// newDenyCommand refuses calls of an approval.
func newDenyCommand(env *environment) *cobra.Command {
	d := decision{answer: regie.AnswerDeny}
	cmd := &cobra.Command{
		Use: "deny ID [CALL…]", Args: checkArgCount(1, -1), Short: env.T("Refuse what an agent asks for"),
		Long: env.T("Refuse calls of an approval by their numbers; without numbers, all undecided ones. The agent reads the reason and goes on; without one it says why it asked, and a second refusal of the same call ends the run."),
		RunE: func(cmd *cobra.Command, args []string) error { return decideCalls(cmd.Context(), env, d, args) },
	}
	cmd.Flags().StringVar(&d.reason, "reason", "", env.T("the reason, which the agent reads"))
	addContinueFlags(env, cmd, &d.noContinue)
	return cmd
}

// addContinueFlags adds the flags of commands that go on with an answered run.
func addContinueFlags(env *environment, cmd *cobra.Command, noContinue *bool) {
	cmd.Flags().BoolVar(noContinue, "no-continue", false,
		env.T("only store it; the next regie process continues the run"))
	addModelFlags(env, cmd)
}

// decideCalls stores a decision on calls of an approval, and goes on with the run.
func decideCalls(ctx context.Context, env *environment, d decision, args []string) error {
	return answerWaiting(ctx, env, d.noContinue, args[0], func(conn *app.Conn,
		inbox store.Inbox,
	) (out store.Resolved, err error) {
		if len(inbox.Approvals) == 0 {
			return out, regie.Errorf(codeUsage, "%s is a question: regie answer %s", args[0], args[0])
		}
		a := &inbox.Approvals[0]
		request := dispatch.DecideRequest{ApprovalID: a.ID, Request: regie.NewID().String()}
		if request.Decisions, err = chooseCalls(a, args[1:]); err != nil {
			return out, err
		}
		if err := d.fillDecisions(ctx, a, request.Decisions); err != nil {
			return out, err
		}
		if d.edit && len(request.Decisions[0].Arguments) > 0 { // else it was decided before, and Decide says so
			if err := confirmEdit(ctx, env, conn, a, &request); err != nil {
				return out, err
			}
		}
		if out, err = conn.Decide(ctx, request); err != nil {
			return out, err
		}
		if d.answer == regie.AnswerDeny {
			env.notef("denied: %d call(s)", len(request.Decisions))
		} else {
			env.notef("allowed: %d call(s)", len(request.Decisions))
		}
		return out, nil
	})
}

// confirmEdit shows what an edited call would do before it is allowed (decision 20), and asks again
// at a terminal.
func confirmEdit(ctx context.Context, env *environment, conn *app.Conn, a *regie.Approval,
	request *dispatch.DecideRequest,
) error {
	found, err := conn.Review(ctx, *request)
	if err != nil || len(found.Reviews) != 1 {
		return err
	}
	page := env.newPage(env.stderr)
	page.Edited(callIndex(a, found.Reviews[0].CallID)+1, &found.Reviews[0])
	request.Shown = chat.ShownEdit(&found.Reviews[0])
	if err := page.Err(); err != nil || !isAttended(env.stdin, env.stderr) {
		return err
	}
	return env.askConfirmation(env.T("Allow this? [y/N] "), env.T("not allowed; nothing is decided"))
}

// callIndex returns the index of a call in an approval, or -1.
func callIndex(a *regie.Approval, call regie.ID) int {
	return slices.IndexFunc(a.Reviews, func(r regie.Review) bool { return r.CallID == call })
}

// chooseCalls returns a decision for each named call, by its number; without names for all open
// calls. Where none is open it returns all, so that Decide says who has decided.
func chooseCalls(a *regie.Approval, names []string) (out []regie.Decision, _ error) {
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 || n > len(a.Reviews) {
			return nil, regie.Errorf(codeUsage, "the approval has no call %s: it has the calls 1 to %d", name,
				len(a.Reviews))
		}
		out = append(out, regie.Decision{CallID: a.Reviews[n-1].CallID})
	}
	if len(names) > 0 {
		return out, nil
	}
	decided := !slices.ContainsFunc(a.Reviews, func(r regie.Review) bool { return r.Decision == nil })
	for i := range a.Reviews {
		if decided || a.Reviews[i].Decision == nil {
			out = append(out, regie.Decision{CallID: a.Reviews[i].CallID})
		}
	}
	return out, nil
}

// fillDecisions completes the decisions as the flags say.
func (d *decision) fillDecisions(ctx context.Context, a *regie.Approval, decisions []regie.Decision) error {
	if (d.edit || d.arguments != "") && len(decisions) != 1 {
		return regie.Errorf(codeUsage, "--edit and --arguments apply to one call: name its number")
	}
	if d.arguments != "" && !json.Valid([]byte(d.arguments)) {
		return regie.Errorf(codeUsage, "--arguments is not JSON")
	}
	var expires time.Time
	if d.until != "" {
		span, err := chat.Span(d.until)
		if err != nil {
			return err
		}
		expires = time.Now().Add(span)
	}
	for i := range decisions {
		one := &decisions[i]
		one.Answer, one.Reason, one.ExpiresAt = d.answer, d.reason, expires
		review := &a.Reviews[callIndex(a, one.CallID)]
		if d.answer == regie.AnswerSession || d.answer == regie.AnswerAlways {
			scopes := review.Preview.Scopes
			if d.scope < 1 || d.scope > len(scopes) {
				return regie.Errorf(codeUsage, "there is no scope %d for this call: regie approvals show %s lists them",
					d.scope, chat.Short(a.ID))
			}
			one.Scope = &scopes[d.scope-1]
		}
		if d.arguments != "" {
			one.Arguments = json.RawMessage(d.arguments)
		} else if d.edit && review.Decision == nil {
			edited, err := chat.Edit(ctx, chat.Command(chat.EditorLine(os.Getenv)), review.Arguments, nil)
			if err != nil {
				return err
			}
			one.Arguments = edited
		}
	}
	return nil
}

// answerWaiting finds the approval or question that a person answers and has say store the answer.
// It continues the run if this process is the engine (decision 1).
func answerWaiting(ctx context.Context, env *environment, noContinue bool, name string,
	say func(conn *app.Conn, inbox store.Inbox) (store.Resolved, error),
) error {
	root, err := env.commandRoot(ctx, false)
	if err != nil {
		return err
	}
	env.level.Set(slog.LevelError) // this command says that the run cannot go on here
	_, err = withConn(ctx, env, app.Options{StoreOnly: noContinue}, func(conn *app.Conn) (any, error) {
		inbox, err := chat.Find(ctx, conn.Client, root, name)
		if err != nil {
			return nil, err
		}
		var round regie.ID
		if len(inbox.Approvals) > 0 {
			round = inbox.Approvals[0].RoundID
		} else {
			round = inbox.Questions[0].RoundID
		}
		before, err := conn.Get(ctx, round)
		if err != nil {
			return nil, err
		}
		out, err := say(conn, inbox)
		if err != nil {
			return nil, err
		}
		return nil, continueRun(ctx, env, noContinue, conn, out, before.Head)
	})
	return err
}

// continueRun goes on with an answered run, and shows what happens after an event of its log.
func continueRun(ctx context.Context, env *environment, noContinue bool, conn *app.Conn, out store.Resolved,
	after int64,
) error {
	now, err := conn.Get(ctx, out.RoundID)
	if err != nil {
		return err
	}
	left, err := conn.Inbox(ctx, store.InboxFilter{SessionID: out.SessionID, Brief: true})
	if err != nil {
		return err
	}
	// Its queries may still run, while other calls of it are undecided.
	undecided := len(left.Approvals)+len(left.Questions) > 0
	switch {
	case !out.Ready && (undecided || now.Round.State == regie.RoundWaiting):
		env.notef("the run still waits: see regie approvals")
		return nil
	case noContinue || now.Session.State == regie.SessionPaused:
		env.notef("stored. Continue with: regie run --resume %s", out.RoundID)
		return nil
	case !conn.IsEngine():
		env.notef("stored; the running regie process continues the run")
		return nil
	}
	// It goes on already, unless it cannot: then this says why.
	if err := conn.Resume(ctx, out.RoundID); err != nil {
		return regie.Errorf(regie.CodeOf(err), "the answer is stored, but the run does not go on here: %v", err)
	}
	w := &follower{
		environment: env, control: conn, round: out.RoundID, session: out.SessionID, after: after,
		network: waitsForNetwork(&now),
	}
	w.showLines(env.T("resuming run %s", out.RoundID))
	return followHere(ctx, w)
}

// followHere follows a round that this process may be the engine of, until a signal.
func followHere(ctx context.Context, w *follower) error {
	signals := catchSignals()
	defer signals.stop()
	w.signals = signals.first
	err := w.watchRound(ctx)
	w.drainCalls(ctx, w.control, signals.first, signals.ending.Load())
	return err
}
