package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/compat"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/mcpserver"
	"github.com/regie-run/regie/internal/web"
	"github.com/regie-run/regie/internal/workspace"
)

// ServeConfig says how an engine is served to others than this machine's user's own commands (spec
// 10.2, 11.2).
type ServeConfig struct {
	// Addr is where it listens; a port 0 is any free one.
	Addr string
	// Hosts are the names of the server in addition to those of this machine.
	Hosts []string
	// CertFile and KeyFile have it speak HTTPS.
	CertFile, KeyFile string
	// PlainHTTP lets it listen beyond this machine without HTTPS: something in front of it
	// encrypts.
	PlainHTTP bool
	// Version is that of the program.
	Version string
	// OnApproval says what becomes of what OpenAI's clients need an approval for: deny, also where
	// it is empty, or park (decision 35).
	OnApproval string
	// Root is the workspace that sessions of OpenAI's clients live in, and FoundBy how it was
	// found; empty: a directory of Regie's own.
	Root, FoundBy string
}

// Served is an engine that is being served.
type Served struct {
	// URL is its address; Setup is a link that lets one browser in, once.
	URL, Setup string
	// Ended receives the error when serving ends unexpectedly.
	Ended <-chan error

	server *http.Server
	done   chan struct{} // closed once nothing is accepted any more
	cancel context.CancelCauseFunc
	left   chan error // what came of the requests that were under way
	// busy are the requests that are under way: the WebSockets too, which net/http has given away.
	busy sync.WaitGroup
	open atomic.Int64 // streams
}

// stopAccepting takes no new connections. Requests that are under way go on.
func (s *Served) stopAccepting() {
	s.left = make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	go func() {
		defer cancel()
		s.left <- s.server.Shutdown(ctx)
	}()
	<-s.done
}

// endRequests ends what is still under way, when it has had its time.
func (s *Served) endRequests() error {
	err := <-s.left
	s.cancel(httpapi.ErrStopping)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.server.Close()
	}
	s.busy.Wait() // each ends with its context, and a write to who does not read has its own time
	return err
}

const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10
	// stopTime bounds how long a server that stops waits for answers that are being read.
	stopTime = 10 * time.Second
)

