package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

// newRunsCommand is about stored runs.
func newRunsCommand(env *environment) *cobra.Command {
	runs := &cobra.Command{Use: "runs", Short: env.T("What every run did and cost")}
	var asJSON, all bool
	show := &cobra.Command{
		Use: "show ID|last", Args: arguments(1, 1),
		Short: env.T("One run with every exchange, call, token and millisecond"),
		Long:  env.T("One run with every exchange, call, token and millisecond.\n\nAn ID is written as its last characters (four or more); last is the newest of this workspace."),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, err := readStore(cmd.Context(), env, func(conn *app.Conn) (runView, error) {
				return loadRunView(cmd.Context(), env, conn, all, args[0])
			})
			if err != nil || asJSON {
				return orJSON(env, view, err)
			}
			return showRun(env.stdout, env.text, view)
		},
	}
	addViewFlags(env, show, &all, &asJSON)
	var limit int
	list := &cobra.Command{
		Use: "list", Args: arguments(0, 0), Short: env.T("The newest runs of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return regie.Errorf(codeUsage, "--limit must be a number from 1 to 1000")
			}
			spent := store.Spent{All: regie.Spending{Known: true}}
			rounds, err := readWorkspace(cmd.Context(), env, all, []store.RoundSummary{},
				func(conn *app.Conn, root string) (rounds []store.RoundSummary, err error) {
					if spent, err = conn.Spent(cmd.Context(), root); err != nil {
						return nil, err
					}
					return conn.List(cmd.Context(), store.RoundFilter{Root: root, Limit: limit})
				})
			if err != nil || asJSON {
				return orJSON(env, rounds, err)
			}
			p := env.printer()
			listRuns(p, rounds, all)
			if today := chat.Today(env.text, spent, all); today != "" {
				p.line("%s", today)
			}
			return p.err
		},
	}
	list.Flags().IntVar(&limit, "limit", 20, env.T("how many"))
	addViewFlags(env, list, &all, &asJSON)
	runs.AddCommand(show, list, newResolveCommand(env), newReplayCommand(env))
	return runs
}

// runView is a run with the result of verifying its logs: its session's, and its workspace's, which
// holds the rules.
type runView struct {
	store.RoundView
	Audit *store.VerifyReport `json:"audit,omitempty"` // the session's
	// AuditError says where a log differs from what was written.
	AuditError string `json:"audit_error,omitempty"`
}

func loadRunView(ctx context.Context, env *environment, conn *app.Conn, all bool,
	name string,
) (out runView, err error) {
	if out.RoundView, err = findRun(ctx, env, conn.Client, all, name); err != nil {
		return out, err
	}
	for _, owner := range []regie.ID{out.Workspace.ID, out.Session.ID} {
		reports, err := conn.Verify(ctx, store.LogFilter{ID: owner})
		if err != nil {
			return out, err
		}
		for i := range reports {
			out.Audit, out.AuditError = &reports[i].VerifyReport, cmp.Or(reports[i].Error, out.AuditError)
		}
	}
	if out.AuditError != "" {
		out.Audit = nil
	}
	return out, nil
}

// findRun returns the run of this workspace, or with all of any, with a name: its id, the last four
// or more characters of it, its first eight or more, or last.
func findRun(ctx context.Context, env *environment, control chat.Control, all bool,
	name string,
) (store.RoundView, error) {
	root, err := env.scope(ctx, all)
	if err != nil {
		return store.RoundView{}, err
	}
	id, err := runID(ctx, control, root, name)
	if err != nil {
		return store.RoundView{}, err
	}
	view, err := control.Get(ctx, id)
	if err == nil && root != "" && view.Workspace.Root != root {
		return store.RoundView{}, noRun(name)
	}
	return view, err
}

