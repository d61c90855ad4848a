package web

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// dashboardPage is the figures of a period.
type dashboardPage struct {
	*frame
	Periods  []periodLink
	From, To string // days, of the form
	Alerts   []alertLine
	Empty    bool
	Figures  []figure
	Runs     barChart
	Cost     costChart
	Tools    []toolLine
	Rare     []toolLine // tools behind the first ones
	Ends     []endLine
	Details  []barChart
	Waiting  []figure
}

type periodLink struct {
	Days    int
	Name    string
	Current bool
}

type alertLine struct{ Class, What, Do, Page string }

// figure is a number with its name and what stands below it.
type figure struct{ Name, Value, Note, Class, Page string }

type toolLine struct {
	Name, Calls, P50, P95, Success, Class string
	Share                                 int64
}

type endLine struct {
	Word, Class, Count string
	Share              int64
}

const (
	// pauseDashboard is how often a dashboard changes at most.
	pauseDashboard = 10 * time.Second
	shownTools     = 8
	// leastSuccess is the share of successful calls, in percent, below which a tool is red.
	leastSuccess = 90
)

// showDashboard shows the figures of a period.
func (s *Site) showDashboard(v *visit) error {
	page, err := loadDashboard(v.r.Context(), v)
	if err != nil {
		return err
	}
	page.Stream = "/dashboard/stream?" + v.r.URL.RawQuery
	v.render(200, "dashboard", page)
	return nil
}

// streamDashboard streams what changes of a dashboard.
func (s *Site) streamDashboard(v *visit) error {
	return streamEvery(v, pauseDashboard, -1, regie.ID{}, func(ctx context.Context) (*snapshot, error) {
		page, err := loadDashboard(ctx, v)
		if err != nil {
			return nil, err
		}
		shown := &snapshot{Title: page.Title}
		err = shown.addRegions(v, page, "nav", "tabs", "dashboard")
		return shown, err
	})
}

// dashboardPeriod returns the period that the address names: days back, or two days.
func dashboardPeriod(query url.Values, now time.Time) (filter store.StatFilter, days int) {
	filter.From, filter.To = query.Get("from"), query.Get("to")
	if filter.From != "" || filter.To != "" {
		return filter, 0
	}
	days, _ = strconv.Atoi(query.Get("days")) // 0 for what is no number
	switch {
	case days == 1:
		filter.By, filter.From = "hour", now.Add(-23*time.Hour).Format(time.RFC3339)
	case days < 1 || days > 366:
		days = 7
		fallthrough
	default:
		filter.From = now.AddDate(0, 0, 1-days).Format(time.DateOnly)
	}
	return filter, days
}

func loadDashboard(ctx context.Context, v *visit) (*dashboardPage, error) {
	t := v.text
	f := v.newFrame("dashboard", t.T("Dashboard"))
	f.Path = "/dashboard"
	if err := v.fillFrame(f); err != nil {
		return nil, err
	}
	filter, days := dashboardPeriod(v.r.URL.Query(), time.Now())
	stats, err := v.site.Service.Stats.Get(ctx, filter)
	if err != nil {
		return nil, err
	}
	page := &dashboardPage{
		frame: f, Empty: stats.Total.Rounds == 0, Cost: newCostChart(t, &stats.Budget, time.Now()),
		From: stats.From.Local().Format(time.DateOnly), To: stats.To.Add(-time.Second).Local().Format(time.DateOnly),
	}
	for _, days := range []periodLink{{1, t.T("24 hours"), days == 1}, {7, t.T("7 days"), days == 7}, {30, t.T("30 days"), days == 30}} {
		page.Periods = append(page.Periods, days)
	}
	for i := range stats.Alerts {
		a := &stats.Alerts[i]
		line := alertLine{"bad", t.Sentence(a.What), t.Sentence(a.Do), a.Page}
		if a.Page == "/inbox" {
			line.Class = "you"
		} else if a.Severity == "info" {
			line.Class = ""
		}
		page.Alerts = append(page.Alerts, line)
	}
	page.Waiting = waitingFigures(t, &stats)
	page.Figures = dashboardFigures(t, &stats, page.Waiting)
	page.addCharts(t, &stats, filter.By == "hour")
	for i := range stats.Tools {
		line := newToolLine(t, &stats.Tools[i])
		if i < shownTools {
			page.Tools = append(page.Tools, line)
		} else {
			page.Rare = append(page.Rare, line)
		}
	}
	for end, count := range stats.Total.Ends {
		c := endChip(t, end)
		page.Ends = append(page.Ends, endLine{c.Word, c.Class, formatCount(t, count), max(1, 100*count/stats.Total.Rounds)})
	}
	slices.SortFunc(page.Ends, func(a, b endLine) int {
		if a.Share != b.Share {
			return int(b.Share - a.Share)
		}
		return strings.Compare(a.Word, b.Word)
	})
	return page, nil
}

