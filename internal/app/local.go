package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/cache"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/undo"
	"github.com/regie-run/regie/internal/workspace"
)

// maxText bounds a message in bytes (spec 11.3).
const maxText = 4 << 20

// maxClientID bounds a client's id of a message in bytes, as an Idempotency-Key, which is taken for
// one.
const maxClientID = 200

// local is Control on the engine of this process.
type local struct {
	service    *control.Service
	store      *sqlite.Store
	dispatcher *dispatch.Dispatcher
	engine     *engine.Engine
	undoer     *undo.Undoer
	snapshots  *snapshot.Store
	cache      *cache.Cache
	present    *dispatch.Present                    // nil before it is wired
	tools      func(context.Context) *tool.Registry // as engine.Config has it
	config     config.Config
	projects   *projects
	served     atomic.Pointer[string] // where HTTP is served, nil: nowhere
	readOnly   bool                   // runs nothing
	storeOnly  bool                   // but takes answers
	limits     regie.Limits
	models     func(name string) (provider.Provider, error)
	indexes    *indexes

	mu         sync.Mutex
	owner      regie.User
	workspaces map[string]regie.Workspace // by root; rows never change
	levels     map[string]regie.Hash      // stored prompt levels
}

// Submit implements dispatch.Control.
func (l *local) Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
	unnamed, err := l.fill(ctx, &in)
	if err != nil {
		return dispatch.Run{}, err
	}
	if err := l.validate(&in); err != nil {
		return dispatch.Run{}, err
	}
	owner, workspace, err := l.place(ctx, in)
	if err != nil {
		return dispatch.Run{}, err
	}
	kind, asks, err := l.store.Standing(ctx, in.SessionID)
	if err != nil {
		return dispatch.Run{}, err
	}
	reason, err := startOf(&in, kind)
	if err != nil {
		return dispatch.Run{}, err
	}
	if err := ofPerson(&in, asks); err != nil {
		return dispatch.Run{}, err
	}
	terms, err := l.terms(ctx, &in)
	if err != nil {
		return dispatch.Run{}, err
	}
	if asks {
		if run, answered, err := l.answerByMessage(ctx, &in); answered || err != nil {
			return run, err
		}
	}
	var accepted store.Accepted
	submission := l.submission(&in, owner, workspace, reason, &terms)
	err = l.unhindered(ctx, in.SessionID, func() (err error) {
		accepted, err = l.dispatcher.Submit(ctx, submission)
		return err
	})
	if err == nil && unnamed {
		err = l.store.Rename(ctx, in.SessionID, title(said(&in))) // one that was made before its first message
	}
	return dispatch.Run{
		SessionID: in.SessionID, RoundID: accepted.RoundID, MessageID: accepted.Message.ID, Seq: accepted.Message.Seq,
		Duplicate: accepted.Duplicate,
		Pending:   accepted.Pending, Position: accepted.Position,
	}, err
}

// submission is what a request stores.
func (l *local) submission(in *dispatch.RunRequest, owner regie.User, workspace regie.Workspace, reason regie.Reason,
	terms *terms,
) store.Submission {
	out := store.Submission{
		SessionID: in.SessionID, WhenBusy: in.WhenBusy, LeavesWaits: in.LeavesWaits,
		LeavesApprovals: in.LeavesApprovals,
		Command:         in.Command != "", History: imported(in), Results: in.Results,
		New: &regie.Session{
			ID: in.SessionID, WorkspaceID: workspace.ID, UserID: owner.ID, Agent: in.Agent,
			Name: title(said(in)), Type: in.Type,
			Provider: in.Provider, Model: in.Model, RequireValidation: in.RequireValidation,
			Origin: in.Origin, TokenID: in.TokenID,
		},
		Workspace: workspace,
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser, Author: regie.Author{
				Kind: regie.AuthorUser,
				ID:   owner.ID.String(), TokenID: in.TokenID,
			}, ClientID: in.ClientID,
			Text: typed(in), Rich: in.Segments,
			Opening: &regie.Opening{
				Zone: l.projects.zone(in.Root), User: owner.Name,
				DayOnly: in.Policy.Cache, French: in.Policy.French,
			},
		},
		Round: regie.Round{
			ID: regie.NewID(), SessionID: in.SessionID, Reason: reason, Limits: terms.limits,
			Agent: in.Agent, Provider: in.Provider,
			Model: in.Model, Dialect: terms.dialect, Pin: in.Settings, TraceID: traceID(), Policy: terms.policy,
			Level1: terms.level1, Level2: terms.level2,
		},
	}
	ofClient(in, &out)
	return out
}

