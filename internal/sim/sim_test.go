package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seeds    = flag.Int("seeds", quick, "how many sessions to simulate")
	seed     = flag.Uint64("seed", 1, "the first seed; the others follow it; 0 takes one from the clock")
	long     = flag.Bool("long", false, "also replies of 100 MB")
	planFile = flag.String("plan", "", "a file with one plan, to be simulated in place of seeds")
	small    = flag.Bool("shrink", true, "make plans that fail smaller")
	verbose  = flag.Bool("transcript", false, "print the transcript of each session")
)

// fresh is the first seed of a run that names none.
var fresh = uint64(time.Now().UnixNano()) % 1_000_000_000

// firstSeed returns the first seed of the run and logs it before anything is simulated.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	first := cmp.Or(*seed, fresh)
	t.Logf("seeds from %d on; again: -seed=%d", first, first)
	return first
}

// guarded runs a session and names its seed in the stack of every goroutine of it: where the
// program itself dies, that says in what.
func guarded(t *testing.T, p plan) (out finding) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels("seed", strconv.FormatUint(p.Seed, 10)), func(context.Context) { out = simulate(t, p) })
	if *verbose {
		fmt.Println(out.transcript)
	}
	return out
}

// sweep simulates n seeds side by side, or until as many failed as are wanted, and returns what
// came of them.
func sweep(t *testing.T, from uint64, n, wanted int) (failed []finding, seen map[string]int, done int) {
	t.Helper()
	var next, ran atomic.Int64
	var mu sync.Mutex
	seen = map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		for worker := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(worker), func(t *testing.T) {
				t.Parallel()
				for {
					i := next.Add(1) - 1
					mu.Lock()
					over := i >= int64(n) || len(failed) >= wanted
					mu.Unlock()
					if over {
						return
					}
					f := guarded(t, planOf(from+uint64(i), *long))
					ran.Add(1)
					mu.Lock()
					for what, count := range f.seen {
						seen[what] += count
					}
					if len(f.violations) > 0 {
						failed = append(failed, f)
					}
					mu.Unlock()
				}
			})
		}
	})
	return failed, seen, int(ran.Load())
}

// TestSim simulates -seeds sessions from -seed on, or the one of -plan, and expects no violation.
// What fails is made small first.
func TestSim(t *testing.T) {
	if *planFile != "" {
		simulateFile(t)
		return
	}
	started, first := time.Now(), firstSeed(t)
	failed, seen, done := sweep(t, first, *seeds, 5)
	slices.SortFunc(failed, func(a, b finding) int { return int(a.plan.Seed) - int(b.plan.Seed) })
	for _, f := range failed {
		report(t, f)
	}
	t.Logf("%d sessions from seed %d, %.1f a second; %d violated", done, first, float64(done)/time.Since(started).Seconds(), len(failed))
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%8d %s", seen[what], what)
	}
	for _, what := range outcomes {
		if *seeds >= 2000 && seen[what] == 0 && len(failed) == 0 {
			t.Errorf("never seen: %s", what)
		}
	}
}

// outcomes are what a long run must have seen, else it shows less than it says.
var outcomes = []string{
	"named SUCCEEDED", "named FAILED",
	"call SUCCEEDED", "call FAILED", "call UNKNOWN", "call NOT_RUN DENIED", "call NOT_RUN EXPIRED", "call NOT_RUN SUPERSEDED", "call NOT_RUN INTERRUPTED",
	"call NOT_RUN ANTI_LOOP", "call NOT_RUN DUPLICATE_IN_BATCH", "call NOT_RUN INVALID", "call NOT_RUN OVER_LIMIT", "call NOT_RUN OUT_OF_SCOPE",
	"call NOT_RUN REPEATED_FAILURE", "call resolved",
	"round ANSWERED", "round COMPLETED", "round DENIED", "round EARLY_STOP", "round INTERRUPTED", "round LIMIT", "round PROVIDER_ERROR", "round STOPPED", "round WATCHDOG", "round waits",
	"decision acked", "decision refused", "decision edited", "decision allow_session", "decision allow_always", "answer acked", "effect under a rule",
	"note admitted", "note withdrawn", "note repeated", "word PAUSE", "word RESUME", "word INTERRUPT", "word STOP", "death", "waiting looked at",
	"reply obey", "reply offline", "reply raw", "reply reset", "reply status", "summary ", "summary next", "summary none", "summary long", "summary calls",
	"summary obey", "summary break", "exchange NUDGE", "exchange ANSWER", "exchange FORMAT_ERROR_CORRECTION",
	"session COMPLETED", "session TIMEOUT", "session ERROR", "session CANCELLED", "money",
}