// endedWell counts the rounds of a line that came to their end.
func endedWell(l *store.StatLine) int64 {
	return l.Ends[regie.EndAnswered] + l.Ends[regie.EndCompleted] + l.Ends[regie.EndClientTools]
}

// ratio is a / b, 0 for no b.
func ratio(a, b int64) float64 { return float64(a) / float64(max(1, b)) }

func formatCount(t *i18n.Printer, n int64) string { return t.T("%d", n) }

func formatRatio(t *i18n.Printer, x float64) string { return t.T("%.2f", x) }

func formatShare(t *i18n.Printer, x float64) string { return t.T("%.1f %%", x) }

// waitingFigures are what waits for people.
func waitingFigures(t *i18n.Printer, s *store.Stats) []figure {
	out := []figure{
		{Name: t.T("Approvals"), Value: formatCount(t, int64(s.Approvals.Count))},
		{Name: t.T("Questions"), Value: formatCount(t, int64(s.Questions.Count))},
		{Name: t.T("Runs in the queue"), Value: formatCount(t, int64(s.Queue.Count))},
	}
	for i, w := range []store.Waiting{s.Approvals, s.Questions, s.Queue} {
		if out[i].Note = t.T("none waits"); w.Count > 0 {
			out[i].Note = t.T("the oldest for %s", formatSpan(t, w.Age(time.Now())))
			out[i].Class, out[i].Page = "you", "/inbox"
		}
	}
	if out[2].Class != "" { // it needs nobody
		out[2].Class, out[2].Page = "", "/runs"
	}
	return out
}

// dashboardFigures are the five of the strip.
func dashboardFigures(t *i18n.Printer, s *store.Stats, waiting []figure) []figure {
	total := &s.Total
	runs := figure{Name: t.T("Runs"), Value: formatCount(t, total.Rounds), Note: t.T("none in the period before")}
	if before := s.Before.Rounds; before > 0 {
		runs.Note = t.T("%+d %% on the period before", 100*(total.Rounds-before)/before)
	}
	now := figure{Name: t.T("Waiting now"), Value: formatCount(t, int64(s.Approvals.Count+s.Questions.Count)), Note: t.T("nothing waits for you"), Page: "/inbox"}
	for _, one := range waiting[:2] {
		if one.Class != "" {
			now.Note, now.Class = one.Note, one.Class
			break
		}
	}
	return []figure{
		runs,
		{Name: t.T("Ended well"), Value: formatShare(t, 100*ratio(endedWell(total), total.Rounds)), Note: t.T("%d of %d did not", total.Rounds-endedWell(total), total.Rounds)},
		{Name: t.T("Calls per run"), Value: t.T("%.1f", ratio(total.Calls, total.Rounds)), Note: t.T("%s relaunches per result", formatRatio(t, ratio(total.Relaunches, total.Calls)))},
		now,
		{Name: t.T("Caught"), Value: formatCount(t, total.Duplicates+total.Loops), Note: t.T("%d duplicates, %d loops", total.Duplicates, total.Loops)},
	}
}

