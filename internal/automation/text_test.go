package automation

import (
	"reflect"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
)

func TestParse(t *testing.T) {
	local := func(text regie.LocalTime) *regie.LocalTime { return &text }
	for _, c := range []struct {
		text, format string // an empty format is the text
		want         regie.Schedule
	}{
		{"every 15m", "", regie.Schedule{EveryMinutes: 15}},
		{"every 2h", "", regie.Schedule{EveryMinutes: 120}},
		{"Every 1h30m", "every 90m", regie.Schedule{EveryMinutes: 90}},
		{"daily 09:00", "", regie.Schedule{Period: "daily", Times: []string{"09:00"}}},
		{"daily 09:00,18:30", "", regie.Schedule{Period: "daily", Times: []string{"09:00", "18:30"}}},
		{"  Weekly  MON,fri   9:00", "weekly mon,fri 9:00", regie.Schedule{Period: "weekly", Weekdays: []string{"mon", "fri"}, Times: []string{"9:00"}}},
		{"weekly mon-fri,sun 09:00", "weekly mon,tue,wed,thu,fri,sun 09:00", regie.Schedule{
			Period: "weekly", Weekdays: []string{"mon", "tue", "wed", "thu", "fri", "sun"}, Times: []string{"09:00"},
		}},
		{"monthly 1,-1 09:00", "", regie.Schedule{Period: "monthly", Days: []int{1, -1}, Times: []string{"09:00"}}},
		{"yearly 02-28,12-01 09:00", "", regie.Schedule{Period: "yearly", Dates: []string{"02-28", "12-01"}, Times: []string{"09:00"}}},
		{"once 2026-12-01T09:00", "", regie.Schedule{Once: local("2026-12-01T09:00")}},
		{"once 2026-12-01 09:00", "once 2026-12-01T09:00", regie.Schedule{Once: local("2026-12-01T09:00")}},
		{"cron 0 9 * * 1-5", "", regie.Schedule{Cron: "0 9 * * 1-5"}},
		{"daily 09:00 from 2026-12-01T00:00 until 2027-01-01T00:00", "", regie.Schedule{
			Period: "daily", Times: []string{"09:00"}, Start: local("2026-12-01T00:00"), End: local("2027-01-01T00:00"),
		}},
		{"0 9 * * 1 until 2027-01-01t00:00", "cron 0 9 * * 1 until 2027-01-01T00:00", regie.Schedule{Cron: "0 9 * * 1", End: local("2027-01-01T00:00")}},
		{"0 9 * * MON-FRI", "cron 0 9 * * MON-FRI", regie.Schedule{Cron: "0 9 * * MON-FRI"}},
	} {
		t.Run(c.text, func(t *testing.T) {
			c.want.Zone = "Europe/Paris"
			if c.format == "" {
				c.format = c.text
			}
			got := parse(t, c.text, "Europe/Paris")
			if !reflect.DeepEqual(*got, c.want) || Format(got) != c.format {
				t.Errorf("%+v, as %q", *got, Format(got))
			}
			if again := parse(t, Format(got), "Europe/Paris"); !reflect.DeepEqual(again, got) {
				t.Errorf("%q is read as %+v", Format(got), *again)
			}
		})
	}
}

