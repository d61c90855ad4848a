package control

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Stats is the dashboard: what rounds did by the hour, what waits, and which alerts hold.
type Stats struct{ *core }

// defaultPeriod is how many days a request without a beginning is about, maxPeriod the most.
const defaultPeriod, maxPeriod = 7, 1000

// Get returns the counters of a period in the workspace at root, or in all for "". It reads the
// roll-ups and never the rounds. It returns CodeBadRequest for a malformed period.
func (s *Stats) Get(ctx context.Context, filter store.StatFilter) (out store.StatReport, err error) {
	if _, err := s.authorizeIn(ctx, "show_stats", &filter.Root); err != nil {
		return out, err
	}
	now := time.Now()
	if out.From, out.To, err = statPeriod(&filter, now); err != nil {
		return out, err
	}
	before := out.From.Add(out.From.Sub(out.To))
	if out.Before, err = s.Store.RoundsBetween(ctx, filter.Root, before, out.From); err != nil {
		return out, err
	}
	rows, err := s.Store.RollUps(ctx, filter.Root, filter.Group, out.From, out.To)
	if err != nil {
		return out, err
	}
	addRollUps(&out, &filter, rows)
	if out.Tools, err = s.toolStats(ctx, filter.Root, out.From, out.To); err == nil {
		err = s.addWaiting(ctx, filter.Root, &out)
	}
	if err == nil {
		err = s.addBudget(ctx, filter.Root, &out.Budget, now)
	}
	if err == nil {
		out.Alerts, err = s.activeAlerts(ctx, filter.Root, out, now)
	}
	return out, err
}

// Rebuild writes the roll-ups of all workspaces anew from the stored rounds.
func (s *Stats) Rebuild(ctx context.Context) error {
	if _, err := s.authorizeAll(ctx, "rebuild_stats"); err != nil {
		return err
	}
	return s.Store.RebuildStats(ctx)
}

// statPeriod returns the period of a filter; its last day counts to the end.
func statPeriod(filter *store.StatFilter, now time.Time) (from, to time.Time, err error) {
	if to, err = parseStatTime(cmp.Or(filter.To, now.Format(time.RFC3339Nano)), now, 1); err == nil {
		week := to.Add(-1).AddDate(0, 0, 1-defaultPeriod).Format(time.DateOnly)
		from, err = parseStatTime(cmp.Or(filter.From, week), now, 0)
	}
	if err == nil && (!from.Before(to) || to.Sub(from) > maxPeriod*24*time.Hour) {
		err = regie.Errorf(regie.CodeBadRequest, "the period must begin before it ends and last at most %d days", maxPeriod)
	}
	return from, to, err
}

// parseStatTime reads a time, or a day in the zone of now, which is moved by some days.
func parseStatTime(text string, now time.Time, days int) (time.Time, error) {
	if day, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return day.AddDate(0, 0, days), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		err = regie.Errorf(regie.CodeBadRequest, "%q is no day and no time: write it as 2026-11-21 or 2026-11-21T08:00:00Z", text)
	}
	return at.In(now.Location()), err
}

// addRollUps adds rows to the steps of the period and to its groups.
func addRollUps(out *store.StatReport, filter *store.StatFilter, rows []store.RollUp) {
	layout := time.DateOnly
	if filter.By == "hour" {
		layout = time.RFC3339
	}
	first, steps, groups := out.From.Truncate(time.Hour), map[string]int{}, map[string]int{}
	lineOf := func(lines *[]store.StatLine, known map[string]int, key string) *store.StatLine {
		at, found := known[key]
		if !found {
			at, known[key] = len(*lines), len(*lines)
			*lines = append(*lines, store.StatLine{Key: key, Ends: map[regie.RoundEnd]int64{}})
		}
		return &(*lines)[at]
	}
	out.Series, out.Groups, out.Total.Ends = []store.StatLine{}, []store.StatLine{}, map[regie.RoundEnd]int64{}
	for at := first; at.Before(out.To); at = at.Add(time.Hour) { // a day may have 23 or 25 hours
		lineOf(&out.Series, steps, at.Format(layout))
	}
	for i := range rows {
		row := &rows[i]
		out.Total.Add(row)
		lineOf(&out.Series, steps, row.Hour.In(first.Location()).Format(layout)).Add(row)
		if filter.Group != "" {
			lineOf(&out.Groups, groups, row.Group).Add(row)
		}
	}
	slices.SortFunc(out.Groups, func(a, b store.StatLine) int {
		return cmp.Or(cmp.Compare(b.Rounds, a.Rounds), cmp.Compare(a.Key, b.Key))
	})
}

