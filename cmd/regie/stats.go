package main

import (
	"slices"
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
				func(conn *app.Conn) (store.StatReport, error) { return conn.Stats.Get(cmd.Context(), filter) })
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

// printStats prints the alerts, the figures of the period, and its tools.
func printStats(env *environment, p *printer, s *store.StatReport) {
	for i := range s.Alerts {
		p.printLine("! %s %s", env.text.Sentence(s.Alerts[i].What), env.text.Sentence(s.Alerts[i].Do))
	}
	dollars := func(amount int64) string { return env.T("$%s", regie.Dollars(amount)) }
	t, b := &s.Total, &s.Budget
	p.printText("", "runs: %d, ended well: %d", t.Rounds, t.EndedWell())
	p.printText("", "tool calls: %d, relaunches: %d, duplicates: %d, loops: %d", t.Calls, t.Relaunches, t.Duplicates, t.Loops)
	p.printText("", "tokens: %d in, %d out", t.Input, t.Output)
	p.printText("", "cost: %s; today %s, about %s at its end; this month %s, about %s", dollars(t.Cost),
		dollars(b.Today), dollars(b.DayForecast), dollars(b.Month), dollars(b.MonthForecast))
	p.printText("", "waiting for you: %d", s.Approvals.Count+s.Questions.Count)
	for _, l := range slices.Concat(s.Series, s.Groups) {
		if l.Rounds > 0 {
			p.printLine("%-28s %6d  %6d  %s", sanitize.Line(l.Key), l.Rounds, l.Calls, dollars(l.Cost))
		}
	}
	for _, tool := range s.Tools {
		p.printLine("%-28s %6d  %3d %%  p50 %v  p95 %v", sanitize.Line(tool.Tool), tool.Calls, tool.Success(),
			time.Duration(tool.P50)*time.Microsecond, time.Duration(tool.P95)*time.Microsecond)
	}
}