// runID returns the id of a named run. It returns a whole id as it is, without looking for it.
func runID(ctx context.Context, control chat.Control, root, name string) (regie.ID, error) {
	if id, err := regie.ParseID(name); err == nil {
		return id, nil
	}
	if name == "last" {
		round, err := newestRun(ctx, control, root)
		return round.ID, err
	}
	rounds, err := control.List(ctx, store.RoundFilter{Root: root, Limit: maxRuns})
	if err != nil {
		return regie.ID{}, err
	}
	known := make([]regie.ID, len(rounds))
	for i := range rounds {
		known[i] = rounds[i].Round.ID
	}
	id, err := chat.PickID(known, name)
	if regie.CodeOf(err) == regie.CodeNotFound && root != "" {
		err = noRun(name)
	} else if regie.CodeOf(err) == regie.CodeNotFound {
		err = regie.Errorf(regie.CodeNotFound, "there is no run %s: see regie runs list --all", name)
	}
	return id, err
}

// newestRun returns the run named last.
func newestRun(ctx context.Context, control chat.Control, root string) (regie.Round, error) {
	rounds, err := control.List(ctx, store.RoundFilter{Root: root, Limit: 1})
	switch {
	case err != nil:
		return regie.Round{}, err
	case len(rounds) > 0:
		return rounds[0].Round, nil
	case root == "":
		return regie.Round{}, regie.Errorf(regie.CodeNotFound, "there is no run yet: start one with regie run \"…\"")
	}
	return regie.Round{}, regie.Errorf(regie.CodeNotFound,
		"there is no run in this workspace yet: start one with regie run \"…\", or look everywhere with --all")
}

func noRun(name string) error {
	return regie.Errorf(regie.CodeNotFound,
		"there is no run %s in this workspace: see regie runs list, or look everywhere with --all", name)
}

// maxRuns bounds how many runs are searched for a part of an id.
const maxRuns = 1000

// listRuns prints a line for each run, and one for how it ended.
func listRuns(p *printer, rounds []store.RoundSummary, all bool) {
	switch {
	case len(rounds) == 0 && all:
		p.textf("", "no runs yet")
	case len(rounds) == 0:
		p.textf("", "no runs in this workspace (--all: everywhere)")
	}
	for i := range rounds {
		r := &rounds[i]
		took, paid, state := "", "", endState(r)
		if !r.Round.EndedAt.IsZero() {
			took = duration(p.text, r.Round.EndedAt.Sub(r.Round.StartedAt))
		}
		if r.Undone {
			state += " " + p.text.T("(undone)")
		}
		if chat.Paid(r.Spent) {
			paid = "  (" + chat.Cost(p.text, r.Spent) + ")"
		}
		p.line("%s  %s  %-22s %8s  %s%s", r.Round.ID, r.Round.StartedAt.Local().Format("2006-01-02 15:04:05"),
			state, took, oneLine(r.Text, 60), paid)
		if !r.Round.EndNote.IsZero() {
			p.line("    %s", oneLine(p.text.Sentence(r.Round.EndNote), 160))
		}
	}
}

// endState is a run's state, with how an automation ended that did not complete (decision 44).
func endState(line *store.RoundSummary) string {
	state := roundState(line.Round)
	if end := line.Session.EndReason; line.Round.State == regie.RoundEnded &&
		line.Session.Type == regie.SessionAutomation && end != "" && end != regie.SessionCompleted {
		state += " (" + string(end) + ")"
	}
	return state
}

func roundState(r regie.Round) string {
	switch {
	case r.State == regie.RoundEnded:
		return string(r.State) + " " + string(r.End)
	case r.Stop != "":
		return string(r.State) + " (" + string(r.Stop) + ")"
	default:
		return string(r.State)
	}
}

func milliseconds(t *text.Printer, us int64) string { return t.T("%.1f ms", float64(us)/1000) }

func duration(t *text.Printer, d time.Duration) string {
	if d < 10*time.Second {
		return milliseconds(t, d.Microseconds())
	}
	return d.Round(100 * time.Millisecond).String()
}