func TestParse_Errors(t *testing.T) {
	const form = `is not a schedule: write one such as every 15m, daily 09:00,18:30`
	for _, c := range []struct{ text, want string }{
		{"", form},
		{"daily", form},
		{"now", form},
		{"daily mon 09:00", form},
		{"weekly 09:00", form},
		{"monthly first 09:00", form},
		{"monthly 1,2] 09:00", form},
		{"fortnightly mon 09:00", form},
		{"every day", form},
		{"every 30s", form},
		{"every 90s", form},
		{"every -1h", form},
		{"every 5 minutes", form},
		{"every 99999h", "from 1 to 527040"},
		{"daily 25:00", `"25:00" is not a time of day`},
		{"daily 18:30,09:00", "not in order"},
		{"weekly lundi 09:00", `"lundi" is not a weekday`},
		{"monthly 32 09:00", "32 is not a day of the month"},
		{"yearly 02-30 09:00", `"02-30" is not a date of the year`},
		{"daily 09:00 until tomorrow", `"TOMORROW" is not a date with a time`},
		{"daily 09:00 until 2027-01-01T00:00 until 2028-01-01T00:00", form},
		{"once tomorrow", `"TOMORROW" is not a date with a time`},
		{"cron 0 9 * *", "is not a cron expression"},
		{"0 25 * * *", "is not a cron expression"},
	} {
		t.Run(c.text, func(t *testing.T) {
			_, err := Parse(c.text, "UTC")
			if err == nil || !strings.Contains(err.Error(), c.want) || regie.CodeOf(err) != regie.CodeBadRequest {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := Parse("daily 09:00", "Nowhere"); err == nil || !strings.Contains(err.Error(), "not a time zone") {
		t.Errorf("an unknown zone: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct{ text, english, french string }{
		{"every 1m", "every minute (UTC)", "toutes les minutes (UTC)"},
		{"every 60m", "every hour (UTC)", "toutes les heures (UTC)"},
		{"every 90m", "every 90 minutes (UTC)", "toutes les 90 minutes (UTC)"},
		{"every 2h", "every 2 hours (UTC)", "toutes les 2 heures (UTC)"},
		{"daily 09:00", "every day at 09:00 (UTC)", "tous les jours à 09:00 (UTC)"},
		{"daily 09:00,12:00,18:30", "every day at 09:00, 12:00 and 18:30 (UTC)", "tous les jours à 09:00, 12:00 et 18:30 (UTC)"},
		{"weekly mon,fri 09:00", "every Monday and Friday at 09:00 (UTC)", "chaque lundi et vendredi à 09:00 (UTC)"},
		{"monthly 2,-1 09:00", "every month on day 2 and the last day at 09:00 (UTC)", "chaque mois, le 2 et le dernier jour à 09:00 (UTC)"},
		{"yearly 02-28,05-01 09:00", "every year on 28 February and on 1 May at 09:00 (UTC)", "chaque année, le 28 février et le 1er mai à 09:00 (UTC)"},
		{"once 2026-12-01T09:00", "once on 1 December 2026 at 09:00 (UTC)", "une fois, le 1er décembre 2026 à 09:00 (UTC)"},
		{"0 9 * * 1-5", "by the cron expression 0 9 * * 1-5 (UTC)", "selon l'expression cron 0 9 * * 1-5 (UTC)"},
	} {
		s := parse(t, c.text, "UTC")
		if english, french := describeBoth(t, s); english != c.english || french != c.french {
			t.Errorf("%s: %q, %q", c.text, english, french)
		}
	}
	s, start, end := parse(t, "every 15m", "Europe/Paris"), regie.LocalTime("2026-12-01T09:00"), regie.LocalTime("2027-01-01T00:00")
	s.Start, s.End = &start, &end
	english, french := describeBoth(t, s)
	if english != "every 15 minutes, from 2026-12-01 09:00, until 2027-01-01 00:00 (Europe/Paris)" ||
		french != "toutes les 15 minutes, à partir du 2026-12-01 09:00, jusqu'au 2027-01-01 00:00 (Europe/Paris)" {
		t.Errorf("%q, %q", english, french)
	}
}

func describeBoth(t *testing.T, s *regie.Schedule) (english, french string) {
	t.Helper()
	english, french = Describe(i18n.New("en"), s), Describe(i18n.New("fr"), s)
	if strings.HasPrefix(english, " ") || strings.Contains(english+french, "%!") {
		t.Errorf("%+v is described as %q and %q", *s, english, french)
	}
	return english, french
}

func TestFormatInstant(t *testing.T) {
	at := instant(t, "2026-11-30T08:00Z")
	for _, c := range []struct{ lang, zone, want string }{
		{"en", "Europe/Paris", "Mon 2026-11-30 09:00 +01:00"},
		{"fr", "Europe/Paris", "lun 2026-11-30 09:00 +01:00"},
		{"en", "America/St_Johns", "Mon 2026-11-30 04:30 -03:30"},
		{"en", "UTC", "Mon 2026-11-30 08:00 +00:00"},
		{"en", "Nowhere", "Mon 2026-11-30 08:00 +00:00"},
	} {
		if got := FormatInstant(i18n.New(c.lang), at, c.zone); got != c.want {
			t.Errorf("%s in %s: %q, want %q", c.zone, c.lang, got, c.want)
		}
	}
}

// FuzzParseSchedule reads back what Format writes of each schedule that Parse accepts.
func FuzzParseSchedule(f *testing.F) {
	for _, seed := range []string{
		"every 15m", "daily 9:00,18:30", "weekly mon-fri 09:00", "monthly 1,-1 09:00", "yearly 02-29 09:00", "once 2026-12-01T09:00",
		"cron */5 1-3 * JAN 7", "0 9 * * 5-7", "monthly 1],[2 09:00", "every 1h1m1s",
	} {
		f.Add(seed)
	}
	now := instant(f, "2026-03-28T12:00Z")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text, "Europe/Paris")
		if err != nil {
			if regie.CodeOf(err) != regie.CodeBadRequest {
				t.Fatal(err)
			}
			return
		}
		again, err := Parse(Format(s), "Europe/Paris")
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q is written as %q and read as %+v, %v", text, Format(s), again, err)
		}
		if at, ok := Next(s, now, now); ok && !at.After(now) {
			t.Fatalf("%q runs at %s", text, at)
		}
		describeBoth(t, s)
	})
}
