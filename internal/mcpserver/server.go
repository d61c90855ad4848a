package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Config sets a server up. Control is required.
type Config struct {
	Control Control
	Version string
	// Log gets what an operator needs to see; nil discards it.
	Log *slog.Logger
	// Request is the template of new sessions. Its Root limits the server to one workspace and its
	// sessions; without one, a caller names a known workspace. Provider, model and agent are
	// optional. The policy is the server's own.
	Request dispatch.RunRequest
	// Here takes the workspace although it is the home directory or /.
	Here bool
	// AllowApprovals lets the client decide approvals and answer questions (spec 4.4). Without it
	// only people do: on another surface, or through Elicit.
	AllowApprovals bool
	// Elicit puts approvals to the person at the client's end, where the client says that it can
	// ask them (MCP elicitation).
	Elicit bool
	// Text is the language of the person at the client, for approvals, questions and tool errors;
	// nil is English. Over HTTP, an error before the tool uses the language of its request.
	Text *i18n.Printer
}

// Control is the server's access to Regie; all fields are required. Over HTTP these are methods of
// the service, over standard input and output those of a client.
type Control struct {
	Submit        func(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error)
	Stop          func(ctx context.Context, session regie.ID) (dispatch.Stopped, error)
	Events        func(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error
	Sessions      func(ctx context.Context, filter store.SessionFilter) ([]store.SessionSummary, error)
	Session       func(ctx context.Context, session regie.ID) (store.SessionView, error)
	Inbox         func(ctx context.Context, filter store.InboxFilter) (store.Inbox, error)
	Decide        func(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error)
	Answer        func(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error)
	Workspaces    func(ctx context.Context) ([]regie.Workspace, error)
	OpenWorkspace func(ctx context.Context, in dispatch.WorkspaceRequest) (regie.Workspace, error)
	Tools         func(ctx context.Context) ([]regie.ToolDefinition, error)
	Query         func(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error)
}

// server is one server for all of its connections.
type server struct {
	Config
	place regie.Workspace // of Request.Root
}

// sessionHeader names the MCP session of a request.
const sessionHeader = "Mcp-Session-Id"

// Bounds of a connection over HTTP.
const (
	maxBody     = 4 << 20
	idleSession = 30 * time.Minute
)

// Handler serves streamable HTTP. The caller that mounts it checks the token, Host and Origin (spec
// 11.2); the SDK's own protection against DNS rebinding stays on too. It returns the errors of
// Control.Tools.
func Handler(ctx context.Context, c Config) (http.Handler, error) {
	s, err := newServer(ctx, c)
	if err != nil {
		return nil, err
	}
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		SessionTimeout: idleSession, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
	})
	return http.NewCrossOriginProtection().Handler(checkMessages(withCaller(streamable))), nil
}

// withCaller has the SDK know who calls: a session over HTTP is its caller's alone, and each call
// in it is its own request's, however the session began.
func withCaller(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		caller := access.From(ctx)
		if caller == nil { // the mounting code admits everyone, or Control checks
			return &auth.TokenInfo{}, nil
		}
		return &auth.TokenInfo{
			UserID: caller.User.ID.String() + " " + caller.Token.ID.String(),
			Extra:  map[string]any{callerKey: caller},
		}, nil
	}
	verified := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if r.Method == http.MethodGet { // the stream of a session
			stays, done, err := access.Stay(ctx, nil)
			if err != nil {
				w.Header().Set("Retry-After", "5")
				refuse(w, r, err)
				return
			}
			defer done()
			ctx = stays
		}
		r = r.Clone(ctx)
		// a browser shows a cookie; who it is was settled in front of this
		r.Header.Set("Authorization", "Bearer known")
		if r.Header.Get(sessionHeader) != "" {
			w = &sessionWriter{ResponseWriter: w, request: r}
		}
		verified.ServeHTTP(w, r)
	})
}

// callerKey is where the SDK carries the caller.
const callerKey = "caller"

// asCaller has a method run as who calls it, not as who opened the session.
func asCaller(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if extra := request.GetExtra(); extra != nil && extra.TokenInfo != nil {
			if caller, ok := extra.TokenInfo.Extra[callerKey].(*access.Caller); ok {
				ctx = access.With(ctx, caller)
			}
		}
		return next(ctx, method, request)
	}
}

