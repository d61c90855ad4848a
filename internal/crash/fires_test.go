//go:build faults && linux

package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// firesPerLife is how many minutes of schedules pass in one life of an engine.
const firesPerLife = 4

// firePlaces are the points at which an engine dies that fires automations.
var firePlaces = append(fault.FirePoints(), fault.FireBefore, fault.FireAfter, fault.FireStartBefore, fault.SubmitBefore, fault.SubmitAfter,
	fault.QueueBefore, fault.QueueAfter, fault.QueueStartBefore, fault.QueueStartAfter, fault.ReplyAfter, fault.ResumeAfter, fault.EndBefore, fault.EndAfter, fault.CloseBefore)

// firedAutomations are the automations, by their names.
var firedAutomations = map[string]regie.AutomationDefinition{
	"minutely": {Schedule: &regie.Schedule{EveryMinutes: 1, Zone: "UTC"}},
	"parallel": {Schedule: &regie.Schedule{EveryMinutes: 2, Zone: "UTC"}, Overlap: regie.OverlapParallel},
	"skipping": {Schedule: &regie.Schedule{EveryMinutes: 1, Zone: "UTC"}, Overlap: regie.OverlapSkip},
	"events":   {Webhook: true},
}

func firedID(name string) regie.ID { return regie.NamedID("fired automation", name) }

// fires is an engine that lets some minutes of schedules pass, one after the other, takes manual
// starts, and stays until nothing is due and nothing runs. The minutes follow the last decided
// instant, not the clock.
func fires(ctx context.Context) error {
	settings, err := config.Load(os.Getenv, config.Flags{})
	if err != nil {
		return err
	}
	settings.File.Slots.Automation = 2
	engine, err := app.OpenEngine(ctx, app.Options{Config: settings})
	if err != nil {
		return err
	}
	ctx = access.AsOwner(ctx)
	all := engine.Service().Automations
	now := time.Now()
	for name, definition := range firedAutomations {
		view, err := all.Create(ctx, dispatch.NewAutomation{ID: firedID(name), Root: os.Getenv("REGIE_CRASH_ROOT"), Name: name, Text: name, Definition: definition})
		if err != nil {
			return err
		}
		if view.DecidedTo.After(now) {
			now = view.DecidedTo
		}
	}
	for minute := range firesPerLife {
		now = now.Add(time.Minute)
		if _, err := all.Tick(ctx, now); err != nil {
			return err
		}
		if minute == 0 { // with the run that has begun
			pause := dispatch.AutomationPause{ID: firedID("minutely"), Until: now.Add(90 * time.Second)}
			if _, err := all.Pause(ctx, pause); err != nil {
				return err
			}
		}
		key := strconv.FormatInt(now.Unix(), 10) // of events, and of a sender and a person who repeat themselves after a death
		for range 2 {
			if err := startByHand(ctx, engine, key); err != nil {
				return err
			}
		}
	}
	for {
		if _, err := all.Tick(ctx, now); err != nil {
			return err
		}
		busy := false
		views, err := all.List(ctx, store.AutomationFilter{})
		for i := range views {
			if views[i].PausedUntil.After(now) {
				now = views[i].PausedUntil
			}
			busy = busy || views[i].Paused || len(views[i].Running) > 0 || views[i].LastFire != nil && views[i].LastFire.Outcome == regie.FireDue
		}
		if err != nil || !busy {
			return errors.Join(err, engine.Close())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func startByHand(ctx context.Context, engine *app.Engine, key string) error {
	all := engine.Service().Automations
	_, err := all.Run(ctx, dispatch.AutomationStart{ID: firedID("events"), Request: key})
	if err == nil { // which a run reads, once
		watch := dispatch.FileWatch{Automations: map[regie.ID][]string{firedID("events"): {"event-*"}}}
		watch.Workspace.Root = os.Getenv("REGIE_CRASH_ROOT")
		_, err = all.FilesChanged(ctx, dispatch.FileChanges{FileWatch: watch, Since: time.Now(), Paths: map[string]string{"event-" + key: key}})
	}
	if err == nil {
		_, err = all.Run(ctx, dispatch.AutomationStart{ID: firedID("parallel"), Request: key})
	}
	return err
}

// fireHarness kills engines that fire automations.
type fireHarness struct {
	t         *testing.T
	random    *rand.Rand
	dir, base string
	database  string
	at        map[string]int
	mu        sync.Mutex
}

// newFireHarness returns a harness with a model that ends each run with its first reply.
func newFireHarness(t *testing.T, seed uint64, database string) *fireHarness {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		writeChunks(rw, `{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"session__complete","arguments":"{\"summary\":\"Done.\"}"}}]}`)
		finish(rw, "tool_calls")
	}))
	t.Cleanup(model.Close)
	return &fireHarness{t: t, random: rand.New(rand.NewPCG(seed, 7)), dir: t.TempDir(), base: model.URL + "/v1", database: database, at: map[string]int{}}
}