func (l *local) validate(in *dispatch.RunRequest) error {
	if err := validCommand(in); err != nil {
		return err
	}
	switch size := len(said(in)); {
	case in.Text != "" && len(in.Segments) > 0:
		return regie.Errorf(regie.CodeBadRequest, "the message has a text and segments: send what it says once")
	case strings.TrimSpace(said(in)) == "" && !answersCalls(in):
		return regie.Errorf(regie.CodeBadRequest, "the message is empty: say what is to be done")
	case size > maxText:
		return regie.Errorf(regie.CodeBadRequest,
			"the message has %d bytes, at most %d are allowed: put it into a file and name the file", size, maxText)
	case len(in.ClientID) > maxClientID:
		return regie.Errorf(regie.CodeBadRequest, "a client_message_id is a text of at most %d bytes", maxClientID)
	case storable(in.ClientID) != in.ClientID:
		return regie.Errorf(regie.CodeBadRequest, "a client_message_id is a text without NUL, in UTF-8")
	case in.SessionID.IsZero():
		return regie.Errorf(regie.CodeBadRequest, "the request names no session")
	case in.Limits.Negative() != "":
		return regie.Errorf(regie.CodeBadRequest,
			"the limit %s is below 0: leave it out, or lower it to a number from 1 on", in.Limits.Negative())
	case in.Agent == "" || in.Provider == "" || in.Model == "":
		return regie.Errorf(regie.CodeNoModel, "the request names no agent, provider or model")
	case !filepath.IsAbs(in.Root):
		return regie.Errorf(regie.CodePathInvalid, "the workspace %q is not an absolute path", in.Root)
	case l.readOnly:
		return errRunsNothing
	}
	if err := l.sameModel(in); err != nil {
		return err
	}
	switch in.WhenBusy {
	case "", store.Queue, store.Steer, store.Reject:
	default:
		return regie.Errorf(regie.CodeBadRequest,
			"%q does not say what becomes of a message in a busy session: use queue, steer or reject",
			string(in.WhenBusy))
	}
	switch in.Type {
	case "", regie.SessionChat, regie.SessionAutomation:
	default:
		return regie.Errorf(regie.CodeBadRequest, "a message starts no session of type %q: use CHAT or AUTOMATION",
			string(in.Type))
	}
	switch in.Dialect {
	case "", regie.DialectNative, regie.DialectJSON:
	default:
		return regie.Errorf(regie.CodeBadRequest, "%q is not a dialect: use native or json", string(in.Dialect))
	}
	// What is stored must be what any database and any API takes.
	in.Text = storable(in.Text)
	in.Segments = slices.Clone(in.Segments)
	for i := range in.Segments {
		in.Segments[i].Text = storable(in.Segments[i].Text)
	}
	if err := regie.ValidateSegments(in.Segments); err != nil {
		return err
	}
	if err := l.validateClient(in); err != nil {
		return err
	}
	return in.Policy.Validate()
}

func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// said is what a message says, as one text.
func said(in *dispatch.RunRequest) string {
	if len(in.Segments) > 0 {
		return regie.LinearText(in.Segments)
	}
	return typed(in)
}

var errRunsNothing = regie.Errorf(regie.CodeConflict, "this engine runs nothing")

// serves says why a stored round cannot go on with this engine, or nil: its settings are others,
// or, where several share a database, its files are not here. It stays as it is for an engine that
// can.
func (l *local) serves(round regie.Round) error {
	if _, err := l.models(round.Provider); err != nil {
		return err
	}
	if l.isForeign(&round) {
		return regie.Errorf(regie.CodeConflict,
			"the run was started with other settings of the model: go on with it under the same provider, address and key")
	}
	if l.config.Database == "" {
		return nil
	}
	_, place, err := l.store.Session(context.Background(), round.SessionID)
	if err != nil {
		return err
	}
	root, err := workspace.Open(place.Root)
	if err != nil {
		return regie.Errorf(regie.CodeOf(err), "the run's directory is not on this machine; it goes on where it is: %v",
			err)
	}
	return root.Close()
}

// own finds the one user of this installation, made the first time. The lock is held.
func (l *local) own(ctx context.Context) error {
	if !l.owner.ID.IsZero() {
		return nil
	}
	owner, err := l.store.EnsureUser(ctx, userName())
	if err == nil {
		l.owner, l.workspaces, l.levels = owner, map[string]regie.Workspace{}, map[string]regie.Hash{}
	}
	return err
}

