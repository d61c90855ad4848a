//go:build faults

package crash

import (
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store/sqlite"
)

var outages = flag.Int("outages", 40, "how often the power fails")

// TestPowerLoss kills processes as TestCrash does, and then takes away of the database what they
// had not synced: all of it, a part of it, or the middle of a write. What was acknowledged is still
// there, and what happened in the world is known (spec 12.3).
func TestPowerLoss(t *testing.T) {
	h := newHarness(t, "")
	h.power = &outage{}
	started := time.Now()
	for h.killed < *outages && len(h.violations()) == 0 {
		h.session()
	}
	for _, v := range h.violations() {
		t.Error(v)
	}
	t.Logf("%d outages in %d runs, %.1f/s, seed %d; %d writes lost, %d kept by chance, %d torn, %d violations", h.killed, h.runs,
		float64(h.killed)/time.Since(started).Seconds(), h.first, h.power.lost, h.power.kept, h.power.torn, len(h.violations()))
	if !t.Failed() && (h.power.lost == 0 || h.power.kept == 0 || h.power.torn == 0) {
		t.Error("nothing was ever lost, kept or torn: this shows nothing")
	}
}

// TestPowerLossIsSeen expects TestPowerLoss to catch a store that acknowledges before the disk has
// it.
func TestPowerLossIsSeen(t *testing.T) {
	h := newHarness(t, fault.BugUnsynced)
	h.power = &outage{}
	for h.killed < 1000 && len(h.violations()) == 0 {
		h.session()
	}
	if len(h.violations()) == 0 {
		t.Fatalf("a store that does not sync was not caught within %d outages", h.killed)
	}
	t.Logf("caught after %d outages: %s", h.killed, h.violations()[0])
}

// outage makes a process's death one of the whole machine, as far as the database is concerned.
type outage struct {
	before           map[string][]byte // the files as they were when the process started
	strikes          bool              // in the middle of what SQLite does to its files
	lost, kept, torn int
}

func (h *harness) diskLog() string { return filepath.Join(h.dir, "disk.log") }

// powerOn notes what is on the disk before a process starts. Nobody may have the database open.
func (h *harness) powerOn() {
	if h.power == nil {
		return
	}
	if err := os.Remove(h.diskLog()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		h.t.Fatal(err)
	}
	h.closeView()
	h.power.before = map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(h.dir, "data", sqlite.FileName+"*"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "-shm") { // memory, not a file
			continue
		}
		if h.power.before[name], err = os.ReadFile(name); err != nil {
			h.t.Fatal(err)
		}
	}
	h.lookAt()
}

// powerOff makes the database what the disk still holds.
func (h *harness) powerOff(died bool) {
	if h.power == nil || !died {
		return
	}
	h.closeView()
	ops, err := readDisk(h.diskLog())
	if err != nil {
		h.t.Fatal(err)
	}
	left := h.power.left(ops, h.random)
	names, err := filepath.Glob(filepath.Join(h.dir, "data", sqlite.FileName+"*"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, name := range names { // new files: nobody who held the old ones can reach them
		if err := os.Remove(name); err != nil {
			h.t.Fatal(err)
		}
	}
	for name, data := range left {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
	h.lookAt()
}

// left works out the files after an outage: what was synced is there; of the rest, whatever chance
// leaves.
func (o *outage) left(ops []diskOp, random *rand.Rand) map[string][]byte {
	files, unsynced := map[string][]byte{}, map[string][]diskOp{}
	for name, data := range o.before {
		files[name] = append([]byte(nil), data...)
	}
	for _, op := range ops {
		switch op.kind {
		case opSync:
			for _, earlier := range unsynced[op.path] {
				files[op.path] = earlier.apply(files[op.path])
			}
			delete(unsynced, op.path)
		case opDelete:
			// the directory is synced with it, or the file comes back whole: SQLite deletes only
			// what it needs no more
			delete(files, op.path)
			delete(unsynced, op.path)
		default:
			unsynced[op.path] = append(unsynced[op.path], op)
		}
	}
	luck := random.IntN(3) // nothing is kept, half is, nearly all is
	for name, ops := range unsynced {
		for _, op := range ops {
			switch {
			case random.IntN(16) >= luck*7:
				o.lost++
				continue
			case op.kind == opWrite && len(op.data) > 512 && random.IntN(4) == 0: // torn between two sectors
				op.data = op.data[:512*(1+random.IntN(len(op.data)/512))]
				o.torn++
			default:
				o.kept++
			}
			files[name] = op.apply(files[name])
		}
	}
	return files
}

// apply does to a file what SQLite did.
func (op diskOp) apply(data []byte) []byte {
	switch op.kind {
	case opWrite:
		if need := int(op.offset) + len(op.data); need > len(data) {
			data = append(data, make([]byte, need-len(data))...)
		}
		copy(data[op.offset:], op.data)
	case opTruncate:
		if int(op.offset) < len(data) {
			return data[:op.offset]
		}
	}
	return data
}

// TestDiskLog keeps the recorder honest: what it says of a store that was closed in good order is
// what lies on the disk.
func TestDiskLog(t *testing.T) {
	h := newHarness(t, "")
	h.power = &outage{}
	h.newStore()
	p := planOf(h.next)
	h.powerOn()
	// The view from outside opens its file only when somebody looks: without it the last process to
	// close takes the second file away.
	if err := h.world.db.QueryRowContext(t.Context(), "SELECT count(*) FROM sessions").Scan(new(int)); err != nil {
		t.Fatal(err)
	}
	if died := h.life(regie.NewID(), p, false); died {
		t.Fatal("the process died")
	}
	ops, err := readDisk(h.diskLog())
	if err != nil || len(ops) == 0 {
		t.Fatalf("%d operations, %v", len(ops), err)
	}
	left := h.power.left(ops, rand.New(rand.NewPCG(1, 1)))
	for _, name := range []string{sqlite.FileName, sqlite.FileName + "-wal"} {
		name = filepath.Join(h.dir, "data", name)
		now, err := os.ReadFile(name)
		if err != nil || len(now) == 0 || string(left[name]) != string(now) {
			t.Errorf("the log makes a file %s of %d bytes, there is one of %d: %v", filepath.Base(name), len(left[name]), len(now), err)
		}
	}
	for _, v := range h.violations() {
		t.Error(v)
	}
}
