package control

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Stats is the dashboard: what rounds did by the hour, what waits, and which alerts hold.
type Stats struct{ *core }

const (
	dayFormat = "2006-01-02"
	// defaultPeriod is what a request without a beginning is about, maxPeriod the longest one.
	defaultPeriod = 7
	maxPeriod     = 1000
)

// Get returns the counters of a period in the workspace at root, or in all for "". It reads the
// roll-ups and never the rounds. It returns CodeBadRequest for a period that is none.
func (s *Stats) Get(ctx context.Context, filter store.StatFilter) (out store.Stats, err error) {
	if _, err := s.authorizeIn(ctx, "show_stats", &filter.Root); err != nil {
		return out, err
	}
	now := time.Now()
	if out.From, out.To, err = statPeriod(&filter, now); err != nil {
		return out, err
	}
	before := out.From.Add(out.From.Sub(out.To))
	rows, err := s.Store.RollUps(ctx, filter.Root, filter.Group, before, out.To)
	if err != nil {
		return out, err
	}
	addRollUps(&out, &filter, rows)
	counts, err := s.Store.ToolCounts(ctx, filter.Root, out.From, out.To)
	if err != nil {
		return out, err
	}
	out.Tools = toolStats(counts)
	if err := s.addWaiting(ctx, filter.Root, &out); err != nil {
		return out, err
	}
	if err := s.addBudget(ctx, filter.Root, &out, now); err != nil {
		return out, err
	}
	out.Alerts, err = s.standingAlerts(ctx, filter.Root, &out, now)
	return out, err
}

// Rebuild writes the roll-ups of all workspaces anew from the stored rounds.
func (s *Stats) Rebuild(ctx context.Context) error {
	if _, err := s.authorizeAll(ctx, "rebuild_stats"); err != nil {
		return err
	}
	return s.Store.RebuildStats(ctx)
}

// statPeriod returns the period of a filter; a day counts to its end.
func statPeriod(filter *store.StatFilter, now time.Time) (from, to time.Time, err error) {
	parse := func(text string, otherwise time.Time, days int) time.Time {
		if text == "" {
			return otherwise
		}
		at, bad := time.ParseInLocation(dayFormat, text, time.Local) //nolint:gosmopolitan // a person's day is where they are
		if bad == nil {
			return at.AddDate(0, 0, days)
		}
		if at, bad = time.Parse(time.RFC3339, text); bad != nil && err == nil {
			err = regie.Errorf(regie.CodeBadRequest, "%q is no day and no time: write it as 2026-11-21 or 2026-11-21T08:00:00Z", text)
		}
		return at
	}
	to = parse(filter.To, now, 1)
	year, month, day := to.In(time.Local).Date()                                //nolint:gosmopolitan // as above
	week := time.Date(year, month, day-defaultPeriod+1, 0, 0, 0, 0, time.Local) //nolint:gosmopolitan // as above
	if from = parse(filter.From, week, 0); err == nil && (!from.Before(to) || to.Sub(from) > maxPeriod*24*time.Hour) {
		err = regie.Errorf(regie.CodeBadRequest, "the period must begin before it ends and last at most %d days", maxPeriod)
	}
	return from, to, err
}

// addRollUps adds the rows up: those in front of the period, its steps, and its groups.
func addRollUps(out *store.Stats, filter *store.StatFilter, rows []store.RollUp) {
	step := func(at time.Time) string {
		if filter.By == "hour" {
			return at.UTC().Format(time.RFC3339)
		}
		return at.In(time.Local).Format(dayFormat) //nolint:gosmopolitan // as statPeriod
	}
	out.Series, out.Groups, out.Total.Ends = []store.StatLine{}, []store.StatLine{}, map[regie.RoundEnd]int64{}
	steps, groups := map[string]int{}, map[string]*store.StatLine{}
	for at := out.From.Truncate(time.Hour); at.Before(out.To); at = at.Add(time.Hour) { // days have 23 to 25 hours
		if key := step(at); len(out.Series) == 0 || out.Series[len(out.Series)-1].Key != key {
			steps[key] = len(out.Series)
			out.Series = append(out.Series, store.StatLine{Key: key, Ends: map[regie.RoundEnd]int64{}})
		}
	}
	for i := range rows {
		row := &rows[i]
		if row.Hour.Before(out.From.Truncate(time.Hour)) {
			out.Before.Add(&row.RoundCounts)
			continue
		}
		out.Total.Add(row)
		if at, ok := steps[step(row.Hour)]; ok {
			out.Series[at].Add(row)
		}
		if filter.Group != "" {
			if groups[row.Group] == nil {
				groups[row.Group] = &store.StatLine{Key: row.Group}
			}
			groups[row.Group].Add(row)
		}
	}
	for _, line := range groups {
		out.Groups = append(out.Groups, *line)
	}
	slices.SortFunc(out.Groups, func(a, b store.StatLine) int {
		return cmp.Or(cmp.Compare(b.Rounds, a.Rounds), cmp.Compare(a.Key, b.Key))
	})
}

