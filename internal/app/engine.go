package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/automation/trigger"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/metrics"
	"github.com/regie-run/regie/internal/notify"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/cache"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/automations"
	"github.com/regie-run/regie/internal/toolkit/mcp"
	"github.com/regie-run/regie/internal/undo"
	"github.com/regie-run/regie/internal/workspace"
)

// Options set up an engine or a connection to one. Config is required.
type Options struct {
	Config config.Config
	// Log gets what an operator needs to see; nil discards it.
	Log *slog.Logger
	// Tools are added to the built-in toolkits.
	Tools []tool.Tool
	// Models replaces the providers of the settings, by name: for programs that embed Regie.
	Models func(name string) (provider.Provider, error)
	// ReadOnly is for commands that only read: they use the running engine or open the store
	// read-only, and create nothing.
	ReadOnly bool
	// StoreOnly opens an engine that takes answers and runs nothing: what they let go on waits for
	// the next engine (decision 1).
	StoreOnly bool
	// Schedules has the engine run automations by their schedules, which a server does. Without it
	// the engine starts only what is due already.
	Schedules bool
	// Alone keeps the engine to this process: it holds the data directory, no other command can ask
	// it anything, and it does not hear the engines that share its database.
	Alone bool
	// TuneStore and TuneEngine change the settings that are in no file, before they are used: for
	// harnesses. Either may be nil.
	TuneStore  func(*sqlite.Config)
	TuneEngine func(*engine.Config)
	// Resumed receives the interrupted runs that the engine resumes at its start.
	Resumed func(rounds []regie.ID)
	// Away is called once when the engine has been gone for more than a moment, and once when an
	// engine answers again.
	Away func(away bool)
}

// Engine is the engine of this process: it holds the data directory (decision 1).
type Engine struct {
	service    *control.Service
	store      *sqlite.Store
	dispatcher *dispatch.Dispatcher
	undoer     *undo.Undoer
	cache      *cache.Cache
	present    *dispatch.Present
	notifier   *notify.Worker
	projects   *projects
	config     config.Config
	providers  *providerSets
	masked     atomic.Pointer[tool.Mask]
	dotenv     dotenvMasks
	readOnly   bool // runs nothing

	mu     sync.Mutex
	owner  regie.User // once it is known
	codecs map[codecKey]provider.Provider

	lock   *os.File
	hub    *dispatch.Hub
	server *http.Server
	memory *memoryListener // for this process's own commands
	served sync.WaitGroup
	public *Served // nil where only this machine's user's commands ask
	check  context.CancelFunc
	wg     sync.WaitGroup
	log    *slog.Logger

	fleet   *mcp.Fleet // nil where nothing runs
	indexes *indexes   // nil until it is wired

	scheduler *trigger.Scheduler
	files     *trigger.FileWatcher
	schedules bool

	holder, place string // as holderName gives them
	token         string // of its server, or what that will be: it is masked before it is written
	proxy         *passer
	counts        atomic.Pointer[metrics.Metrics] // nil without metrics
}

