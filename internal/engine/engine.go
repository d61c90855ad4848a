package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// Store is what the engine needs of a store: one transition for each step of a round, and the
// thread.
type Store interface {
	AppendReply(ctx context.Context, fence store.Fence, in store.Reply) (store.Outcome, error)
	CommitCalls(ctx context.Context, fence store.Fence, in store.Settle) (store.Outcome, error)
	FailAttempt(ctx context.Context, fence store.Fence, in store.Failure) (store.Outcome, error)
	Note(ctx context.Context, fence store.Fence, in store.Note) (store.Outcome, error)
	Enrich(ctx context.Context, fence store.Fence, in store.Enrichment) (store.Outcome, error)
	Batch(ctx context.Context, fence store.Fence, exchange int, reply regie.ID) (store.Claimed, error)
	Rules(ctx context.Context, workspace, session regie.ID) ([]regie.Rule, error)
	Release(ctx context.Context, fence store.Fence) error
	Yield(ctx context.Context, fence store.Fence) error
	Round(ctx context.Context, id regie.ID) (regie.Round, error)
	Thread(ctx context.Context, session regie.ID, after int64) (store.Thread, error)
	Blob(ctx context.Context, hash regie.Hash) ([]byte, error)
	PutBlob(ctx context.Context, data []byte) (regie.Hash, error)
	Later(ctx context.Context, workspace regie.ID, since time.Time) (store.Later, error)
	RecentCalls(ctx context.Context, session regie.ID, toolkit string, visit func(regie.Call) bool) error
	BeginSummary(ctx context.Context, fence store.Fence, exchange int) error
	Reserve(ctx context.Context, fence store.Fence, exchange int, wants store.Reservation) (store.Granted, error)
	Halt(ctx context.Context, fence store.Fence, in store.Halt) error
	SetLevel2(ctx context.Context, fence store.Fence, level2 regie.Hash) error
	LastRound(ctx context.Context, session regie.ID) (regie.Round, error)
	RoundView(ctx context.Context, id regie.ID) (store.RoundView, error)
}

