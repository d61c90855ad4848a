//go:build faults && linux

package crash

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/invariant"
)

// fleet is several engine processes on one database, each with a data directory of its own.
type fleet struct {
	h       *harness
	db      *sql.DB // the database, looked into from outside
	reader  *app.Conn
	members []*member

	mu      sync.Mutex
	ending  bool
	awaited map[string]*interruption // rounds whose holder was taken away, by id
	none    time.Time                // until when no engine was up
	figures
}

// noneLeft is what a server says that has no connection left: it is not ours alone, and who asks
// again is served.
const noneLeft = "SQLSTATE 53300"

// figures are what a run counts.
type figures struct {
	kills, stops, cuts, refused, overtaken, full int
	// by another engine, from the loss of the holder to the first stored step
	takeovers  []time.Duration
	successors []time.Duration // by the next process of the same data directory
}

// member is one place in a fleet: the processes that have its data directory, one after the other.
type member struct {
	name, dir string
	random    *rand.Rand // of its own goroutine
	client    *client.Client

	// under the fleet's mu
	process *exec.Cmd
	pid     int
	up      bool
	stopped bool
	since   time.Time // when it was last ready, or went on after a stop
	woken   bool      // it was stopped before
	dying   bool      // it was killed, or told to end
}

// node is an engine process: it runs until its standard input ends.
func node(ctx context.Context) error {
	settings, err := config.Load(os.Getenv, config.Flags{})
	if err != nil {
		return err
	}
	capped(&settings)
	tools, err := tools(os.Getenv("REGIE_CRASH_LEDGER"))
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	engine, err := app.OpenEngine(ctx, app.Options{Config: settings, Tools: tools, Log: log})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return engine.Close()
}

// environment is that of a member's processes.
func (f *fleet) environment(m *member) map[string]string {
	return map[string]string{
		"REGIE_CRASH_CHILD": "node", "REGIE_DATABASE": f.h.database + "&pool_max_conns=6&application_name=" + f.named(m), "HOME": f.h.dir, "REGIE_DATA_DIR": m.dir, "REGIE_BASE_URL": f.h.world.model.URL + "/v1",
		"REGIE_MODEL": "scripted", "REGIE_CRASH_LEDGER": f.h.world.ledger.URL, "REGIE_CRASH_DELAY": "20ms", "REGIE_BUG": f.h.bug,
	}
}

// newFleet makes the data directories of n engines, with the key of the harness's own.
func newFleet(h *harness, n int) *fleet {
	f := &fleet{h: h, awaited: map[string]*interruption{}}
	own, err := config.Load(h.settings, config.Flags{})
	if err != nil {
		h.t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(own.DataDir, "audit.key"))
	if err != nil {
		h.t.Fatal(err)
	}
	if f.db, err = sql.Open("pgx", h.database); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = f.db.Close() })
	f.db.SetMaxOpenConns(4)
	for i := range n {
		m := &member{name: string(rune('a' + i)), random: rand.New(rand.NewPCG(h.first, uint64(i)+10))}
		m.dir = filepath.Join(h.dir, m.name)
		environment := f.environment(m)
		settings, err := config.Load(func(name string) string { return environment[name] }, config.Flags{})
		if err == nil {
			err = os.MkdirAll(settings.DataDir, 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(settings.DataDir, "audit.key"), key, 0o600)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		socket := filepath.Join(settings.DataDir, "engine.sock")
		m.client = client.Local(func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", socket) }, "en")
		m.client.Patience = time.Second
		f.members = append(f.members, m)
	}
	return f
}

// live keeps one place filled, process after process, until the fleet ends.
func (f *fleet) live(m *member) {
	for !f.isEnding() {
		point := ""
		if m.random.IntN(3) == 0 {
			point = fmt.Sprintf("%s:%d", common[m.random.IntN(len(common))], 1+m.random.IntN(30))
		}
		if err := f.process(m, point); err != nil {
			f.h.world.violate("engine %s: %v", m.name, err)
			return
		}
		if !f.isEnding() {
			// Some come back at once, some long after others have taken over.
			f.pause(time.Duration(m.random.IntN([]int{1, 1000, 9000, 15000}[m.random.IntN(4)])) * time.Millisecond)
		}
	}
}

// process is the life of one process of a place, from its start to its end.
func (f *fleet) process(m *member, point string) error {
	child := exec.CommandContext(context.Background(), os.Args[0])
	for name, value := range f.environment(m) {
		child.Env = append(child.Env, name+"="+value)
	}
	child.Env = append(child.Env, "REGIE_FAULT="+point)
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also where it is stopped
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	complaints, err := child.StderrPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	f.mu.Lock()
	m.process, m.pid, m.dying, m.woken = child, child.Process.Pid, false, false
	f.mu.Unlock()
	var reading sync.WaitGroup
	var said strings.Builder
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.mu.Lock()
			if lines.Text() == "ready" {
				f.setUp(m, true)
			}
			f.mu.Unlock()
		}
	})
	reading.Go(func() {
		for lines := bufio.NewScanner(complaints); lines.Scan(); {
			f.logged(m, lines.Text())
			fmt.Fprintln(&said, lines.Text())
		}
	})
	ended := make(chan struct{})
	go func() { // an orderly end
		for !f.isEnding() {
			select {
			case <-ended:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
		_ = in.Close()
	}()
	reading.Wait()
	err = child.Wait()
	died := time.Now()
	close(ended)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setUp(m, false)
	m.stopped = false
	if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		f.kills++
		name, _, _ := strings.Cut(point, ":")
		if m.dying || name == "" {
			name = "random"
		}
		f.h.at[name]++
		f.interrupted(m.pid, m, died, false)
		return nil
	}
	// the server is not ours alone; whoever starts engines starts it again
	if err != nil && strings.Contains(said.String(), noneLeft) {
		f.full++
		return nil
	}
	if err != nil {
		return fmt.Errorf("it ended by itself, with %w: %s", err, said.String())
	}
	return nil
}

