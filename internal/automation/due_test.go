package automation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

// hourly is an automation whose series began at 00:30.
func hourly(tb testing.TB, policy regie.MissedPolicy) *regie.Automation {
	tb.Helper()
	return &regie.Automation{
		ID: regie.NewID(), Version: 3, Enabled: true, SeriesFrom: instant(tb, "2026-01-01T00:30Z"),
		Definition: regie.AutomationDefinition{Schedule: parse(tb, "0 * * * *", "UTC"), Missed: policy},
	}
}

// showFires writes rows like "01:00 DUE late" and "01:00–05:00 (5) SKIPPED late".
func showFires(fires []regie.Fire) string {
	var rows []string
	for _, f := range fires {
		row := f.NominalAt.Format("15:04")
		if f.Count > 0 {
			row += fmt.Sprintf("–%s (%d)", f.Until.Format("02 15:04"), f.Count)
		}
		row += " " + string(f.Outcome)
		if f.Late {
			row += " late"
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, ", ")
}

func TestDue(t *testing.T) {
	at := func(text string) time.Time { return instant(t, "2026-01-01T"+text+"Z") }
	for _, c := range []struct {
		name       string
		change     func(*regie.Automation)
		now        time.Time
		fires      string
		decided    time.Time
		next       time.Time
		reasonLike string
	}{
		{name: "before the first", now: at("00:59"), next: at("01:00")},
		{name: "on time", now: at("01:00"), fires: "01:00 DUE", decided: at("01:00"), next: at("02:00")},
		{name: "a minute after", now: at("01:01"), fires: "01:00 DUE", decided: at("01:00"), next: at("02:00")},
		{name: "missed", now: at("01:02"), fires: "01:00 DUE late", decided: at("01:00"), next: at("02:00")},
		{
			name: "missed once", now: at("04:00"), decided: at("04:00"), next: at("05:00"), reasonLike: "one late run",
			fires: "01:00 COALESCED late, 02:00 COALESCED late, 03:00 DUE late, 04:00 DUE",
		},
		{
			name: "missed skip", change: func(a *regie.Automation) { a.Definition.Missed = regie.MissedSkip },
			now: at("03:00"), decided: at("03:00"), next: at("04:00"), reasonLike: "missed",
			fires: "01:00 SKIPPED late, 02:00 SKIPPED late, 03:00 DUE",
		},
		{
			name: "missed each", change: func(a *regie.Automation) { a.Definition.Missed = regie.MissedEach },
			now: at("03:30"), decided: at("03:00"), next: at("04:00"), fires: "01:00 DUE late, 02:00 DUE late, 03:00 DUE late",
		},
		{
			name: "decided before", change: func(a *regie.Automation) { a.DecidedTo = at("02:00") },
			now: at("03:00"), decided: at("03:00"), next: at("04:00"), fires: "03:00 DUE",
		},
		{
			name: "a clock that jumped back", change: func(a *regie.Automation) { a.DecidedTo = at("06:00") },
			now: at("03:00"), decided: at("06:00"), next: at("07:00"),
		},
		{
			name: "a new series", change: func(a *regie.Automation) { a.DecidedTo, a.SeriesFrom = at("02:00"), at("04:30") },
			now: at("05:00"), decided: at("05:00"), next: at("06:00"), fires: "05:00 DUE",
		},
		{
			name: "paused", change: func(a *regie.Automation) { a.Paused = true },
			now: at("02:00"), decided: at("02:00"), next: at("03:00"), reasonLike: "paused", fires: "01:00 SKIPPED late, 02:00 SKIPPED",
		},
		{
			name: "paused until later", change: func(a *regie.Automation) { a.Paused, a.PausedUntil = true, at("05:00") },
			now: at("02:00"), decided: at("02:00"), next: at("03:00"), reasonLike: "paused", fires: "01:00 SKIPPED late, 02:00 SKIPPED",
		},
		{
			name: "a pause that has ended", change: func(a *regie.Automation) { a.Paused, a.PausedUntil = true, at("02:00") },
			now: at("02:00"), decided: at("02:00"), next: at("03:00"), reasonLike: "paused", fires: "01:00 SKIPPED late, 02:00 DUE",
		},
		{name: "disabled", change: func(a *regie.Automation) { a.Enabled = false }, now: at("05:00")},
		{name: "without a schedule", change: func(a *regie.Automation) { a.Definition.Schedule = nil }, now: at("05:00")},
		{
			name: "the end", now: at("05:00"), decided: at("02:00"), fires: "01:00 COALESCED late, 02:00 DUE late",
			change: func(a *regie.Automation) {
				end := regie.LocalTime("2026-01-01T03:00")
				a.Definition.Schedule.End = &end
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := hourly(t, "")
			if c.change != nil {
				c.change(a)
			}
			fires, decided, next := Due(a, c.now)
			if got := showFires(fires); got != c.fires || !decided.Equal(c.decided) || !next.Equal(c.next) {
				t.Errorf("%s; decided %s, next %s\nwant %s; %s, %s", got, decided, next, c.fires, c.decided, c.next)
			}
			for _, f := range fires {
				if f.AutomationID != a.ID || f.Version != 3 || f.Trigger != regie.TriggerScheduled || !f.ID.IsZero() || !f.CreatedAt.IsZero() {
					t.Errorf("row %+v", f)
				}
				if ran := f.Outcome == regie.FireDue; ran != f.Reason.IsZero() || !ran && !strings.Contains(f.Reason.String(), c.reasonLike) {
					t.Errorf("%s has the reason %q", f.Outcome, f.Reason)
				}
			}
		})
	}
}

// TestDue_LongOutage has a schedule of minutes, so that more are missed than have a row each.
func TestDue_LongOutage(t *testing.T) {
	from := instant(t, "2026-01-01T00:00Z")
	for _, c := range []struct {
		name    string
		policy  regie.MissedPolicy
		paused  bool
		minutes int
		rows    int
		first   string
		last    string
	}{
		{"once, few", regie.MissedOnce, false, 1001, 1001, "00:01 COALESCED late", "16:41 DUE"},
		{"once, many", regie.MissedOnce, false, 1003, 4, "00:01–01 16:40 (1000) COALESCED late", "16:43 DUE"},
		{"skip, many", regie.MissedSkip, false, 1003, 3, "00:01–01 16:41 (1001) SKIPPED late", "16:43 DUE"},
		{"each, few", regie.MissedEach, false, 1002, 1002, "00:01 DUE late", "16:42 DUE"},
		{"each, many", regie.MissedEach, false, 1103, 1003, "00:01–01 01:41 (101) SKIPPED late", "18:23 DUE"},
		{"each, one too many", regie.MissedEach, false, 1003, 1003, "00:01–01 00:01 (1) SKIPPED late", "16:43 DUE"},
		{"each, the first that are forgotten", regie.MissedEach, false, 2004, 1003, "00:01–01 16:42 (1002) SKIPPED late", "09:24 DUE"},
		{"paused", regie.MissedOnce, true, 1500, 1, "00:01–02 01:00 (1500) SKIPPED late", "00:01–02 01:00 (1500) SKIPPED late"},
		{"once, a year", regie.MissedOnce, false, 365 * 24 * 60, 4, "00:01–31 23:57 (525597) COALESCED late", "00:00 DUE"},
		{"each, a year", regie.MissedEach, false, 365 * 24 * 60, 1003, "00:01–31 07:18 (524598) SKIPPED late", "00:00 DUE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, text := range []string{"* * * * *", "* 0-23 * * *", "every 1m"} {
				a := &regie.Automation{Enabled: true, SeriesFrom: from, Paused: c.paused, Definition: regie.AutomationDefinition{
					Schedule: parse(t, text, "UTC"), Missed: c.policy,
				}}
				now := from.Add(time.Duration(c.minutes) * time.Minute)
				fires, decided, next := Due(a, now)
				if !decided.Equal(now) || !next.Equal(now.Add(time.Minute)) || len(fires) != c.rows {
					t.Fatalf("%s: decided %s, next %s, %d rows", text, decided, next, len(fires))
				}
				if first, last := showFires(fires[:1]), showFires(fires[len(fires)-1:]); first != c.first || last != c.last {
					t.Errorf("%s: %s … %s\nwant %s … %s", text, first, last, c.first, c.last)
				}
				covered := 0
				for _, f := range fires {
					covered += max(1, f.Count)
				}
				if covered != c.minutes {
					t.Errorf("%s: %d instants have a row, of %d", text, covered, c.minutes)
				}
			}
		})
	}
}