// place finds the owner and the workspace of a request, and makes them the first time.
func (l *local) place(ctx context.Context, in dispatch.RunRequest) (regie.User, regie.Workspace, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.own(ctx); err != nil {
		return regie.User{}, regie.Workspace{}, err
	}
	if workspace, ok := l.workspaces[in.Root]; ok {
		return l.owner, workspace, nil
	}
	if err := l.placeable(ctx, &in); err != nil {
		return l.owner, regie.Workspace{}, err
	}
	workspace, err := l.store.EnsureWorkspace(ctx, l.owner.ID,
		regie.Workspace{Name: filepath.Base(in.Root), Root: in.Root, FoundBy: in.FoundBy})
	if err == nil {
		l.workspaces[in.Root] = workspace
	}
	return l.owner, workspace, err
}

// maxLevels is how many prompt levels are known to be stored: each change of a configuration or a
// document makes one.
const maxLevels = 64

// level stores a prompt level and returns its name (decision 14).
func (l *local) level(ctx context.Context, level string) (regie.Hash, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if hash, ok := l.levels[level]; ok {
		return hash, nil
	}
	hash, err := l.store.PutBlob(ctx, []byte(level))
	if err == nil {
		if len(l.levels) >= maxLevels {
			clear(l.levels)
		}
		l.levels[level] = hash
	}
	return hash, err
}

// Interrupt implements dispatch.Control.
func (l *local) Interrupt(ctx context.Context, round regie.ID) error {
	return l.dispatcher.Interrupt(ctx, round)
}

// Pause implements dispatch.Control.
func (l *local) Pause(ctx context.Context, round regie.ID) error {
	return l.dispatcher.Pause(ctx, round)
}

// Resume implements dispatch.Control.
func (l *local) Resume(ctx context.Context, round regie.ID) error {
	return l.dispatcher.Resume(ctx, round)
}

// Get implements dispatch.Control.
func (l *local) Get(ctx context.Context, round regie.ID) (store.RoundView, error) {
	return l.store.RoundView(ctx, round)
}

// List implements dispatch.Control.
func (l *local) List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error) {
	out, err := l.store.Rounds(ctx, filter)
	if err != nil || !slices.ContainsFunc(out, func(r store.RoundSummary) bool { return l.isForeign(&r.Round) }) {
		return out, err
	}
	left, err := l.store.Abandoned(ctx, "")
	for i := range out {
		out[i].Stuck = l.isForeign(&out[i].Round) && slices.ContainsFunc(left,
			func(o store.Orphan) bool { return o.RoundID == out[i].Round.ID })
	}
	return out, err
}

// isForeign reports whether a round was started with other settings of its provider than those
// here.
func (l *local) isForeign(round *regie.Round) bool {
	return round.State != regie.RoundEnded && !round.Pin.IsZero() && round.Pin != l.config.FingerprintOf(round.Provider)
}

// Spent implements dispatch.Control.
func (l *local) Spent(ctx context.Context, root string) (store.Spent, error) {
	out, err := l.store.SpentToday(ctx, root)
	out.Caps = l.config.File.Caps("")
	return out, err
}

// Events implements dispatch.Control. Whoever follows is there (spec 5.4).
func (l *local) Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error {
	if err := l.exists(ctx, session); err != nil {
		return err
	}
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return l.dispatcher.Stream(ctx, session, after, sink)
}

// its frame does not lie under a stream that waits
//
//go:noinline
func (l *local) exists(ctx context.Context, session regie.ID) error {
	_, _, err := l.store.Session(ctx, session)
	return err
}

// Watch implements dispatch.Control. Whoever watches is there.
func (l *local) Watch(ctx context.Context, sink func(regie.Event) error) error {
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return l.dispatcher.Watch(ctx, sink)
}

// title names a session after its first message.
func title(text string) string {
	for line := range strings.Lines(text) {
		runes := []rune(oneLine(line[:min(len(line), maxTitled)]))
		if len(runes) > 60 {
			return string(runes[:59]) + "…"
		}
		if len(runes) > 0 {
			return string(runes)
		}
	}
	return ""
}

// maxTitled is how much of a line is looked at for a title, in bytes.
const maxTitled = 4096

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "local"
}

func traceID() string {
	var id [16]byte
	_, _ = rand.Read(id[:])
	return hex.EncodeToString(id[:])
}
