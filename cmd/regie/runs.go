package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// newRunsCommand returns about stored runs.
func newRunsCommand(env *environment) *cobra.Command {
	runs := &cobra.Command{Use: "runs", Short: env.T("Inspect runs and their costs")}
	var asJSON, all bool
	show := &cobra.Command{
		Use: "show ID|last", Args: checkArgCount(1, 1),
		Short: env.T("Show one run with every exchange, call, token and duration"),
		Long:  env.T("One run with every exchange, call, token and millisecond.\n\nAn ID is written as its last characters (four or more); last is the newest of this workspace."),
		RunE: func(cmd *cobra.Command, args []string) error {
			view, err := readStore(cmd.Context(), env, func(conn *app.Conn) (runView, error) {
				return loadRunView(cmd.Context(), env, conn, all, args[0])
			})
			return printLines(env, asJSON, view, err, func(p *printer) { showRun(p, view) })
		},
	}
	addViewFlags(env, show, &all, &asJSON)
	var limit int
	list := &cobra.Command{
		Use: "list", Args: checkArgCount(0, 0), Short: env.T("List the newest runs of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return regie.Errorf(codeUsage, "--limit must be a number from 1 to 1000")
			}
			rounds, err := readWorkspace(cmd.Context(), env, all, []store.RoundSummary{},
				func(conn *app.Conn, root string) ([]store.RoundSummary, error) {
					return conn.List(cmd.Context(), store.RoundFilter{Root: root, Limit: limit})
				})
			return printLines(env, asJSON, rounds, err, func(p *printer) { listRuns(p, rounds) })
		},
	}
	list.Flags().IntVar(&limit, "limit", 20, env.T("how many"))
	addViewFlags(env, list, &all, &asJSON)
	runs.AddCommand(show, list, newResolveCommand(env), newReplayCommand(env), newResumeCommand(env))
	return runs
}

// newResumeCommand goes on with a run, as run --resume does, or with another provider (decision
// 54).
func newResumeCommand(env *environment) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "resume ID|last", Args: checkArgCount(1, 1),
		Short: env.T("Resume a run that is paused or waits for its provider"),
		Long:  env.T("Resume a run that is paused, was interrupted or waits for the settings of its provider, and follow it to its end.\n\n--provider gives a waiting or paused run another provider, which the log records."),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.resume, f.repin = args[0], cmd.Flags().Changed("provider")
			if err := f.chooseOnApproval(isAttended(env.stdin, env.stderr)); err != nil {
				return err
			}
			return runJob(cmd.Context(), env, f, "")
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, env.T("print each event as a line of JSON on standard output"))
	addModelFlags(env, cmd)
	return cmd
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
	root, err := env.commandRoot(ctx, all)
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
	rounds, err := control.List(ctx, store.RoundFilter{Root: root, Limit: maxRuns})
	if err != nil {
		return regie.ID{}, err
	}
	known := make([]regie.ID, len(rounds))
	for i := range rounds {
		known[i] = rounds[i].Round.ID
	}
	if name == "last" && len(known) > 0 {
		return known[0], nil
	}
	id, err := chat.PickID(known, name)
	if regie.CodeOf(err) == regie.CodeNotFound || name == "last" {
		err = noRun(name)
	}
	return id, err
}

func noRun(name string) error {
	return regie.Errorf(regie.CodeNotFound,
		"there is no run %s in this workspace: see regie runs list, or look everywhere with --all", name)
}

// maxRuns bounds how many runs are searched for a part of an id.
const maxRuns = 1000

// listRuns prints a line for each run, and one for how it ended.
func listRuns(p *printer, rounds []store.RoundSummary) {
	if len(rounds) == 0 {
		p.printText("", "no runs in this workspace (--all: everywhere)")
	}
	for i := range rounds {
		r := &rounds[i]
		state, paid := endState(r), ""
		if r.Undone {
			state += " " + p.text.T("(undone)")
		}
		if chat.Paid(r.Spent) {
			paid = "  (" + chat.Cost(p.text, r.Spent) + ")"
		}
		p.printLine("%s  %s  %-22s %8s  %s%s", r.Round.ID, r.Round.StartedAt.Local().Format("2006-01-02 15:04:05"),
			state, formatDuration(p.text, &r.Round), oneLine(r.Text, 60), paid)
		if !r.Round.EndNote.IsZero() {
			p.printLine("    %s", oneLine(p.text.Sentence(r.Round.EndNote), 160))
		}
	}
}

