package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/automation"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// scheduling measures Next per call, with the preparation of the schedule, over a year in Paris.
func (s *session) scheduling() error {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{"cron 0 9 * * 1-5", "cron */5 * * * *", "daily 09:00,18:30", "every 15m"} {
		schedule, err := automation.Parse(text, "Europe/Paris")
		if err != nil {
			return err
		}
		const calls = 8760
		var took []float64
		for range s.rounds {
			started := time.Now()
			for hour := range calls {
				automation.Next(schedule, from, from.Add(time.Duration(hour)*time.Hour))
			}
			took = append(took, float64(time.Since(started).Nanoseconds())/1000/calls)
		}
		fmt.Printf("| Next per call, %s, µs | %.1f | | | |\n", text, median(took))
	}
	return s.firing()
}

const (
	storedAutomations = 10_000
	dueAutomations    = 1000 // in one minute
)

// firing measures a look at 10,000 automations when 1,000 fall due, with their rows stored
// durably.
func (s *session) firing() (err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx := context.Background()
	opened, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	now, err := storeAutomations(ctx, opened)
	if err != nil {
		return err
	}
	var took []float64
	for range s.rounds {
		now = now.Add(time.Minute)
		started := time.Now()
		all, err := opened.RunnableAutomations(ctx)
		if err != nil {
			return err
		}
		var decided []store.DecideFires
		for i := range all {
			if fires, to, _ := automation.Due(&all[i], now); len(fires) > 0 {
				decided = append(decided, store.DecideFires{Automation: &all[i], Fires: fires, DecidedTo: to})
			}
		}
		for some := range slices.Chunk(decided, 200) {
			if err := opened.DecideFires(ctx, some); err != nil {
				return err
			}
		}
		if len(decided) != dueAutomations {
			return fmt.Errorf("%d automations are due", len(decided))
		}
		took = append(took, float64(time.Since(started).Microseconds())/1000)
	}
	fmt.Printf("| %d automations of which %d fall due, ms | %.0f | | | |\n", storedAutomations, dueAutomations, median(took))
	return nil
}

// storeAutomations stores the automations, and returns a moment at which none is due.
func storeAutomations(ctx context.Context, opened *sqlite.Store) (now time.Time, err error) {
	user, err := opened.EnsureUser(ctx, "ada")
	if err != nil {
		return now, err
	}
	place, err := opened.EnsureWorkspace(ctx, user.ID, regie.Workspace{Name: "w", Root: "/w", FoundBy: "git"})
	if err != nil {
		return now, err
	}
	var group errgroup.Group
	group.SetLimit(64)
	for i := range storedAutomations {
		schedule := &regie.Schedule{
			Period: regie.PeriodYearly, Times: []string{"03:00"}, Dates: []string{"02-29"}, Zone: "Europe/Paris",
		}
		if i < dueAutomations {
			schedule = &regie.Schedule{EveryMinutes: 1, Zone: "UTC"}
		}
		seed := regie.Session{
			ID: regie.NewID(), WorkspaceID: place.ID, UserID: user.ID, Agent: "main", Type: regie.SessionSeed,
		}
		group.Go(func() error {
			_, err := opened.SaveAutomation(ctx, store.SaveAutomation{
				Automation: regie.Automation{
					ID: regie.NewID(), WorkspaceID: place.ID, UserID: user.ID, Name: "a", Enabled: true,
					Definition: regie.AutomationDefinition{Schedule: schedule, Overlap: regie.OverlapParallel},
				},
				Template: &store.Template{Session: seed, Message: regie.Message{
					ID: regie.NewID(), Sender: regie.SenderUser, Text: "Look.", Author: regie.Author{Kind: regie.AuthorUser, ID: "u"},
				}},
			})
			return err
		})
	}
	return time.Now().Add(time.Minute), group.Wait()
}