// Config sets up an Engine. Store, Providers and Tools are required.
type Config struct {
	Store Store
	// Providers returns a configured provider by its name.
	Providers func(name string) (provider.Provider, error)
	// Tools returns the tools that a round which begins, or is taken up, works with. It keeps them
	// until it lets go. It may wait for some that are on their way, for a bounded time, and until
	// ctx ends.
	Tools func(ctx context.Context) *tool.Registry
	// MaxOutput is the bound of a reply in tokens; zero means 8,192.
	MaxOutput int
	// UserData returns level 2 of a workspace as it is now (spec 6.1), empty where it says nothing;
	// known is false where the workspace cannot be looked into. Nil leaves a round what it began
	// with.
	UserData func(root string, limits regie.Limits, french bool) (said string, known bool)
	// Price returns what a provider's model costs; known is false where nobody knows it, stated
	// says that it also holds for a model on this machine, which else costs nothing. Nil knows none
	// (spec 6.3).
	Price func(provider, model string) (p price.Price, stated, known bool)
	// Caps returns what model calls for an agent may cost; nil caps nothing. They are those of now,
	// not of a round's start (decision 29).
	Caps func(agent string) regie.Caps
	// Attempts bounds the tries of one model call (spec 3.6); zero means 3.
	Attempts int
	// Retry bounds the attempts of a call that may be repeated (spec 4.3).
	Retry tool.Retry
	// Backoff says how long to wait before a try, from the second on; nil means exponential with
	// jitter from 500 ms.
	Backoff func(try int, wish time.Duration) time.Duration
	// Levels are what the app and the workspace want asked about (spec 4.4); nil means that actions
	// ask.
	Levels []approval.Level
	// Files returns what files of settings say about the calls in a workspace, as they are now
	// (decision 36); nil where there are none.
	Files func(root string) FileSettings
	// Scoped returns the tools of a round in a workspace: those that it was given, and those that
	// only this one has. Like Tools it may wait, and not beyond ctx. Nil adds none.
	Scoped func(ctx context.Context, root string, tools *tool.Registry) *tool.Registry
	// ApprovalTTL and QuestionTTL are how long people have to answer; zero means 24 hours and 7
	// days (spec 4.4, decision 11).
	ApprovalTTL, QuestionTTL time.Duration
	// NetworkRetry is how long a round waits for the network at first; zero means 30 s (decision
	// 42).
	NetworkRetry time.Duration
	// HeadStart is how long a reply waits for its local queries before it is stored without their
	// results; zero means 2 ms, less that it does not wait.
	HeadStart time.Duration
	// NetworkGiveUp is how long a round waits for the network before its session is paused; zero
	// means for ever (decision 42).
	NetworkGiveUp time.Duration
	// Left is for how long from now this process may act on what it has claimed: asked right before
	// an action whose intent is stored. Where another one may have taken over by now, at zero or
	// less, the action is not run (spec 11.1). Nil means for ever.
	Left func() time.Duration
	// Yields reports whether a round that runs here is to let another one go first: asked before
	// each model call (decision 21). Nil means never.
	Yields func(round regie.ID) bool
	// Settings returns the fingerprint of a provider's settings: a round goes on with a fallback
	// only under those of its beginning. Nil means that they never change.
	Settings func(provider string) regie.Hash
	// Breakers are the circuit breakers of the providers (spec 3.6); nil means those of this engine
	// alone.
	Breakers *provider.Breakers
	// Cache is the response cache; nil asks the model each time. With CacheFold two questions that
	// differ only in the case of letters are one.
	Cache     Cache
	CacheFold bool
	// Replied is told each reply that was stored, with who gave it and what that cost; Ended each
	// round that ended. They must not block; nil: nobody counts.
	Replied func(Replied)
	Ended   func(regie.Round)
	// Delta is told each piece of a reply as it streams in; it must not block. May be nil.
	Delta func(session, round regie.ID, exchange int, delta provider.Delta)
	// SilentAfter is how long a model may send nothing before a chat is told; zero means 30 s.
	// Silent is told so, and must not block. It may be nil.
	SilentAfter time.Duration
	Silent      func(session, round regie.ID, exchange int, lasts time.Duration)
	// Mask takes Regie's own secrets out of what tools say. May be nil.
	Mask *tool.Mask
	// Output is told what a call puts out while it runs; it must not block. May be nil.
	Output func(session, round regie.ID, exchange int, call regie.ID, text string)
	// Said is told what is said of a call while it runs, beside its output; it must not block. May
	// be nil.
	Said func(session, round regie.ID, exchange int, call regie.ID, said regie.Sentence)
	// Hooks are what a person has set up around calls and rounds; nil is none.
	Hooks Hooks
}

// FileSettings are what files say about the calls in a workspace (spec 13).
type FileSettings struct {
	Rules  []approval.FileRule
	Levels []approval.Level
	Caps   regie.Caps // which lower those of the configuration
	// Hash tells them from others.
	Hash regie.Hash
}

// Engine runs rounds. Its methods may be called from any goroutine; a round is run by one at a
// time, which the fence sees to.
type Engine struct {
	cfg Config

	levelsMu sync.Mutex
	levels   map[regie.Hash]string
	heads    map[headKey]regie.Hash

	drained chan struct{} // closed once rounds are to let go
	drain   sync.Once

	warmth       warmth
	clients      clientTools
	declarations atomic.Pointer[declarations] // of the registry that the latest round began with
}

// New returns an engine.
func New(cfg Config) *Engine {
	if cfg.MaxOutput == 0 {
		cfg.MaxOutput = 8192
	}
	if cfg.Attempts == 0 {
		cfg.Attempts = 3
	}
	if cfg.Levels == nil {
		cfg.Levels = []approval.Level{{Source: regie.SourceApp, Require: approval.RequireWrites}}
	}
	if cfg.ApprovalTTL == 0 {
		cfg.ApprovalTTL = 24 * time.Hour
	}
	if cfg.QuestionTTL == 0 {
		cfg.QuestionTTL = 7 * 24 * time.Hour
	}
	if cfg.HeadStart == 0 {
		cfg.HeadStart = headStart
	}
	if cfg.NetworkRetry == 0 {
		cfg.NetworkRetry = 30 * time.Second
	}
	if cfg.SilentAfter == 0 {
		cfg.SilentAfter = 30 * time.Second
	}
	if cfg.Breakers == nil {
		cfg.Breakers = &provider.Breakers{}
	}
	if cfg.Backoff == nil {
		cfg.Backoff = backoff
	}
	return &Engine{
		cfg: cfg, levels: map[regie.Hash]string{}, heads: map[headKey]regie.Hash{},
		drained: make(chan struct{}),
	}
}

