// Package client is a Go client of Regie's HTTP interface (spec 10.2): every operation of an
// engine in this process, in another one or on another machine. Its requests are checked against
// the interface's OpenAPI document by a test. It starts no goroutines; the connections are
// net/http's.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// Client is a Control of an engine. After the engine ends or is killed its methods return
// CodeEngineGone: the caller may take over and repeat the request. They return CodeLocked while the
// engine does not answer, for example because it is suspended.
type Client struct {
	// The nouns of the service; sessions, rounds and approvals are methods of Client.
	Agents      *Agents
	Attachments *Attachments
	Workspaces  *Workspaces
	Catalog     *Catalog
	Rules       *Rules
	Undos       *Undos
	Cache       *Cache
	Tokens      *Tokens
	Presence    *PresenceService
	Stats       *Stats
	Automations *Automations
	// Notifications are the channels of the settings.
	Notifications *Notifications

	through  Through // nil: the requests go to the one engine that the fields below name
	http     *http.Client
	address  string // without the path
	token    string
	language string
	// Patience is the silence of an engine after which the client checks that it is alive, and the
	// time for that check; zero means 5 s. Set it before the first request.
	Patience time.Duration
}

// patience is the default of Client.Patience.
const patience = 5 * time.Second

// errSilent is returned where an engine is there and does not answer.
var errSilent = regie.Errorf(regie.CodeLocked, "another regie holds this data directory and does not answer")

// Local returns a client that reaches its engine through dial, without a token: through the
// engine's private socket. Errors come in the language.
func Local(dial func(context.Context) (net.Conn, error), language string) *Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx)
	}}
	return connectNouns(&Client{http: &http.Client{Transport: transport}, address: "http://regie", language: language})
}

// New returns a client of the server at an address such as http://127.0.0.1:7333, with its token.
// Errors come in the language. It returns CodeBadRequest for what is no address of a server, and
// what can be no token. A token is sent to that server alone: redirects are not followed.
func New(address, token, language string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.User != nil {
		return nil, regie.Errorf(regie.CodeBadRequest,
			"%q is not the address of a server: write it like http://127.0.0.1:7333", address)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) { // which is not repeated
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the token contains a line break, a space or another character that no token has: set REGIE_TOKEN to the token alone, on one line")
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute,
	}
	if u.Scheme == "http" {
		transport.Proxy = nil // what is said in clear is said to nobody else
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return connectNouns(&Client{
		http: &http.Client{Transport: transport, CheckRedirect: stay}, address: u.Scheme + "://" + u.Host,
		token: token, language: language,
	}), nil
}

func connectNouns(c *Client) *Client {
	c.Agents, c.Attachments, c.Automations = &Agents{c}, &Attachments{c}, &Automations{c}
	c.Workspaces, c.Catalog, c.Rules, c.Undos = &Workspaces{c}, &Catalog{c}, &Rules{c}, &Undos{c}
	c.Cache, c.Tokens, c.Presence, c.Stats = &Cache{c}, &Tokens{c}, &PresenceService{c}, &Stats{c}
	c.Notifications = &Notifications{c}
	return c
}

// Through sends a request to the engine that serves now. It may send it again, to another engine,
// where the first one has gone: requests carry ids that make a repetition harmless.
type Through func(ctx context.Context, send func(engine *Client) error) error

// Attach returns a client that outlives engines: through chooses one for each request and stream.
func Attach(through Through) *Client { return connectNouns(&Client{through: through}) }

// Close ends the client's idle connections.
func (c *Client) Close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// Submit stores a message and starts its round.
func (c *Client) Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
	return ask[dispatch.Run](ctx, c, http.MethodPost, "/api/v1/runs", in)
}

// Interrupt ends a round at its current exchange; the word is durable when it returns.
func (c *Client) Interrupt(ctx context.Context, round regie.ID) error {
	return c.call(ctx, http.MethodPost, "/api/v1/rounds/"+round.String()+"/interrupt", nil, nil)
}

// Pause starts nothing new of a round.
func (c *Client) Pause(ctx context.Context, round regie.ID) error {
	return c.call(ctx, http.MethodPost, "/api/v1/rounds/"+round.String()+"/pause", nil, nil)
}

// Resume goes on with a paused round, or with one that no process holds.
func (c *Client) Resume(ctx context.Context, round regie.ID) error {
	return c.call(ctx, http.MethodPost, "/api/v1/rounds/"+round.String()+"/resume", nil, nil)
}

// AddProvider hands a provider with its settings (config.ClientProvider) to the engine of a private
// socket, for the runs of its client (decision 54). No server has this operation.
func AddProvider(ctx context.Context, c *Client, in any) error {
	return c.call(ctx, http.MethodPost, "/api/v1/client-providers", in, nil)
}

// ChangeProvider gives a round that waits or is paused another provider; Resume goes on with it.
func ChangeProvider(ctx context.Context, c *Client, in dispatch.ProviderRequest) error {
	return c.call(ctx, http.MethodPost, "/api/v1/rounds/"+in.RoundID.String()+"/provider", in, nil)
}

// Stop ends everything that runs in a session, closes it as cancelled, and returns the messages
// that waited.
func (c *Client) Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error) {
	return ask[dispatch.Stopped](ctx, c, http.MethodPost, "/api/v1/sessions/"+session.String()+"/stop", nil)
}

// TakeBack takes a message back that waits for its turn, and returns it. It returns CodeConflict
// where the agent has it already (decision 10).
func (c *Client) TakeBack(ctx context.Context, in dispatch.TakeBackRequest) (regie.Message, error) {
	return ask[regie.Message](ctx, c, http.MethodPost, "/api/v1/sessions/"+in.SessionID.String()+"/take-back", in)
}

