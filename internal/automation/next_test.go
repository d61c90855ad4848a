package automation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

// parse returns a schedule from its short form.
func parse(tb testing.TB, text, zone string) *regie.Schedule {
	tb.Helper()
	s, err := Parse(text, zone)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// instant reads "2026-03-29T01:30Z" or one with an offset.
func instant(tb testing.TB, text string) time.Time {
	tb.Helper()
	at, err := time.Parse("2006-01-02T15:04Z07:00", text)
	if err != nil {
		tb.Fatal(err)
	}
	return at.UTC()
}

// showRuns writes the next runs in the schedule's zone.
func showRuns(t *testing.T, s *regie.Schedule, after time.Time, n int) string {
	t.Helper()
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, at := range NextRuns(s, after, after, n) {
		shown = append(shown, at.In(zone).Format("01-02 15:04 -07:00"))
	}
	return strings.Join(shown, ", ")
}

func TestNext_ClockChanges(t *testing.T) {
	for _, c := range []struct{ name, schedule, zone, after, want string }{
		{"gap, fixed", "daily 02:30", "Europe/Paris", "2026-03-28T00:00Z", "03-28 02:30 +01:00, 03-29 03:00 +02:00, 03-30 02:30 +02:00"},
		{"gap, cron fixed", "30 2 * * *", "Europe/Paris", "2026-03-28T00:00Z", "03-28 02:30 +01:00, 03-29 03:00 +02:00, 03-30 02:30 +02:00"},
		{"gap, two readings in it and its end", "daily 02:00,02:30,03:00", "Europe/Paris", "2026-03-29T00:00Z", "03-29 03:00 +02:00, 03-30 02:00 +02:00"},
		{"overlap, fixed", "daily 02:30", "Europe/Paris", "2026-10-24T00:00Z", "10-24 02:30 +02:00, 10-25 02:30 +02:00, 10-26 02:30 +01:00"},
		{"overlap, between the two", "daily 02:30", "Europe/Paris", "2026-10-25T01:15Z", "10-26 02:30 +01:00"},
		{"overlap, minutes of a fixed hour", "*/20 2 * * *", "Europe/Paris", "2026-10-25T00:00Z", "10-25 02:20 +02:00, 10-25 02:40 +02:00, 10-26 02:00 +01:00"},
		{"overlap, fixed range of hours", "30 1-3 * * *", "Europe/Paris", "2026-10-24T23:00Z", "10-25 01:30 +02:00, 10-25 02:30 +02:00, 10-25 03:30 +01:00"},
		{"overlap, each hour", "30 * * * *", "Europe/Paris", "2026-10-24T23:00Z", "10-25 01:30 +02:00, 10-25 02:30 +02:00, 10-25 02:30 +01:00, 10-25 03:30 +01:00"},
		{"gap, each hour", "30 * * * *", "Europe/Paris", "2026-03-29T00:00Z", "03-29 01:30 +01:00, 03-29 03:30 +02:00"},
		{"gap, step of hours", "0 */2 * * *", "Europe/Paris", "2026-03-28T22:30Z", "03-29 00:00 +01:00, 03-29 04:00 +02:00"},
		{"overlap, step of hours", "0 */2 * * *", "Europe/Paris", "2026-10-24T23:00Z", "10-25 02:00 +02:00, 10-25 02:00 +01:00, 10-25 04:00 +01:00"},
		{"gap, elapsed", "every 30m", "Europe/Paris", "2026-03-29T00:00Z", "03-29 01:30 +01:00, 03-29 03:00 +02:00, 03-29 03:30 +02:00"},
		{"gap of 30 minutes", "daily 02:15", "Australia/Lord_Howe", "2026-10-03T00:00Z", "10-04 02:30 +11:00, 10-05 02:15 +11:00"},
		{"overlap of 30 minutes", "daily 01:45", "Australia/Lord_Howe", "2026-04-04T00:00Z", "04-05 01:45 +11:00, 04-06 01:45 +10:30"},
		{"gap at midnight", "daily 00:00", "America/Havana", "2026-03-07T12:00Z", "03-08 01:00 -04:00, 03-09 00:00 -04:00"},
		{"overlap into the day before", "daily 23:30", "America/St_Johns", "2010-11-06T12:00Z", "11-06 23:30 -02:30, 11-07 23:30 -03:30"},
		{"a day that is missing", "weekly fri 09:00", "Pacific/Apia", "2011-12-24T00:00Z", "12-31 00:00 +14:00, 01-06 09:00 +14:00"},
		{"the end of a leap year after 2037", "0 0 31 12 *", "Europe/Paris", "2040-12-30T12:00Z", "12-31 00:00 +01:00, 12-31 00:00 +01:00"},
		{"the end of a leap year, each hour", "0 * 31 12 *", "Europe/Paris", "2040-12-31T21:30Z", "12-31 23:00 +01:00, 12-31 00:00 +01:00"},
		{"once in a gap", "once 2026-03-29T02:30", "Europe/Paris", "2026-01-01T00:00Z", "03-29 03:00 +02:00"},
		{"once in an overlap", "once 2026-10-25T02:30", "Europe/Paris", "2026-01-01T00:00Z", "10-25 02:30 +02:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := showRuns(t, parse(t, c.schedule, c.zone), instant(t, c.after), strings.Count(c.want, ",")+1)
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNext_Calendar(t *testing.T) {
	for _, c := range []struct{ name, schedule, after, want string }{
		{"strictly after", "daily 09:00", "2026-01-01T09:00Z", "01-02 09:00 +00:00"},
		{"day 31", "monthly 31 09:00", "2026-01-01T00:00Z", "01-31 09:00 +00:00, 03-31 09:00 +00:00, 05-31 09:00 +00:00"},
		{"the last day", "monthly 1,-1 09:00", "2028-02-10T00:00Z", "02-29 09:00 +00:00, 03-01 09:00 +00:00, 03-31 09:00 +00:00"},
		{"leap day across 2100", "yearly 02-29 09:00", "2095-01-01T00:00Z", "02-29 09:00 +00:00, 02-29 09:00 +00:00"},
		{"day or weekday", "0 0 13 * 5", "2026-02-01T00:00Z", "02-06 00:00 +00:00, 02-13 00:00 +00:00, 02-20 00:00 +00:00"},
		{"day and any weekday", "0 0 13 * *", "2026-02-01T00:00Z", "02-13 00:00 +00:00, 03-13 00:00 +00:00"},
		{"step of days and a weekday", "0 0 */2 * 1", "2026-02-01T00:00Z", "02-09 00:00 +00:00, 02-23 00:00 +00:00"},
		{"Sunday as 7", "0 0 * * 7", "2026-02-01T00:00Z", "02-08 00:00 +00:00"},
		{"Sunday as 0", "0 0 * * 0", "2026-02-01T00:00Z", "02-08 00:00 +00:00"},
		{"names", "0 0 * FEB Mon", "2026-01-01T00:00Z", "02-02 00:00 +00:00, 02-09 00:00 +00:00"},
		{"several times", "weekly fri 09:00,18:30", "2026-01-02T09:00Z", "01-02 18:30 +00:00, 01-09 09:00 +00:00"},
		{"weekdays", "weekly mon-fri 09:00", "2026-01-01T09:00Z", "01-02 09:00 +00:00, 01-05 09:00 +00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := showRuns(t, parse(t, c.schedule, "UTC"), instant(t, c.after), strings.Count(c.want, ",")+1)
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNext_Bounds(t *testing.T) {
	from, start, end := instant(t, "2026-01-01T10:07Z").Add(1500*time.Millisecond), regie.LocalTime("2026-01-03T09:00"), regie.LocalTime("2026-01-04T09:00")
	for _, c := range []struct {
		name     string
		schedule regie.Schedule
		want     []string
	}{
		{"interval from the series", regie.Schedule{EveryMinutes: 720}, []string{"2026-01-01T22:07Z", "2026-01-02T10:07Z", "2026-01-02T22:07Z"}},
		{"interval from the start", regie.Schedule{EveryMinutes: 720, Start: &start}, []string{"2026-01-03T09:00Z", "2026-01-03T21:00Z", "2026-01-04T09:00Z"}},
		{"interval to the end", regie.Schedule{EveryMinutes: 720, Start: &start, End: &end}, []string{"2026-01-03T09:00Z", "2026-01-03T21:00Z"}},
		{"times from the start", regie.Schedule{Period: "daily", Times: []string{"09:00"}, Start: &start}, []string{"2026-01-03T09:00Z", "2026-01-04T09:00Z", "2026-01-05T09:00Z"}},
		{"times to the end", regie.Schedule{Period: "daily", Times: []string{"09:00"}, End: &end}, []string{"2026-01-02T09:00Z", "2026-01-03T09:00Z"}},
		{"once before the start", regie.Schedule{Once: &start, Start: &end}, nil},
		{"once at the start", regie.Schedule{Once: &start, Start: &start}, []string{"2026-01-03T09:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.schedule.Zone = "UTC"
			var got []string
			for _, at := range NextRuns(&c.schedule, from, time.Time{}, 3) {
				got = append(got, at.Format("2006-01-02T15:04Z07:00"))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	if at, ok := Next(&regie.Schedule{Cron: "not", Zone: "UTC"}, from, from); ok || !at.IsZero() {
		t.Errorf("an invalid schedule runs at %s", at)
	}
}

// TestNext_AgreesWithMinuteWalk compares a year of each zone with the oracle: fixed schedules, and
// made-up ones.
func TestNext_AgreesWithMinuteWalk(t *testing.T) {
	for _, zone := range []struct {
		name string
		year int
	}{
		{"Europe/Paris", 2026},
		{"America/New_York", 2026},
		{"Asia/Kolkata", 2026},
		{"Australia/Lord_Howe", 2026},
		{"America/St_Johns", 2010}, // its clock changed at 00:01
		{"Pacific/Apia", 2011},     // it has no 30 December
		{"America/Havana", 2027},   // its clock changes at midnight
	} {
		t.Run(zone.name, func(t *testing.T) {
			t.Parallel()
			from := time.Date(zone.year, 1, 1, 0, 0, 0, 0, time.UTC)
			walk := walkMinutes(t, zone.name, from, from.AddDate(1, 0, 2))
			texts := []string{
				"every 7m", "every 25h", "daily 00:00,00:30,01:45,02:00,02:30,23:30", "weekly sun,sat 00:15,01:30,02:15", "monthly 31,-1 02:00",
				"yearly 02-28,03-29,10-25 02:30", "* * * * *", "*/15 * * * *", "30 * * * *", "0 */2 * * *", "15,45 1-3 * * *",
				"*/10 2 * * *", "0 0-23/3 * * *", "30 2 1,15 * 0", "0 0 */2 * 1", "59 23 31 12 *",
			}
			random := rand.New(rand.NewPCG(uint64(zone.year), uint64(len(zone.name))))
			for range 4 {
				texts = append(texts, makeUpCron(random))
			}
			for _, text := range texts {
				compareYear(t, walk, parse(t, text, zone.name), text, random)
			}
		})
	}
}

func makeUpCron(random *rand.Rand) string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	return strings.Join([]string{
		pick("*", "*/7", "0", "5,35", "10-50/20", "59"), pick("*", "*/2", "2", "1-3", "0,2,23", "1/5", "0-23"),
		pick("*", "*", "1,15", "*/5", "31", "25-31"), pick("*", "*", "3,10", "*/2", "mar-apr", "sep-dec"),
		pick("*", "*", "mon-fri", "0", "sat,7", "*/3"),
	}, " ")
}

// compareYear walks a schedule with Next, and asks it again at made-up instants.
func compareYear(t *testing.T, walk *minuteWalk, s *regie.Schedule, text string, random *rand.Rand) {
	t.Helper()
	p, err := compile(s)
	if err != nil {
		t.Fatal(err)
	}
	want, to := walk.runs(t, s), walk.at[len(walk.at)-1]
	var got []time.Time
	for at, ok := p.next(walk.from, walk.from); ok && !at.After(to); at, ok = p.next(walk.from, at) {
		got = append(got, at)
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !got[i].Equal(want[i]) {
			t.Errorf("%s: run %d of %d and %d differs: %v, want %v", text, i, len(got), len(want), at(got, i), at(want, i))
			return
		}
	}
	for range 200 {
		after := walk.from.Add(time.Duration(random.Int64N(int64(360 * 24 * time.Hour))))
		next, ok := Next(s, walk.from, after)
		i, found := slices.BinarySearchFunc(want, after, time.Time.Compare)
		if found {
			i++
		}
		if i < len(want) && (!ok || !next.Equal(want[i])) {
			t.Errorf("%s after %s: %s, want %s", text, after, next, want[i])
			return
		}
	}
}

func at(runs []time.Time, i int) string {
	if i >= len(runs) {
		return "none"
	}
	return runs[i].Format(time.RFC3339)
}

// TestNext_NeverComes shows that schedules without a run give up.
func TestNext_NeverComes(t *testing.T) {
	for _, text := range []string{
		"0 0 30 2 *", "* * 31 2,4,6,9,11 *", "0 * 30 2 *",
		"30 2-2/1 25-31/1 3 */7", // always in the gap of Paris
	} {
		if at, ok := Next(parse(t, text, "Europe/Paris"), time.Time{}, instant(t, "2026-01-01T00:00Z")); ok {
			t.Errorf("%s runs at %s", text, at)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{"cron 0 9 * * 1-5", "cron */5 * * * *", "daily 09:00,18:30", "yearly 02-29 09:00", "every 15m"} {
		b.Run(strings.ReplaceAll(text, " ", "_"), func(b *testing.B) {
			s, from := parse(b, text, "Europe/Paris"), instant(b, "2026-03-29T00:00Z")
			for b.Loop() {
				if _, ok := Next(s, from, from); !ok {
					b.Fatal(fmt.Sprint(text, " never comes"))
				}
			}
		})
	}
}
