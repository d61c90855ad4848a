package automation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
)

// Parse reads the short form of a schedule. Each may end with its bounds, from 2026-12-01T00:00 and
// until 2027-01-01T00:00:
//
//	every 15m                weekly mon,fri 09:00
//	daily 09:00,18:30        monthly 1,-1 09:00
//	once 2026-12-01T09:00    yearly 02-28 09:00
//	cron 0 9 * * 1-5         0 9 * * 1-5
func Parse(text, zone string) (*regie.Schedule, error) {
	s := &regie.Schedule{Zone: zone}
	fields := strings.Fields(text)
	for n := len(fields); n > 3; n = len(fields) {
		bound, is := map[string]**regie.LocalTime{"from": &s.Start, "until": &s.End}[strings.ToLower(fields[n-2])]
		if !is || *bound != nil {
			break
		}
		at := regie.LocalTime(strings.ToUpper(fields[n-1]))
		*bound, fields = &at, fields[:n-2]
	}
	if len(fields) < 2 || !parseKind(s, fields) {
		return nil, refuse("%q is not a schedule: write one such as every 15m, daily 09:00,18:30, weekly mon,fri 09:00, "+
			"monthly 1,-1 09:00, yearly 02-28 09:00, once 2026-12-01T09:00 or cron 0 9 * * 1-5", text)
	}
	_, err := compile(s)
	return s, err
}

// parseKind reads at least two fields of a schedule. It reports whether they have a known form;
// compile checks the values.
func parseKind(s *regie.Schedule, fields []string) bool {
	kind, days, last := strings.ToLower(fields[0]), strings.ToLower(fields[1]), fields[len(fields)-1]
	switch {
	case kind == "cron":
		s.Cron = strings.Join(fields[1:], " ")
	case len(fields) == 5:
		s.Cron = strings.Join(fields, " ")
	case kind == "once":
		at := regie.LocalTime(strings.ToUpper(strings.Join(fields[1:], "T")))
		s.Once = &at
	case kind == "every" && len(fields) == 2:
		interval, err := time.ParseDuration(last)
		s.EveryMinutes = int(interval / time.Minute)
		return err == nil && interval >= time.Minute && interval%time.Minute == 0
	default:
		s.Period, s.Times = regie.SchedulePeriod(kind), strings.Split(last, ",")
		switch {
		case kind == "daily":
			return len(fields) == 2
		case kind == "weekly":
			s.Weekdays = strings.Split(strings.ReplaceAll(days, "mon-fri", "mon,tue,wed,thu,fri"), ",")
		case kind == "monthly" && json.Unmarshal([]byte("["+days+"]"), &s.Days) != nil:
			return false
		case kind == "yearly":
			s.Dates = strings.Split(days, ",")
		}
		_, known := fieldsOf[s.Period]
		return known && len(fields) == 3
	}
	return true
}

// Format writes a schedule in the short form that Parse reads.
func Format(s *regie.Schedule) string {
	text := formatKind(s)
	if s.Start != nil {
		text += " from " + string(*s.Start)
	}
	if s.End != nil {
		text += " until " + string(*s.End)
	}
	return text
}

func formatKind(s *regie.Schedule) string {
	switch {
	case s.Cron != "":
		return "cron " + s.Cron
	case s.Once != nil:
		return "once " + string(*s.Once)
	case s.EveryMinutes > 0 && s.EveryMinutes%60 == 0:
		return fmt.Sprintf("every %dh", s.EveryMinutes/60)
	case s.EveryMinutes > 0:
		return fmt.Sprintf("every %dm", s.EveryMinutes)
	}
	days := slices.Concat(s.Weekdays, s.Dates) // one of three is set
	for _, day := range s.Days {
		days = append(days, strconv.Itoa(day))
	}
	parts := []string{string(s.Period), strings.Join(days, ","), strings.Join(s.Times, ",")}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// Describe says in words when a valid schedule runs.
func Describe(t *i18n.Printer, s *regie.Schedule) (text string) {
	var days []string
	for _, name := range s.Weekdays {
		days = append(days, nameWeekday(t, slices.Index(weekdays, name)))
	}
	for _, day := range s.Days {
		name := t.T("day %d", day)
		if day == -1 {
			name = t.T("the last day")
		}
		days = append(days, name)
	}
	for _, date := range s.Dates {
		days = append(days, nameDate(t, "2000-"+date))
	}
	on, times := joinWords(t, days), joinWords(t, s.Times)
	switch {
	case s.Cron != "":
		text = t.T("by the cron expression %s", s.Cron)
	case s.Once != nil:
		date, clock, _ := strings.Cut(string(*s.Once), "T")
		text = t.T("once %s %s at %s", nameDate(t, date), date[:4], clock)
	case s.EveryMinutes == 1:
		text = t.T("every minute")
	case s.EveryMinutes == 60:
		text = t.T("every hour")
	case s.EveryMinutes > 0 && s.EveryMinutes%60 == 0:
		text = t.T("every %d hours", s.EveryMinutes/60)
	case s.EveryMinutes > 0:
		text = t.T("every %d minutes", s.EveryMinutes)
	case s.Period == regie.PeriodDaily:
		text = t.T("every day at %s", times)
	case s.Period == regie.PeriodWeekly:
		text = t.T("every %s at %s", on, times)
	case s.Period == regie.PeriodMonthly:
		text = t.T("every month on %s at %s", on, times)
	case s.Period == regie.PeriodYearly:
		text = t.T("every year %s at %s", on, times)
	}
	if s.Start != nil {
		text = t.T("%s, from %s", text, strings.Replace(string(*s.Start), "T", " ", 1))
	}
	if s.End != nil {
		text = t.T("%s, until %s", text, strings.Replace(string(*s.End), "T", " ", 1))
	}
	return text + " (" + s.Zone + ")"
}

// FormatInstant writes an instant as the clock of a zone shows it, with its offset from UTC:
// "Mon 2026-11-30 09:00 +01:00".
func FormatInstant(t *i18n.Printer, at time.Time, zone string) string {
	if location, err := loadZone(zone); err == nil {
		at = at.In(location)
	}
	return nameWeekday(t, int(at.Weekday()))[:3] + at.Format(" 2006-01-02 15:04 -07:00")
}

// joinWords writes "a, b and c".
func joinWords(t *i18n.Printer, words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return t.T("%s and %s", strings.Join(words[:last], ", "), words[last])
}

// nameDate names a day of the year, from a date.
func nameDate(t *i18n.Printer, text string) string {
	date, _ := time.Parse(time.DateOnly, text)
	month := [...]string{
		t.T("January"), t.T("February"), t.T("March"), t.T("April"), t.T("May"), t.T("June"), t.T("July"),
		t.T("August"), t.T("September"), t.T("October"), t.T("November"), t.T("December"),
	}[date.Month()-1]
	if date.Day() == 1 {
		return t.T("on 1 %s", month)
	}
	return t.T("on %s %s", strconv.Itoa(date.Day()), month)
}

// nameWeekday returns a name with a usual abbreviation of three letters, in English and in French.
func nameWeekday(t *i18n.Printer, day int) string {
	return [...]string{
		t.T("Sunday"), t.T("Monday"), t.T("Tuesday"), t.T("Wednesday"), t.T("Thursday"), t.T("Friday"), t.T("Saturday"),
	}[max(0, day)]
}