// OpenEngine becomes the engine of the data directory: it takes the lock, opens and migrates the
// store, listens on the socket, and resumes what was interrupted. It returns CodeLocked where
// another engine runs, and the store's codes.
func OpenEngine(ctx context.Context, o Options) (*Engine, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	workspace.Keep(ownPaths(&o.Config)...)
	held, place, err := lockDataDir(o.Config.DataDir, o.Config.Rules())
	if err != nil {
		return nil, err
	}
	e := &Engine{lock: held, log: o.Log, check: func() {}, memory: newMemoryListener()}
	e.holder, e.place = holderName(o.Config, place)
	if err := e.openEngine(ctx, o); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// openReader opens the data directory read-only, without the lock and next to a running engine. It
// returns CodeNotFound before the first run, and CodeConflict where the schema must be migrated
// first.
func openReader(ctx context.Context, o Options) (*Engine, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	workspace.Keep(ownPaths(&o.Config)...)
	store, err := openStore(ctx, o, nil, postgres.Others{})
	if err != nil {
		return nil, err
	}
	e := &Engine{log: o.Log, check: func() {}, memory: newMemoryListener()}
	e.holder, e.place = holderName(o.Config, regie.NewID().String()) // which has no lock, and no place
	if err := e.wireParts(store, dispatch.NewHub(), o); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	e.servePrivately(e.memory)
	return e, nil
}

func (e *Engine) openEngine(ctx context.Context, o Options) error {
	hub := dispatch.NewHub()
	e.hub = hub
	others := postgres.Others{Holder: e.holder}
	if !o.ReadOnly && !o.StoreOnly && !o.Alone { // one that runs nothing has nobody to tell of others
		others.Heard, others.Missed = hub.Foreign, hub.Missed
	}
	store, err := openStore(ctx, o, hub.Commit, others)
	if err != nil {
		return err
	}
	if err := e.wireParts(store, hub, o); err != nil {
		return err
	}
	if e.readOnly { // it was only to migrate, or to store
		e.servePrivately(e.memory)
		return nil
	}
	since := time.Now() // from when on an open call may be another process's
	if o.Config.Database != "" {
		since = since.Add(-leftOpen)
	}
	if err := e.store.LeftProxied(ctx, since); err != nil {
		return err
	}
	e.proxy = newPasser(e)
	e.servePrivately(e.memory)
	resumed, err := e.dispatcher.Start(ctx)
	if err != nil {
		return err
	}
	if !o.Alone {
		listener, err := listenSocket(o.Config.DataDir)
		if err != nil {
			return err
		}
		e.servePrivately(listener)
	}
	if o.Resumed != nil && len(resumed) > 0 {
		o.Resumed(resumed)
	}
	e.quickCheck()
	return nil
}

// wireParts puts the parts together; nothing runs yet.
func (e *Engine) wireParts(store *sqlite.Store, hub *dispatch.Hub, o Options) error {
	places := newProjects(o.Config)
	e.store, e.config, e.projects, e.cache = store, o.Config, places, cache.New(cache.Config{
		Store: store, TTL: o.Config.File.Cache.TTL, Size: o.Config.File.Cache.MaxBytes,
	})
	e.readOnly = o.ReadOnly || o.StoreOnly
	if !e.readOnly {
		places.servers = newServers(places, o.Log)
	}
	e.indexes = newIndexes(o.Config)
	snapshots := newSnapshots(o.Config)
	box := newSandbox(o.Config)
	house, err := newHouse(o, box, e.indexes, snapshots, store.WholeResult,
		func() automations.Service { return e.service.Automations })
	if err != nil {
		return err
	}
	tools, err := e.connectTools(house, o.Config)
	if err != nil {
		return err
	}
	if o.Models == nil {
		o.Models = Models(o.Config)
	}
	if e.token, err = ReadToken(o.Config.DataDir); err != nil { // what is wrong with it whoever serves is told
		e.token = access.NewSecret()
	}
	e.providers = newProviderSets(&e.config, o.Models)
	e.masked.Store(newMask(&e.config, e.token, nil))
	places.mask = func(root string) *tool.Mask { return e.dotenv.maskOf(e.masked.Load(), root) }
	store.SetSlots(o.Config.File.Slots.Capacity())
	store.SetHolder(e.holder)
	settings := engine.Config{
		Yields: func(round regie.ID) bool { return e.dispatcher.Yields(round) },
		Store:  store, Providers: e.providers.modelOf, Tools: tools, Delta: hub.Delta, Progress: hub.Progress,
		NetworkRetry:  o.Config.File.Automation.NetworkRetry,
		NetworkGiveUp: o.Config.File.Automation.NetworkGiveUp.Or(0),
		UserData:      places.userData, Files: e.fileSettings, Scoped: places.ToolsIn,
		HoldsSecret: workspace.HoldsSecret,
		Cache:       e.cache, CacheFold: o.Config.File.Cache.Casefold,
		Levels: approvalLevels(o.Config.File.Approvals), ApprovalTTL: o.Config.File.Approvals.Expire,
		QuestionTTL: o.Config.File.Approvals.QuestionExpire, Translate: translateSentence,
		Price: e.providers.priceOf, Caps: o.Config.File.Caps, Mask: places.mask,
	}
	settings.Confines = func(root string) bool {
		found := box.For(context.Background(), root)
		return found.Err == nil && found.Tier != sandbox.None
	}
	if hooks := newHooks(o.Config, o.Log); hooks != nil {
		settings.Hooks = hooks
	}
	var holds func() bool // nil: this process alone
	if o.Config.Database != "" {
		holds = func() bool { return e.dispatcher.Left() > 0 }
		settings.Left = func() time.Duration { return e.dispatcher.Left() }
	}
	e.countReplies(&settings)
	if o.TuneEngine != nil {
		o.TuneEngine(&settings)
	}
	runner := engine.New(settings)
	e.dispatcher = dispatch.New(store, runner, hub, e.checkServes, e.holder, o.Log)
	e.present = dispatch.NewPresent(store, e.place, cmp.Or(o.Config.File.Presence, 5*time.Minute), o.Log)
	e.notifier = newNotifier(e, o)
	store.SetChannels(e.notifier.Selected())
	e.dispatcher.Watchdog(o.Config.File.Automation.Watchdog.Or(10 * time.Minute))
	if o.Config.Database != "" {
		e.dispatcher.Share(store, postgres.NewQueue(o.Config.Database, o.Log), e.place)
	}
	// What calls of the house left behind needs no server to be understood.
	e.undoer = undo.New(undo.Config{
		Store: store, Tools: func(context.Context) *tool.Registry { return house },
		Holder: e.holder, Holds: holds, Log: o.Log,
	})
	e.dispatcher.Undos(e.undoer.Recover)
	e.service = e.newService(o, runner, snapshots, tools)
	e.wireTriggers(o)
	return nil
}

func newNotifier(e *Engine, o Options) *notify.Worker {
	return notify.New(notify.Config{
		Store: e.store, Channels: o.Config.File.Notifications, Present: e.isPresent, Log: o.Log,
		Translate: func(said regie.Sentence) string { return i18n.New(o.Config.Language).Sentence(said) },
	})
}

// wireTriggers connects the clock of automations and the watch on their files; neither runs yet.
func (e *Engine) wireTriggers(o Options) {
	e.scheduler, e.schedules = trigger.NewScheduler(), o.Schedules
	e.dispatcher.OnFreed(e.scheduler.Freed)
	e.files = trigger.NewFileWatcher(e.service.Automations, o.Log)
	e.service.Schedule(func() { e.scheduler.Changed(); e.files.Changed() })
}

func (e *Engine) newService(o Options, runner *engine.Engine, snapshots *snapshot.Store,
	tools func(context.Context) *tool.Registry,
) *control.Service {
	return control.New(control.Config{
		Store: e.store, Dispatcher: e.dispatcher, Engine: runner, Undoer: e.undoer, Snapshots: snapshots,
		Cache: e.cache, Present: e.present, TestChannel: e.notifier.Test, Projects: e.projects, Indexes: e.indexes,
		Settings: o.Config, Private: privatePaths(&o.Config), Owner: e.ensureUser, UserName: userName(),
		Tools: tools, Models: e.providers.modelOf, SettingsOf: e.providers.settingsOf, AddProvider: e.addProvider,
		Codec: e.codecOf, ListModels: e.listModels,
		TryProvider: tryStored, Examine: e.examine,
		ReadOnly: e.readOnly, StoreOnly: o.StoreOnly,
	})
}

// isPresent reports whether a user is there. Where the database does not say it, a notification is
// better than none.
func (e *Engine) isPresent(ctx context.Context, user regie.ID) bool {
	known, err := e.present.Of(ctx, user)
	return err == nil && known.Mode == store.ModeUI
}

// fileSettings returns what files say about an agent's calls in a workspace, by its present
// definition.
func (e *Engine) fileSettings(ctx context.Context, root, agent string, version int) engine.FileSettings {
	found, err := control.CurrentAgent(ctx, e.service, root, agent, version)
	return e.projects.fileSettings(root, agent, found, err)
}

// Service is what this engine does for the caller of a context, for programs that embed it; the
// caller is access.AsOwner.
func (e *Engine) Service() *control.Service { return e.service }

// Client returns a client of this engine, for this process's own commands; errors come in a
// language.
func (e *Engine) Client(language string) *client.Client {
	return client.Local(e.memory.dialMemory, language)
}

// Wait returns when a round no longer runs here, as dispatch.Dispatcher.Wait.
func (e *Engine) Wait(ctx context.Context, round regie.ID) error {
	return e.dispatcher.Wait(ctx, round)
}

// Round returns a round.
func (e *Engine) Round(ctx context.Context, round regie.ID) (regie.Round, error) {
	return e.store.Round(ctx, round)
}

// servePrivately serves this machine's user on a private listener: the socket of the data
// directory, or that in memory.
func (e *Engine) servePrivately(listener net.Listener) {
	if e.server == nil {
		e.server = &http.Server{ //nolint:gosec // its only clients are the user's own
			Handler: httpapi.Handler(httpapi.Config{
				Service: e.service, Translate: translateError, Trusted: true, Keys: e.store,
			}),
		}
	}
	e.served.Go(func() {
		if err := e.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			e.log.Error("the engine's private listener failed", "error", err)
		}
	})
}

