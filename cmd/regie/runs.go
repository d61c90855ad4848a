package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

func (c *command) runsCommand() *cobra.Command {
	runs := &cobra.Command{
		Use: "runs", Short: c.text.T("What every run did and cost"), Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON, all bool
	show := &cobra.Command{
		Use: "show ID|last", Args: usage(cobra.ExactArgs(1)),
		Long: c.text.T("One run with every exchange, call, token and millisecond.\n\nAn ID is written as its last characters (four or more); last is the newest of this workspace."), Short: c.text.T("One run with every exchange, call, token and millisecond"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := c.connect(cmd.Context(), app.Options{ReadOnly: true})
			if err != nil {
				return err
			}
			view, err := c.runView(cmd.Context(), conn, all, args[0])
			if closing := conn.Close(); err == nil {
				err = closing
			}
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, view)
			}
			return showRun(c.stdout, c.text, view)
		},
	}
	show.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	show.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	var limit int
	list := &cobra.Command{
		Use: "list", Args: usage(cobra.NoArgs), Short: c.text.T("The newest runs of this workspace"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return regie.Errorf(codeUsage, "--limit must be a number from 1 to 1000")
			}
			root, err := c.scope(cmd.Context(), all)
			if err != nil {
				return err
			}
			var today string
			rounds, err := look(cmd.Context(), c, []store.RoundSummary{},
				func(conn *app.Conn) ([]store.RoundSummary, error) {
					rounds, err := conn.List(cmd.Context(), store.RoundFilter{Root: root, Limit: limit})
					if err != nil || asJSON {
						return rounds, err
					}
					switch spent, err := conn.Spent(cmd.Context(), root); {
					case err == nil:
						today = chat.Today(c.text, spent, all)
					case regie.CodeOf(err) != regie.CodeNotFound: // an older engine cannot say it
						return nil, err
					}
					return rounds, nil
				})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, rounds)
			}
			if err := listRuns(c.stdout, c.text, rounds, all); err != nil {
				return err
			}
			if today != "" {
				_, err = fmt.Fprintln(c.stdout, today)
			}
			return err
		},
	}
	list.Flags().IntVar(&limit, "limit", 20, c.text.T("how many"))
	list.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	list.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	runs.AddCommand(show, list, c.resolveCommand(), c.replayCommand())
	return runs
}

// look reads for a command that changes nothing. Where nothing has run yet there is nothing to
// find: that is empty, not an error.
func look[T any](ctx context.Context, c *command, empty T, read func(*app.Conn) (T, error)) (T, error) {
	conn, err := c.connect(ctx, app.Options{ReadOnly: true})
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound:
		return empty, nil
	case err != nil:
		return empty, err
	}
	out, err := read(conn)
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return out, err
}

// scope is the root of the workspace in which things are looked for (spec 2.1); empty for all of
// them.
func (c *command) scope(ctx context.Context, all bool) (root string, err error) {
	if !all {
		root, _, err = c.workspace(ctx, true)
	}
	return root, err
}

// findRun returns the one run of this workspace, or with all of any, that a person names: by its
// id, by the last four or more characters of it, by its first eight or more, or as last.
func (c *command) findRun(ctx context.Context, control chat.Control, all bool,
	name string,
) (store.RoundView, error) {
	root, err := c.scope(ctx, all)
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

// runID returns the id of the run that a person names. A whole id is taken as it is: whoever reads
// the run looks where it lies.
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

// newestRun returns the run that last means.
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

// maxRuns is how far back a run is looked for by a part of its id.
const maxRuns = 1000

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func listRuns(w io.Writer, t *text.Printer, rounds []store.RoundSummary, all bool) error {
	if len(rounds) == 0 {
		none := t.T("no runs in this workspace (--all: everywhere)")
		if all {
			none = t.T("no runs yet")
		}
		_, err := fmt.Fprintln(w, none)
		return err
	}
	for _, line := range rounds {
		took := ""
		if !line.Round.EndedAt.IsZero() {
			took = duration(t, line.Round.EndedAt.Sub(line.Round.StartedAt))
		}
		state := endState(&line)
		if line.Undone {
			state += " " + t.T("(undone)")
		}
		paid := ""
		if chat.Paid(line.Spent) {
			paid = "  (" + chat.Cost(t, line.Spent) + ")"
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %-22s %8s  %s%s\n", line.Round.ID,
			line.Round.StartedAt.Local().Format("2006-01-02 15:04:05"),
			state, took, plain.Strip(oneLine(line.Text, 60)), paid); err != nil {
			return err
		}
		if line.Round.EndNote.IsZero() {
			continue
		}
		if _, err := fmt.Fprintf(w, "    %s\n", plain.Strip(oneLine(t.Sentence(line.Round.EndNote), 160))); err != nil {
			return err
		}
	}
	return nil
}

// endState is a run's state with what its end made of an automation, where that is not that all is
// done: an automation that only answered has not said so (decision 44).
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

// oneLine shortens text to n characters on one line.
func oneLine(s string, n int) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}

func milliseconds(t *text.Printer, us int64) string { return t.T("%.1f ms", float64(us)/1000) }

func duration(t *text.Printer, d time.Duration) string {
	if d < 10*time.Second {
		return milliseconds(t, d.Microseconds())
	}
	return d.Round(100 * time.Millisecond).String()
}
