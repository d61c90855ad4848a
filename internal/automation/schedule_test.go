package automation

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
)

func TestValidate(t *testing.T) {
	now := instant(t, "2026-06-01T12:00Z")
	for _, c := range []struct{ schedule, want string }{
		{`{"cron":"0 9 * * 1-5"}`, ""},
		{`{"cron":"0  9 * * 0,7"}`, ""},
		{`{"every_minutes":1}`, ""},
		{`{"every_minutes":527040}`, ""},
		{`{"once":"2026-06-01T12:01"}`, ""},
		{`{"period":"daily","times":["9:00","18:30"]}`, ""},
		{`{"period":"monthly","days":[31,-1],"times":["09:00"]}`, ""},
		{`{"period":"yearly","dates":["02-29"],"times":["09:00"]}`, ""},
		{`{"period":"daily","times":["09:00"],"start":"2040-01-01T00:00","end":"2040-01-02T00:00"}`, ""},

		{`{}`, "exactly one of"},
		{`{"cron":"0 9 * * *","every_minutes":5}`, "exactly one of"},
		{`{"once":"2027-01-01T00:00","period":"daily","times":["09:00"]}`, "exactly one of"},
		{`{"every_minutes":-1}`, "from 1 to 527040"},
		{`{"every_minutes":527041}`, "from 1 to 527040"},
		{`{"period":"hourly","times":["09:00"]}`, `"hourly" is not a period`},
		{`{"period":"daily"}`, "a period has times"},
		{`{"period":"weekly","times":["09:00"]}`, "weekly has weekdays"},
		{`{"period":"daily","times":["09:00"],"days":[1]}`, "monthly has days"},
		{`{"cron":"0 9 * * *","times":["09:00"]}`, "other schedules have none of these"},
		{`{"period":"daily","times":["24:00"]}`, `"24:00" is not a time of day`},
		{`{"period":"daily","times":["18:30","09:00"]}`, "not in order"},
		{`{"period":"daily","times":["09:00","9:00"]}`, "one is repeated"},
		{`{"period":"weekly","weekdays":["Monday"],"times":["09:00"]}`, `"Monday" is not a weekday`},
		{`{"period":"monthly","days":[0],"times":["09:00"]}`, "0 is not a day of the month"},
		{`{"period":"monthly","days":[32],"times":["09:00"]}`, "32 is not a day of the month"},
		{`{"period":"monthly","days":[-2],"times":["09:00"]}`, "-2 is not a day of the month"},
		{`{"period":"yearly","dates":["02-30"],"times":["09:00"]}`, `"02-30" is not a date of the year`},
		{`{"period":"yearly","dates":["13-01"],"times":["09:00"]}`, `"13-01" is not a date of the year`},
		{`{"once":"2026-02-30T09:00"}`, "is not a date with a time"},
		{`{"once":"2026-12-01 09:00"}`, "is not a date with a time"},
		{`{"period":"daily","times":["09:00"],"start":"soon"}`, `"soon" is not a date with a time`},

		{`{"once":"2026-06-01T12:00"}`, "no run after now"},
		{`{"cron":"0 0 30 2 *"}`, "no run after now"},
		{`{"period":"daily","times":["09:00"],"end":"2026-06-01T12:00"}`, "no run after now"},
		{`{"period":"daily","times":["09:00"],"end":"2026-06-02T09:00"}`, "no run after now"},
		{`{"period":"daily","times":["09:00"],"start":"2027-01-02T00:00","end":"2027-01-01T00:00"}`, "no run after now"},

		{`{"cron":"0 9 * *"}`, "is not a cron expression"},
		{`{"cron":"0 0 9 * * *"}`, "is not a cron expression"},
		{`{"cron":"60 9 * * *"}`, "is not a cron expression"},
		{`{"cron":"*/0 9 * * *"}`, "is not a cron expression"},
		{`{"cron":"0 9 * * 8"}`, "is not a cron expression"},
		{`{"cron":"0 9 1,,2 * *"}`, "is not a cron expression"},
		{`{"cron":", 9 * * *"}`, "is not a cron expression"},
		{`{"cron":"*-5 9 * * *"}`, "is not a cron expression"},
		{`{"cron":"+5 9 * * *"}`, "is not a cron expression"},
		{`{"cron":"@daily"}`, "is not a cron expression"},
		{`{"cron":"@every 1h"}`, "is not a cron expression"},
		{`{"cron":"TZ=Asia/Tokyo 0 9 * * *"}`, "is not a cron expression"},
		{`{"cron":"` + strings.Repeat("1,", 120) + `1 9 * * *"}`, "is not a cron expression"},
	} {
		t.Run(c.schedule, func(t *testing.T) {
			var s regie.Schedule
			if err := json.Unmarshal([]byte(c.schedule), &s); err != nil {
				t.Fatal(err)
			}
			s.Zone = "UTC"
			err := Validate(&s, now)
			if c.want == "" && err == nil {
				return
			}
			if err == nil || c.want == "" || !strings.Contains(err.Error(), c.want) || regie.CodeOf(err) != regie.CodeBadRequest {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestValidate_Zone(t *testing.T) {
	for zone, good := range map[string]bool{
		"Europe/Paris": true, "UTC": true, "Etc/GMT+12": true, "": false, "Local": false, "Mars/Olympus": false,
		"../etc/passwd": false, "/usr/share/zoneinfo/UTC": false, "Europe": false,
	} {
		err := Validate(&regie.Schedule{EveryMinutes: 5, Zone: zone}, time.Now())
		if (err == nil) != good || !good && regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%q: %v", zone, err)
		}
	}
}

// FuzzScheduleJSON looks for schedules of strangers that panic, or pass and do not run.
func FuzzScheduleJSON(f *testing.F) {
	for _, seed := range []string{
		`{"cron":"0 9 * * 1-5","zone":"Europe/Paris"}`, `{"every_minutes":15,"zone":"UTC"}`, `{"cron":"0 0 30 2 *","zone":"UTC"}`,
		`{"once":"9999-12-31T23:59","zone":"Pacific/Apia"}`, `{"once":"0000-01-01T00:00","zone":"UTC"}`,
		`{"period":"yearly","dates":["02-29"],"times":["00:00"],"start":"2096-03-01T00:00","zone":"America/Havana"}`,
		`{"period":"monthly","days":[31,-1],"times":["02:30","23:59"],"end":"2027-01-01T00:00","zone":"Australia/Lord_Howe"}`,
		`{"cron":"30 2-2/1 25-31/1 3 */7","zone":"Europe/Paris"}`,
		`{"cron":"0 2-2/1 5-31/1 3 */7","zone":"Europe/Paris"}`, `{"once":"2040-12-31T12:00","zone":"Europe/Paris"}`,
	} {
		f.Add([]byte(seed))
	}
	now := instant(f, "2026-03-28T12:00Z")
	f.Fuzz(func(t *testing.T, data []byte) {
		var s regie.Schedule
		if json.Unmarshal(data, &s) != nil {
			return
		}
		valid := Validate(&s, now)
		runs := NextRuns(&s, now, now, 40)
		if valid == nil != (len(runs) > 0) {
			t.Fatalf("%v, and %d runs", valid, len(runs))
		}
		last := now
		for _, at := range runs {
			if !at.After(last) {
				t.Fatalf("%s follows %s", at, last)
			}
			last = at
		}
		a := &regie.Automation{Enabled: true, SeriesFrom: now, Definition: regie.AutomationDefinition{Schedule: &s, Missed: regie.MissedEach}}
		fires, _, _ := Due(a, now.AddDate(0, 0, 2))
		for i := range min(len(fires), len(runs)) {
			if fires[0].Count == 0 && !fires[i].NominalAt.Equal(runs[i]) {
				t.Fatalf("row %d is for %s, want %s", i, fires[i].NominalAt, runs[i])
			}
		}
		if valid == nil {
			describeBoth(t, &s)
		}
	})
}
