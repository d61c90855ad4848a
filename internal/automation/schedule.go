package automation

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/regie-run/regie"
)

var (
	weekdays   = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	// cronText excludes what the library parses leniently: "1,,2", "*-5", "?", a zone.
	cronText = regexp.MustCompile(`^(?:(?:\*|\w+(?:-\w+)?)(?:/\d+)?(?:[ ,]|$))+$`)
	// sundayAsSeven is what the library knows as 0 only.
	sundayAsSeven = regexp.MustCompile(`([ ,])7$`)
	// fieldsOf says which of times, weekdays, days and dates a schedule has.
	fieldsOf = map[regie.SchedulePeriod][4]bool{
		"": {}, regie.PeriodDaily: {true}, regie.PeriodWeekly: {true, true},
		regie.PeriodMonthly: {true, false, true}, regie.PeriodYearly: {true, false, false, true},
	}
)

// series is a schedule prepared for the walk. It has once, every, or the rest as a calendar.
type series struct {
	zone               *time.Location
	start, end, once   time.Time // zero: none
	every              time.Duration
	minutes            []int  // of a day that matches, in order
	days               uint32 // a mask; bit 0 is the last day of a month
	dates              []int  // of a yearly schedule, as 228, instead of days
	months             uint16
	weekdays           uint8
	eitherDay, elapsed bool // a day or a weekday suffices; each minute of the clock counts
}

func refuse(format string, args ...any) error {
	return regie.Errorf(regie.CodeBadRequest, format, args...)
}

// Validate returns BAD_REQUEST for a schedule that is malformed or has no run after now.
func Validate(s *regie.Schedule, now time.Time) error {
	p, err := compile(s)
	if err == nil {
		if _, ok := p.next(now, now); !ok {
			err = refuse("the schedule has no run after now: it is over, ends before it starts, or names days that do not exist")
		}
	}
	return err
}

// compile checks a schedule without regard to the time, and prepares it.
func compile(s *regie.Schedule) (*series, error) {
	err := checkShape(s)
	if err != nil {
		return nil, err
	}
	zone, err := loadZone(s.Zone)
	if err != nil {
		return nil, err
	}
	resolve := func(local *regie.LocalTime) (at time.Time) {
		if local != nil {
			layout := "2006-01-02T15:04"
			if len(*local) > len(layout) {
				layout += ":05"
			}
			wall, malformed := time.Parse(layout, string(*local))
			if malformed != nil {
				err = refuse("%q is not a date with a time: write it like 2026-12-01T09:00", string(*local))
			}
			at = firstReading(wall, zone)
		}
		return at
	}
	p := &series{zone: zone, start: resolve(s.Start), end: resolve(s.End), once: resolve(s.Once)}
	p.every = time.Duration(s.EveryMinutes) * time.Minute
	switch {
	case err != nil:
	case s.Cron != "":
		err = p.setCron(s.Cron)
	case s.Period != "":
		err = p.setPeriod(s)
	}
	return p, err
}

// checkShape refuses more or less than one kind, and fields that the kind does not have.
func checkShape(s *regie.Schedule) error {
	kinds := fmt.Sprint(s.Cron != "", s.EveryMinutes != 0, s.Once != nil, s.Period != "")
	fields, known := fieldsOf[s.Period]
	switch {
	case strings.Count(kinds, "true") != 1:
		return refuse("a schedule has exactly one of cron, every_minutes, once and period")
	case s.EveryMinutes < 0 || s.EveryMinutes > 527040:
		return refuse("every_minutes is a number from 1 to 527040, which is a year")
	case !known:
		return refuse("%q is not a period: use daily, weekly, monthly or yearly", string(s.Period))
	case fields != [4]bool{len(s.Times) > 0, len(s.Weekdays) > 0, len(s.Days) > 0, len(s.Dates) > 0}:
		return refuse("a period has times; weekly has weekdays too, monthly has days, yearly has dates; " +
			"other schedules have none of these")
	}
	return nil
}

// setPeriod prepares a daily, weekly, monthly or yearly schedule.
func (p *series) setPeriod(s *regie.Schedule) error {
	for i, text := range s.Times {
		at, err := time.Parse("15:04", text)
		if err != nil {
			return refuse("%q is not a time of day: write one such as 09:30", text)
		}
		p.minutes = append(p.minutes, at.Hour()*60+at.Minute())
		if i > 0 && p.minutes[i] <= p.minutes[i-1] {
			return refuse("the times are not in order, or one is repeated: %s", strings.Join(s.Times, ", "))
		}
	}
	for _, name := range s.Weekdays {
		i := slices.Index(weekdays, name)
		if i < 0 {
			return refuse("%q is not a weekday: use mon, tue, wed, thu, fri, sat or sun", name)
		}
		p.weekdays |= 1 << i
	}
	for _, day := range s.Days {
		if day < -1 || day == 0 || day > 31 {
			return refuse("%d is not a day of the month: use 1 to 31, or -1 for the last day", day)
		}
		p.days |= 1 << max(day, 0)
	}
	for _, text := range s.Dates {
		date, err := time.Parse(time.DateOnly, "2000-"+text) // a leap year
		if err != nil {
			return refuse("%q is not a date of the year: write month and day, such as 02-28", text)
		}
		p.dates = append(p.dates, int(date.Month())*100+date.Day())
	}
	p.months, p.weekdays = 1<<13-1, cmp.Or(p.weekdays, 1<<7-1)
	if s.Period != regie.PeriodYearly {
		p.days = cmp.Or(p.days, 1<<32-2)
	}
	return nil
}

// setCron prepares a cron expression by the rules of crontab(5).
func (p *series) setCron(text string) error {
	fields := strings.Fields(text)
	valid := sundayAsSeven.ReplaceAllString(strings.Join(fields, " "), "${1}0")
	if len(text) > 200 || !cronText.MatchString(valid) {
		valid = ""
	}
	parsed, _ := cronParser.Parse(valid)
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return refuse("%q is not a cron expression: write minute, hour, day, month and weekday, such as 0 9 * * 1-5", text)
	}
	for minute := range 24 * 60 {
		if spec.Hour>>(minute/60)&1 == 1 && spec.Minute>>(minute%60)&1 == 1 {
			p.minutes = append(p.minutes, minute)
		}
	}
	p.days, p.months, p.weekdays = uint32(spec.Dom), uint16(spec.Month), uint8(spec.Dow) // without the library's bit 63
	p.elapsed = strings.ContainsAny(fields[1], "*/")
	p.eitherDay = !strings.Contains(fields[2], "*") && !strings.Contains(fields[4], "*")
	return nil
}

// zones keeps the zones that loadZone has read.
var zones sync.Map

// loadZone returns a zone of the IANA database, which package config embeds.
func loadZone(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil //nolint:errcheck,forcetypeassert // it stores nothing else
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == regie.LocalZone {
		return nil, refuse("%q is not a time zone: use a name such as Europe/Paris or UTC", name)
	}
	zones.Store(name, zone)
	return zone, nil
}
