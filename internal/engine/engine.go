package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// Store is what the engine needs of a store.
type Store interface {
	Transitions
	Reader
}

// Transitions change a round, each as one commit. The fence keeps a holder out that was replaced.
type Transitions interface {
	AppendReply(ctx context.Context, fence store.Fence, in store.Reply) (store.Outcome, error)
	CommitCalls(ctx context.Context, fence store.Fence, in store.Settle) (store.Outcome, error)
	FailAttempt(ctx context.Context, fence store.Fence, in store.Failure) (store.Outcome, error)
	Note(ctx context.Context, fence store.Fence, in store.Note) (store.Outcome, error)
	Enrich(ctx context.Context, fence store.Fence, in store.Enrichment) (store.Outcome, error)
	BeginSummary(ctx context.Context, fence store.Fence, exchange int) error
	Reserve(ctx context.Context, fence store.Fence, exchange int, wants store.Reservation) (store.Granted, error)
	SetLevel2(ctx context.Context, fence store.Fence, level2 regie.Hash) error
	Halt(ctx context.Context, fence store.Fence, in store.Halt) error
	Yield(ctx context.Context, fence store.Fence) error
	Release(ctx context.Context, fence store.Fence) error
}

// Reader reads what is stored of rounds and sessions, and keeps blobs.
type Reader interface {
	Round(ctx context.Context, id regie.ID) (regie.Round, error)
	LastRound(ctx context.Context, session regie.ID) (regie.Round, error)
	RoundView(ctx context.Context, id regie.ID) (store.RoundView, error)
	Thread(ctx context.Context, session regie.ID, after int64) (store.Thread, error)
	Batch(ctx context.Context, fence store.Fence, exchange int, reply regie.ID) (store.Claimed, error)
	RecentCalls(ctx context.Context, session regie.ID, toolkit string) ([]regie.Call, error)
	Later(ctx context.Context, workspace regie.ID, since time.Time) (store.Later, error)
	Rules(ctx context.Context, workspace, session regie.ID) ([]regie.Rule, error)
	Mode(ctx context.Context, session regie.ID) (regie.Mode, error)
	Blob(ctx context.Context, hash regie.Hash) ([]byte, error)
	PutBlob(ctx context.Context, data []byte) (regie.Hash, error)
}

// Config sets up an Engine. Store, Providers and Tools are required.
type Config struct {
	Store Store
	// Providers returns a provider by its name and the fingerprint of its settings: those that the
	// round began with, zero for the configured ones.
	Providers func(name string, pin regie.Hash) (provider.Provider, error)
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
	// Translate returns a sentence for people in French or English; nil is English.
	Translate func(french bool, said regie.Sentence) string
	// Price returns the price of a provider's model. known is false where it is unknown; stated
	// says that it also holds for a model on this machine, which is free otherwise. Nil knows no
	// price (spec 6.3).
	Price func(provider, model string, pin regie.Hash) (p price.Price, stated, known bool)
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
	Files func(ctx context.Context, root, agent string, version int) FileSettings
	// Confines reports whether a sandbox holds the commands of a workspace, which the mode auto
	// needs; nil means that none does.
	Confines func(root string) bool
	// HoldsSecret reports whether a command in a workspace may read a secret there; nil: never.
	HoldsSecret func(ctx context.Context, root string) bool
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
	// Left returns how long this process may still act on its claim. The engine checks it right
	// before an action with a stored intent; at zero or less another process may have taken over,
	// and the action is not run (spec 11.1). Nil means for ever.
	Left func() time.Duration
	// Yields reports whether a round that runs here is to let another one go first: asked before
	// each model call (decision 21). Nil means never.
	Yields func(round regie.ID) bool
	// Breakers are the circuit breakers of the providers (spec 3.6); nil means those of this engine
	// alone.
	Breakers *provider.Breakers
	// Cache is the response cache; nil asks the model each time. With CacheFold two questions that
	// differ only in the case of letters are one.
	Cache     Cache
	CacheFold bool
	// Replied receives each stored reply with its provider and cost, Ended each ended round. They
	// must not block; they may be nil.
	Replied func(Replied)
	Ended   func(regie.Round)
	// Delta receives each piece of a reply as it streams in; it must not block. May be nil.
	Delta func(session, round regie.ID, exchange int, delta provider.Delta)
	// SilentAfter is how long a model may send nothing before a chat reports it; zero means 30 s.
	SilentAfter time.Duration
	// Mask returns what takes Regie's own secrets out of what tools say. May be nil.
	Mask func(root string) *tool.Mask
	// Progress receives what happens during a call or a silence; it must not block. May be nil.
	Progress func(session, round regie.ID, exchange int, progress Progress)
	// Hooks are a person's hooks around calls and rounds; may be nil.
	Hooks Hooks
}