// TestDue_Year lives through a year with outages and clocks that jump forward and back. Each
// nominal instant has one row at the end.
func TestDue_Year(t *testing.T) {
	policies := []regie.MissedPolicy{"", regie.MissedOnce, regie.MissedSkip, regie.MissedEach}
	for i, zone := range []string{"Europe/Paris", "America/New_York", "Australia/Lord_Howe"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			walk := walkMinutes(t, zone, from, from.AddDate(1, 0, 7))
			for j, text := range []string{"*/15 * * * *", "daily 01:45,02:15,02:30", "0 */2 * * *", "every 50m", "weekly sun 02:30", "* * * * *"} {
				y := &simulatedYear{
					random: rand.New(rand.NewPCG(uint64(i), uint64(j))),
					a: &regie.Automation{Enabled: true, SeriesFrom: from, Definition: regie.AutomationDefinition{
						Schedule: parse(t, text, zone), Missed: policies[(i+j)%len(policies)],
					}},
				}
				y.live(t, from.AddDate(1, 0, 0))
				y.checkRows(t, walk.runs(t, y.a.Definition.Schedule), text)
			}
		})
	}
}

// simulatedYear is an engine with a clock that may be wrong.
type simulatedYear struct {
	random *rand.Rand
	a      *regie.Automation
	fires  []regie.Fire
	jumps  int
}

