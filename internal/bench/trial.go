package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// trial is what one process does.
type trial struct {
	Contestant string `json:"contestant"` // regie, floor-none, floor-full, floor-group
	URL        string `json:"url"`
	Steps      int    `json:"steps"`      // tool exchanges in a run
	Concurrent int    `json:"concurrent"` // runs side by side
	Runs       int    `json:"runs"`
	Tokens     int    `json:"tokens"`    // of each reply, where streams are measured
	Listeners  int    `json:"listeners"` // to each of them
	Chat       int    `json:"chat"`      // the budget of a chat in tokens, where all runs are of one session
	Database   string `json:"database"`  // the URL of a PostgreSQL; empty: SQLite
	Key        []byte `json:"key"`       // the audit key of its engines
	Name       string `json:"name"`      // before the names of runs, where trials run side by side
}

// result holds the measurements of a trial.
type result struct {
	Seconds    float64 `json:"seconds"`
	Exchanges  int     `json:"exchanges"`       // tool exchanges
	P99        float64 `json:"p99"`             // milliseconds of a run
	PeakMiB    float64 `json:"peak_mib"`        // of the process
	CPU        float64 `json:"cpu"`             // its processor time, microseconds in an exchange
	OpenMS     float64 `json:"open_ms"`         // start to ready
	DiskMiB    float64 `json:"disk_mib"`        // of the store, after closing
	EarlyAlloc float64 `json:"early_alloc"`     // bytes allocated in an exchange, around the 10th
	LateAlloc  float64 `json:"late_alloc"`      // around the last
	First      []int64 `json:"first,omitempty"` // nanoseconds that each first token took
	EarlyMS    float64 `json:"early_ms"`        // of a run, around the 100th
	LateMS     float64 `json:"late_ms"`         // of one of the last
}

type contender interface {
	run(ctx context.Context, name string, steps int) error
	close() error
}

// compete runs a trial in this process and prints its result.
func compete(encoded string) error {
	var t trial
	if err := json.Unmarshal([]byte(encoded), &t); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "regie-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	meter := newMeter(t.Steps)
	opened := time.Now()
	c, err := t.open(dir, meter.noop)
	if err != nil {
		return err
	}
	if t.Tokens > 0 {
		out, err := t.streams(c)
		if err = errors.Join(err, c.close()); err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(out)
	}
	out := result{OpenMS: float64(time.Since(opened).Microseconds()) / 1000, Exchanges: max(1, t.Steps) * t.Runs}
	// A few runs warm up connections and caches; they are not counted.
	if t.Steps < 100 {
		for i := range 2 * t.Concurrent {
			if err := c.run(context.Background(), t.Name+"warm"+strconv.Itoa(i), t.Steps); err != nil {
				return errors.Join(err, c.close())
			}
		}
		if _, err := fetchGaps(t.URL); err != nil {
			return err
		}
	}
	before, err := resources()
	if err != nil {
		return err
	}
	latencies, seconds, err := t.all(c)
	after, failed := resources()
	if err = errors.Join(err, failed, c.close()); err != nil {
		return err
	}
	if n := len(latencies); t.Chat > 0 && n >= 200 {
		out.EarlyMS, out.LateMS = median(latencies[50:150]), median(latencies[n-100:])
	}
	out.Seconds, out.P99 = seconds, percentile(latencies, 99)
	out.CPU = (processor(after) - processor(before)) / float64(out.Exchanges)
	out.EarlyAlloc, out.LateAlloc = meter.allocations()
	out.DiskMiB, err = diskUse(dir)
	if err != nil {
		return err
	}
	usage, err := resources()
	out.PeakMiB = float64(usage.Maxrss) / 1024
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(out))
}

// resources is what this process has used so far.
func resources() (usage syscall.Rusage, err error) {
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage, err
}

// processor returns a process's processor time in microseconds. Other load on the machine hardly
// changes it.
func processor(u syscall.Rusage) float64 {
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1000
}

func (t trial) open(dir string, noop func()) (contender, error) {
	switch t.Contestant {
	case "regie":
		return newRegie(context.Background(), t, dir, noop)
	case "floor-none", "floor-full", "floor-group":
		return newFloor(t.URL, dir, t.Contestant[len("floor-"):], noop)
	default:
		return nil, fmt.Errorf("there is no contestant %q", t.Contestant)
	}
}

// all runs every run, Concurrent at a time, and returns their latencies in milliseconds.
func (t trial) all(c contender) (latencies []float64, seconds float64, err error) {
	var next atomic.Int64
	var mu sync.Mutex
	var group sync.WaitGroup
	started := time.Now()
	for range t.Concurrent {
		group.Go(func() {
			for {
				i := int(next.Add(1))
				if i > t.Runs {
					return
				}
				begun := time.Now()
				failed := c.run(context.Background(), t.Name+strconv.Itoa(i), t.Steps)
				took := float64(time.Since(begun).Microseconds()) / 1000
				mu.Lock()
				latencies = append(latencies, took)
				err = errors.Join(err, failed)
				mu.Unlock()
				if failed != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return latencies, time.Since(started).Seconds(), err
}

// meter reads the process's allocations from inside the no-op tools of one long run.
type meter struct {
	steps int
	calls atomic.Int64
	at    sync.Map // call → bytes allocated by then
}

func newMeter(steps int) *meter { return &meter{steps: steps} }

func (m *meter) noop() {
	n := m.calls.Add(1)
	if m.steps < 100 {
		return
	}
	switch n {
	case 20, 60, int64(2*m.steps - 60), int64(2*m.steps - 20):
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		m.at.Store(n, stats.TotalAlloc)
	}
}

// allocations returns the bytes allocated in one exchange, early and late in the run.
func (m *meter) allocations() (early, late float64) {
	between := func(a, b int64) float64 {
		from, ok1 := m.at.Load(a)
		to, ok2 := m.at.Load(b)
		if !ok1 || !ok2 {
			return 0
		}
		before, _ := from.(uint64)
		after, _ := to.(uint64)
		return float64(after-before) / (float64(b-a) / 2)
	}
	return between(20, 60), between(int64(2*m.steps-60), int64(2*m.steps-20))
}

func diskUse(dir string) (mib float64, err error) {
	err = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			mib += float64(info.Size()) / (1 << 20)
		}
		return err
	})
	return mib, err
}