// CloseSession closes an idle chat, which a message opens again.
func (c *Client) CloseSession(ctx context.Context, session regie.ID) error {
	return c.call(ctx, http.MethodPost, "/api/v1/sessions/"+session.String()+"/close", nil, nil)
}

// Decide stores a person's decisions, each accepted once, and goes on with the round.
func (c *Client) Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error) {
	return ask[store.Resolved](ctx, c, http.MethodPost, "/api/v1/approvals/"+in.ApprovalID.String(), in)
}

// Review returns what the edited calls of a request would do and stores nothing (decision 20).
func (c *Client) Review(ctx context.Context, in dispatch.DecideRequest) (dispatch.Reviewed, error) {
	return ask[dispatch.Reviewed](ctx, c, http.MethodPost, "/api/v1/approvals/"+in.ApprovalID.String()+"/review", in)
}

// Answer stores a person's answer to a question, once, and goes on with the round.
func (c *Client) Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error) {
	return ask[store.Resolved](ctx, c, http.MethodPost, "/api/v1/questions/"+in.QuestionID.String(), in)
}

// Resolve stores a person's finding about a call with an unknown outcome (decision 5).
func (c *Client) Resolve(ctx context.Context, in dispatch.ResolveRequest) error {
	return c.call(ctx, http.MethodPost, "/api/v1/calls/"+in.CallID.String()+"/resolve", in, nil)
}

// Get returns a round with everything that happened in it.
func (c *Client) Get(ctx context.Context, round regie.ID) (store.RoundView, error) {
	return ask[store.RoundView](ctx, c, http.MethodGet, "/api/v1/rounds/"+round.String(), nil)
}

// List returns the rounds that a filter selects, the newest first.
func (c *Client) List(ctx context.Context, f store.RoundFilter) ([]store.RoundSummary, error) {
	path := "/api/v1/rounds"
	if !f.SessionID.IsZero() {
		path = "/api/v1/sessions/" + f.SessionID.String() + "/rounds"
	}
	return list[store.RoundSummary](ctx, c, path, f, cmp.Or(f.Limit, 20))
}

// Spent returns what was spent today in the workspace at root, or in all for "", and in all of them
// (spec 11.4).
func (c *Client) Spent(ctx context.Context, root string) (store.Spent, error) {
	return ask[store.Spent](ctx, c, http.MethodGet, "/api/v1/spending?"+url.Values{"root": {root}}.Encode(), nil)
}

// problem is what an engine says of an error.
type problem struct {
	Code   regie.Code `json:"code"`
	Detail string     `json:"detail"`
}

func (p problem) err() error { return regie.Errorf(p.Code, "%s", p.Detail) }

// Alive asks whether a Regie answers at all. It shows no token: only what is one is shown that
// afterwards.
func (c *Client) Alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(c.Patience, patience), errSilent)
	defer cancel()
	asks := *c
	asks.token = ""
	response, err := asks.send(ctx, http.MethodGet, "/healthz", nil)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil || response.StatusCode == http.StatusNoContent {
		return err
	}
	return noRegie(c.address, response.Status)
}

// watched returns a context that ends where the engine falls silent: an answer may take its time,
// as long as the engine is alive.
func (c *Client) watched(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	var mu sync.Mutex // timer is set when its function may run already
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(cmp.Or(c.Patience, patience), func() {
		if err := c.Alive(ctx); errors.Is(err, errSilent) {
			cancel(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			timer.Reset(cmp.Or(c.Patience, patience))
		}
	})
	return ctx, func() {
		cancel(nil)
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
	}
}

// call makes a request and decodes its answer into out, unless that is nil.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	return c.onEngine(ctx, func(engine *Client) error { return engine.callEngine(ctx, method, path, in, out) })
}

// ask makes a request and returns its answer.
func ask[T any](ctx context.Context, c *Client, method, path string, in any) (out T, err error) {
	err = c.call(ctx, method, path, in, &out)
	return out, err
}

// onEngine runs send with the client of one engine, and again where through says so.
func (c *Client) onEngine(ctx context.Context, send func(engine *Client) error) error {
	if c.through == nil {
		return send(c)
	}
	return c.through(ctx, send)
}

func (c *Client) callEngine(ctx context.Context, method, path string, in, out any) error {
	ctx, done := c.watched(ctx)
	defer done()
	response, err := c.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if out == nil {
		return nil
	}
	return readAnswer(ctx, response.Body, out)
}

// readAnswer decodes an answer; one that was cut off is not one that is wrong.
func readAnswer(ctx context.Context, body io.Reader, out any) error {
	data, err := io.ReadAll(body)
	if err != nil {
		return explainGone(ctx, err)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return regie.Errorf(regie.CodeInternal, "the engine's answer cannot be read: %v", err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.address+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Language", c.language)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if dispatch.IsUnattended(ctx) {
		request.Header.Set(dispatch.UnattendedHeader, "true")
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, explainGone(ctx, err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "application/problem+json" {
		return nil, noRegie(c.address, response.Status)
	}
	var p problem
	if err := readAnswer(ctx, io.LimitReader(response.Body, 1<<20), &p); err != nil {
		return nil, err
	}
	return nil, p.err()
}

func noRegie(address, status string) error {
	return regie.Errorf(regie.CodeConflict, "%s answers %s: it is not a Regie server, or a proxy answers in its place", address,
		status)
}

// explainGone tells a cancelled request from an engine that has gone.
func explainGone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return regie.Errorf(regie.CodeEngineGone, "the engine cannot be reached any more: %v", err)
}
