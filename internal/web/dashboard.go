package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// dashboardPage is the figures of a period.
type dashboardPage struct {
	*frame
	Stats    store.StatReport
	Days     int    // of the period; 0: it has a From and a To
	From, To string // days, of the form
	Change   int64  // of the number of runs since the period before, in percent
	Ends     []endLine
	Cost     costChart

	Runs, Relaunches, Caught, History, Cache barChart
}

// endLine is how many rounds ended for a reason, and what share of all.
type endLine struct {
	Chip         chip
	Count, Share int64
}

// pauseDashboard is how often a dashboard changes at most.
const pauseDashboard = 10 * time.Second

// dashboardPeriod returns the period that an address names: days back, or a first and a last day.
func dashboardPeriod(query url.Values, now time.Time) (filter store.StatFilter, days int) {
	filter = store.StatFilter{From: query.Get("from"), To: query.Get("to"), Group: "agent"}
	if filter.From+filter.To != "" {
		return filter, 0
	}
	if days, _ = strconv.Atoi(query.Get("days")); days < 1 || days > 366 { // 0 for what is no number
		days = 7
	}
	if filter.From = now.AddDate(0, 0, 1-days).Format(time.DateOnly); days == 1 {
		filter.By, filter.From = "hour", now.Add(-23*time.Hour).Format(time.RFC3339)
	}
	return filter, days
}

func loadDashboard(ctx context.Context, v *visit) (*dashboardPage, error) {
	page := &dashboardPage{frame: v.newFrame("dashboard", v.text.T("Dashboard"))}
	page.Path, page.Stream, page.every = "/dashboard", "/dashboard/stream?"+v.r.URL.RawQuery, pauseDashboard
	if err := v.fillFrame(page.frame); err != nil {
		return nil, err
	}
	filter, days := dashboardPeriod(v.r.URL.Query(), time.Now())
	s, err := v.site.Service.Stats.Get(ctx, filter)
	if err != nil {
		return nil, err
	}
	page.Stats, page.Days = s, days
	page.From, page.To = s.From.Format(time.DateOnly), s.To.Add(-time.Second).Format(time.DateOnly)
	page.Change = 100 * (s.Total.Rounds - s.Before) / max(1, s.Before)
	for end, count := range s.Total.Ends {
		page.Ends = append(page.Ends, endLine{endChip(v.text, end), count, max(1, 100*count/s.Total.Rounds)})
	}
	slices.SortFunc(page.Ends, func(a, b endLine) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Chip.Word, b.Chip.Word))
	})
	page.addCharts(v.text, s.Series)
	page.Cost = newCostChart(v.text, &s.Budget, time.Now())
	return page, nil
}

// addCharts draws what rounds did in each step of the period.
func (p *dashboardPage) addCharts(t *i18n.Printer, steps []store.StatLine) {
	count := func(x float64) string { return t.T("%d", int64(x)) }
	share := func(x float64) string { return t.T("%.1f %%", x) }
	exact := func(x float64) string { return t.T("%.2f", x) }
	p.Runs = newBarChart("runs", steps, 2, count, func(l *store.StatLine) (bottom, top float64) {
		return float64(l.Rounds - l.EndedWell()), float64(l.EndedWell())
	})
	p.Relaunches = newBarChart("relaunches", steps, 0, exact, func(l *store.StatLine) (bottom, top float64) {
		return 0, ratio(l.Relaunches, l.Calls)
	})
	p.Caught = newBarChart("caught", steps, 2, count, func(l *store.StatLine) (bottom, top float64) {
		return float64(l.Loops), float64(l.Duplicates)
	})
	p.History = newBarChart("history", steps, 2, count, func(l *store.StatLine) (bottom, top float64) {
		return 0, ratio(l.History, l.Rounds)
	})
	p.Cache = newBarChart("cache", steps, 0, share, func(l *store.StatLine) (bottom, top float64) {
		return 0, 100 * ratio(l.CacheRead, l.Input)
	})
}

// ratio returns a / b, 0 where there is no b.
func ratio(a, b int64) float64 { return float64(a) / float64(max(1, b)) }

