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
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/text"
)

func (c *command) runsCommand() *cobra.Command {
	runs := &cobra.Command{
		Use: "runs", Short: c.text.T("What every run did and cost"), Args: usage(cobra.NoArgs), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	show := &cobra.Command{
		Use: "show ID|last", Args: usage(cobra.ExactArgs(1)), Short: c.text.T("One run with every exchange, call, token and millisecond"),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := c.connect(cmd.Context(), app.Options{ReadOnly: true})
			if err != nil {
				return err
			}
			view, err := findRun(cmd, conn, args[0])
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
	var limit int
	list := &cobra.Command{
		Use: "list", Args: usage(cobra.NoArgs), Short: c.text.T("The newest runs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1000 {
				return regie.Errorf(codeUsage, "--limit must be a number from 1 to 1000")
			}
			rounds, err := look(cmd.Context(), c, []store.RoundSummary{}, func(conn *app.Conn) ([]store.RoundSummary, error) {
				return conn.List(cmd.Context(), "", limit)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, rounds)
			}
			return listRuns(c.stdout, c.text, rounds)
		},
	}
	list.Flags().IntVar(&limit, "limit", 20, c.text.T("how many"))
	list.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	runs.AddCommand(show, list, c.resolveCommand())
	return runs
}

// look reads for a command that changes nothing. Where nothing has run yet there is nothing to find: that is empty, not an error.
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

func findRun(cmd *cobra.Command, control dispatch.Control, name string) (store.RoundView, error) {
	if name == "last" {
		rounds, err := control.List(cmd.Context(), "", 1)
		if err != nil {
			return store.RoundView{}, err
		}
		if len(rounds) == 0 {
			return store.RoundView{}, regie.Errorf(regie.CodeNotFound, "there is no run yet: start one with regie run \"…\"")
		}
		return control.Get(cmd.Context(), rounds[0].Round.ID)
	}
	id, err := regie.ParseID(name)
	if err != nil {
		return store.RoundView{}, err
	}
	return control.Get(cmd.Context(), id)
}

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func listRuns(w io.Writer, t *text.Printer, rounds []store.RoundSummary) error {
	if len(rounds) == 0 {
		_, err := fmt.Fprintln(w, t.T("no runs yet"))
		return err
	}
	for _, line := range rounds {
		took := ""
		if !line.Round.EndedAt.IsZero() {
			took = duration(line.Round.EndedAt.Sub(line.Round.StartedAt))
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %-22s %8s  %s\n", line.Round.ID, line.Round.StartedAt.Local().Format("2006-01-02 15:04:05"),
			roundState(line.Round), took, plain.Strip(oneLine(line.Text, 60))); err != nil {
			return err
		}
	}
	return nil
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

func milliseconds(us int64) string { return fmt.Sprintf("%.1f ms", float64(us)/1000) }

func duration(d time.Duration) string {
	if d < 10*time.Second {
		return milliseconds(d.Microseconds())
	}
	return d.Round(100 * time.Millisecond).String()
}
