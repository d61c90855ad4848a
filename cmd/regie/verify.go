package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// verifyCommand checks logs (decision 15).
func (c *command) verifyCommand() *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use: "verify [SESSION]", Args: usage(cobra.MaximumNArgs(1)),
		Short: c.text.T("Check that the logs are what was written"),
		Long:  c.text.T("Check that each log is whole and unaltered, and that what is stored beside it is what it says: of one session, of this workspace with its rules, or of all of them. Sessions that were removed are checked too.\n\nExit codes: 0 all of it is what was written, 1 something is not."),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return regie.Errorf(codeUsage, "--all and a session exclude each other")
			}
			reports, err := c.verify(cmd.Context(), all, args)
			if err != nil {
				return err
			}
			page := &chat.Page{W: c.stdout, Text: c.text, Now: time.Now}
			broken := 0
			if asJSON {
				for i := range reports {
					if reports[i].Error != "" {
						broken++
					}
				}
				err = writeJSON(c.stdout, reports)
			} else {
				broken = page.Logs(reports)
				err = page.Err()
			}
			if err == nil && broken > 0 {
				err = exit{exitError}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	cmd.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	return cmd
}

// verify checks the logs that are named. A removed session is found by a part of its own id only.
// Where there is no database nothing was checked, and that is never taken for a log that is as it
// was written.
func (c *command) verify(ctx context.Context, all bool, args []string) ([]store.LogReport, error) {
	root, err := c.scope(ctx, all)
	if err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx, app.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	reports, err := verifyNamed(ctx, conn, store.LogFilter{Root: root}, args)
	if closing := conn.Close(); err == nil {
		err = closing
	}
	return reports, err
}

func verifyNamed(ctx context.Context, conn *app.Conn, filter store.LogFilter,
	args []string,
) ([]store.LogReport, error) {
	if len(args) == 0 {
		return conn.Verify(ctx, filter)
	}
	found, err := chat.FindSession(ctx, conn, filter.Root, args[0])
	switch regie.CodeOf(err) {
	case "":
		filter.ID = found.ID
	case regie.CodeNotFound:
		if args[0] == "last" {
			return nil, err
		}
		filter.Short = strings.ReplaceAll(args[0], "-", "")
	default:
		return nil, err
	}
	reports, failed := conn.Verify(ctx, filter)
	if failed == nil && len(reports) == 0 {
		failed = err // there is no such session, removed or not
	}
	return reports, failed
}

// replayCommand runs a stored run once more from the store alone (invariant 17).
func (c *command) replayCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "replay ID|last", Args: usage(cobra.ExactArgs(1)),
		Short: c.text.T(
			"Run a stored run once more without calling anything, and compare what the model would be sent"),
		Long: c.text.T("Run a stored run once more from its log: the replies are the stored ones, the results those of its calls. No model and no tool is called. What the model would be sent at each step is compared with the hash of what it was sent.\n\nExit codes: 0 each request is the same, 1 one is not."),
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, err := c.connect(cmd.Context(), app.Options{ReadOnly: true})
			if err != nil {
				return err
			}
			out, err := func() (dispatch.Replay, error) {
				view, err := c.findRun(cmd.Context(), conn, all, args[0])
				if err != nil {
					return dispatch.Replay{}, err
				}
				return conn.Replay(cmd.Context(), view.Round.ID)
			}()
			if closing := conn.Close(); err == nil {
				err = closing
			}
			if err != nil {
				return err
			}
			if asJSON {
				if err := writeJSON(c.stdout, out); err != nil {
					return err
				}
			} else {
				c.replayed(out)
			}
			if out.Difference > 0 {
				return exit{exitError}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	cmd.Flags().BoolVar(&all, "all", false, c.text.T("of every workspace"))
	return cmd
}

// replayed prints what a replay found.
func (c *command) replayed(out dispatch.Replay) {
	p := &printer{w: c.stdout}
	p.line("%s %s", c.text.T("run"), out.RoundID)
	for _, step := range out.Steps {
		mark, said := "✓", c.text.T("the same request, %d bytes", step.Bytes)
		if step.Rebuilt != step.Recorded {
			mark, said = "✗", c.text.T("another request: %s was sent, %s would be",
				step.Recorded.String()[:12], step.Rebuilt.String()[:12])
		}
		name, calls := strconv.Itoa(step.Exchange), c.text.T("calls: %d, results from the store", step.Calls)
		if step.Attempt != 0 {
			name, calls = name+"  "+c.text.T("attempt")+" "+strconv.Itoa(step.Attempt), c.text.T("no reply")
		}
		if step.Cached {
			calls += "  " + c.text.T("(from the response cache, not sent)")
		}
		p.line("%s %s %s  %s  %s", mark, c.text.T("exchange"), name, said, calls)
	}
	for _, skipped := range out.Skipped {
		why := c.text.T("not compared: what was sent is not stored")
		if !skipped.Recorded.IsZero() {
			why = c.text.T("not compared: a summary that did not come is not rebuilt")
		}
		p.line("- %s %s  %s %s  %s", c.text.T("exchange"), strconv.Itoa(skipped.Exchange), c.text.T("attempt"),
			strconv.Itoa(skipped.Attempt), why)
	}
	p.line("")
	switch {
	case len(out.Steps) == 0:
		p.line("%s", c.text.T("nothing that the model was sent in this run is stored: there is nothing to compare"))
	case out.Difference == 0 && len(out.Skipped) > 0:
		p.line("%s", c.text.T("requests: %d, all the same; not compared: %d; nothing was called",
			out.Identical, len(out.Skipped)))
	case out.Difference == 0:
		p.line("%s", c.text.T("requests: %d, all the same; nothing was called", out.Identical))
	default:
		first := out.Steps[0]
		for _, step := range out.Steps {
			if step.Exchange == out.Difference {
				first = step
			}
		}
		p.line("%s",
			c.text.T(
				"the first difference is in exchange %s, whose request holds the messages %s to %s; nothing was called",
				strconv.Itoa(out.Difference), strconv.FormatInt(first.FirstSeq, 10),
				strconv.FormatInt(first.LastSeq, 10)))
		if out.Difference == out.Steps[0].Exchange {
			p.line("%s",
				c.text.T("it begins before the thread: the tools, the settings of the model or the program itself are other ones than then"))
		}
		if len(out.Unknown) > 0 {
			p.line("%s", c.text.T("tools that are not known here: %s", strings.Join(out.Unknown, ", ")))
		}
	}
	if p.err != nil {
		fmt.Fprintln(c.stderr, p.err)
	}
}