// newResolveCommand settles a call of unknown outcome (decision 5).
func newResolveCommand(env *environment) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "resolve CALL happened|did-not-happen", Args: arguments(2, 2),
		Short: env.T("Say what became of a call whose outcome nobody knows"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := regie.ParseID(args[0])
			if err != nil {
				return err
			}
			as := regie.ResolvedAs(strings.ReplaceAll(args[1], "-", "_"))
			_, err = writeStore(cmd.Context(), env, func(conn *app.Conn) (any, error) {
				return nil, conn.Resolve(cmd.Context(), dispatch.ResolveRequest{CallID: id, As: as, Note: note})
			})
			if err != nil {
				return err
			}
			return env.printf("call %s is resolved: %s", id, args[1])
		},
	}
	cmd.Flags().StringVar(&note, "note", "", env.T("how you know"))
	return cmd
}

// newReplayCommand runs a stored run again from the store alone (invariant 17).
func newReplayCommand(env *environment) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "replay ID|last", Args: arguments(1, 1),
		Short: env.T("Run a stored run once more without calling anything, and compare what the model would be sent"),
		Long:  env.T("Run a stored run once more from its log: the replies are the stored ones, the results those of its calls. No model and no tool is called. What the model would be sent at each step is compared with the hash of what it was sent.\n\nExit codes: 0 each request is the same, 1 one is not."),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := readStore(cmd.Context(), env, func(conn *app.Conn) (dispatch.Replay, error) {
				view, err := findRun(cmd.Context(), env, conn.Client, all, args[0])
				if err != nil {
					return dispatch.Replay{}, err
				}
				return conn.Replay(cmd.Context(), view.Round.ID)
			})
			switch {
			case err != nil:
				return err
			case asJSON:
				err = writeJSON(env.stdout, out)
			default:
				p := env.printer()
				printReplay(p, &out)
				err = p.err
			}
			if err == nil && out.Difference > 0 {
				return exit{exitError}
			}
			return err
		},
	}
	addViewFlags(env, cmd, &all, &asJSON)
	return cmd
}

// printReplay prints the steps of a replay, and the first difference.
func printReplay(p *printer, out *dispatch.Replay) {
	t := p.text
	p.line("%s %s", t.T("run"), out.RoundID)
	for _, step := range out.Steps {
		mark, said := "✓", t.T("the same request, %d bytes", step.Bytes)
		if step.Rebuilt != step.Recorded {
			mark, said = "✗", t.T("another request: %s was sent, %s would be",
				step.Recorded.String()[:12], step.Rebuilt.String()[:12])
		}
		calls := t.T("calls: %d, results from the store", step.Calls)
		if step.Cached {
			calls += "  " + t.T("(from the response cache, not sent)")
		}
		p.line("%s %s %d  %s  %s", mark, t.T("exchange"), step.Exchange, said, calls)
	}
	p.line("")
	switch {
	case len(out.Steps) == 0:
		p.textf("", "nothing that the model was sent in this run is stored: there is nothing to compare")
		return
	case out.Difference == 0:
		p.textf("", "requests: %d, all the same; nothing was called", out.Identical)
		return
	}
	at := slices.IndexFunc(out.Steps, func(s dispatch.ReplayStep) bool { return s.Exchange == out.Difference })
	first := out.Steps[max(at, 0)]
	p.textf("", "the first difference is in exchange %s, whose request holds the messages %s to %s; nothing was called",
		strconv.Itoa(out.Difference), strconv.FormatInt(first.FirstSeq, 10), strconv.FormatInt(first.LastSeq, 10))
	if out.Difference == out.Steps[0].Exchange {
		p.textf("", "it begins before the thread: the tools, the settings of the model or the program itself are other ones than then")
	}
	if len(out.Unknown) > 0 {
		p.textf("", "tools that are not known here: %s", strings.Join(out.Unknown, ", "))
	}
}
