package web

import (
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// TestBarChart stacks the parts of bars in percent, from the bottom.
func TestBarChart(t *testing.T) {
	t.Parallel()
	steps := []store.StatLine{{Key: "2026-11-23"}, {Key: "2026-11-24"}}
	steps[1].Rounds, steps[1].Loops = 3, 1
	format := func(x float64) string { return i18n.New("en").T("%d", int64(x)) }
	got := newBarChart("x", steps, 2, format, func(l *store.StatLine) (bottom, top float64) {
		return float64(l.Loops), float64(l.Rounds - l.Loops)
	})
	want := barChart{
		ID: "x", Highest: "3", Top: "4", Middle: "2", First: "2026-11-23", Last: "2026-11-24",
		Bars: []barPart{{"second", "55.00%", "75.00%", "40.00%", "25.00%"}, {"first", "55.00%", "25.00%", "40.00%", "50.00%"}},
		Rows: []chartRow{{"2026-11-23", "/runs?from=2026-11-23&to=2026-11-23", "0", "0"}, {"2026-11-24", "/runs?from=2026-11-24&to=2026-11-24", "2", "1"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCostChart draws the month to today, the forecast to its end, and the limit of its days.
func TestCostChart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	got := newCostChart(i18n.New("en"), &store.Budget{
		Days: []store.DayCost{{Day: 20261102, Cost: 4_000_000}}, Month: 4_000_000, MonthForecast: 60_000_000, DayCap: 10_000_000,
	}, now)
	want := costChart{
		Limit: 300_000_000, LimitY: got.LimitY, First: "2026-11-01", Last: "2026-11-30",
		Line: "0.00,100.00 3.33,100.00 6.67,98.79 6.67,98.79 ", Area: "0.00,100.00 3.33,100.00 6.67,98.79 6.67,98.79 6.67,100.00 ",
		Dots: "6.67,98.79 100.00,81.82 ", Rows: []chartRow{{"2026-11-02", "", "$4.00", "$4.00"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || got.LimitY < 9 || got.LimitY > 9.2 {
		t.Errorf("the limit is at %v; %s", got.LimitY, diff)
	}
}

// TestDashboardPeriod reads days back and dates of an address.
func TestDashboardPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC)
	for query, want := range map[string]store.StatFilter{
		"": {From: "2026-11-18"}, "days=30": {From: "2026-10-26"}, "days=-1": {From: "2026-11-18"},
		"days=1": {From: "2026-11-23T16:00:00Z", By: "hour"}, "from=2026-11-01": {From: "2026-11-01"},
		"from=x&to=2026-11-02&days=30": {From: "x", To: "2026-11-02"},
	} {
		values, err := url.ParseQuery(query)
		want.Group = "agent"
		if got, _ := dashboardPeriod(values, now); err != nil || got != want {
			t.Errorf("%q: %+v, want %+v", query, got, want)
		}
	}
}