// TestWatchdog simulates sessions whose model keeps its first reply open for ever: the watchdog
// ends their rounds, whatever else happens in them.
func TestWatchdog(t *testing.T) {
	ended, first := 0, firstSeed(t)
	for seed := first; seed < first+uint64(quick/4); seed++ {
		p := planOf(seed, false)
		p.Replies[0] = reply{Parts: []part{{Text: "I look into it."}, {Text: "And on."}}, Drip: 1 + int(seed%2)}
		f := guarded(t, p)
		for _, v := range f.violations {
			t.Error(f.plan.Seed, v)
		}
		ended += f.seen["round WATCHDOG"]
	}
	if ended == 0 {
		t.Error("the watchdog never ended a round")
	}
	t.Logf("the watchdog ended %d rounds of %d sessions", ended, quick/4)
}

// report makes a failing plan as small as it can and says how to see it again.
func report(t *testing.T, f finding) {
	t.Helper()
	if !*small {
		t.Error(f)
		return
	}
	smallest, tries := shrink(f, func(p plan) finding { return guarded(t, p) })
	data, err := json.MarshalIndent(smallest.plan, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf("%s/regie-sim-%d.json", os.TempDir(), f.plan.Seed)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Errorf("seed %d violates:\n\t%s\nThe smallest plan of %d that does so too:\n%s\n\t%s\nAgain: make sim SEED=%d SEEDS=1, or make sim PLAN=%s for the small one",
		f.plan.Seed, strings.Join(f.violations, "\n\t"), tries, data, strings.Join(smallest.violations, "\n\t"), f.plan.Seed, file)
}

// printed is a plan as it comes back from its file.
func printed(t *testing.T, p plan) (out plan) {
	t.Helper()
	data, err := json.Marshal(p)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func simulateFile(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(*planFile)
	if err != nil {
		t.Fatal(err)
	}
	var p plan
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	f := guarded(t, p)
	t.Log("\n" + f.transcript)
	for _, v := range f.violations {
		t.Error(v)
	}
}

// TestSameSeedSameTranscript simulates seeds twice, the second time from the plan as it is printed,
// and expects the same, byte for byte.
func TestSameSeedSameTranscript(t *testing.T) {
	first := firstSeed(t)
	for seed := first; seed < first+uint64(max(quick/3, *seeds/20)); seed++ {
		p := planOf(seed, false)
		a, b := guarded(t, p), guarded(t, printed(t, p))
		if a.transcript == b.transcript {
			continue
		}
		if *verbose {
			_ = os.WriteFile(fmt.Sprintf("%s/a", os.TempDir()), []byte(a.transcript), 0o600)
			_ = os.WriteFile(fmt.Sprintf("%s/b", os.TempDir()), []byte(b.transcript), 0o600)
		}
		x, y := strings.Split(a.transcript, "\n"), strings.Split(b.transcript, "\n")
		for i := range min(len(x), len(y)) {
			if x[i] != y[i] {
				t.Errorf("seed %d: line %d of the transcripts differs:\n%s\n%s", seed, i+1, clip(x[i], 3000), clip(y[i], 3000))
				break
			}
		}
		if len(x) != len(y) {
			t.Errorf("seed %d: %d and %d lines", seed, len(x), len(y))
		}
	}
}

// TestShrink expects the smallest plan that fails in the same way as the first one did, whatever
// else can fail on the way.
func TestShrink(t *testing.T) {
	fails := func(p plan) (out finding) {
		out.plan = p
		bad, paused := 0, false
		for _, r := range p.Replies {
			if slices.ContainsFunc(r.Parts, func(p part) bool { return p.Tool == "ledger__once" }) {
				bad++
			}
		}
		for _, s := range p.Steps {
			paused = paused || s.Do == doPause
		}
		switch {
		case bad >= 2 && paused && len(p.Deaths) > 0:
			out.violations = []string{fmt.Sprintf("the call %d happened twice", len(p.Replies))}
		case len(p.Replies) == 0:
			out.violations = []string{"something else"}
		}
		return out
	}
	shrunk := 0
	for seed := range uint64(20 * quick) {
		f := fails(planOf(seed, false))
		if len(f.violations) == 0 || len(f.plan.Replies) == 0 {
			continue
		}
		shrunk++
		small, _ := shrink(f, fails)
		p, parts := small.plan, 0
		for _, r := range p.Replies {
			parts += len(r.Parts)
		}
		if len(small.violations) == 0 || len(p.Replies) != 2 || parts != 2 || len(p.Steps) != 2 || len(p.Deaths) != 1 || len(p.Tools) != 0 || p.Validate || p.Left {
			t.Errorf("seed %d is left with %+v (%v)", seed, p, small.violations)
		}
	}
	if shrunk < quick/8 {
		t.Errorf("only %d plans were there to be shrunk", shrunk)
	}
}