// Progress is the output of a running call, a message about it, or the duration of a model's
// silence.
type Progress struct {
	CallID regie.ID
	Output string
	Said   *regie.Sentence
	Silent time.Duration
}

// FileSettings are what files say about the calls in a workspace (spec 13).
type FileSettings struct {
	Rules  []approval.FileRule
	Levels []approval.Level
	Caps   regie.Caps // which lower those of the configuration
	// Scopes are those of the agent: a tool outside of one is not run.
	Scopes []regie.ToolScope
	// Untrusted says that no person trusts the files of the workspace; Private are patterns of
	// those that are private (decision 34).
	Untrusted bool
	Private   []string
	// Hash tells them from others.
	Hash regie.Hash
}

// Engine runs rounds. Its methods may be called from any goroutine; a round is run by one at a
// time, which the fence sees to.
type Engine struct {
	cfg Config

	levels       memo[regie.Hash, string]  // prompt levels, some kilobytes each
	heads        memo[headKey, regie.Hash] // blobs of frozen heads
	clients      memo[clientKey, *tool.Registry]
	scoped       memo[scopeKey, *tool.Registry]
	declarations memo[declarationKey, toolList]

	drained chan struct{} // closed once rounds are to let go
	drain   sync.Once

	warmth warmth
}

// New returns an engine.
func New(cfg Config) *Engine {
	cfg.MaxOutput, cfg.Attempts = cmp.Or(cfg.MaxOutput, 8192), cmp.Or(cfg.Attempts, 3)
	cfg.ApprovalTTL, cfg.QuestionTTL = cmp.Or(cfg.ApprovalTTL, 24*time.Hour), cmp.Or(cfg.QuestionTTL, 7*24*time.Hour)
	cfg.HeadStart = cmp.Or(cfg.HeadStart, headStart)
	cfg.NetworkRetry = cmp.Or(cfg.NetworkRetry, 30*time.Second)
	cfg.SilentAfter = cmp.Or(cfg.SilentAfter, 30*time.Second)
	cfg.Breakers = cmp.Or(cfg.Breakers, &provider.Breakers{})
	if cfg.Levels == nil {
		cfg.Levels = []approval.Level{{Source: regie.SourceApp, Require: approval.RequireWrites}}
	}
	if cfg.Backoff == nil {
		cfg.Backoff = backoff
	}
	return &Engine{
		cfg: cfg, drained: make(chan struct{}), levels: memo[regie.Hash, string]{most: 256},
		heads: memo[headKey, regie.Hash]{most: 256}, clients: memo[clientKey, *tool.Registry]{most: 16},
		declarations: memo[declarationKey, toolList]{most: 64}, scoped: memo[scopeKey, *tool.Registry]{most: 64},
	}
}

// Drain makes each round stop at its next stored step, as with ErrShutdown, without cutting
// anything: a cut model call is paid for and then repeated. It does not wait.
func (e *Engine) Drain() { e.drain.Do(func() { close(e.drained) }) }