func newToolLine(t *i18n.Printer, s *store.ToolStat) toolLine {
	span := func(us int64) string { return formatSpan(t, time.Duration(us)*time.Microsecond) }
	line := toolLine{
		Name: sanitize.Line(s.Tool), Calls: formatCount(t, s.Calls), P50: span(s.P50), P95: span(s.P95), Share: 100 * s.Succeeded / s.Calls,
	}
	if line.Success = t.T("%d %%", line.Share); line.Share < leastSuccess {
		line.Class = "bad"
	}
	return line
}

// addCharts adds the charts over the steps of the period.
func (p *dashboardPage) addCharts(t *i18n.Printer, s *store.Stats, hours bool) {
	count := func(x float64) string { return formatCount(t, int64(x)) }
	title := t.T("Runs a day")
	if hours {
		title = t.T("Runs an hour")
	}
	p.Runs = newBarChart(t, s.Series, barChart{ID: "runs", Title: title, Legend: []string{t.T("ended well"), t.T("did not")}, format: count, least: 2},
		func(l *store.StatLine) (float64, float64) {
			return float64(endedWell(l)), float64(l.Rounds - endedWell(l))
		})
	p.Details = []barChart{
		newBarChart(t, s.Series, barChart{
			ID: "relaunches", Title: t.T("Relaunches per result"), Note: t.T("How often a model is called again for one tool result."),
			Legend: []string{t.T("relaunches per result")}, format: func(x float64) string { return formatRatio(t, x) },
		}, func(l *store.StatLine) (float64, float64) { return ratio(l.Relaunches, l.Calls), 0 }),
		newBarChart(t, s.Series, barChart{
			ID: "caught", Title: t.T("Caught calls"), Note: t.T("Calls that would have repeated others and were not run."),
			Legend: []string{t.T("duplicates"), t.T("loops")}, format: count, least: 2,
		}, func(l *store.StatLine) (float64, float64) { return float64(l.Duplicates), float64(l.Loops) }),
		newBarChart(t, s.Series, barChart{
			ID: "history", Title: t.T("History size"), Note: t.T("Tokens of the largest prompt of a run, on average."),
			Legend: []string{t.T("tokens")}, format: count, least: 2,
		}, func(l *store.StatLine) (float64, float64) { return ratio(l.History, l.Rounds), 0 }),
		newBarChart(t, s.Series, barChart{
			ID: "cache", Title: t.T("Cache hits"), Legend: []string{t.T("from the cache")}, format: func(x float64) string { return formatShare(t, x) },
			Note: t.T("Share of prompt tokens from the provider's cache. %d answers came from Regie's own.", s.Total.CacheHits),
		}, func(l *store.StatLine) (float64, float64) { return 100 * ratio(l.CacheRead, l.Input), 0 }),
	}
}

// barChart is bars over the steps of a period, of one or two parts each, and the same as a table.
type barChart struct {
	ID, Title, Note, Name string // Name is what is read out in place of the picture
	Legend                []string
	Top, Middle           string
	First, Last           string
	Bars                  []rect
	Rows                  []chartRow
	format                func(float64) string
	least                 float64 // the least top of the scale
}

// rect is a part of a bar, in percent of the plot.
type rect struct {
	Class            string
	X, Y, Wide, High string
}

type chartRow struct {
	Key, Page string
	Values    []string
}