// barChart is a bar of two parts for each step of a period, and the same as rows of a table.
type barChart struct {
	ID                   string
	Highest, Top, Middle string
	First, Last          string
	Bars                 []barPart
	Rows                 []chartRow
}

// barPart is a part of a bar; its place is in percent of the plot.
type barPart struct{ Class, X, Y, Wide, High string }

type chartRow struct{ Key, Page, Upper, Lower string }

// newBarChart draws a chart. Its scale ends at least or higher; value returns the parts of a bar.
func newBarChart(id string, steps []store.StatLine, least float64, format func(float64) string,
	value func(*store.StatLine) (bottom, top float64),
) barChart {
	c, highest := barChart{ID: id}, 0.0
	for i := range steps {
		bottom, top := value(&steps[i])
		highest = max(highest, bottom+top)
	}
	scale, slot := roundUp(max(highest, least)), 100/float64(len(steps))
	c.Highest, c.Top, c.Middle = format(highest), format(scale), format(scale/2)
	percent := func(x float64) string { return fmt.Sprintf("%.2f%%", x) }
	for i := range steps {
		bottom, top := value(&steps[i])
		y := 100.0
		for n, part := range []float64{bottom, top} {
			high := 100 * part / scale
			if y -= high; part > 0 {
				class, x := []string{"second", "first"}[n], percent((float64(i)+0.1)*slot)
				c.Bars = append(c.Bars, barPart{class, x, percent(y), percent(0.8 * slot), percent(high)})
			}
		}
		key := steps[i].Key
		if hour, err := time.Parse(time.RFC3339, key); err == nil {
			key = hour.Format("01-02 15:04")
		}
		day := steps[i].Key[:len(time.DateOnly)]
		page := "/runs?from=" + day + "&to=" + day
		c.Rows = append(c.Rows, chartRow{key, page, format(top), format(bottom)})
	}
	c.First, c.Last = c.Rows[0].Key, c.Rows[len(c.Rows)-1].Key
	return c
}

// roundUp returns the next number of the series 1, 2, 4, 10, 20, 40 and so on.
func roundUp(x float64) float64 {
	step := 0.02
	for i := 0; step < x; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	return step
}

// costChart is the cost of the month so far, its forecast, and the limit. Its points are in a box
// of 100 × 100.
type costChart struct {
	Limit            int64 // of the month; 0: none
	LimitY           float64
	Line, Area, Dots string
	First, Last      string
	Rows             []chartRow
}

func newCostChart(t *i18n.Printer, b *store.Budget, now time.Time) costChart {
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	last := first.AddDate(0, 1, -1)
	c := costChart{Limit: b.DayCap * int64(last.Day())}
	c.First, c.Last = first.Format(time.DateOnly), last.Format(time.DateOnly)
	top := float64(max(b.MonthForecast, c.Limit, 1)) * 1.1
	c.LimitY = 100 - 100*float64(c.Limit)/top
	point := func(day float64, amount int64) string {
		return fmt.Sprintf("%.2f,%.2f ", 100*day/float64(last.Day()), 100-100*float64(amount)/top)
	}
	today, sum := now.Sub(first).Hours()/24, int64(0)
	c.Line = point(0, 0)
	for _, one := range b.Days {
		day := float64(one.Day % 100)
		c.Line += point(day-1, sum)
		sum += one.Cost
		c.Line += point(min(day, today), sum)
		c.Rows = append(c.Rows, chartRow{
			Key:   first.AddDate(0, 0, int(one.Day%100)-1).Format(time.DateOnly),
			Upper: formatDollars(t, one.Cost), Lower: formatDollars(t, sum),
		})
	}
	c.Line += point(today, sum)
	c.Area, c.Dots = c.Line+point(today, 0), point(today, sum)+point(float64(last.Day()), b.MonthForecast)
	return c
}

// formatDollars formats an amount to the cent.
func formatDollars(t *i18n.Printer, amount int64) string {
	return t.T("$%s", regie.Dollars((amount+5000)/10000*10000))
}
