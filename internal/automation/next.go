package automation

import (
	"slices"
	"time"

	"github.com/regie-run/regie"
)

// horizonYears bounds the search. 29 February is absent for eight years around 2100.
const horizonYears = 9

// nearby is more than the offset of any zone. No zone changes its offset twice within that time.
// (Zone bounds of package time are wrong on the last day of leap years from 2040 on.)
const nearby = 26 * time.Hour

// Next returns the first instant of a schedule after an instant, in UTC. A series has no instant
// at or before its beginning, seriesFrom. Next returns false after the last one, and for a schedule
// that is not valid.
func Next(s *regie.Schedule, seriesFrom, after time.Time) (time.Time, bool) {
	if runs := NextRuns(s, seriesFrom, after, 1); len(runs) > 0 {
		return runs[0], true
	}
	return time.Time{}, false
}

// NextRuns returns the next n instants of a schedule, or fewer where it ends.
func NextRuns(s *regie.Schedule, seriesFrom, after time.Time, n int) (runs []time.Time) {
	p, err := compile(s)
	for err == nil && len(runs) < n {
		at, ok := p.next(seriesFrom, after)
		if !ok {
			break
		}
		runs, after = append(runs, at), at
	}
	return runs
}

func (p *series) next(seriesFrom, after time.Time) (at time.Time, ok bool) {
	seriesFrom, after = seriesFrom.UTC(), after.UTC() // without the monotonic clock
	if after.Before(seriesFrom) {
		after = seriesFrom
	}
	if after.Before(p.start) {
		after = p.start.Add(-1)
	}
	switch {
	case !p.once.IsZero():
		at = p.once
	case p.every > 0:
		if at = seriesFrom; !p.start.IsZero() {
			at = p.start
		}
		if !at.After(after) {
			at = at.Add(after.Sub(at).Truncate(p.every) + p.every)
		}
	case p.elapsed:
		at = p.nextMinute(after)
	default:
		at = p.nextReading(after)
	}
	if !at.After(after) || !p.end.IsZero() && !at.Before(p.end) {
		return time.Time{}, false
	}
	return at, true
}

// nextReading returns the instant of the first reading that matches and comes after an instant.
// Earlier readings than the clock's have come; in an overlap some later ones have too.
func (p *series) nextReading(after time.Time) (at time.Time) {
	wall := readClock(after, p.zone).Truncate(time.Minute)
	for !at.After(after) {
		if wall = p.findReading(wall.Add(time.Minute)); wall.IsZero() {
			return wall
		}
		at = firstReading(wall, p.zone)
	}
	return at
}

// nextMinute returns the first minute after an instant at which the clock's reading matches. It
// jumps, and near a change of the clock it goes minute by minute.
func (p *series) nextMinute(after time.Time) time.Time {
	limit, step := after.AddDate(horizonYears, 0, 0), time.Minute
	for at := after.Truncate(time.Minute).Add(step); at.Before(limit); at = at.Add(step) {
		wall := readClock(at, p.zone)
		reading := p.findReading(wall)
		wait := reading.Sub(wall)
		if reading.IsZero() || wait <= nearby && readClock(at.Add(wait), p.zone).Equal(reading) {
			return reading.Add(at.Sub(wall))
		}
		step = max(time.Minute, wait-nearby)
	}
	return time.Time{}
}

// findReading returns the first reading from wall on that matches, or zero. Readings are instants
// of UTC.
func (p *series) findReading(wall time.Time) time.Time {
	year, month, day := wall.Date()
	minute := wall.Hour()*60 + wall.Minute()
	for range horizonYears * 366 {
		date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
		matches := p.days>>date.Day()&1 == 1 || p.days&1 == 1 && date.AddDate(0, 0, 1).Day() == 1 ||
			slices.Contains(p.dates, int(date.Month())*100+date.Day())
		weekday := p.weekdays>>date.Weekday()&1 == 1
		matches = matches && weekday || p.eitherDay && (matches || weekday)
		i, _ := slices.BinarySearch(p.minutes, minute)
		if matches && p.months>>date.Month()&1 == 1 && i < len(p.minutes) {
			return date.Add(time.Duration(p.minutes[i]) * time.Minute)
		}
		day, minute = day+1, 0
	}
	return time.Time{}
}

// readClock returns the reading of a zone's clock at an instant.
func readClock(at time.Time, zone *time.Location) time.Time {
	_, offset := at.In(zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// firstReading returns the first instant at which a zone's clock shows a reading or a later one:
// the end of a gap, the first of two in an overlap.
func firstReading(wall time.Time, zone *time.Location) time.Time {
	_, before := wall.Add(-nearby).In(zone).Zone()
	_, behind := wall.Add(nearby).In(zone).Zone()
	at := wall.Add(-time.Duration(max(before, behind)) * time.Second)
	for readClock(at, zone).Before(wall) {
		at = at.Add(time.Minute)
	}
	return at
}