func (y *simulatedYear) live(t *testing.T, end time.Time) {
	t.Helper()
	truth, wrong := y.a.SeriesFrom, time.Duration(0)
	for truth.Before(end) {
		truth = truth.Add(time.Duration(y.random.Int64N(int64(2 * time.Hour))))
		switch y.random.IntN(100) {
		case 0: // an outage
			truth = truth.Add(time.Duration(y.random.Int64N(int64(4 * 24 * time.Hour))))
		case 1, 2: // a jump, or its correction
			if wrong != 0 {
				wrong = 0
			} else {
				wrong = time.Duration(y.random.Int64N(int64(10*time.Hour))) - 5*time.Hour
			}
			y.jumps++
		}
		now := truth.Add(wrong)
		fires, decided, next := Due(y.a, now)
		for _, f := range fires {
			if f.NominalAt.After(now) || f.Until.After(now) || !f.NominalAt.After(y.a.DecidedTo) {
				t.Fatalf("at %s, decided to %s: a row for %s", now, y.a.DecidedTo, f.NominalAt)
			}
		}
		if decided.Before(y.a.DecidedTo) || !next.After(now) || !next.After(decided) {
			t.Fatalf("at %s: decided from %s to %s, next %s", now, y.a.DecidedTo, decided, next)
		}
		y.a.DecidedTo, y.fires = decided, append(y.fires, fires...)
	}
}

// checkRows compares the rows with the oracle's instants.
func (y *simulatedYear) checkRows(t *testing.T, want []time.Time, text string) {
	t.Helper()
	i, ranges, late := 0, 0, 0
	for _, f := range y.fires {
		if i >= len(want) || !f.NominalAt.Equal(want[i]) {
			t.Fatalf("%s: row %+v, want %s", text, f, at(want, i))
		}
		if f.Late {
			late++
		}
		if i++; f.Count > 0 {
			ranges++
			if i += f.Count - 1; !f.Until.Equal(want[i-1]) {
				t.Fatalf("%s: the range %+v ends at %s", text, f, want[i-1])
			}
		}
	}
	if i < len(want) && !want[i].After(y.a.DecidedTo) || !want[i-1].Equal(y.a.DecidedTo) {
		t.Errorf("%s: %d of %d instants have a row, decided to %s", text, i, len(want), y.a.DecidedTo)
	}
	if late == 0 || y.jumps < 20 || ranges == 0 && text == "* * * * *" {
		t.Errorf("%s: the year has %d late rows, %d jumps, %d ranges", text, late, y.jumps, ranges)
	}
}

func BenchmarkDue_YearOfMinutes(b *testing.B) {
	for _, text := range []string{"* * * * *", "* 0-23 * * *", "every 1m"} {
		b.Run(strings.ReplaceAll(text, " ", "_"), func(b *testing.B) {
			a := hourly(b, regie.MissedOnce)
			a.Definition.Schedule = parse(b, text, "Europe/Paris")
			for b.Loop() {
				Due(a, a.SeriesFrom.AddDate(1, 0, 0))
			}
		})
	}
}