// isDraining reports whether rounds are to let go.
func (e *Engine) isDraining() bool {
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

// Stopped is the cause of the cancelled context of a running round: a person's stop request, which
// is stored before, or the watchdog's.
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
	// Next is the round that waiting messages started at the end of this one; it has no holder yet.
	Next regie.ID
	// Waits says that the round let go without having ended: it was paused, or waits for people.
	Waits bool
}

// Run continues a claimed round until it ends, is paused, or is stopped. Two contexts carry the
// signals, each with its cause. Cancelling steps ends what can be repeated and starts nothing more
// (a pause, a shutdown); cancelling ctx, its parent, also cuts the running action (an interrupt, a
// shutdown that has waited long enough). Run returns nil where the round ended or was paused, the
// cause of a cancelled context other than Stopped, and CodeStale where another holder took over.
// Any other error comes from the store or the configuration; the round stays as stored. pulse
// receives signs of life; it may be nil.
func (e *Engine) Run(ctx, steps context.Context, claimed store.Claimed, pulse Pulse) (Left, error) {
	r, err := e.newRun(ctx, claimed, e.toolsFor(steps, claimed.Workspace, claimed.Round))
	if err != nil {
		return Left{}, err
	}
	r.pulse = pulse
	if err := r.head.refreshLevel2(claimed.Woken); err != nil {
		return Left{}, err
	}
	if end := r.round.Deadline; !end.IsZero() {
		var cancel context.CancelFunc
		steps, cancel = context.WithDeadlineCause(steps, end, errTimeOver)
		defer cancel()
	}
	err = r.loop(steps)
	r.runner.stopEarly()
	if err == nil {
		r.runEndHooks()
	}
	if err == nil {
		r.budget.keepWarm()
		if r.round.State == regie.RoundEnded && e.cfg.Ended != nil {
			e.cfg.Ended(r.round)
		}
	}
	if errors.Is(err, ErrShutdown) {
		_ = r.releaseRound(byShutdown) // where that fails the round is as if this process had died
	}
	return Left{Next: r.next, Waits: r.parked}, err
}

// newRun brings a round as it is stored into memory. It keeps these tools.
func (e *Engine) newRun(ctx context.Context, claimed store.Claimed, tools *tool.Registry) (*run, error) {
	s := &roundState{
		Engine: e, fence: claimed.Fence, session: claimed.Session, workspace: claimed.Workspace, round: claimed.Round,
		exchange: claimed.Exchange, reply: claimed.Reply, tools: tools, used: claimed.Round.Tokens,
		commit: context.WithoutCancel(ctx), work: ctx, resumed: claimed.Resumed, reviews: claimed.Reviews,
	}
	if e.cfg.Files != nil {
		s.files = e.cfg.Files(s.commit, s.workspace.Root, s.round.Agent, s.session.AgentVersion)
	}
	if err := s.readPolicy(); err != nil {
		return nil, err
	}
	var err error
	if s.mentionable = tools; !s.isCommand() {
		if tools, err = e.withinScopes(tools, slices.Concat(s.policy.Scopes, s.files.Scopes)); err != nil {
			return nil, err
		}
	}
	if s.tools, err = e.withClient(tools, s.policy.ClientTools); err != nil {
		return nil, err
	}
	r := newParts(s)
	r.batch.calls, r.budget.known, r.call.outage, r.asker.questioned = claimed.Calls, claimed.Thread,
		claimed.Outage, claimed.Asked
	r.targets.initTargets()
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
	return e.workspaceTools(ctx, workspace, e.cfg.Tools(ctx))
}

// workspaceTools adds the tools that only this workspace has.
func (e *Engine) workspaceTools(ctx context.Context, workspace regie.Workspace, tools *tool.Registry) *tool.Registry {
	if e.cfg.Scoped == nil {
		return tools
	}
	return e.cfg.Scoped(ctx, workspace.Root, tools)
}
