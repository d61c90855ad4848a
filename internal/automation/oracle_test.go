package automation

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

// minuteWalk is each real minute of a span with what the clock of a zone shows then. The oracle
// walks it, so it knows neither offsets nor the calendar's arithmetic.
type minuteWalk struct {
	at    []time.Time
	shown []int64   // in minutes since 1970
	from  time.Time // the minutes before it only show what the clock has shown
}

func walkMinutes(t *testing.T, zone string, from, to time.Time) *minuteWalk {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	w := &minuteWalk{from: from}
	for at := from.Add(-48 * time.Hour).Truncate(time.Minute); at.Before(to); at = at.Add(time.Minute) {
		in := at.In(location)
		w.at = append(w.at, at)
		w.shown = append(w.shown, time.Date(in.Year(), in.Month(), in.Day(), in.Hour(), in.Minute(), 0, 0, time.UTC).Unix()/60)
	}
	return w
}

// runs returns the instants of a schedule after the walk's beginning. With fixed hours a minute
// runs what its reading and the ones that the clock jumped over ask for, unless the clock has
// shown them before; otherwise its reading counts alone.
func (w *minuteWalk) runs(t *testing.T, s *regie.Schedule) (runs []time.Time) {
	t.Helper()
	if s.EveryMinutes > 0 {
		for at, last := w.from, w.at[len(w.at)-1]; ; {
			if at = at.Add(time.Duration(s.EveryMinutes) * time.Minute); at.After(last) {
				return runs
			}
			runs = append(runs, at)
		}
	}
	times, matchDay := slowMatcher(t, s)
	days := map[int64]bool{}
	matches := func(shown int64) bool {
		if !times[shown%(24*60)] {
			return false
		}
		day := shown / (24 * 60)
		if _, known := days[day]; !known {
			days[day] = matchDay(time.Unix(day*24*60*60, 0).UTC())
		}
		return days[day]
	}
	followsClock := s.Cron != "" && strings.ContainsAny(strings.Fields(s.Cron)[1], "*/")
	highest := w.shown[0]
	for i, at := range w.at {
		due := followsClock && matches(w.shown[i])
		for ; highest < w.shown[i]; highest++ {
			due = due || !followsClock && matches(highest+1)
		}
		if due && at.After(w.from) {
			runs = append(runs, at)
		}
	}
	return runs
}

// slowMatcher returns the minutes of a day and the days of a schedule, from sets and names.
func slowMatcher(t *testing.T, s *regie.Schedule) (times [24 * 60]bool, matchDay func(time.Time) bool) {
	t.Helper()
	for _, text := range s.Times {
		hour, minute, _ := strings.Cut(text, ":")
		times[atoi(t, hour)*60+atoi(t, minute)] = true
	}
	if s.Cron == "" {
		return times, func(at time.Time) bool {
			switch s.Period {
			case regie.PeriodWeekly:
				return slices.Contains(s.Weekdays, strings.ToLower(at.Weekday().String()[:3]))
			case regie.PeriodMonthly:
				last := at.Month() != at.Add(24*time.Hour).Month()
				return slices.Contains(s.Days, at.Day()) || last && slices.Contains(s.Days, -1)
			case regie.PeriodYearly:
				return slices.Contains(s.Dates, at.Format("01-02"))
			}
			return true
		}
	}
	fields := strings.Fields(s.Cron)
	months := []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	minute, hour := slowField(t, fields[0], 0, 59, nil), slowField(t, fields[1], 0, 23, nil)
	day, month := slowField(t, fields[2], 1, 31, nil), slowField(t, fields[3], 1, 12, months)
	weekday := slowField(t, fields[4], 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"})
	both := !strings.Contains(fields[2], "*") && !strings.Contains(fields[4], "*")
	for i := range times {
		times[i] = hour[i/60] && minute[i%60]
	}
	return times, func(at time.Time) bool {
		byDay, byWeekday := day[at.Day()], weekday[at.Weekday()] || at.Weekday() == time.Sunday && weekday[7]
		if both {
			return month[at.Month()] && (byDay || byWeekday)
		}
		return month[at.Month()] && byDay && byWeekday
	}
}

// slowField expands a field of a cron expression value by value.
func slowField(t *testing.T, field string, low, high int, names []string) (set [64]bool) {
	t.Helper()
	number := func(text string) int {
		if i := slices.Index(names, text); i >= 0 {
			return i + low
		}
		return atoi(t, text)
	}
	for item := range strings.SplitSeq(field, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		first, last, ranged := strings.Cut(span, "-")
		from, to, step := low, high, 1
		if stepped {
			step = atoi(t, stepText)
		}
		if span != "*" {
			from = number(first)
			switch {
			case ranged:
				to = number(last)
			case !stepped:
				to = from
			}
		} else if high == 7 {
			to = 6
		}
		for value := from; value <= to; value += step {
			set[value] = true
		}
	}
	return set
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
