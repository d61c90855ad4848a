//go:build faults

package crash

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestMain makes this binary the child where the harness asks for it.
func TestMain(m *testing.M) {
	if code, ours := app.Helper(os.Args); ours {
		os.Exit(code)
	}
	task := map[string]func(context.Context) error{"person": child, "open": opener, "node": node, "fires": fires, "notify": notifier}[os.Getenv("REGIE_CRASH_CHILD")]
	if task == nil {
		os.Exit(m.Run())
	}
	if path := os.Getenv("REGIE_CRASH_DISK"); path != "" {
		if err := recordDisk(path); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
	}
	if err := task(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a process of the person: it submits the request, or attaches to what goes on, does what
// the plan says, and stays until nothing is left to do. Whether it is the engine or a client of the
// one that runs depends on who came first. It tells what was acknowledged on its standard output
// and in the journal.
func child(ctx context.Context) error {
	settings, err := config.Load(os.Getenv, config.Flags{})
	if err != nil {
		return err
	}
	capped(&settings)
	tools, err := tools(os.Getenv("REGIE_CRASH_LEDGER"))
	if err != nil {
		return err
	}
	seed, err := strconv.ParseUint(os.Getenv("REGIE_CRASH_SEED"), 10, 64)
	if err != nil {
		return err
	}
	session, err := regie.ParseID(os.Getenv("REGIE_CRASH_SESSION"))
	if err != nil {
		return err
	}
	told, err := openJournal(os.Getenv("REGIE_CRASH_JOURNAL"))
	if err != nil {
		return err
	}
	plan := planOf(seed)
	if os.Getenv("REGIE_CRASH_SECOND") != "" {
		plan.word, plan.undos = "", 0 // one of them is enough to say it
	}
	settings.File.Slots.Exclusive = plan.kind == "queued"
	if isHooked(seed) {
		settings.File.Hooks = []config.Hook{{On: string(regie.HookBeforeTool), Tools: []string{"ledger.*"}, Command: []string{"true"}, Timeout: time.Minute}}
	}
	conn, err := app.Connect(ctx, app.Options{Config: settings, Tools: tools, TuneEngine: func(c *engine.Config) { c.ApprovalTTL, c.QuestionTTL = plan.ttl, plan.ttl }})
	if err != nil {
		return err
	}
	p := newPerson(conn, conn.Undos, plan, session, os.Getenv("REGIE_CRASH_ROOT"), settings, told)
	if err := p.live(ctx); err != nil {
		return err
	}
	return conn.Close()
}

// isHooked reports whether a scenario has a hook that objects to nothing: all else must be as
// without.
func isHooked(seed uint64) bool { return seed%4 == 0 }

// capped has models cost something, and what they may cost bounded, far away: each call is
// reserved, and none is refused.
func capped(settings *config.Config) {
	dollar, ten := config.Dollars(price.Million), config.Dollars(10*price.Million)
	p := settings.Providers[settings.Provider]
	p.Prices = map[string]config.Rates{config.AnyModel: {Input: &dollar, Output: &ten}}
	settings.Providers[settings.Provider] = p
	settings.File.Budget.USDPerSession, settings.File.Budget.USDPerDay = 100_000*price.Million, 900_000*price.Million
}

// opener only opens the store, which migrates it.
func opener(ctx context.Context) error {
	cfg := sqlite.Config{Dir: os.Getenv("REGIE_DATA_DIR")}
	if os.Getenv("REGIE_CRASH_NEXT") != "" {
		var err error
		if cfg.Migrations, err = storetest.NextMigrations(ownMigrations); err != nil {
			return err
		}
	}
	s, err := sqlite.Open(ctx, cfg)
	if err != nil {
		return err
	}
	return s.Close()
}