// Serve speaks MCP over a reader and a writer until the reader ends or ctx does; nothing else is
// written there. It returns the errors of Control.Tools, and of the transport.
func Serve(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	s, err := newServer(ctx, c)
	if err != nil {
		return err
	}
	// Not Run of the SDK, which takes an ordered end for an error and logs it.
	session, err := s.Connect(ctx, &mcp.IOTransport{
		Reader: &frames{in: bufio.NewReader(in)}, Writer: openWriter{out}, MaxLineLength: maxLine + 1,
	}, nil)
	if err == nil {
		defer context.AfterFunc(ctx, func() { _ = session.Close() })()
		err = session.Wait()
	}
	// the client has gone; it may close its ends in any order
	for _, gone := range []error{io.EOF, io.ErrClosedPipe, syscall.EPIPE, mcp.ErrConnectionClosed} {
		if errors.Is(err, gone) {
			return nil
		}
	}
	return err
}

const instructions = "Regie runs AI agents with controlled autonomy. The files tools read a workspace as its agents do: what may hold a secret is refused. " +
	"start_session gives an agent a job; session_status says how it stands. What an agent asks a person is decided by a person, not here, unless the answer_approval tool is listed."

func newServer(ctx context.Context, c Config) (*mcp.Server, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Text == nil {
		c.Text = i18n.New("en")
	}
	s := &server{Config: c}
	if c.Request.Root != "" {
		place, err := c.Control.OpenWorkspace(ctx, dispatch.WorkspaceRequest{Path: c.Request.Root, Here: c.Here})
		if err != nil {
			return nil, err
		}
		s.place = place
	}
	out := mcp.NewServer(&mcp.Implementation{Name: "regie", Title: "Regie", Version: c.Version}, &mcp.ServerOptions{
		Instructions: instructions, Logger: c.Log, Capabilities: &mcp.ServerCapabilities{},
	})
	out.AddReceivingMiddleware(asCaller)
	if err := s.addQueries(ctx, out); err != nil {
		return nil, err
	}
	s.addSessions(out)
	s.addApprovals(out)
	return out, nil
}

// callWorkspace returns the one that a call is about: the server's own, or the known one that the
// caller named by its id, its name or its directory. It returns CodeNotFound for any other, and
// CodeBadRequest where it has to be named and was not.
func (s *server) callWorkspace(ctx context.Context, named string) (regie.Workspace, error) {
	if s.Request.Root != "" {
		return s.place, nil
	}
	all, err := s.Control.Workspaces(ctx)
	if err != nil {
		return regie.Workspace{}, err
	}
	var found []regie.Workspace
	for _, w := range all {
		if slices.Contains([]string{"", w.ID.String(), w.Root, w.Name}, named) {
			found = append(found, w)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 && named != "" {
		return regie.Workspace{}, regie.Errorf(regie.CodeNotFound,
			"there is no workspace %q here: list_workspaces shows the known ones", sanitize.Line(truncateText(named, 200)))
	}
	return regie.Workspace{}, regie.Errorf(regie.CodeBadRequest,
		"name a workspace by its id: list_workspaces shows them")
}

// truncateText shortens a text to a number of bytes, and says so.
func truncateText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && text[cut]&0xC0 == 0x80 { // not in the middle of a character
		cut--
	}
	return text[:cut] + "…"
}

// callerError is an error as a caller reads it: its sentence, and its stable code.
func (s *server) callerError(err error) error {
	return errors.New(sanitize.Strip(s.Text.Error(err)) + " (" + string(regie.CodeOf(err)) + ")")
}

// checkMessages refuses a message with a duplicate key, because another parser may read the other
// value (spec 11.3).
func checkMessages(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := httpread.Body(w, r, maxBody)
			if err == nil && !jsontext.Value(body).IsValid() {
				err = regie.Errorf(regie.CodeBadRequest, "a message is one JSON value in UTF-8 without repeated keys")
			}
			if err != nil {
				refuse(w, r, err)
				return
			}
			r = r.WithContext(r.Context())
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		next.ServeHTTP(w, r)
	})
}

// newTool wraps a tool so that its errors carry their codes.
func newTool[In, Out any](s *server,
	run func(ctx context.Context, request *mcp.CallToolRequest, in In) (Out, error),
) mcp.ToolHandlerFor[In, Out] {
	return func(ctx context.Context, request *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		out, err := run(ctx, request, in)
		if err != nil {
			return nil, out, s.callerError(err)
		}
		return nil, out, nil
	}
}
