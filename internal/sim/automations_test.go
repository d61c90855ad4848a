package sim

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/automation"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestFiresOfAYear lets a year pass in three zones, with outages, clocks that jump and two engines
// of which one often knows an old state: each nominal time has one row (invariant 13).
func TestFiresOfAYear(t *testing.T) {
	begins := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	opened, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	world := storetest.NewWorld(t, opened)
	for i, zone := range []string{"Europe/Paris", "America/New_York", "Australia/Lord_Howe"} {
		for j, missed := range []regie.MissedPolicy{regie.MissedOnce, regie.MissedSkip, regie.MissedEach} {
			schedule := &regie.Schedule{Cron: []string{"*/30 1-3 * * *", "15 2 * * 0", "0 */6 * * *"}[(i+j)%3], Zone: zone}
			in := storetest.NewAutomation(world)
			in.Automation.ID, in.Automation.Name = regie.NewID(), zone+strconv.Itoa(j)
			in.Automation.Definition = regie.AutomationDefinition{Schedule: schedule, Missed: missed, Overlap: regie.OverlapParallel}
			in.Template.Session.ID, in.Hook = regie.NewID(), regie.Hash{}
			made, err := opened.SaveAutomation(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			livesAYear(t, opened, random, made, begins)
		}
	}
}

// livesAYear decides the fires of an automation over a year, and compares them with its times.
func livesAYear(t *testing.T, opened *sqlite.Store, random *rand.Rand, made regie.Automation, begins time.Time) {
	t.Helper()
	if err := opened.DecideFires(t.Context(), []store.DecideFires{{Automation: readStored(t, opened, made.ID), DecidedTo: begins}}); err != nil {
		t.Fatal(err)
	}
	old, now := readStored(t, opened, made.ID), begins
	for now.Before(begins.AddDate(1, 0, 0)) {
		step := time.Duration(random.Int64N(int64(6 * time.Hour)))
		switch random.IntN(20) {
		case 0:
			step = time.Duration(random.Int64N(int64(20 * 24 * time.Hour))) // no engine runs
		case 1:
			step = -time.Duration(random.Int64N(int64(3 * time.Hour))) // the clock jumps back
		}
		now = now.Add(step)
		one := readStored(t, opened, made.ID)
		for _, engine := range []*regie.Automation{one, old} {
			engine.SeriesFrom = begins
			if fires, to, _ := automation.Due(engine, now); len(fires) > 0 {
				if err := opened.DecideFires(t.Context(), []store.DecideFires{{Automation: engine, Fires: fires, DecidedTo: to}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if random.IntN(3) == 0 {
			old = one
		}
	}
	found, err := opened.Fires(t.Context(), store.FireFilter{AutomationID: made.ID})
	if err != nil {
		t.Fatal(err)
	}
	rows := map[time.Time]int{}
	for i := range found {
		rows[found[i].NominalAt]++
	}
	last := found[0].NominalAt
	times := 0
	for at, more := automation.Next(made.Definition.Schedule, begins, begins); more && !at.After(last); at, more = automation.Next(made.Definition.Schedule, begins, at) {
		times++
		if rows[at.UTC()] != 1 {
			t.Fatalf("%s: %d rows for %s", made.Name, rows[at.UTC()], at)
		}
	}
	if len(found) != times {
		t.Errorf("%s: %d rows for %d times", made.Name, len(found), times)
	}
}

func readStored(t *testing.T, opened *sqlite.Store, id regie.ID) *regie.Automation {
	t.Helper()
	rows, err := opened.Automations(t.Context(), store.AutomationFilter{ID: id})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d automations, %v", len(rows), err)
	}
	return &rows[0].Automation
}
