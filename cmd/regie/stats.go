package main

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// newStatsCommand shows the dashboard's figures.
func newStatsCommand(env *environment) *cobra.Command {
	var all, asJSON, rebuild bool
	var filter store.StatFilter
	cmd := &cobra.Command{
		Use: "stats", Args: checkArgCount(0, 0),
		Short: env.T("Show what runs and tools did, and what they cost"),
		Long:  env.T("Show the figures of the dashboard for this workspace: runs, tool calls, costs, what waits, and which alerts hold. Without a period it is that of the last seven days."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rebuild {
				_, err := writeStore(cmd.Context(), env, func(conn *app.Conn) (none struct{}, err error) {
					return none, conn.Stats.Rebuild(cmd.Context())
				})
				return err
			}
			root, err := env.commandRoot(cmd.Context(), all)
			if err != nil {
				return err
			}
			filter.Root = root
			stats, err := readStore(cmd.Context(), env,
				func(conn *app.Conn) (store.Stats, error) { return conn.Stats.Get(cmd.Context(), filter) })
			return printLines(env, asJSON, stats, err, func(p *printer) { printStats(env, p, &stats) })
		},
	}
	addViewFlags(env, cmd, &all, &asJSON)
	flags := cmd.Flags()
	flags.StringVar(&filter.From, "from", "", env.T("the first day, as 2026-11-21"))
	flags.StringVar(&filter.To, "to", "", env.T("the last day"))
	flags.StringVar(&filter.By, "by", "", env.T("the steps: day or hour"))
	flags.StringVar(&filter.Group, "group", "", env.T("add the runs by agent, model or workspace"))
	flags.BoolVar(&rebuild, "rebuild", false, env.T("write the figures of all workspaces anew from the stored runs"))
	return cmd
}

func printStats(env *environment, p *printer, s *store.Stats) {
	for i := range s.Alerts {
		p.printLine("! %s %s", env.text.Sentence(s.Alerts[i].What), env.text.Sentence(s.Alerts[i].Do))
	}
	dollars := func(amount int64) string { return env.T("$%s", regie.Dollars(amount)) }
	line := func(what, value string) { p.printLine("%-24s %s", what, value) }
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	t := &s.Total
	line(env.T("Runs"), count(t.Rounds))
	for _, end := range slices.Sorted(maps.Keys(t.Ends)) {
		line("  "+string(end), count(t.Ends[end]))
	}
	line(env.T("Tool calls"), count(t.Calls))
	line(env.T("Relaunches"), count(t.Relaunches))
	line(env.T("Caught"), env.T("%d duplicates, %d loops", t.Duplicates, t.Loops))
	line(env.T("Tokens"), env.T("%d in, %d out", t.Input, t.Output))
	line(env.T("Cost"), dollars(t.Cost))
	line(env.T("Cost today"), env.T("%s, about %s at the end of the day", dollars(s.Budget.Today), dollars(s.Budget.DayForecast)))
	line(env.T("Cost this month"), env.T("%s, about %s at its end", dollars(s.Budget.Month), dollars(s.Budget.MonthForecast)))
	line(env.T("Waiting now"), count(int64(s.Approvals.Count+s.Questions.Count)))
	for _, lines := range [][]store.StatLine{s.Series, s.Groups} {
		p.printLine("")
		for i := range lines {
			if l := &lines[i]; l.Rounds > 0 {
				p.printLine("%-24s %6d  %6d  %s", sanitize.Line(l.Key), l.Rounds, l.Calls, dollars(l.Cost))
			}
		}
	}
	for i := range s.Tools {
		tool := &s.Tools[i]
		p.printLine("%-24s %6d  %3d %%  p50 %s  p95 %s", sanitize.Line(tool.Tool), tool.Calls, 100*tool.Succeeded/tool.Calls,
			micros(tool.P50), micros(tool.P95))
	}
}

func micros(us int64) time.Duration {
	return (time.Duration(us) * time.Microsecond).Round(time.Millisecond / 10)
}