// toolStats returns the tools that ran in a period, the most called first.
func (s *Stats) toolStats(ctx context.Context, root string, from, to time.Time) ([]store.ToolStat, error) {
	counts, err := s.Store.ToolCounts(ctx, root, from, to)
	out := []store.ToolStat{}
	for i, end := 0, 0; i < len(counts); i = end {
		t := store.ToolStat{Tool: counts[i].Tool}
		for ; end < len(counts) && counts[end].Tool == t.Tool; end++ {
			t.Calls, t.Succeeded = t.Calls+counts[end].Calls, t.Succeeded+counts[end].Succeeded
			t.Unknown += counts[end].Unknown
		}
		t.P50, t.P95 = percentile(counts[i:end], 0.5*float64(t.Calls)), percentile(counts[i:end], 0.95*float64(t.Calls))
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b store.ToolStat) int { return cmp.Compare(b.Calls, a.Calls) })
	return out, err
}

// percentile returns the duration in µs of a call by its rank, interpolated within its bucket.
// Buckets begin at 1, 2, 5, 10, 20, 50 µs and so on, from bucket 3 on.
func percentile(counts []store.ToolCount, rank float64) int64 {
	start := func(bucket int) float64 { return []float64{1, 2, 5}[bucket%3] * math.Pow10(bucket/3-1) }
	for i := range counts {
		calls := float64(counts[i].Calls)
		if rank <= calls {
			low := start(counts[i].Bucket)
			return int64(low + (start(counts[i].Bucket+1)-low)*rank/calls)
		}
		rank -= calls
	}
	return 0
}

// addWaiting adds what waits now: for people, and in all workspaces together for a slot.
func (s *Stats) addWaiting(ctx context.Context, root string, out *store.StatReport) error {
	inbox, err := s.Store.Inbox(ctx, store.InboxFilter{Root: root, Brief: true}) // the oldest come first
	if n := len(inbox.Approvals); n > 0 {
		out.Approvals = store.Waiting{Count: n, Since: inbox.Approvals[0].CreatedAt}
	}
	if n := len(inbox.Questions); n > 0 {
		out.Questions = store.Waiting{Count: n, Since: inbox.Questions[0].CreatedAt}
	}
	out.Unknown = len(inbox.Unknown)
	if err != nil || root != "" {
		return err
	}
	counts, err := s.Store.SlotCounts(ctx)
	for i := range counts {
		if c := &counts[i]; c.State == "QUEUED" {
			if out.Queue.Count += c.Sessions; out.Queue.Since.IsZero() || c.Since.Before(out.Queue.Since) {
				out.Queue.Since = c.Since
			}
		}
	}
	return err
}

// addBudget adds what the month cost, and what the day and the month will cost at that pace.
func (s *Stats) addBudget(ctx context.Context, root string, b *store.Budget, now time.Time) (err error) {
	year, month, day := now.Date()
	first := time.Date(year, month, 1, 0, 0, 0, 0, now.Location())
	today := first.AddDate(0, 0, day-1)
	b.Days, err = s.Store.DayCosts(ctx, root, first)
	for _, one := range b.Days {
		if b.Month += one.Cost; one.Day%100 == int64(day) {
			b.Today = one.Cost
		}
	}
	b.DayForecast = forecast(b.Today, now.Sub(today), today.AddDate(0, 0, 1).Sub(today))
	b.MonthForecast = forecast(b.Month, now.Sub(first), first.AddDate(0, 1, 0).Sub(first))
	caps := s.Settings.File.Caps("")
	if b.DayCap = caps.Day; root != "" {
		b.DayCap = regie.Caps{Day: caps.Workspace}.Lower(regie.Caps{Day: caps.Day}).Day
	}
	return err
}

// forecast returns what a period costs where it goes on as it began; its first hour says nothing.
func forecast(spent int64, elapsed, whole time.Duration) int64 {
	if elapsed < time.Hour {
		return spent
	}
	return int64(float64(spent) * whole.Seconds() / elapsed.Seconds())
}

// activeAlerts returns the alerts that hold, by what waits now and the rounds of this hour and the
// last one.
func (s *Stats) activeAlerts(ctx context.Context, root string, recent store.StatReport, now time.Time) (
	out []store.Alert, err error,
) {
	recent.To, recent.Total = now, store.StatLine{}
	rows, err := s.Store.RollUps(ctx, root, "", now.Add(-time.Hour), now)
	for i := range rows {
		recent.Total.Add(&rows[i])
	}
	if err == nil {
		recent.Tools, err = s.toolStats(ctx, root, now.Add(-time.Hour), now)
	}
	out = []store.Alert{}
	for i := range AlertRules {
		if r := &AlertRules[i]; r.Holds != nil && r.Holds(&recent) {
			out = append(out, r.Alert)
		}
	}
	return out, err
}