// toolStats returns the tools of some counts, the most called first.
func toolStats(counts []store.ToolCount) []store.ToolStat {
	tools, buckets := map[string]*store.ToolStat{}, map[string]map[int]int64{}
	for i := range counts {
		c := &counts[i]
		if tools[c.Tool] == nil {
			tools[c.Tool], buckets[c.Tool] = &store.ToolStat{Tool: c.Tool}, map[int]int64{}
		}
		t := tools[c.Tool]
		t.Calls += c.Calls
		buckets[c.Tool][c.Bucket] += c.Calls
		switch c.State {
		case regie.CallSucceeded:
			t.Succeeded += c.Calls
		case regie.CallUnknown:
			t.Unknown += c.Calls
		}
	}
	out := []store.ToolStat{}
	for name, t := range tools {
		t.P50, t.P95 = percentile(buckets[name], t.Calls, 0.5), percentile(buckets[name], t.Calls, 0.95)
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b store.ToolStat) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

// percentile returns the duration in µs below which a share of the calls of a histogram lie,
// interpolated within its bucket.
func percentile(buckets map[int]int64, calls int64, share float64) int64 {
	rank, seen := share*float64(calls), 0.0
	for _, bucket := range slices.Sorted(maps.Keys(buckets)) {
		count := float64(buckets[bucket])
		if seen+count >= rank {
			low, high := bucketStart(bucket), bucketStart(bucket+1)
			return int64(low + (high-low)*(rank-seen)/count)
		}
		seen += count
	}
	return 0
}

// bucketStart returns where a bucket begins: 1, 2, 5, 10, 20, 50 µs and so on, from bucket 3 on.
func bucketStart(bucket int) float64 {
	return []float64{1, 2, 5}[bucket%3] * math.Pow10(bucket/3-1)
}

// addWaiting adds what waits now: for people, and in all workspaces together for a slot.
func (s *Stats) addWaiting(ctx context.Context, root string, out *store.Stats) error {
	inbox, err := s.Store.Inbox(ctx, store.InboxFilter{Root: root, Brief: true})
	if err != nil {
		return err
	}
	for i := range inbox.Approvals {
		addWait(&out.Approvals, 1, inbox.Approvals[i].CreatedAt)
	}
	for i := range inbox.Questions {
		addWait(&out.Questions, 1, inbox.Questions[i].CreatedAt)
	}
	counts, err := s.Store.SlotCounts(ctx)
	for i := range counts {
		if counts[i].State == "QUEUED" && root == "" {
			addWait(&out.Queue, counts[i].Sessions, counts[i].Since)
		}
	}
	return err
}

func addWait(w *store.Waiting, count int, since time.Time) {
	if w.Count += count; w.Since.IsZero() || since.Before(w.Since) {
		w.Since = since
	}
}

// addBudget adds what the month cost, and what the day and the month will cost at that pace.
func (s *Stats) addBudget(ctx context.Context, root string, out *store.Stats, now time.Time) (err error) {
	year, month, day := now.Date()
	first, today := time.Date(year, month, 1, 0, 0, 0, 0, now.Location()), time.Date(year, month, day, 0, 0, 0, 0, now.Location())
	b, caps := &out.Budget, s.Settings.File.Caps("")
	b.Days, err = s.Store.DayCosts(ctx, root, first)
	for _, one := range b.Days {
		if b.Month += one.Cost; one.Day%100 == int64(day) {
			b.Today = one.Cost
		}
	}
	b.DayForecast = forecast(b.Today, now.Sub(today), today.AddDate(0, 0, 1).Sub(today))
	b.MonthForecast = forecast(b.Month, now.Sub(first), first.AddDate(0, 1, 0).Sub(first))
	if b.DayCap = caps.Day; root != "" {
		b.DayCap = regie.Caps{Day: caps.Workspace}.Lower(regie.Caps{Day: caps.Day}).Day
	}
	return err
}

// forecast returns what a period costs where it goes on as it began; its first hour says nothing.
func forecast(spent int64, elapsed, whole time.Duration) int64 {
	if elapsed < time.Hour || elapsed >= whole {
		return spent
	}
	return int64(float64(spent) * whole.Seconds() / elapsed.Seconds())
}

// standingAlerts returns the alerts that hold now, by the rounds of this hour and the last one.
func (s *Stats) standingAlerts(ctx context.Context, root string, now *store.Stats, at time.Time) ([]store.Alert, error) {
	recent := store.Stats{Approvals: now.Approvals, Questions: now.Questions, Queue: now.Queue, To: at}
	rows, err := s.Store.RollUps(ctx, root, "", at.Add(-time.Hour), at)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		recent.Total.Add(&rows[i])
	}
	counts, err := s.Store.ToolCounts(ctx, root, at.Add(-time.Hour), at)
	recent.Tools = toolStats(counts)
	out := []store.Alert{}
	for i := range AlertRules {
		if rule := &AlertRules[i]; rule.Holds != nil && rule.Holds(&recent) {
			out = append(out, rule.Alert)
		}
	}
	return out, err
}
