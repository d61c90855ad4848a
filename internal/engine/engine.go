package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// Store is what the engine needs of a store: one transition for each step of a round, and the thread.
type Store interface {
	AppendReply(ctx context.Context, fence store.Fence, in store.Reply) (store.Outcome, error)
	CommitCalls(ctx context.Context, fence store.Fence, in store.Settle) (store.Outcome, error)
	FailAttempt(ctx context.Context, fence store.Fence, in store.Failure) (store.Outcome, error)
	Batch(ctx context.Context, fence store.Fence, exchange int, reply regie.ID) (store.Claimed, error)
	Rules(ctx context.Context, workspace, session regie.ID) ([]regie.Rule, error)
	Release(ctx context.Context, fence store.Fence) error
	Round(ctx context.Context, id regie.ID) (regie.Round, error)
	Thread(ctx context.Context, session regie.ID, after int64) (store.Thread, error)
	Blob(ctx context.Context, hash regie.Hash) ([]byte, error)
	PutBlob(ctx context.Context, data []byte) (regie.Hash, error)
}

// Config sets up an Engine. Store, Providers and Tools are required.
type Config struct {
	Store Store
	// Providers returns a configured provider by its name.
	Providers func(name string) (provider.Provider, error)
	Tools     *tool.Registry
	// MaxOutput is the bound of a reply in tokens; zero means 8,192.
	MaxOutput int
	// Attempts bounds the tries of one model call (spec 3.6); zero means 3.
	Attempts int
	// Retry bounds the attempts of a call that may be repeated (spec 4.3).
	Retry tool.Retry
	// Backoff says how long to wait before a try, from the second on; nil means exponential with jitter from 500 ms.
	Backoff func(try int, wish time.Duration) time.Duration
	// Levels are what the app and the workspace want asked about (spec 4.4); nil means that actions ask.
	Levels []approval.Level
	// ApprovalTTL and QuestionTTL are how long people have to answer; zero means 24 hours and 7 days (spec 4.4, decision 11).
	ApprovalTTL, QuestionTTL time.Duration
	// NetworkRetry is how long a round waits for the network at first; zero means 30 s (decision 42).
	NetworkRetry time.Duration
	// Delta is told each piece of a reply as it streams in; it must not block. May be nil.
	Delta func(session, round regie.ID, exchange int, delta provider.Delta)
}

// Engine runs rounds. Its methods may be called from any goroutine; a round is run by one at a time, which the fence sees to.
type Engine struct {
	cfg Config

	levelsMu sync.Mutex
	levels   map[regie.Hash]string
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
	if cfg.NetworkRetry == 0 {
		cfg.NetworkRetry = 30 * time.Second
	}
	if cfg.Backoff == nil {
		cfg.Backoff = backoff
	}
	return &Engine{cfg: cfg, levels: map[regie.Hash]string{}}
}

// levels are those of the configuration and of the session.
func (c *Config) levels(session regie.Session) []approval.Level {
	if !session.RequireValidation {
		return c.Levels
	}
	return append(slices.Clone(c.Levels), approval.Level{Source: regie.SourceSession, RequireValidation: true})
}

// Stopped is the cause with which a running round's context is cancelled when a person stops it. The word is stored before.
type Stopped struct{ Word regie.StopRequest }

// Error implements error.
func (s Stopped) Error() string { return "stopped: " + string(s.Word) }

// ErrShutdown is the cause with which a round's context is cancelled when its process ends: the round stays as it is stored.
var ErrShutdown = errors.New("the process is shutting down")

// Left is what Run leaves to its caller.
type Left struct {
	// Next is the round that messages started which had waited for the end of this one; it is whoever's to claim.
	Next regie.ID
	// Waits says that the round let go without having ended: it was paused, or waits for people.
	Waits bool
}

// Run goes on with a claimed round until it ends, is paused, or is stopped. Two contexts carry the signals, each with its cause: steps
// ends what can be asked again and starts nothing more (a pause, a shutdown); ctx, from which steps descends, also cuts the action that
// runs (an interrupt, a shutdown that has waited long enough). Run returns nil where the round ended or was paused, the cause of a
// cancelled context that was no Stopped, and CodeStale where another holder took over. Any other error is one of the store or of the
// configuration; the round stays as it is stored.
func (e *Engine) Run(ctx, steps context.Context, claimed store.Claimed) (Left, error) {
	r := &run{
		Engine: e, fence: claimed.Fence, session: claimed.Session, workspace: claimed.Workspace, round: claimed.Round,
		exchange: claimed.Exchange, reply: claimed.Reply, calls: claimed.Calls,
		commit: context.WithoutCancel(ctx), work: ctx, resumed: claimed.Resumed, known: claimed.Thread,
		reviews: claimed.Reviews, questioned: claimed.Asked, judged: map[regie.ID]approval.Judgement{}, fresh: map[regie.ID]bool{}, cleared: map[regie.ID]bool{},
	}
	if err := r.readPolicy(); err != nil {
		return Left{}, err
	}
	err := r.loop(steps)
	if errors.Is(err, ErrShutdown) {
		r.handOver()
	}
	return Left{Next: r.next, Waits: r.parked}, err
}

// run is one round on its way. It is a cache of what is stored; each step changes the store first and this after it.
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
	thread    thread
	known     *store.Thread // the stored thread, where whoever claimed the round knows it
	// commit is the context of store transitions: a step that has begun to be stored is not cut by a stop.
	commit context.Context
	// work is the context of actions and of what finds out about them: only an interrupt or the end of the process cuts it.
	work context.Context
	// resumed says that another process may have sent the open model call, or started the started call.
	resumed bool
	// unsaved are the calls of the batch that are settled here and not yet stored.
	unsaved []int
	sent    bool // the open model call was sent, and nothing of it is stored
	parked  bool // released without having ended
	next    regie.ID
	circles string // why the reply that was just planned ends the round (decision 30)

	// What people are asked and have answered about the batch (ask.go).
	rules      []regie.Rule
	reviews    map[regie.ID]regie.Review       // by call: the latest
	questioned map[regie.ID]bool               // the calls whose question was put to a person
	judged     map[regie.ID]approval.Judgement // of the calls that are to be put to a person
	fresh      map[regie.ID]bool               // the calls that were judged with the reply, under the rules of that moment
	cleared    map[regie.ID]bool               // the calls that were judged again by this process
}