// endState returns a run's state, with how an automation ended that did not complete (decision 44).
func endState(line *store.RoundSummary) string {
	if end := line.Session.EndReason; line.Round.State == regie.RoundEnded &&
		line.Session.Type == regie.SessionAutomation && end != "" && end != regie.SessionCompleted {
		return roundState(line.Round) + " (" + string(end) + ")"
	}
	return roundState(line.Round)
}

func roundState(r regie.Round) string {
	if r.State == regie.RoundEnded {
		return string(r.State) + " " + string(r.End)
	}
	if r.Stop != "" {
		return string(r.State) + " (" + string(r.Stop) + ")"
	}
	return string(r.State)
}

func formatMillis(t *i18n.Printer, us int64) string { return t.T("%.1f ms", float64(us)/1000) }

// formatDuration returns how long an ended run took.
func formatDuration(t *i18n.Printer, r *regie.Round) string {
	if r.EndedAt.IsZero() {
		return "—"
	}
	return formatMillis(t, r.EndedAt.Sub(r.StartedAt).Microseconds())
}

// newResolveCommand settles a call of unknown outcome (decision 5).
func newResolveCommand(env *environment) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "resolve CALL happened|did-not-happen", Args: checkArgCount(2, 2),
		Short: env.T("Settle a call with an unknown outcome"),
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
	cmd.Flags().StringVar(&note, "note", "", env.T("how you know it"))
	return cmd
}

// newReplayCommand runs a stored run again from the store alone (invariant 17).
func newReplayCommand(env *environment) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "replay ID|last", Args: checkArgCount(1, 1),
		Short: env.T("Replay a stored run without calling anything and compare the prompts"),
		Long:  env.T("Replay a stored run from its log, with the stored replies and results. No model and no tool is called. Each request is compared with the hash of the request that was sent.\n\nExit codes: 0 all requests are the same, 1 one differs."),
		RunE: func(cmd *cobra.Command, args []string) error {
			out, err := readStore(cmd.Context(), env, func(conn *app.Conn) (dispatch.Replay, error) {
				view, err := findRun(cmd.Context(), env, conn.Client, all, args[0])
				if err != nil {
					return dispatch.Replay{}, err
				}
				return conn.Replay(cmd.Context(), view.Round.ID)
			})
			err = printLines(env, asJSON, out, err, func(p *printer) { printReplay(p, &out) })
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
	p.printLine("%s %s", t.T("run"), out.RoundID)
	for _, step := range out.Steps {
		mark, said := "✓", t.T("the same request, %d bytes", step.Bytes)
		if step.Rebuilt != step.Recorded {
			mark, said = "✗", t.T("a different request: %s was sent, %s would be",
				step.Recorded.String()[:12], step.Rebuilt.String()[:12])
		}
		calls := t.T("calls: %d, results from the store", step.Calls)
		if step.Cached {
			calls += "  " + t.T("(from the response cache, not sent)")
		}
		p.printLine("%s %s %d  %s  %s", mark, t.T("exchange"), step.Exchange, said, calls)
	}
	p.printLine("")
	switch {
	case len(out.Steps) == 0:
		p.printText("", "no request of this run is stored: there is nothing to compare")
		return
	case out.Difference == 0:
		p.printText("", "requests: %d, all the same; nothing was called", out.Identical)
		return
	}
	at := slices.IndexFunc(out.Steps, func(s dispatch.ReplayStep) bool { return s.Exchange == out.Difference })
	first := out.Steps[max(at, 0)]
	p.printText("", "the first difference is in exchange %s, whose request holds the messages %s to %s; nothing was called",
		strconv.Itoa(out.Difference), strconv.FormatInt(first.FirstSeq, 10), strconv.FormatInt(first.LastSeq, 10))
}