// newBarChart draws the bars of a chart, whose parts value returns for each step.
func newBarChart(t *i18n.Printer, lines []store.StatLine, c barChart, value func(*store.StatLine) (low, high float64)) barChart {
	highest := 0.0
	for i := range lines {
		low, high := value(&lines[i])
		highest = max(highest, low+high)
	}
	c.Name = t.T("%s: %s at most", c.Title, c.format(highest))
	top := roundUp(max(highest, c.least))
	c.Top, c.Middle = c.format(top), c.format(top/2)
	percent := func(x float64) string { return fmt.Sprintf("%.2f%%", x) }
	slot := 100 / float64(max(1, len(lines)))
	for i := range lines {
		low, high := value(&lines[i])
		at, gap, y := float64(i)*slot, slot*0.1, 100.0
		for n, part := range []float64{high, low} { // what went wrong stands at the bottom
			if high := 100 * part / top; part > 0 {
				y -= high
				c.Bars = append(c.Bars, rect{[]string{"second", "first"}[n], percent(at + gap), percent(y), percent(slot - 2*gap), percent(high)})
			}
		}
		day := lines[i].Key
		if hour, err := time.Parse(time.RFC3339, day); err == nil {
			day = hour.Local().Format("01-02 15:04")
		}
		row := chartRow{Key: day, Page: "/runs?from=" + url.QueryEscape(lines[i].Key), Values: []string{c.format(low)}}
		if len(c.Legend) > 1 {
			row.Values = append(row.Values, c.format(high))
		}
		c.Rows = append(c.Rows, row)
	}
	if len(c.Rows) > 0 {
		c.First, c.Last = c.Rows[0].Key, c.Rows[len(c.Rows)-1].Key
	}
	return c
}

// roundUp returns the next number of the series 1, 2, 4, 10, 20, 40 and so on, for the top of a scale.
func roundUp(x float64) float64 {
	step := 0.02
	for i := 0; step < x; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	return step
}

// costChart is the cost of the month so far, its forecast, and the limit.
type costChart struct {
	Spent, Forecast, Limit string
	Note                   string
	Name                   string
	Line, Area, Dots       string // points in a box of 100 × 100
	LimitY                 string
	First, Last            string
	Rows                   []chartRow
}

func newCostChart(t *i18n.Printer, b *store.Budget, now time.Time) costChart {
	dollars := func(amount int64) string { return t.T("$%s", regie.Dollars((amount+5000)/10000*10000)) }
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	end := first.AddDate(0, 1, 0)
	days := end.Sub(first).Hours() / 24
	limit := b.DayCap * int64(days+0.5)
	c := costChart{
		Spent: dollars(b.Month), Forecast: t.T("about %s", dollars(b.MonthForecast)), First: first.Format(time.DateOnly), Last: end.AddDate(0, 0, -1).Format(time.DateOnly),
		Note: t.T("Today %s, about %s at this pace. The month ends at about %s.", dollars(b.Today), dollars(b.DayForecast), dollars(b.MonthForecast)),
	}
	top := float64(max(b.MonthForecast, b.Month, 1)) * 1.15
	if limit > 0 {
		c.Limit, top = t.T("limit %s, %s a day", dollars(limit), dollars(b.DayCap)), max(top, float64(limit)*1.1)
		c.LimitY = fmt.Sprintf("%.2f", 100-100*float64(limit)/top)
	}
	point := func(day float64, amount int64) string {
		return fmt.Sprintf("%.2f,%.2f ", 100*day/days, 100-100*float64(amount)/top)
	}
	today, sum := now.Sub(first).Hours()/24, int64(0)
	c.Line = point(0, 0)
	for _, one := range b.Days {
		day := float64(one.Day % 100)
		c.Line += point(day-1, sum)
		sum += one.Cost
		c.Line += point(min(day, today), sum)
		c.Rows = append(c.Rows, chartRow{Key: fmt.Sprintf("%s-%02.0f", first.Format("2006-01"), day), Values: []string{dollars(one.Cost), dollars(sum)}})
	}
	c.Line += point(today, sum)
	c.Area = c.Line + point(today, 0)
	c.Dots = point(today, sum) + point(days, b.MonthForecast)
	c.Name = strings.Join([]string{t.T("Cost this month"), c.Spent, c.Forecast, c.Limit}, ", ")
	return c
}
