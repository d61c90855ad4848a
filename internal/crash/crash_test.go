//go:build faults

package crash

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

var (
	kills = flag.Int("kills", 200, "how many processes to kill")
	seed  = flag.Uint64("seed", 0, "first seed; 0 takes one from the clock")
)

// sessionsPerStore is how many runs share one data directory before a new one is made.
const sessionsPerStore = 20

// TestCrash kills the program -kills times and expects no violation.
func TestCrash(t *testing.T) {
	h := newHarness(t, "")
	for h.killed < *kills {
		h.session()
		if len(h.violations()) > 0 || t.Failed() {
			break
		}
	}
	for _, v := range h.violations() {
		t.Error(v)
	}
	t.Logf("%d kills in %d runs, seed %d; %d violations", h.killed, h.runs, h.first, len(h.violations()))
	t.Logf("killed at: %v", h.at)
	if !t.Failed() && *kills >= 20*len(fault.Points()) {
		for _, point := range fault.Points() {
			if h.at[point] == 0 {
				t.Errorf("no process was ever killed at the fault point %s", point)
			}
		}
	}
}

// TestSeededBugs expects the harness to catch each seeded bug within a thousand kills (spec 12.3).
func TestSeededBugs(t *testing.T) {
	for _, bug := range fault.Bugs() {
		t.Run(bug, func(t *testing.T) {
			h := newHarness(t, bug)
			for h.killed < 1000 && len(h.violations()) == 0 {
				h.session()
			}
			if len(h.violations()) == 0 {
				t.Errorf("the bug %s was not caught within %d kills", bug, h.killed)
			} else {
				t.Logf("caught after %d kills: %s", h.killed, h.violations()[0])
			}
		})
	}
}

type harness struct {
	t      *testing.T
	world  *world
	random *rand.Rand
	bug    string
	first  uint64
	next   uint64 // seed of the next session
	killed int
	runs   int
	at     map[string]int // kills by place
	dir    string         // of the present store
	inDir  int
	acked  int64
}

func newHarness(t *testing.T, bug string) *harness {
	t.Helper()
	h := &harness{t: t, world: newWorld(t), bug: bug, first: *seed, at: map[string]int{}, inDir: sessionsPerStore}
	if h.first == 0 {
		h.first = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
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
	s := h.next
	h.next++
	session := regie.NewID()
	h.acked = 0
	for deaths := 0; ; deaths++ {
		point := ""
		if deaths < 3 { // more would end the run for NO_PROGRESS
			point = h.place()
		}
		if died := h.life(session, s, point); !died {
			break
		}
	}
	h.check(session, s)
}

// place chooses where the next process dies: at a fault point, or at a random moment.
func (h *harness) place() string {
	points := fault.Points()
	if h.random.IntN(4) == 0 {
		return "random"
	}
	return fmt.Sprintf("%s:%d", points[h.random.IntN(len(points))], 1+h.random.IntN(3))
}

func (h *harness) newStore() {
	h.dir = h.t.TempDir()
	if err := os.MkdirAll(filepath.Join(h.dir, "work"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	// The file is made here, so that the ledger can look into it from the first effect on.
	s, err := sqlite.Open(context.Background(), sqlite.Config{Dir: filepath.Join(h.dir, "data")})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		h.t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(h.dir, "data", sqlite.FileName)+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
	if err != nil {
		h.t.Fatal(err)
	}
	h.world.mu.Lock()
	h.world.db, h.world.effects = db, nil
	h.world.mu.Unlock()
	h.t.Cleanup(func() { _ = db.Close() })
	h.inDir = 0
}

// life runs one process until it ends or dies, and reports whether it died.
func (h *harness) life(session regie.ID, s uint64, point string) (died bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = []string{
		"REGIE_CRASH_CHILD=1", "HOME=" + h.dir, "REGIE_DATA_DIR=" + filepath.Join(h.dir, "data"), "REGIE_BASE_URL=" + h.world.model.URL + "/v1",
		"REGIE_MODEL=scripted", "REGIE_CRASH_LEDGER=" + h.world.ledger.URL, "REGIE_CRASH_SESSION=" + session.String(),
		"REGIE_CRASH_ROOT=" + filepath.Join(h.dir, "work"), fmt.Sprintf("REGIE_CRASH_TEXT=seed %d", s), "REGIE_FAULT=" + point, "REGIE_BUG=" + h.bug,
	}
	var out, complaints bytes.Buffer
	child.Stdout, child.Stderr = &out, &complaints
	select {
	case <-h.world.touched:
	default:
	}
	if err := child.Start(); err != nil {
		h.t.Fatal(err)
	}
	if point == "random" {
		h.killLater(child)
	}
	err := child.Wait()
	h.readAcks(&out)
	var exited *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exited) && exited.ExitCode() == -1 && ctx.Err() == nil:
		h.killed++
		name, _, _ := strings.Cut(point, ":")
		h.at[name]++
		return true
	}
	h.world.violate("seed %d: the process failed after %q: %v: %s", s, point, err, complaints.String())
	return false
}

// killLater kills the child at a random moment after its first step, or in its start.
func (h *harness) killLater(child *exec.Cmd) {
	delay := time.Duration(h.random.Int64N(int64(12 * time.Millisecond)))
	starting := h.random.IntN(5) == 0
	go func() {
		if !starting {
			select {
			case <-h.world.touched:
			case <-time.After(5 * time.Second):
			}
		}
		time.Sleep(delay)
		_ = child.Process.Kill() // it may have ended
	}()
}

// readAcks notes how far the child said that the log reaches: what was acknowledged is durable (invariant 7).
func (h *harness) readAcks(out *bytes.Buffer) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var round string
		var seq int64
		if n, _ := fmt.Sscanf(lines.Text(), "ack %s %d", &round, &seq); n == 2 {
			h.acked = max(h.acked, seq)
		}
	}
}