// translateError renders an error's sentence in the language of who asked.
func translateError(language string, err error) string { return i18n.New(language).Error(err) }

func translateSentence(french bool, said regie.Sentence) string {
	language := "en"
	if french {
		language = "fr"
	}
	return i18n.New(language).Sentence(said)
}

// quickCheck looks for damage in the background (decision 31). What it finds stops dispatch:
// nothing more is built on it. A database that does not answer for a moment is not damaged, and
// what runs has its own patience with it.
func (e *Engine) quickCheck() {
	ctx, cancel := context.WithCancel(context.Background())
	e.check = cancel
	e.wg.Go(func() { e.sweepAPI(ctx, e.log) })
	if e.schedules {
		e.wg.Go(func() { e.files.Run(access.AsOwner(ctx)) })
	}
	e.wg.Go(func() { e.scheduler.Run(access.AsOwner(ctx), e.service.Automations, e.schedules, e.log) })
	e.wg.Go(func() { e.notifier.Run(ctx) })
	e.wg.Go(func() {
		switch err := e.store.QuickCheck(ctx); {
		case err == nil || ctx.Err() != nil:
		case regie.CodeOf(err) == regie.CodeCorrupt:
			e.log.Error("the database failed its check; no more runs are started", "code",
				string(regie.CodeOf(err)), "error", err)
			e.dispatcher.Close(err)
		default:
			e.log.Warn("the check of the database for damage could not be made", "code",
				string(regie.CodeOf(err)), "error", err)
		}
	})
}

// Close ends the engine without losing anything: running rounds stop at their next stored step, and
// the next engine of the data directory resumes them.
func (e *Engine) Close() error {
	var errs []error
	e.check()
	e.wg.Wait()
	if e.public != nil {
		e.public.stopAccepting()
	}
	if e.store != nil {
		if e.undoer != nil {
			e.undoer.Close() // what is being undone is held by the lease, which ends with the dispatcher
		}
		if e.dispatcher != nil {
			e.dispatcher.Close(dispatch.ErrGone)
		}
		if e.public != nil {
			errs = append(errs, e.public.endRequests())
		}
		if e.server != nil {
			errs = append(errs, e.server.Close())
			e.served.Wait()
		}
		if e.proxy != nil { // what was answered meanwhile is logged too
			e.proxy.flushRest()
		}
		if e.present != nil && !e.readOnly {
			e.present.Close()
		}
		errs = append(errs, e.store.Close())
	}
	if e.fleet != nil {
		e.fleet.Close()
	}
	if e.projects != nil && e.projects.servers != nil {
		e.projects.servers.closeAll()
	}
	if e.indexes != nil {
		e.indexes.Close()
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
