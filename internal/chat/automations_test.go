package chat

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// TestPageAutomations writes automations and fires in which everything occurs that can be shown.
func TestPageAutomations(t *testing.T) {
	at := time.Date(2026, 12, 7, 8, 0, 0, 0, time.UTC)
	weekly := dispatch.AutomationView{
		Text: "Report.\x1b[2J\nBriefly.", Agent: "main", Provider: "demo", ApprovalMode: regie.ModeAuto,
		NextRuns: []time.Time{at, at.AddDate(0, 0, 7)}, HookPath: "/hooks/1/secret",
	}
	weekly.ID, weekly.Name, weekly.Version, weekly.Enabled, weekly.Root = id(t, "a001"), "Week\x07ly", 3, true, "/home/ada/house"
	weekly.Running = []regie.ID{id(t, "a002")}
	weekly.Definition = regie.AutomationDefinition{
		Schedule: &regie.Schedule{Period: regie.PeriodWeekly, Weekdays: []string{"mon"}, Times: []string{"09:00"}, Zone: "Europe/Paris"},
		Webhook:  true, Files: []string{"inbox/**"}, Limits: regie.Limits{Total: 5, Tokens: 1000}, USDPerRun: 0.5, Allow: []string{"files.*"},
	}
	fires := []store.FireView{
		{
			Fire:  regie.Fire{Trigger: regie.TriggerScheduled, NominalAt: at, Outcome: regie.FireRan, SessionID: id(t, "a003"), Count: 1},
			State: regie.SessionClosed, EndReason: regie.SessionCompleted, SpentMicroUSD: 12_500,
		},
		{Fire: regie.Fire{
			Trigger: regie.TriggerScheduled, NominalAt: at.AddDate(0, -1, 0), Until: at.AddDate(0, 0, -7), Count: 1200,
			Outcome: regie.FireSkipped, Reason: regie.Say("the automation was paused"),
		}},
		{Fire: regie.Fire{Trigger: regie.TriggerEvent, NominalAt: at, Outcome: regie.FireDue}},
	}
	weekly.LastFire = &fires[0]
	failing, paused, off := weekly, weekly, weekly
	failing.Paused, failing.PauseReason, failing.NextRuns, failing.Running = true, regie.Say("its last runs failed: %s", "3"), nil, nil
	paused.Paused, paused.PausedUntil, paused.LastFire = true, at, nil
	off.Enabled, off.NextRuns, off.LastFire, off.Definition = false, nil, nil, regie.AutomationDefinition{} // on no machine's clock
	for _, lang := range []string{"en", "fr"} {
		t.Run(lang, func(t *testing.T) {
			var out bytes.Buffer
			page := &Page{W: &out, Text: i18n.New(lang), Now: func() time.Time { return at }}
			page.Automations(nil)
			page.Automation(&weekly)
			page.Fires(&weekly, fires)
			page.Everywhere = true
			page.Automations([]dispatch.AutomationView{failing, paused, off})
			if page.Err() != nil || strings.ContainsAny(out.String(), "\x1b\x07") {
				t.Errorf("%v, or a control sequence got through: %q", page.Err(), out.String())
			}
			path := filepath.Join("testdata", "automations."+lang+".golden")
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", path, diff)
			}
		})
	}
}
