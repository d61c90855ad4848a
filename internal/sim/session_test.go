package sim

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite" // to look at the engine's database from outside

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// finding is what came of a session.
type finding struct {
	plan       plan
	violations []string
	transcript string
	seen       map[string]int
}

// session is one session on its way.
type session struct {
	*world
	t   testing.TB
	dir string
	// database is the URL of the session's schema where it is not on SQLite.
	database string
	engine   *app.Engine
	log      *alarm
	person

	slots     config.Slots // zero: as many as are usual
	committed func()       // called after each commit; may be nil
	following sync.WaitGroup
	backoffs  int
	cap       atomic.Int64 // on what the session may cost, in millionths of a dollar; 0: none
}

// empty is a data directory with a database in which nothing has happened: what takes the longest
// in a session is to make one.
var empty = sync.OnceValues(func() (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "regie-sim-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(context.Background(), sqlite.Config{Dir: dir})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	out := map[string][]byte{}
	for _, f := range files {
		if out[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			return nil, err
		}
	}
	return out, err
})

// workshop returns where sessions lie: in memory where there is such a place, because a session
// that waits for a disk shows nothing more.
func workshop() string {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		if dir, err := os.MkdirTemp(memory, "regie-sim-"); err == nil {
			return dir
		}
	}
	dir, err := os.MkdirTemp("", "regie-sim-")
	if err != nil {
		panic(err)
	}
	return dir
}

// furnished is a workshop with a store that nothing is in, and a workspace.
func furnished(t *testing.T) string {
	t.Helper()
	dir := workshop()
	files, err := empty()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, "data", name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// simulate runs a plan in a bubble of its own and returns what it found.
func simulate(t *testing.T, p plan) (out finding) {
	t.Helper()
	dir := furnished(t)
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "work", ".env"), []byte("SECRET="+canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	database := ""
	if onPostgres() {
		var drop func()
		database, drop = storetest.PostgresSchema(t)
		defer drop()
	}
	synctest.Test(t, func(t *testing.T) {
		s := &session{world: newWorld(p), t: t, dir: dir, database: database}
		s.live()
		out = finding{plan: p, violations: s.violations, transcript: s.transcript(), seen: s.seen}
	})
	return out
}

// onPostgres reports whether sessions lie in the PostgreSQL of REGIE_TEST_POSTGRES.
func onPostgres() bool { return os.Getenv("REGIE_TEST_STORE") == "postgres" }

// lookIn opens the session's database from outside, openStore as an engine would.
func (s *session) lookIn() (interface {
	invariant.Rows
	Close() error
}, error,
) {
	if s.database != "" {
		return postgres.Look(s.database)
	}
	return sql.Open("sqlite", "file:"+filepath.Join(s.dir, "data", sqlite.FileName)+"?_pragma=query_only(1)&_pragma=busy_timeout(5000)")
}

func (s *session) openStore(ctx context.Context) (*sqlite.Store, error) {
	if s.database != "" {
		return postgres.Open(ctx, postgres.Config{URL: s.database, Dir: filepath.Join(s.dir, "data")})
	}
	return sqlite.Open(ctx, sqlite.Config{Dir: filepath.Join(s.dir, "data")})
}

// live is the whole session.
func (s *session) live() {
	db, err := s.lookIn()
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	s.db, s.log = db, &alarm{world: s.world}
	s.person = newPerson()
	s.cap.Store(s.plan.Cap)
	s.open()
	for i := range s.plan.Steps {
		s.step(i, &s.plan.Steps[i])
	}
	s.finish()
	s.life.end()
	s.shut()
	s.checkGoroutines()
	s.check()
}

// config is that of an engine with a model and its key.
func (s *session) config() config.Config {
	return config.Config{DataDir: filepath.Join(s.dir, "data"), Database: s.database, Provider: "sim", Model: "m", APIKey: canary, File: config.File{Slots: s.slots}}
}

// open begins a life, or several, until one is not over before it has begun.
func (s *session) open() {
	for {
		var at death
		if s.lives < len(s.plan.Deaths) {
			at = s.plan.Deaths[s.lives]
		}
		l := s.newLife(at)
		engine, err := s.start(l)
		if err == nil {
			s.engine = engine
			// what runs on and who looks at it would both write at this moment: that somebody is
			// there is stored
			synctest.Wait()
			s.follow()
			synctest.Wait()
		}
		switch {
		case err != nil && !l.isDead():
			s.violate("the engine does not open: %v", err)
			l.end()
			s.t.Fatalf("seed %d: the engine does not open: %v", s.plan.Seed, err)
		case !l.isDead():
			s.note(byPerson, "life %d begins", l.n)
			return
		}
		s.bury()
	}
}

// start opens an engine.
func (s *session) start(l *life) (*app.Engine, error) {
	tools, err := l.tools()
	if err != nil {
		return nil, err
	}
	model, err := openai.New(openai.Config{Name: "sim", BaseURL: "http://model.invalid/v1", APIKey: canary, Dial: l.dial})
	if err != nil {
		return nil, err
	}
	watched := providertest.Watch(model, func(err error) { s.violate("a thread that not every vendor takes (invariant 18): %v", err) })
	return app.OpenEngine(context.Background(), app.Options{
		Config: s.config(), Tools: tools, Alone: true, Log: slog.New(s.log),
		Models: func(string) (provider.Provider, error) { return watched, nil },
		TuneStore: func(c *sqlite.Config) {
			c.Gate = func(committed, wrote bool) error {
				if committed && wrote && s.committed != nil {
					s.committed()
				}
				return l.gate(committed, wrote)
			}
		},
		TuneEngine: func(c *engine.Config) {
			c.ApprovalTTL, c.QuestionTTL = s.plan.ApprovalTTL, s.plan.QuestionTTL
			c.Backoff = s.backoff
			c.Price = func(string, string, regie.Hash) (price.Price, bool, bool) { return modelPrice, true, true }
			c.Caps = func(string) regie.Caps { return regie.Caps{Session: s.cap.Load()} }
			c.Retry.Backoff = func(try int) time.Duration { return time.Duration(try) * 200_123_457 }
		},
	})
}

// modelPrice is what the model costs: a dollar for a million tokens of a prompt, ten for a reply.
var modelPrice = price.Price{Rates: price.Rates{Input: 1_000_000, CachedInput: 100_000, CacheWrite: 1_250_000, Output: 10_000_000}}

// backoff is the engine's own without its chance: each is a time of its own.
func (s *session) backoff(try int, wish time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backoffs++
	return max(500*time.Millisecond<<min(try-2, 6), min(wish, time.Minute)) + time.Duration(s.backoffs)*1_009
}

// bury closes what is left of a dead life, and lets time pass until the next.
func (s *session) bury() {
	s.note(byPerson, "life %d is over", s.life.n)
	s.saw("death")
	s.shut()
	if s.lives < len(s.plan.Deaths) {
		time.Sleep(s.plan.Deaths[s.lives].Down)
	}
	s.lives++
}

// shut closes the engine.
func (s *session) shut() {
	if s.engine == nil {
		return
	}
	if err := s.engine.Close(); err != nil && !s.life.isDead() {
		s.violate("the engine does not close: %v", err)
	}
	s.engine = nil
	s.following.Wait()
	s.life.end() // what is deaf ends with the process
	synctest.Wait()
}

// revive begins the next life where this one has ended.
func (s *session) revive() bool {
	if !s.life.isDead() {
		return false
	}
	s.bury()
	s.open()
	return true
}

// sleep lets time pass, over the deaths that come in it, until nothing else moves.
func (s *session) sleep(d time.Duration) {
	for until := time.Now().Add(d); ; {
		timer := time.NewTimer(time.Until(until))
		select {
		case <-timer.C:
		case <-s.life.dead:
		}
		timer.Stop()
		synctest.Wait()
		if !s.revive() && !time.Now().Before(until) {
			return
		}
	}
}

// follow reads the session's log as it grows, as a surface does.
func (s *session) follow() {
	if s.acked == 0 { // it is not there
		return
	}
	engine, l := s.engine, s.life
	s.followed = l.n
	s.following.Go(func() {
		err := engine.Service().Events.Follow(access.AsOwner(context.Background()), s.id, s.heard(), func(item dispatch.Item) error {
			if item.Event != nil {
				s.hear(*item.Event)
			}
			return nil
		})
		if regie.CodeOf(err) != regie.CodeEngineGone && !l.isDead() {
			s.violate("the stream ended: %v", err)
		}
	})
}

// alarm is the operator's log: nothing in it is an error that a living engine explains, and nothing
// is a secret.
type alarm struct{ world *world }

// Enabled implements slog.Handler.
func (a *alarm) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (a *alarm) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(attr slog.Attr) bool {
		line += " " + attr.String()
		return true
	})
	if strings.Contains(line, canary) {
		a.world.violate("the log has the canary (invariant 16): %s", line)
	}
	if r.Level >= slog.LevelError && !a.world.currentDead() {
		a.world.violate("the engine logs an error: %s", line)
	}
	return nil
}

