package store

import (
	"time"

	"github.com/regie-run/regie"
)

// StatFilter selects a period of the roll-ups, and how they are grouped.
type StatFilter struct {
	Root  string `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	From  string `query:"from" doc:"The first day, as 2026-11-21 in the server's zone, or a time of RFC 3339; seven days back where it is left out."`
	To    string `query:"to" doc:"The last day, or the time of the end; now where it is left out."`
	By    string `query:"by" enum:"day hour" doc:"The steps of the series; days where it is left out."`
	Group string `query:"group" enum:"agent model workspace" doc:"What the groups are; none where it is left out. Tools always have their own list."`
}

// RollUp is one row of the roll-ups: the rounds of an hour that ended for one reason.
type RollUp struct {
	Hour  time.Time
	Group string
	End   regie.RoundEnd
	RoundCounts
}

// RoundCounts add up what rounds did.
type RoundCounts struct {
	Rounds int64 `json:"rounds"`
	// Relaunches are the model calls after the first one of each round, Calls the tool calls, each
	// with one result.
	Relaunches int64 `json:"relaunches"`
	Calls      int64 `json:"calls"`
	// Duplicates and Loops are calls that were caught and not run.
	Duplicates int64 `json:"duplicates"`
	Loops      int64 `json:"loops"`
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_tokens"` // of the input, from a provider's cache
	// CacheHits are answers of the response cache, History the largest prompts of the rounds.
	CacheHits int64 `json:"cache_hits"`
	History   int64 `json:"history_tokens"`
	Cost      int64 `json:"cost_microusd"`
}

// Fields returns the counters in the order of their columns.
func (c *RoundCounts) Fields() [11]*int64 {
	return [...]*int64{
		&c.Rounds, &c.Relaunches, &c.Calls, &c.Duplicates, &c.Loops, &c.Input, &c.Output, &c.CacheRead, &c.CacheHits,
		&c.History, &c.Cost,
	}
}

// Add adds the counters of others.
func (c *RoundCounts) Add(others *RoundCounts) {
	sums := c.Fields()
	for i, field := range others.Fields() {
		*sums[i] += *field
	}
}

// StatLine is the counters of a step of time or of a group, with its rounds by end reason.
type StatLine struct {
	Key string `json:"key"`
	RoundCounts
	Ends map[regie.RoundEnd]int64 `json:"ends"`
}

// Add adds a row.
func (l *StatLine) Add(row *RollUp) {
	if l.RoundCounts.Add(&row.RoundCounts); l.Ends == nil {
		l.Ends = map[regie.RoundEnd]int64{}
	}
	l.Ends[row.End] += row.Rounds
}

// EndedWell returns how many rounds came to their end.
func (l *StatLine) EndedWell() int64 {
	return l.Ends[regie.EndAnswered] + l.Ends[regie.EndCompleted] + l.Ends[regie.EndClientTools]
}

// ToolCount counts the calls of a tool that ran, of one duration bucket.
type ToolCount struct {
	Tool                      string
	Bucket                    int
	Calls, Succeeded, Unknown int64
}

// ToolStat is the calls of a tool that ran. The percentiles are of a histogram with the bounds 1,
// 2, 5, 10, 20, 50 µs and so on.
type ToolStat struct {
	Tool      string `json:"tool"`
	Calls     int64  `json:"calls"`
	Succeeded int64  `json:"succeeded"`
	Unknown   int64  `json:"unknown"` // their outcome
	P50       int64  `json:"p50_us"`
	P95       int64  `json:"p95_us"`
}

// Failed returns how many calls failed.
func (t ToolStat) Failed() int64 { return t.Calls - t.Succeeded - t.Unknown }

// Success returns the share of calls that succeeded, in percent.
func (t ToolStat) Success() int64 { return 100 * t.Succeeded / max(1, t.Calls) }

// DayCost is what a day cost; Day is 20261122.
type DayCost struct {
	Day  int64 `json:"day"`
	Cost int64 `json:"cost_microusd"`
}

// Budget is the cost of this day and this month with linear forecasts.
type Budget struct {
	Days          []DayCost `json:"days"` // of the month
	Today         int64     `json:"today_microusd"`
	DayForecast   int64     `json:"day_forecast_microusd"`
	DayCap        int64     `json:"day_cap_microusd,omitempty"`
	Month         int64     `json:"month_microusd"`
	MonthForecast int64     `json:"month_forecast_microusd"`
}

// Waiting counts what waits, and since when the oldest of it does.
type Waiting struct {
	Count int       `json:"count"`
	Since time.Time `json:"since,omitzero"`
}

// Age returns for how long the oldest has waited.
func (w Waiting) Age(now time.Time) time.Duration {
	if w.Since.IsZero() {
		return 0
	}
	return max(0, now.Sub(w.Since))
}

// Alert is an alert that holds now.
type Alert struct {
	Name     string         `json:"name"`
	Severity string         `json:"severity"`
	What     regie.Sentence `json:"what"`
	Do       regie.Sentence `json:"do"`
	Page     string         `json:"page"` // of the web pages, where a person acts on it
}

// StatReport is what rounds did in a period, and what waits now.
type StatReport struct {
	From   time.Time  `json:"from"`
	To     time.Time  `json:"to"`
	Total  StatLine   `json:"total"`
	Before int64      `json:"rounds_before"` // in the period of the same length in front of it
	Series []StatLine `json:"series"`
	Groups []StatLine `json:"groups"`
	Tools  []ToolStat `json:"tools"`
	// Approvals, Questions and Queue wait now.
	Approvals Waiting `json:"approvals"`
	Questions Waiting `json:"questions"`
	Queue     Waiting `json:"queue"`
	Unknown   int     `json:"-"` // calls without a known outcome
	Budget    Budget  `json:"budget"`
	Alerts    []Alert `json:"alerts"`
}