// live runs one engine, which dies at a place; empty: it lives to its end.
func (h *fireHarness) live(ctx context.Context, engine int, place string) {
	home := filepath.Join(h.dir, strconv.Itoa(engine))
	work := filepath.Join(h.dir, "work")
	if err := errors.Join(os.MkdirAll(home, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		h.t.Fatal(err)
	}
	child := exec.CommandContext(ctx, os.Args[0])
	var complaints bytes.Buffer
	child.Stderr = &complaints
	child.Env = []string{
		"REGIE_CRASH_CHILD=fires", "HOME=" + home, "REGIE_DATA_DIR=" + filepath.Join(home, "data"), "REGIE_DATABASE=" + h.database,
		"REGIE_BASE_URL=" + h.base, "REGIE_MODEL=scripted", "REGIE_CRASH_ROOT=" + work, "REGIE_FAULT=" + place,
	}
	err := child.Run()
	exited, ok := errors.AsType[*exec.ExitError](err)
	if ok && exited.ExitCode() == -1 && ctx.Err() == nil {
		h.mu.Lock()
		h.at[place]++
		h.mu.Unlock()
		return
	}
	if err != nil {
		h.t.Errorf("engine %d failed after %q: %v: %s", engine, place, err, complaints.String())
	}
}

func (h *fireHarness) place() string {
	return fmt.Sprintf("%s:%d", firePlaces[h.random.IntN(len(firePlaces))], 1+h.random.IntN(6))
}

// check asserts that each nominal time has one row, and each run one fire, one session, one message
// and an end (invariants 1 and 13), and that one run reads each event. It returns how many runs
// there were.
func (h *fireHarness) check(s *sqlite.Store) (runs int) {
	ctx := context.Background()
	for name, definition := range firedAutomations {
		found, err := s.Fires(ctx, store.FireFilter{AutomationID: firedID(name)})
		if err != nil {
			h.t.Fatal(err)
		}
		nominal, sessions := map[time.Time]int{}, map[regie.ID]bool{}
		first, last := time.Time{}, time.Time{}
		var read strings.Builder
		for i := range found {
			f := &found[i]
			if f.Outcome == regie.FireDue || f.Outcome == regie.FireFailed {
				h.t.Errorf("%s: a fire is left %s: %s", name, f.Outcome, f.Reason)
			}
			if f.Trigger == regie.TriggerScheduled {
				if last.IsZero() {
					last = f.NominalAt
				}
				nominal[f.NominalAt]++
				first = f.NominalAt
			}
			if f.Outcome == regie.FireRan {
				runs++
				if sessions[f.SessionID] {
					h.t.Errorf("%s: two fires have the session %s", name, f.SessionID)
				}
				sessions[f.SessionID] = true
				read.WriteString(h.checkRun(s, name, f))
			}
		}
		for i := range found {
			if f := &found[i]; f.Trigger == regie.TriggerEvent {
				if n := strings.Count(read.String(), string(f.Payload)); n != 1 {
					h.t.Errorf("%s: %d runs read the event %s, which is %s", name, n, f.Payload, f.Outcome)
				}
			}
		}
		if definition.Schedule == nil {
			continue
		}
		step := time.Duration(definition.Schedule.EveryMinutes) * time.Minute
		for at := first; !at.After(last); at = at.Add(step) {
			if nominal[at] != 1 {
				h.t.Errorf("%s: %d rows for %s", name, nominal[at], at)
			}
			delete(nominal, at)
		}
		if len(nominal) > 0 {
			h.t.Errorf("%s: rows beside the schedule: %v", name, nominal)
		}
	}
	listed, err := s.Sessions(ctx, store.SessionFilter{Type: regie.SessionAutomation, Limit: 1_000_000})
	if err != nil || len(listed) != runs {
		h.t.Errorf("%d sessions for %d runs: %v", len(listed), runs, err)
	}
	return runs
}

// checkRun returns what the run was told.
func (h *fireHarness) checkRun(s *sqlite.Store, name string, f *store.FireView) (told string) {
	ctx := context.Background()
	view, err := s.SessionView(ctx, f.SessionID, regie.ID{})
	said := 0
	for i := range view.Thread {
		if m := &view.Thread[i].Message; m.Sender == regie.SenderUser && m.LinearText() != "" {
			said, told = said+1, told+m.LinearText()
		}
	}
	if err != nil || said != 1 || len(view.History) != 1 || view.EndReason != regie.SessionCompleted {
		h.t.Errorf("%s: a run has %d messages, %d rounds and the end %q: %v", name, said, len(view.History), view.EndReason, err)
	}
	if _, err := s.Verify(ctx, f.SessionID); err != nil {
		h.t.Error(err)
	}
	return told
}

// TestFires kills an engine at the fires of automations.
func TestFires(t *testing.T) {
	h := newFireHarness(t, max(1, *seed), "")
	for range max(20, *kills/10) {
		h.live(t.Context(), 0, h.place())
		if t.Failed() {
			return
		}
	}
	h.live(t.Context(), 0, "")
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: filepath.Join(h.dir, "0", "data")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Logf("%d runs, killed at %v", h.check(s), h.at)
}

// TestNodeFires kills three engines on one database at the fires of automations.
func TestNodeFires(t *testing.T) {
	h := newFireHarness(t, max(1, *seed), storetest.Postgres(t))
	h.live(t.Context(), 0, "") // makes the tables, and the key that all engines sign with
	keys, err := filepath.Glob(filepath.Join(h.dir, "0", "data", "*", "audit.key"))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	key, err := os.ReadFile(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"1", "2"} {
		data := filepath.Join(h.dir, engine, "data", filepath.Base(filepath.Dir(keys[0])))
		if err := errors.Join(os.MkdirAll(data, 0o700), os.Chmod(filepath.Dir(data), 0o700), os.WriteFile(filepath.Join(data, "audit.key"), key, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	ends := time.Now().Add(*nodeTime)
	var engines sync.WaitGroup
	for engine := range 3 {
		var places []string
		for range 200 {
			places = append(places, h.place())
		}
		engines.Go(func() {
			for _, place := range places {
				if time.Now().Before(ends) && !t.Failed() {
					h.live(t.Context(), engine, place)
				}
			}
		})
	}
	engines.Wait()
	for engine := range 3 {
		h.live(t.Context(), engine, "")
	}
	fleet := &harness{t: t, dir: filepath.Join(h.dir, "0"), database: h.database}
	s, err := fleet.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	t.Logf("%d runs, killed at %v", h.check(s), h.at)
}
