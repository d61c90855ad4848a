//go:build faults

package crash

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// sessionsPerStore is how many runs share one data directory before a new one is made.
const sessionsPerStore = 20

type harness struct {
	t        *testing.T
	world    *world
	random   *rand.Rand
	bug      string
	only     string // the one kind of scenarios; empty: all
	first    uint64
	next     uint64   // seed of the next session
	pinned   []uint64 // seeds that come before it, of which so many were replayed
	replayed int
	last     string // where the last process died
	killed   int
	runs     int
	at       map[string]int // kills by place
	seen     map[string]int // what became of calls, rounds and messages
	dir      string         // of the present store
	// database is the URL of the present store where that is not in dir.
	database string
	inDir    int
	acked    int64
	power    *outage // nil: only processes die
	fleet    *fleet  // nil: one engine at a time
}

func newHarness(t *testing.T, bug string) *harness {
	t.Helper()
	h := &harness{t: t, world: newWorld(t), bug: bug, only: *only, first: *seed, at: map[string]int{}, seen: map[string]int{}, inDir: sessionsPerStore}
	if h.first == 0 {
		h.first = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	t.Logf("seeds from %d on; again: -seed=%d", h.first, h.first)
	h.next = h.first
	h.random = rand.New(rand.NewPCG(h.first, 2))
	return h
}

func (h *harness) violations() []string {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	return h.world.violations
}

// session runs one scenario to its end, over several deaths, and checks what is left.
func (h *harness) session() {
	if h.inDir == sessionsPerStore {
		h.newStore()
	}
	h.inDir++
	h.runs++
	p := h.nextPlan()
	session := regie.NewID()
	h.acked = 0
	for deaths, died := 0, true; died && len(h.violations()) == 0; deaths++ {
		h.powerOn()
		died = h.life(session, p, deaths < 3) // more would end the run for NO_PROGRESS
		h.powerOff(died)
		if died && p.undos > 0 {
			h.between(session, p)
		}
	}
	h.check(session, p)
}

// place chooses where a process dies: at a fault point that its scenario can pass, or at a random
// moment.
func (h *harness) place(p plan) string {
	if h.random.IntN(5) == 0 {
		return "random"
	}
	points := special(p)
	switch {
	case (h.last == fault.IntentAfter || h.last == fault.EffectAfter) && h.random.IntN(2) == 0:
		// a started call is there to be recovered
		points = []string{fault.RecoverBefore, fault.RecoverAfter}
	case len(points) == 0 || h.random.IntN(2) == 0:
		points = common
	}
	return fmt.Sprintf("%s:%d", points[h.random.IntN(len(points))], 1+max(0, h.random.IntN(4)-1))
}

// common are the fault points that every scenario passes.
var common = []string{
	fault.SubmitBefore, fault.SubmitAfter, fault.ClaimAfter, fault.ModelBefore, fault.ModelMid, fault.ModelAfter, fault.ReplyAfter, fault.IntentBefore,
	fault.IntentAfter, fault.EffectAfter, fault.ResultAfter, fault.QueriesAfter, fault.SettledBefore, fault.SettledAfter, fault.RecoverBefore,
	fault.RecoverAfter, fault.IntentAfter, fault.EffectAfter, fault.EndBefore, fault.EndAfter, fault.OpenBefore, fault.OpenAfter,
	fault.ReserveBefore, fault.ReserveAfter,
}

// special are those that this scenario is there for.
func special(p plan) (points []string) {
	if len(p.policy.Allow) == 0 {
		points = append(points, fault.DecideBefore, fault.DecideAfter, fault.AskBefore, fault.AskAfter)
	}
	if len(p.notes) > 0 {
		points = append(points, fault.PendingBefore, fault.PendingAfter, fault.AdmitBefore, fault.WithdrawBefore)
	}
	if isHooked(p.seed) {
		points = append(points, fault.HookAfter)
	}
	switch p.kind {
	case "queued":
		points = append(points, fault.QueueBefore, fault.QueueAfter, fault.QueueStartBefore, fault.QueueStartAfter, fault.YieldBefore, fault.YieldAfter)
	case "stopped", "busy":
		points = append(points, fault.StopBefore, fault.StopAfter, fault.WithdrawBefore)
	case "named":
		points = append(points, fault.EnrichBefore, fault.EnrichAfter, fault.EnrichBefore, fault.EnrichAfter)
	case "json":
		points = append(points, fault.FormatBefore, fault.FormatAfter, fault.FormatBefore, fault.FormatAfter)
	case "automation":
		points = append(points, fault.NudgeBefore, fault.NudgeAfter, fault.CloseBefore, fault.NudgeBefore, fault.NudgeAfter, fault.CloseBefore)
	case "long":
		points = append(points, fault.SummaryBefore, fault.SummaryBegun, fault.CompactBefore, fault.CompactAfter)
	case "undone":
		points = append(points, fault.UndoBefore, fault.UndoBegun, fault.UndoFile, fault.UndoFile, fault.UndoFiles, fault.UndoAfter)
	case "commands":
		points = append(points, fault.SecureBefore, fault.SecureAfter, fault.TrackBefore, fault.TrackAfter, fault.UndoFile)
	case "paused":
		points = append(points, fault.StopBefore, fault.StopAfter, fault.ResumeAfter, fault.ResumeAfter)
	case "late":
		points = append(points, fault.ExpireBefore, fault.ExpireAfter, fault.ExpireBefore, fault.ExpireAfter)
	}
	return points
}

func (h *harness) newStore() {
	h.dir = h.t.TempDir()
	if err := os.MkdirAll(filepath.Join(h.dir, "work"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if *onPostgres {
		h.database = storetest.Postgres(h.t)
	}
	// The store is made here, so that the ledger can look into it from the first effect on.
	s, err := h.open(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.lookAt()
	h.world.mu.Lock()
	h.world.effects = nil
	h.world.mu.Unlock()
	h.inDir = 0
}

// open opens the present store as a process of its own would.
func (h *harness) open(ctx context.Context) (*sqlite.Store, error) {
	if h.database == "" {
		return sqlite.Open(ctx, sqlite.Config{Dir: filepath.Join(h.dir, "data")})
	}
	settings, err := config.Load(h.settings, config.Flags{})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(settings.DataDir, 0o700); err != nil {
		return nil, err
	}
	return postgres.Open(ctx, postgres.Config{URL: h.database, Dir: settings.DataDir})
}

// settings is where the children's store is.
func (h *harness) settings(name string) string {
	return map[string]string{"HOME": h.dir, "REGIE_DATA_DIR": filepath.Join(h.dir, "data"), "REGIE_DATABASE": h.database}[name]
}

// view is the store's database, looked into from outside.
type view interface {
	invariant.Rows
	Close() error
}

// lookAt opens the present store for the world to look into, from outside.
func (h *harness) lookAt() {
	var db view
	var err error
	if h.database != "" {
		db, err = postgres.Look(h.database)
	} else {
		db, err = sql.Open("sqlite", "file:"+filepath.Join(h.dir, "data", sqlite.FileName)+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.world.mu.Lock()
	h.world.db = db
	h.world.mu.Unlock()
	h.t.Cleanup(func() { _ = db.Close() })
}

func (h *harness) closeView() {
	h.world.looking.Lock()
	defer h.world.looking.Unlock()
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	if err := h.world.db.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.world.db = nil
}

// root is the workspace that a session has for itself; empty: all have one.
func (h *harness) root(seed uint64) string {
	if h.fleet == nil {
		return ""
	}
	return filepath.Join(h.dir, "work", fmt.Sprintf("r%d", seed))
}

// work is the directory that a session works in.
func (h *harness) work(seed uint64) string {
	if root := h.root(seed); root != "" {
		return root
	}
	return filepath.Join(h.dir, "work")
}

func (h *harness) journal(p plan) string {
	return filepath.Join(h.dir, fmt.Sprintf("person-%d.jsonl", p.seed))
}

// process is one child on its way.
type process struct {
	*exec.Cmd
	point           string
	out, complaints bytes.Buffer
	struck          atomic.Bool // from here, and not at its point
}

func (h *harness) start(ctx context.Context, session regie.ID, p plan, point string, more ...string) *process {
	if _, err := os.Stat(h.journal(p)); err != nil { // nothing of it has begun
		h.furnish(p.seed)
	}
	child := &process{Cmd: exec.CommandContext(ctx, os.Args[0]), point: point}
	child.Env = append(child.Env, more...)
	child.Env = append(child.Env,
		"REGIE_CRASH_CHILD=person", "REGIE_DATABASE="+h.database, "HOME="+h.dir, "REGIE_DATA_DIR="+filepath.Join(h.dir, "data"), "REGIE_BASE_URL="+h.world.model.URL+"/v1",
		"REGIE_MODEL=scripted", "REGIE_CRASH_LEDGER="+h.world.ledger.URL, "REGIE_CRASH_SESSION="+session.String(), "REGIE_CRASH_JOURNAL="+h.journal(p),
		"REGIE_CRASH_ROOT="+filepath.Join(h.dir, "work"), fmt.Sprintf("REGIE_CRASH_SEED=%d", p.seed), "REGIE_FAULT="+point, "REGIE_BUG="+h.bug,
	)
	if h.power != nil {
		child.Env = append(child.Env, "REGIE_CRASH_DISK="+h.diskLog())
		if point == "" && h.power.strikes {
			child.Env = append(child.Env, fmt.Sprintf("REGIE_CRASH_DIE_AT=%d", 1+h.random.IntN(400)))
		}
	}
	child.Stdout, child.Stderr = &child.out, &child.complaints
	if err := child.Start(); err != nil {
		h.t.Fatal(err)
	}
	return child
}

// life runs the processes of the plan until they end or die, and reports whether one died.
func (h *harness) life(session regie.ID, p plan, deadly bool) (died bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	select {
	case <-h.world.touched:
	default:
	}
	var points [2]string
	if h.power != nil {
		h.power.strikes = deadly && h.random.IntN(4) > 0
	}
	if deadly && (h.power == nil || !h.power.strikes) {
		points[0] = h.place(p)
		if h.random.IntN(2) == 0 {
			points[1] = h.place(p)
		}
	}
	first := h.start(ctx, session, p, points[0])
	var second *process
	if p.second && deadly && h.power == nil {
		second = h.start(ctx, session, p, points[1], "REGIE_CRASH_SECOND=1")
	}
	if points[0] == "random" {
		h.killLater(first)
	}
	died = h.wait(ctx, first, p)
	if second == nil {
		return died
	}
	if died { // the other one may take over, and has some time for it
		h.killAfter(second, nil, time.Duration(h.random.Int64N(int64(80*time.Millisecond))))
	} else if points[1] == "random" {
		h.killAfter(second, nil, 0)
	}
	return h.wait(ctx, second, p) || died
}

// wait waits for one process and reports whether it died.
func (h *harness) wait(ctx context.Context, child *process, p plan) (died bool) {
	err := child.Wait()
	h.readAcks(&child.out)
	var exited *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exited) && exited.ExitCode() == -1 && ctx.Err() == nil:
		h.killed++
		name, _, _ := strings.Cut(child.point, ":")
		if name == "" || child.struck.Load() {
			name = "random"
		}
		h.at[name]++
		h.last = name
		return true
	}
	h.world.violate("seed %d (%s): the process failed after %q: %v: %s", p.seed, p.kind, child.point, err, child.complaints.String())
	return false
}

// killLater kills the child at a random moment after its first step, or in its start.
func (h *harness) killLater(child *process) {
	delay := time.Duration(h.random.Int64N(int64(12 * time.Millisecond)))
	if h.random.IntN(3) == 0 {
		delay *= 6
	}
	if h.random.IntN(5) == 0 {
		h.killAfter(child, nil, delay)
	} else {
		h.killAfter(child, h.world.touched, delay)
	}
}

func (h *harness) killAfter(child *process, touched <-chan struct{}, delay time.Duration) {
	go func() {
		if touched != nil {
			select {
			case <-touched:
			case <-time.After(5 * time.Second):
			}
		}
		<-time.After(delay)
		child.struck.Store(child.Process.Kill() == nil) // it may have ended
	}()
}

// readAcks notes how far the child said that the log reaches: what was acknowledged is durable
// (invariant 7).
func (h *harness) readAcks(out *bytes.Buffer) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var seq int64
		if n, _ := fmt.Sscanf(lines.Text(), "ack %d", &seq); n == 1 {
			h.acked = max(h.acked, seq)
		}
	}
}