// WaitEngine becomes the engine of the data directory, as OpenEngine, and waits while another
// command is. After a second it calls waiting once with that command.
func WaitEngine(ctx context.Context, o Options, waiting func(by error)) (*Engine, error) {
	begun, told := time.Now(), false
	for {
		engine, err := OpenEngine(ctx, o)
		if !errors.Is(err, errHeld) {
			return engine, err
		}
		if !told && time.Since(begun) > time.Second {
			told = true
			waiting(regie.Errorf(regie.CodeLocked, "process %s works in %s: waiting until it ends",
				describeHolder(o.Config.DataDir), o.Config.DataDir))
		}
		if err := sleepFor(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// Check returns the errors of what can never be served so, before anything is waited for or
// listened on, and what HTTPS is spoken with; nil without.
func (c *ServeConfig) Check() (*tls.Config, error) {
	if c.OnApproval != "" && c.OnApproval != string(approval.DenyAndGoOn) && c.OnApproval != string(approval.Park) {
		return nil, regie.Errorf(regie.CodeBadRequest,
			"%q is not a way to treat calls that need an approval: use deny or park", c.OnApproval)
	}
	secure := c.CertFile != "" || c.KeyFile != ""
	if beyond, err := isBeyond(c.Addr); err != nil {
		return nil, err
	} else if beyond && !secure && !c.PlainHTTP {
		return nil, inClear(c.Addr)
	}
	if !secure {
		return nil, nil //nolint:nilnil // as said above
	}
	certificate, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the certificate cannot be used: %v", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}, nil
}

// Serve serves the engine to callers with a token. It returns CodeForbidden for an address beyond
// this machine without HTTPS, and the errors of listening and of reading files.
func (e *Engine) Serve(ctx context.Context, c ServeConfig) (*Served, error) {
	token, err := loadToken(e.config.DataDir, e.token)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := c.Check()
	if err != nil {
		return nil, err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest,
			"cannot listen on %s: choose another address with --addr (%v)", c.Addr, err)
	}
	// only listening shows which machine the address belongs to
	at, ok := listener.Addr().(*net.TCPAddr)
	if ok && !at.IP.IsLoopback() && tlsConfig == nil && !c.PlainHTTP {
		return nil, errors.Join(inClear(at.String()), listener.Close())
	}
	if e.public, err = e.serveOn(ctx, listener, token, tlsConfig, c); err != nil {
		err = errors.Join(err, listener.Close())
	}
	return e.public, err
}

// inClear is the error of an address beyond this machine without HTTPS.
func inClear(addr string) error {
	return regie.Errorf(regie.CodeForbidden,
		"%s can be reached from other machines, and without HTTPS they would send the token unencrypted: use --tls-cert and --tls-key, or --plain-http behind a proxy that encrypts", addr)
}

func (e *Engine) serveOn(ctx context.Context, listener net.Listener, token string, tlsConfig *tls.Config,
	c ServeConfig,
) (*Served, error) {
	owner, err := e.ensureUser(ctx)
	if err != nil {
		return nil, err
	}
	limits := e.config.File.TokenLimits
	gate := &access.Gate{ // it lets in who has the token of the data directory, or one of those in the store
		Store: e.store, Owner: token, User: owner, Log: e.log,
		Limits: access.Limits{
			PerMinute: limits.RequestsPerMinute, Requests: limits.ConcurrentRequests,
			Streams: limits.ConcurrentStreams,
		},
	}
	base, cancel := context.WithCancelCause(context.Background())
	out := &Served{cancel: cancel}
	mcp, err := mcpserver.Handler(access.With(base, &access.Caller{User: gate.User}),
		mcpserver.Config{
			Control: e.forMCP(), Version: c.Version, Log: e.log,
			AllowApprovals: e.config.File.MCP.AllowApprovals,
		})
	if err != nil {
		cancel(nil)
		return nil, err
	}
	counts := e.newMetrics(out)
	mounts := map[string]httpapi.Mount{
		"/mcp": {Handler: mcp, Scope: regie.ScopeMCP},
		"/v1/": e.mountCompat(c),
	}
	pages := web.New(web.Config{
		Service: e.service, Root: c.Root, Secret: httpapi.LoginSecret, Gate: gate, Log: e.log,
		Open: func(n int) { out.open.Add(int64(n)) }, Look: Look,
		Commands: func(t *i18n.Printer, root string) []chat.CustomCommand { return CustomCommands(e.config, t, root) },
	})
	handler := httpapi.Handler(httpapi.Config{
		Service: e.service, Translate: translateError, Version: c.Version, Pages: pages,
		Metrics: counts.Handler(), Refused: counts.Refused,
		Open: func(n int) { out.open.Add(int64(n)) }, Ready: e.readyChecks, Base: base, Going: &out.busy,
		Keys: e.store, Mounts: mounts,
	})
	guard := &httpapi.Guard{Gate: gate, Hosts: c.Hosts, Refused: counts.Refused, Mounts: mounts, Pages: pages}
	if host, _, err := net.SplitHostPort(c.Addr); err == nil {
		// the unspecified address names no machine
		if at, err := netip.ParseAddr(host); host != "" && (err != nil || !at.IsUnspecified()) {
			guard.Hosts = append(guard.Hosts, host)
		}
	}
	out.busy.Go(func() { gate.Watch(base) })
	guarded := guard.Wrap(handler, translateError)
	server := &http.Server{
		Handler: out.countRequests(guarded, counts), TLSConfig: tlsConfig, ReadHeaderTimeout: headerTime,
		IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		DisableGeneralOptionsHandler: true, // the guard is in front of every path
		BaseContext:                  func(net.Listener) context.Context { return base },
		ErrorLog:                     slog.NewLogLogger(e.log.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(pages.Stop)
	scheme, serve := "http://", server.Serve
	if tlsConfig != nil {
		scheme, serve = "https://", func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
			ended <- err
		}
	}()
	url, link := scheme+listener.Addr().String(), scheme+reachableURL(listener.Addr(), c.Hosts)
	out.URL, out.Setup, out.Ended, out.server, out.done = url, link+guard.SetupPath(), ended, server, done
	e.service.Serve(func() string { return link + guard.SetupPath() }, func() { gate.Look(base) })
	return out, nil
}

// forMCP returns what the MCP server asks.
func (e *Engine) forMCP() mcpserver.Control {
	s := e.service
	return mcpserver.Control{
		Submit: s.Rounds.Submit, Stop: s.Sessions.Stop, Events: s.Events.Follow, Sessions: s.Sessions.List,
		Session: s.Sessions.Get, Inbox: s.Approvals.Inbox, Decide: s.Approvals.Decide, Answer: s.Approvals.Answer,
		Workspaces: s.Workspaces.List, OpenWorkspace: s.Workspaces.Open, Tools: s.Catalog.Tools,
		Query: s.Workspaces.Query,
	}
}

// reachableURL returns an address for links that the guard accepts: the first configured name, else
// the address itself, and this machine's where the server listens on every address.
func reachableURL(at net.Addr, hosts []string) string {
	host, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return at.String()
	}
	if ip, err := netip.ParseAddr(host); len(hosts) > 0 {
		host = strings.Trim(hosts[0], "[]")
	} else if err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// mountCompat returns the endpoint for clients of OpenAI's and Anthropic's APIs (decision 35). The
// latter show their token as X-Api-Key.
func (e *Engine) mountCompat(c ServeConfig) httpapi.Mount {
	root, foundBy := c.Root, c.FoundBy
	if root == "" {
		root, foundBy = control.OwnPlace(e.config.DataDir), workspace.FoundByDirectory
	}
	settings := compat.Config{
		Service: e.service, OnApproval: approval.OnApproval(c.OnApproval), Translate: translateError,
		Proxy: e.Proxy(),
		Workspace: func(ctx context.Context) (regie.Workspace, error) {
			if c.Root == "" {
				if err := os.MkdirAll(root, 0o700); err != nil {
					return regie.Workspace{}, dirError(err, root)
				}
			}
			return e.service.Workspaces.ForClients(ctx, root, foundBy)
		},
	}
	return httpapi.Mount{
		Handler: compat.Handler(settings), Scope: regie.ScopeCompletions,
		Refuse: compat.Refuse(settings), KeyHeader: "X-Api-Key",
	}
}

// readyChecks returns what /readyz says.
func (e *Engine) readyChecks(ctx context.Context) []httpapi.Check {
	out := []httpapi.Check{{Name: "database"}, {Name: "engine"}, {Name: "model"}}
	if _, err := e.store.Workspaces(ctx); err != nil {
		out[0].Problem = err.Error()
	}
	if err := e.dispatcher.Ended(); err != nil {
		out[1].Problem = err.Error()
	}
	if err := e.config.RequireModel(); err != nil {
		out[2].Problem = err.Error()
	}
	return out
}

// isBeyond reports whether an address can be reached from other machines.
func isBeyond(addr string) (bool, error) {
	host, port, err := net.SplitHostPort(addr)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return false, regie.Errorf(regie.CodeBadRequest,
			"%q is not an address to listen on: write it like 127.0.0.1:7333", addr)
	}
	if host == "localhost" {
		return false, nil
	}
	at, _ := netip.ParseAddr(host) // a name leads anywhere
	return !at.IsLoopback(), nil
}

// tokenName is the file of the token in a data directory.
const tokenName = "api.token"

// TokenPath is where the token of the server of a data directory lies.
func TokenPath(dir string) string { return filepath.Join(dir, tokenName) }

// loadToken reads the token of a data directory, and makes it of fresh the first time: readable by
// its owner alone (spec 11.2).
func loadToken(dir, fresh string) (string, error) {
	token, err := ReadToken(dir)
	if regie.CodeOf(err) != regie.CodeNotFound {
		return token, err
	}
	token = cmp.Or(fresh, access.NewSecret())
	path := TokenPath(dir)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", dirError(err, dir)
	}
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(dirError(err, dir), os.Remove(path))
	}
	return token, nil
}

// ReadToken reads the server token of a data directory. It returns CodeNotFound without one, and
// CodeNoPermission where users other than the owner may read it.
func ReadToken(dir string) (string, error) {
	path := TokenPath(dir)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", regie.Errorf(regie.CodeNotFound, "there is no token in %s: regie serve creates one", dir)
	case err != nil:
		return "", dirError(err, dir)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return "", regie.Errorf(regie.CodeNoPermission,
			"%s must be a file that you alone can read: chmod 600 it, or delete it for a new token", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", dirError(err, dir)
	}
	token := strings.TrimSpace(string(data))
	if len(token) < 20 {
		return "", regie.Errorf(regie.CodeCorrupt, "%s holds no token: delete it for a new one", path)
	}
	return token, nil
}