// setUp is called with mu held.
func (f *fleet) setUp(m *member, up bool) {
	before := f.isUp()
	m.up, m.since = up, time.Now()
	if !before && f.isUp() {
		f.none = time.Now()
	}
}

// isUp reports whether any engine runs; it is called with mu held.
func (f *fleet) isUp() bool {
	for _, m := range f.members {
		if m.up && !m.stopped {
			return true
		}
	}
	return false
}

// idler is an engine that has been up for so long without a break; nil where there is none. It is
// called with mu held.
func (f *fleet) idler(length time.Duration) *member {
	for _, m := range f.members {
		if m.up && !m.stopped && time.Since(m.since) > length {
			return m
		}
	}
	return nil
}

func (f *fleet) isEnding() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ending
}

// pause waits, but not for a fleet that ends.
func (f *fleet) pause(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until) && !f.isEnding(); {
		time.Sleep(min(20*time.Millisecond, time.Until(until)))
	}
}

// logged reads a line of an engine's log: that it was refused because another one has the session
// is what this is about, any other error is none of a living engine.
func (f *fleet) logged(m *member, line string) {
	var said struct{ Level, Msg, Code string }
	if json.Unmarshal([]byte(line), &said) != nil {
		return
	}
	f.mu.Lock()
	stopped, fresh := m.stopped || m.woken, m.stopped || m.woken && time.Since(m.since) < 2*time.Second
	full := strings.Contains(line, noneLeft)
	if said.Code == string(regie.CodeStale) && stopped {
		f.refused++
	}
	if full {
		f.full++
	}
	f.mu.Unlock()
	switch {
	case said.Code == string(regie.CodeStale) && stopped, said.Code == string(regie.CodeDatabaseDown) && fresh, full:
		// it waited for longer than it thinks
	case said.Code == string(regie.CodeStale):
		f.h.world.violate("engine %s lost a round while it lived (invariant 8): %s", m.name, line)
	case said.Level == "ERROR":
		f.h.world.violate("engine %s logs an error: %s", m.name, line)
	}
}

// named is how the server knows an engine's connections.
func (f *fleet) named(m *member) string {
	_, schema, _ := strings.Cut(f.h.database, "search_path=")
	return m.name + "-" + schema
}

// cut has the server end all connections of an engine: it goes on with new ones, as if nothing had
// been.
func (f *fleet) cut(m *member) {
	_, err := f.db.ExecContext(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", f.named(m))
	if err != nil {
		f.h.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cuts++
}

// harass kills, stops, cuts off and ends engines at moments of chance for as long as it is told.
func (f *fleet) harass(until time.Time) {
	var waking sync.WaitGroup
	defer waking.Wait()
	for random := f.h.random; time.Now().Before(until) && len(f.h.violations()) == 0; {
		f.pause(time.Duration(200+random.IntN(4000)) * time.Millisecond)
		m := f.members[random.IntN(len(f.members))]
		if random.IntN(5) == 0 && f.h.bug == "" {
			f.cut(m)
			continue
		}
		f.mu.Lock()
		if !m.up || m.stopped || m.dying {
			f.mu.Unlock()
			continue
		}
		if random.IntN(5) < 3 && f.h.bug == "" {
			m.dying = true
			_ = m.process.Process.Kill()
			f.mu.Unlock()
			continue
		}
		f.stops++
		m.stopped = true
		_ = m.process.Process.Signal(syscall.SIGSTOP)
		f.interrupted(m.pid, m, time.Now(), true)
		f.mu.Unlock()
		length := time.Duration(7000+random.IntN(6000)) * time.Millisecond // longer than a lease
		if random.IntN(4) == 0 {
			length = time.Duration(random.IntN(5000)) * time.Millisecond
		}
		waking.Go(func() { f.wake(m, m.pid, length) })
	}
}

// wake has a stopped process go on.
func (f *fleet) wake(m *member, pid int, after time.Duration) {
	f.pause(after)
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.pid != pid || !m.stopped {
		return
	}
	before := f.isUp()
	m.since, m.woken, m.stopped = time.Now(), true, false
	if !before {
		f.none = m.since
	}
	_ = m.process.Process.Signal(syscall.SIGCONT)
	for id, i := range f.awaited {
		if i.pid == pid && !i.claimed {
			delete(f.awaited, id)
		}
	}
}

// isLate looks at who brings an effect about: who holds the session, or a process that was stopped
// between its last look and the effect, which nothing outside of it can keep from that.
func (f *fleet) isLate(ctx context.Context, e invariant.Effect) bool {
	var holder sql.NullString
	err := f.db.QueryRowContext(ctx, "SELECT s.lease_holder FROM calls c JOIN sessions s ON s.n = c.session WHERE c.id = $1", e.Key.String()).Scan(&holder)
	if err != nil || strings.Contains(holder.String, fmt.Sprintf(" pid %d ", e.Holder)) {
		return false // AtEffect says what is wrong with it, if anything
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.members {
		if m.pid == e.Holder && (m.stopped || m.woken && time.Since(m.since) < time.Second || m.dying || !m.up) {
			f.overtaken++
			return true
		}
	}
	f.h.world.violate("%s happened in process %d while %q holds its session (invariant 8)", e.Name, e.Holder, holder.String)
	return false
}