// Drain has each round let go at its next stored step, as ErrShutdown has it, with nothing cut: a
// model call that is cut is paid for, and made again by whoever goes on. It does not wait.
func (e *Engine) Drain() { e.drain.Do(func() { close(e.drained) }) }

// draining reports whether rounds are to let go.
func (e *Engine) draining() bool {
	select {
	case <-e.drained:
		return true
	default:
		return false
	}
}

// levels are those of the configuration and of the session.
func (c *Config) levels(session regie.Session) []approval.Level {
	if !session.RequireValidation {
		return c.Levels
	}
	return append(slices.Clone(c.Levels), approval.Level{Source: regie.SourceSession, RequireValidation: true})
}

// Stopped is the cause with which a running round's context is cancelled when a person stops it,
// whose word is stored before, or the watchdog.
type Stopped struct {
	Word regie.StopRequest
	// Quiet is for how long nothing has happened, where the word is the watchdog's.
	Quiet time.Duration
}

// Error implements error.
func (s Stopped) Error() string { return "stopped: " + string(s.Word) }

// errTimeOver is the cause with which a round's steps are cut when its time is over (spec 3.2).
var errTimeOver = errors.New("the round's time is over")

// ErrShutdown is the cause with which a round's context is cancelled when its process ends: the
// round stays as it is stored.
var ErrShutdown = errors.New("the process is shutting down")

// Left is what Run leaves to its caller.
type Left struct {
	// Next is the round that messages started which had waited for the end of this one; it is
	// whoever's to claim.
	Next regie.ID
	// Waits says that the round let go without having ended: it was paused, or waits for people.
	Waits bool
}

// Run goes on with a claimed round until it ends, is paused, or is stopped. Two contexts carry the
// signals, each with its cause: steps ends what can be asked again and starts nothing more (a
// pause, a shutdown); ctx, from which steps descends, also cuts the action that runs (an interrupt,
// a shutdown that has waited long enough). Run returns nil where the round ended or was paused, the
// cause of a cancelled context that was no Stopped, and CodeStale where another holder took over.
// Any other error is one of the store or of the configuration; the round stays as it is stored.
// pulse is told that the round lives; nil: nobody asks.
func (e *Engine) Run(ctx, steps context.Context, claimed store.Claimed, pulse Pulse) (Left, error) {
	r, err := e.newRun(ctx, claimed, e.toolsFor(steps, claimed.Workspace, claimed.Round))
	if err != nil {
		return Left{}, err
	}
	r.pulse = pulse
	if err := r.relevel(claimed.Woken); err != nil {
		return Left{}, err
	}
	if end := r.round.Deadline; !end.IsZero() {
		var cancel context.CancelFunc
		steps, cancel = context.WithDeadlineCause(steps, end, errTimeOver)
		defer cancel()
	}
	err = r.loop(steps)
	r.stopEarly()
	if err == nil {
		r.tellEnd()
	}
	if err == nil {
		r.keepWarm()
		if r.round.State == regie.RoundEnded && e.cfg.Ended != nil {
			e.cfg.Ended(r.round)
		}
	}
	if errors.Is(err, ErrShutdown) {
		_ = r.giveBack(byShutdown) // where that fails the round is as if this process had died
	}
	return Left{Next: r.next, Waits: r.parked}, err
}

// newRun brings a round as it is stored into memory. It keeps these tools.
func (e *Engine) newRun(ctx context.Context, claimed store.Claimed, tools *tool.Registry) (*run, error) {
	r := &run{
		Engine: e, fence: claimed.Fence, session: claimed.Session, workspace: claimed.Workspace, round: claimed.Round,
		exchange: claimed.Exchange, reply: claimed.Reply, calls: claimed.Calls, tools: tools,
		commit: context.WithoutCancel(ctx), work: ctx, resumed: claimed.Resumed, known: claimed.Thread,
		outage: claimed.Outage, reviews: claimed.Reviews, questioned: claimed.Asked,
		judged: map[regie.ID]approval.Judgement{}, fresh: map[regie.ID]bool{},
		cleared: map[regie.ID]bool{}, again: map[regie.ID]bool{},
		heard: map[consulted][]regie.HookRun{}, toldOf: map[regie.ID]bool{},
	}
	if e.cfg.Files != nil {
		r.files = e.cfg.Files(r.workspace.Root)
	}
	r.used, r.money = r.round.Tokens, e.termsOf(r.round, r.session.Type, r.files.Caps)
	if err := r.readPolicy(); err != nil {
		return nil, err
	}
	var err error
	if r.tools, err = e.withClient(tools, r.policy.ClientTools); err != nil {
		return nil, err
	}
	r.aim()
	return r, nil
}

