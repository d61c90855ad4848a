package control

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

var update = flag.Bool("update", false, "write docs/alerts.yaml")

const alertsHead = "# Prometheus rules for a server of Regie: rule_files: [alerts.yaml]. Thresholds are a beginning. Made of\n" +
	"# AlertRules in internal/control/alerts.go by go test ./internal/control -run TestAlertsPage -update\n"

// TestAlertsPage holds docs/alerts.yaml to the table.
func TestAlertsPage(t *testing.T) {
	t.Parallel()
	type rule struct {
		Alert       string            `yaml:"alert"`
		Expr        string            `yaml:"expr"`
		For         string            `yaml:"for,omitempty"`
		Labels      map[string]string `yaml:"labels"`
		Annotations map[string]string `yaml:"annotations"`
	}
	type group struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	}
	regieRules := group{Name: "regie"}
	judged := 0
	for i := range AlertRules {
		r := &AlertRules[i]
		regieRules.Rules = append(regieRules.Rules, rule{
			r.Name, r.Expr, r.For,
			map[string]string{"severity": r.Severity},
			map[string]string{"summary": r.What.String(), "description": r.Do.String()},
		})
		if r.Holds != nil {
			judged++
		}
		if r.Holds != nil && r.Page == "" {
			t.Errorf("%s leads to no page", r.Name)
		}
	}
	if judged != 10 {
		t.Errorf("the dashboard judges %d alerts, want 10", judged)
	}
	var out bytes.Buffer
	out.WriteString(alertsHead)
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(map[string][]group{"groups": {regieRules}}); err != nil {
		t.Fatal(err)
	}
	const path = "../../docs/alerts.yaml"
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(path); err != nil || !bytes.Equal(stored, out.Bytes()) {
		t.Errorf("docs/alerts.yaml differs from AlertRules (%v): write it with -update", err)
	}
}

// TestAlertRules brings about each condition, and its opposite.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	now := time.Now()
	waits := func(age time.Duration) store.Waiting { return store.Waiting{Count: 1, Since: now.Add(-age)} }
	ends := func(end regie.RoundEnd, n int64) store.StatReport {
		return store.StatReport{Total: store.StatLine{Ends: map[regie.RoundEnd]int64{end: n}}}
	}
	for name, pair := range map[string][2]store.StatReport{ // what holds, and what just does not
		"RegieApprovalsWait":  {{Approvals: waits(5 * time.Hour)}, {Approvals: waits(3 * time.Hour), Questions: waits(5 * time.Hour)}},
		"RegieQuestionsWait":  {{Questions: waits(25 * time.Hour)}, {Questions: waits(23 * time.Hour)}},
		"RegieOutcomeUnknown": {{Unknown: 1}, {Tools: []store.ToolStat{{Calls: 1, Unknown: 1}}}},
		"RegieRunsCrash":      {ends(regie.EndNoProgress, 1), ends(regie.EndWatchdog, 1)},
		"RegieWatchdogStops":  {ends(regie.EndWatchdog, 1), ends(regie.EndStopped, 9)},
		"RegieModelFails":     {ends(regie.EndProviderError, 6), ends(regie.EndProviderError, 5)},
		"RegieQueueStands":    {{Queue: waits(time.Hour)}, {Queue: waits(time.Minute)}},
		"RegieToolFails":      {{Tools: []store.ToolStat{{Calls: 20, Succeeded: 9}}}, {Tools: []store.ToolStat{{Calls: 20, Succeeded: 10}}}},
		"RegieLoops":          {{Total: store.StatLine{RoundCounts: store.RoundCounts{Loops: 21}}}, {Total: store.StatLine{RoundCounts: store.RoundCounts{Loops: 20}}}},
		"RegieLongRounds": {
			{Total: store.StatLine{RoundCounts: store.RoundCounts{Rounds: 2, Relaunches: 39}}},
			{Total: store.StatLine{RoundCounts: store.RoundCounts{Rounds: 2, Relaunches: 38}}},
		},
	} {
		for i := range AlertRules {
			rule := &AlertRules[i]
			if rule.Holds == nil {
				continue
			}
			for n, stats := range pair {
				stats.To = now
				if holds := rule.Holds(&stats); holds != (n == 0 && rule.Name == name) && (rule.Name == name || n == 0) {
					t.Errorf("%s: %s holds: %v for %+v", name, rule.Name, holds, stats)
				}
			}
		}
	}
}

// TestPercentile interpolates in the buckets 1, 2, 5, 10 µs and so on.
func TestPercentile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		counts []store.ToolCount
		rank   float64
		want   int64
	}{
		{[]store.ToolCount{{Bucket: 12, Calls: 1}}, 0.5, 1500}, // 1 to 2 ms
		{[]store.ToolCount{{Bucket: 12, Calls: 50}, {Bucket: 13, Calls: 50}}, 50, 2000},
		{[]store.ToolCount{{Bucket: 12, Calls: 90}, {Bucket: 13, Calls: 10}}, 95, 3500},
		{[]store.ToolCount{{Bucket: 12, Calls: 90}, {Bucket: 21, Calls: 10}}, 95, 1_500_000}, // 1 to 2 s
		{nil, 0, 0},
	} {
		if got := percentile(c.counts, c.rank); got != c.want {
			t.Errorf("%v at %v: %d, want %d", c.counts, c.rank, got, c.want)
		}
	}
}

// TestForecast goes on at the pace so far, once there is one.
func TestForecast(t *testing.T) {
	t.Parallel()
	if got := forecast(10, 6*time.Hour, 24*time.Hour); got != 40 {
		t.Errorf("after a quarter of the day: %d, want 40", got)
	}
	if got := forecast(10, time.Minute, 24*time.Hour); got != 10 {
		t.Errorf("after a minute: %d, want 10", got)
	}
}

// TestStatPeriod reads days, times and nothing.
func TestStatPeriod(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 15, 30, 0, 0, time.Local)                                                     //nolint:gosmopolitan // the server's zone
	day := func(d, hour, minute int) time.Time { return time.Date(2026, 11, d, hour, minute, 0, 0, time.Local) } //nolint:gosmopolitan // as above
	for _, c := range []struct {
		filter   store.StatFilter
		from, to time.Time
	}{
		{store.StatFilter{}, day(18, 0, 0), now},
		{store.StatFilter{From: "2026-11-20", To: "2026-11-21"}, day(20, 0, 0), day(22, 0, 0)},
		{store.StatFilter{From: day(24, 10, 0).Format(time.RFC3339)}, day(24, 10, 0), now},
	} {
		from, to, err := statPeriod(&c.filter, now)
		if err != nil || !from.Equal(c.from) || !to.Equal(c.to) {
			t.Errorf("%+v: %v to %v, %v", c.filter, from, to, err)
		}
	}
	for _, bad := range []store.StatFilter{{From: "yesterday"}, {From: "2026-11-25"}, {From: "2020-01-01"}, {To: "x"}} {
		if _, _, err := statPeriod(&bad, now); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