// check asserts the invariants of spec 12.1 on what is left of a run.
func (h *harness) check(session regie.ID, s uint64) {
	fail := func(format string, args ...any) {
		h.world.violate("seed %d: "+format, append([]any{s}, args...)...)
	}
	ctx := context.Background()
	st, err := sqlite.Open(ctx, sqlite.Config{Dir: filepath.Join(h.dir, "data")})
	if err != nil {
		fail("the store does not open: %v", err)
		return
	}
	defer st.Close()
	report, err := st.Verify(ctx, session)
	if err != nil {
		fail("the chain does not verify (invariants 6, 17): %v", err)
		return
	}
	if report.Events < h.acked {
		fail("event %d was acknowledged, the log ends at %d (invariant 7)", h.acked, report.Events)
	}
	rounds, err := st.Rounds(ctx, "", 1)
	if err != nil || len(rounds) != 1 || rounds[0].Session.ID != session {
		fail("the run is not there: %v", err)
		return
	}
	view, err := st.RoundView(ctx, rounds[0].Round.ID)
	if err != nil {
		fail("the run cannot be read: %v", err)
		return
	}
	if view.Round.State != regie.RoundEnded || view.Round.End == "" {
		fail("the round is %s, it must have ended with a reason (invariant 11)", view.Round.State)
	}
	if view.Round.Counters.Total > view.Round.Limits.Total {
		fail("%d replies, the limit is %d (invariant 10)", view.Round.Counters.Total, view.Round.Limits.Total)
	}
	h.checkCalls(view, fail)
	h.checkFiles(view, s, fail)
}

// checkCalls compares each call with the ledger.
func (h *harness) checkCalls(view store.RoundView, fail func(string, ...any)) {
	h.world.mu.Lock()
	byName := map[string][]effect{}
	for _, e := range h.world.effects {
		byName[e.Name] = append(byName[e.Name], e)
	}
	h.world.mu.Unlock()
	for _, exchange := range view.Exchanges {
		if exchange.Reply != nil && len(exchange.Reply.CallIDs()) != len(exchange.Calls) {
			fail("the reply of exchange %d names %d calls, %d are stored", exchange.Number, len(exchange.Reply.CallIDs()), len(exchange.Calls))
		}
		for i := range exchange.Calls {
			c := &exchange.Calls[i]
			if !c.State.Settled() {
				fail("call %s is %s after the end (invariant 4)", c.ID, c.State)
			}
			if name, ok := strings.CutPrefix(c.Arguments, `{"name":"`); ok && c.Kind == regie.KindAction {
				checkEffects(c, byName[strings.TrimSuffix(name, `"}`)], fail)
			}
		}
	}
}

func checkEffects(c *regie.Call, effects []effect, fail func(string, ...any)) {
	keys := map[regie.ID]bool{}
	for _, e := range effects {
		keys[e.Key] = true
	}
	switch {
	case len(keys) > 1:
		fail("%s happened under %d keys (invariant 1)", c.Arguments, len(keys))
	case c.Class != regie.ClassKeyed && len(effects) > 1:
		fail("%s of class %s happened %d times (invariant 1)", c.Arguments, c.Class, len(effects))
	case c.State == regie.CallSucceeded && len(effects) == 0:
		fail("%s SUCCEEDED and never happened (invariant 5)", c.Arguments)
	case (c.State == regie.CallNotRun || c.State == regie.CallFailed) && len(effects) > 0:
		fail("%s is %s and happened (invariant 5)", c.Arguments, c.State)
	}
}

// checkFiles compares the journal with the calls that wrote it, and looks for what crashed writes left behind.
func (h *harness) checkFiles(view store.RoundView, s uint64, fail func(string, ...any)) {
	dir := filepath.Join(h.dir, "work", fmt.Sprintf("s%d", s))
	journal, err := os.ReadFile(filepath.Join(dir, "journal.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fail("%v", err)
	}
	for _, exchange := range view.Exchanges {
		for i := range exchange.Calls {
			c := &exchange.Calls[i]
			if c.Tool != "files.write_file" {
				continue
			}
			line := fmt.Sprintf("s%d-%d-%d\n", s, exchange.Number-1, c.Ordinal)
			count := strings.Count(string(journal), line)
			switch {
			case c.State == regie.CallSucceeded && count != 1, c.State != regie.CallUnknown && c.State != regie.CallSucceeded && count != 0, count > 1:
				fail("the write of %q is %s and stands %d times in the file (invariant 1)", line, c.State, count)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".regie-*"))
	if err != nil || len(left) > 0 {
		fail("crashed writes left %v behind", left)
	}
}