// toolsFor returns the tools that a round works with. One that is taken up to be stopped waits for
// none.
func (e *Engine) toolsFor(ctx context.Context, workspace regie.Workspace, round regie.Round) *tool.Registry {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if round.Stop != "" {
		cancel()
	}
	return e.scoped(ctx, workspace, e.cfg.Tools(ctx))
}

// scoped adds the tools that only this workspace has.
func (e *Engine) scoped(ctx context.Context, workspace regie.Workspace, tools *tool.Registry) *tool.Registry {
	if e.cfg.Scoped == nil {
		return tools
	}
	return e.cfg.Scoped(ctx, workspace.Root, tools)
}

// run is one round on its way. It is a cache of what is stored; each step changes the store first
// and this after it.
type run struct {
	*Engine
	fence     store.Fence
	session   regie.Session
	workspace regie.Workspace
	round     regie.Round
	exchange  regie.Exchange
	reply     *regie.Message // of the current exchange
	calls     []regie.Call   // of the current exchange
	policy    approval.Policy
	json      *dialect.JSON // of a round in that dialect
	// frozen as long as it is held here (decision 14); each call is compared with what it was
	// judged as
	tools  *tool.Registry
	thread thread
	known  *store.Thread // the stored thread, where whoever claimed the round knows it
	// commit is the context of store transitions: a step that has begun to be stored is not cut by
	// a stop.
	commit context.Context
	// work is the context of actions and of what finds out about them: only an interrupt or the end
	// of the process cuts it.
	work context.Context
	// resumed says that another process may have sent the open model call, or started the started
	// call.
	resumed bool
	// unsaved are the calls of the batch that are settled here and not yet stored.
	unsaved []int
	early   *early
	pulse   Pulse
	quiet   time.Duration // for how long nothing had happened, where the watchdog ends the round
	// started is the call whose intent this process has stored, and which it is about to run.
	started  regie.ID
	question provider.Question // what was asked last, for the response cache; zero where it is not asked
	streamed partial           // what people saw of the open model call's reply
	sent     bool              // the open model call was sent, and nothing of it is stored
	// estimated is what the open model call used, where it brought no reply.
	estimated regie.Usage
	// the model call waited for its moment, so the provider's breaker does not keep it from being
	// tried
	due    bool
	outage *regie.Outage // of the current exchange's network
	// targets are who may be asked, at is which one is, failures are those that have not answered
	// in the current exchange.
	targets  []target
	at       int
	failures []unanswered
	parked   bool // released without having ended
	next     regie.ID
	summary  *summary
	used     int64 // tokens of the round, with those of the reply that is being stored
	money    terms
	afford   int            // the longest reply that a cap pays for, in tokens; 0: as long as ever
	circles  regie.Sentence // why the reply that was just planned ends the round (decision 30)

	// What people are asked and have answered about the batch (ask.go).
	rules      []regie.Rule
	rulesAt    time.Time                       // when they were read
	files      FileSettings                    // as they were then
	reviews    map[regie.ID]regie.Review       // by call: the latest
	questioned map[regie.ID]bool               // the calls whose question was put to a person
	judged     map[regie.ID]approval.Judgement // of the calls that are to be put to a person
	// the calls that were judged with the reply, under the rules of that moment
	fresh   map[regie.ID]bool
	cleared map[regie.ID]bool // the calls that were judged again by this process
	// the calls that are asked about anew because those before them went otherwise
	again  map[regie.ID]bool
	heard  map[consulted][]regie.HookRun // what hooks said of calls, in this process
	toldOf map[regie.ID]bool             // the calls whose results hooks were told of, by this process
	// all that was approved was shown on top of what the calls before it still lead to
	chained bool
}
