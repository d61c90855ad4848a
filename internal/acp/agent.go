package acp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Config sets an agent up.
type Config struct {
	Control *client.Client
	Text    *i18n.Printer
	Version string
	// Request builds the run request for messages in a directory's workspace. It returns an error
	// if the directory is no workspace.
	Request func(dir string) (dispatch.RunRequest, error)
	// Look finds a path of the workspace at root, as app.Look.
	Look func(root string) func(path string) (regie.EnrichmentBlock, bool)
}

// agent serves one editor.
type agent struct {
	Config
	conn *sdk.AgentSideConnection
	ctx  context.Context // of the connection

	mu       sync.Mutex
	sessions map[sdk.SessionId]*session
}

// session is a session that the editor has open.
type session struct {
	id      regie.ID
	request dispatch.RunRequest
	seen    atomic.Int64 // the last event of its log that was told

	mu    sync.Mutex
	leave func() // ends who follows it in the background, and waits for that
}

// Serve speaks the protocol until the reader ends or ctx does. Nothing but the protocol is written
// to out.
func Serve(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &agent{Config: c, ctx: ctx, sessions: map[sdk.SessionId]*session{}}
	heard, hears := io.Pipe() // nothing is heard before the agent knows its connection
	a.conn = sdk.NewAgentSideConnection(a, out, heard)
	a.conn.SetLogger(slog.New(slog.DiscardHandler)) // it would log what it cannot read, word for word
	go func() {
		_, err := io.Copy(hears, in)
		hears.CloseWithError(err)
	}()
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	cancel()
	a.mu.Lock()
	opened := slices.Collect(maps.Values(a.sessions))
	a.mu.Unlock()
	for _, s := range opened {
		s.stopFollowing()
	}
	return nil
}

// Initialize implements sdk.Agent.
func (a *agent) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	title := "Regie"
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber, AuthMethods: []sdk.AuthMethod{},
		AgentInfo: &sdk.Implementation{Name: "regie", Title: &title, Version: a.Version},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession: true, PromptCapabilities: sdk.PromptCapabilities{EmbeddedContext: true, Image: true},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{}},
		},
	}, nil
}

// Authenticate implements sdk.Agent: who started the program is its user.
func (a *agent) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

// SetSessionMode implements sdk.Agent; Regie has no session modes.
func (a *agent) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetMode)
}

// SetSessionConfigOption implements sdk.Agent; Regie has no such options.
func (a *agent) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (
	sdk.SetSessionConfigOptionResponse, error,
) {
	return sdk.SetSessionConfigOptionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetConfigOption)
}

// requestIn returns the request template of a directory.
func (a *agent) requestIn(dir string) (dispatch.RunRequest, error) {
	if !filepath.IsAbs(dir) {
		return dispatch.RunRequest{}, regie.Errorf(regie.CodePathInvalid, "the workspace %q is not an absolute path",
			dir)
	}
	return a.Request(dir)
}

// NewSession implements sdk.Agent. The store knows the session from its first message on.
func (a *agent) NewSession(_ context.Context, in sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	s := &session{id: regie.NewID()}
	var err error
	if s.request, err = a.requestIn(in.Cwd); err == nil {
		a.openSession(s)
	}
	return sdk.NewSessionResponse{SessionId: sdk.SessionId(s.id.String())}, a.editorError(err)
}

func (a *agent) openSession(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions[sdk.SessionId(s.id.String())] = s
}

// knownSession returns a session that the editor has open.
func (a *agent) knownSession(id sdk.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, nil
	}
	return nil, regie.Errorf(regie.CodeNotFound, "the session %s is not open here: load it first", sanitize.Line(truncateText(string(id), 60)))
}

// ResumeSession implements sdk.Agent: an editor loads the session.
func (a *agent) ResumeSession(context.Context, sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	return sdk.ResumeSessionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionResume)
}

// CloseSession implements sdk.Agent: an editor goes away.
func (a *agent) CloseSession(context.Context, sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	return sdk.CloseSessionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionClose)
}

// LoadSession implements sdk.AgentLoader: it sends the history again and follows a running round. A
// session of another workspace is unknown.
func (a *agent) LoadSession(ctx context.Context, in sdk.LoadSessionRequest) (out sdk.LoadSessionResponse, _ error) {
	request, err := a.requestIn(in.Cwd)
	if err != nil {
		return out, a.editorError(err)
	}
	id, err := regie.ParseID(string(in.SessionId))
	if err != nil {
		return out, a.editorError(err)
	}
	view, err := a.Control.Session(ctx, id)
	if err == nil && view.Root != request.Root {
		err = regie.Errorf(regie.CodeNotFound, "there is no session %s here", id)
	}
	if err != nil {
		return out, a.editorError(err)
	}
	// the session's own
	request.Agent, request.Provider, request.Model, request.Settings = view.Agent, "", "", regie.Hash{}
	if old, err := a.knownSession(in.SessionId); err == nil {
		old.stopFollowing()
	}
	s := &session{id: id, request: request}
	s.seen.Store(view.Head)
	a.openSession(s)
	if err = a.replaySession(ctx, s, &view); err == nil {
		a.goOn(s, &view)
	}
	return out, a.editorError(err)
}

// ListSessions implements sdk.Agent: the newest sessions, on one page.
func (a *agent) ListSessions(ctx context.Context, in sdk.ListSessionsRequest) (
	out sdk.ListSessionsResponse, err error,
) {
	filter := store.SessionFilter{Type: regie.SessionChat} // automations are no conversations
	if in.Cwd != nil {
		request, err := a.requestIn(*in.Cwd)
		if err != nil {
			return out, a.editorError(err)
		}
		filter.Root = request.Root
	}
	found, err := a.Control.Sessions(ctx, filter)
	out.Sessions = make([]sdk.SessionInfo, len(found))
	for i := range found {
		f := &found[i]
		name, at := sanitize.Strip(f.Name), f.LastActivity.UTC().Format(time.RFC3339)
		out.Sessions[i] = sdk.SessionInfo{
			SessionId: sdk.SessionId(f.ID.String()), Cwd: f.Root, Title: &name, UpdatedAt: &at,
		}
	}
	return out, a.editorError(err)
}

// Cancel implements sdk.Agent. The SDK cancels the context of the waiting prompt.
func (a *agent) Cancel(context.Context, sdk.CancelNotification) error { return nil }

// interruptRound interrupts a round; one that has ended meanwhile needs none.
func (a *agent) interruptRound(ctx context.Context, round regie.ID) error {
	err := a.Control.Interrupt(context.WithoutCancel(ctx), round)
	if code := regie.CodeOf(err); code == regie.CodeConflict || code == regie.CodeNotFound {
		return nil
	}
	return err
}

// editorError is an error as the editor shows it: its sentence in the person's language, with the
// stable code.
func (a *agent) editorError(err error) error {
	if _, is := errors.AsType[*sdk.RequestError](err); is || err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	code, number := regie.CodeOf(err), -32602
	if code == regie.CodeNotFound || code == regie.CodeFileNotFound {
		number = -32002
	}
	data := map[string]any{"code": string(code)}
	return &sdk.RequestError{Code: number, Message: sanitize.Strip(a.Text.Error(err)), Data: data}
}

// sendUpdate sends one update.
func (a *agent) sendUpdate(ctx context.Context, s *session, update sdk.SessionUpdate) error {
	return a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: sdk.SessionId(s.id.String()), Update: update})
}

// truncateText shortens a text to a number of bytes, and says so.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