// WithAttrs implements slog.Handler; the engine uses none.
func (a *alarm) WithAttrs([]slog.Attr) slog.Handler { return a }

// WithGroup implements slog.Handler; the engine uses none.
func (a *alarm) WithGroup(string) slog.Handler { return a }

func (w *world) currentDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.life.ended
}

// bubbled returns the stacks of the other goroutines of this bubble.
func bubbled() (out []string) {
	buffer := make([]byte, 1<<20)
	stacks := strings.Split(string(buffer[:runtime.Stack(buffer, true)]), "\n\n")
	own := bubbleOf(stacks[0])
	for _, stack := range stacks[1:] {
		if bubbleOf(stack) == own {
			out = append(out, stack)
		}
	}
	return out
}

func bubbleOf(stack string) string {
	head, _, _ := strings.Cut(stack, "\n")
	_, bubble, _ := strings.Cut(head, "synctest bubble ")
	bubble, _, _ = strings.Cut(strings.TrimRight(bubble, "]:"), ",")
	return bubble
}

// checkGoroutines asserts that a closed engine leaves nothing behind.
func (s *session) checkGoroutines() {
	synctest.Wait()
	for _, stack := range bubbled() {
		// our own look into the database
		if !strings.Contains(stack, "database/sql.(*DB).connectionOpener") && !strings.Contains(stack, "testing/synctest") {
			s.violate("a goroutine is left behind (invariant 20): %s", stack)
		}
	}
}

// checkWaiting asserts that a session in which nothing runs holds no goroutine (invariant 20).
func (s *session) checkWaiting() {
	synctest.Wait()
	for _, stack := range bubbled() {
		for _, frame := range []string{"internal/engine.", "internal/tool.", "openai."} {
			if strings.Contains(stack, frame) && s.lingers() == 0 {
				s.violate("a goroutine is held while nothing runs (invariant 20): %s", stack)
			}
		}
	}
	s.saw("waiting looked at")
}

func (w *world) lingers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lingering
}

func (f finding) String() string {
	return fmt.Sprintf("seed %d: %s", f.plan.Seed, strings.Join(f.violations, "\n\t"))
}
