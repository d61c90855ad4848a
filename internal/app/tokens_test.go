package app_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/store"
)

// add makes a token over the server.
func (h *house) add(in control.TokenRequest) control.MadeToken {
	h.t.Helper()
	body, _ := json.Marshal(in)
	var made control.MadeToken
	h.json("POST", "/api/v1/tokens", string(body), 201, &made)
	return made
}

func bearer(secret string) func(*http.Request) { return carrying("Authorization", "Bearer "+secret) }

// TestTokenLife makes a token, uses it, and ends it: it opens what it was given, its secret is
// nowhere, and what it had open ends with it.
func TestTokenLife(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	made := h.add(control.TokenRequest{Name: "  dash\x1b[31m board ", Scopes: []regie.TokenScope{regie.ScopeRead, regie.ScopeRead}})
	if made.Token.Name != "dash board" || len(made.Token.Scopes) != 1 || made.Token.Kind != regie.TokenAPI {
		t.Errorf("made %+v", made.Token)
	}
	as := bearer(made.Secret)
	h.json("GET", "/api/v1/sessions", "", 200, nil, as)
	var me control.Me
	if h.json("GET", "/api/v1/users/me", "", 200, &me, as); me.Via != access.ViaToken || me.Token.ID != made.Token.ID || regie.ScopeWords(me.Scopes) != "read" || me.User.Role != control.RoleOwner {
		t.Errorf("it is told to be %+v", me)
	}
	response := h.ask("POST", "/api/v1/sessions", "{}", as) //nolint:bodyclose // at the end of the test
	said, _ := io.ReadAll(response.Body)
	if response.StatusCode != 403 || !bytes.Contains(said, []byte("MISSING_SCOPE")) || !bytes.Contains(said, []byte("scope chat")) ||
		!strings.Contains(response.Header.Get("WWW-Authenticate"), `scope="chat"`) {
		t.Errorf("what it does not open: %d %s %v", response.StatusCode, said, response.Header)
	}
	for _, path := range []string{"/v1/models", "/mcp", "/metrics", "/api/v1/tokens"} {
		h.json("GET", path, "", 403, nil, as)
	}
	var list struct{ Items []regie.Token }
	if h.json("GET", "/api/v1/tokens", "", 200, &list); len(list.Items) != 1 || list.Items[0].LastUsedAt.IsZero() {
		t.Errorf("the list is %+v", list.Items)
	}
	again, _ := json.Marshal(control.TokenRequest{TokenID: made.Token.ID, Name: "again", Scopes: made.Token.Scopes})
	h.json("POST", "/api/v1/tokens", string(again), 409, nil)

	stream := h.ask("GET", "/api/v1/events", "", as)
	defer stream.Body.Close()
	socket := h.websocket(made.Secret)
	plain := h.ask("GET", "/api/v1/sessions/"+h.session()+"/events", "", as, carrying("Accept-Language", "fr"))
	defer plain.Body.Close()
	h.json("DELETE", "/api/v1/tokens/"+made.Token.ID.String(), "", 200, nil)
	h.json("DELETE", "/api/v1/tokens/"+made.Token.ID.String(), "", 200, nil) // which changes nothing
	if status, said := h.said("GET", "/api/v1/sessions", "", as); status != 401 || !strings.Contains(said, "TOKEN_ENDED") {
		t.Errorf("once it is revoked: %d %s", status, said)
	}
	for words, body := range map[string]io.Reader{"was revoked": stream.Body, "a été révoqué": plain.Body} {
		told := frames(t, body, nil) // it ends
		if len(told) == 0 || !strings.HasPrefix(told[len(told)-1], "event: error\n") || !strings.Contains(told[len(told)-1], `"TOKEN_ENDED"`) || !strings.Contains(told[len(told)-1], words) {
			t.Errorf("its stream ends with %q", told)
		}
	}
	if _, _, err := socket.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "TOKEN_ENDED") {
		t.Errorf("its WebSocket ends with %v", err)
	}
	var logs struct{ Items []store.LogReport }
	if h.json("GET", "/api/v1/verify", "", 200, &logs); len(logs.Items) == 0 || logs.Items[len(logs.Items)-1].Error != "" {
		t.Errorf("the logs: %+v", logs)
	}
	h.json("DELETE", "/api/v1/tokens/"+regie.NewID().String(), "", 404, nil)
}

// TestRevokedAtOnce revokes one token after the other where its stream is: each ends before anybody
// looks again, which is every two seconds.
func TestRevokedAtOnce(t *testing.T) {
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	began := time.Now()
	for range 5 {
		made := h.add(control.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeRead}})
		stream := h.ask("GET", "/api/v1/events", "", bearer(made.Secret)) //nolint:bodyclose // at the end of the test
		h.json("DELETE", "/api/v1/tokens/"+made.Token.ID.String(), "", 200, nil)
		_, _ = io.Copy(io.Discard, stream.Body) // it ends
	}
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("five streams ended after %s", took)
	}
}

// TestTokensEnd: a token ends after 90 days unless somebody says otherwise, and one that a token
// makes never after that one.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	soon := time.Now().Add(time.Hour).UTC()
	admin := bearer(h.add(control.TokenRequest{Name: "admin", Scopes: regie.TokenScopes(), ExpiresAt: soon}).Secret)
	for name, c := range map[string]struct {
		says string
		as   func(*http.Request)
		days int // -1: never, 0: with the one that makes it
	}{
		"left out":          {"", bearer(h.token), 90},
		"never":             {`,"never_expires":true`, bearer(h.token), -1},
		"left out, by one":  {"", admin, 0},
		"never, by one":     {`,"never_expires":true`, admin, 0},
		"far away, by one":  {`,"expires_at":"2999-01-01T00:00:00Z"`, admin, 0},
		"as it says itself": {`,"expires_at":"` + time.Now().AddDate(0, 0, 10).UTC().Format(time.RFC3339Nano) + `"`, bearer(h.token), 10},
	} {
		var made control.MadeToken
		h.json("POST", "/api/v1/tokens", `{"name":"x","scopes":["read"]`+c.says+`}`, 201, &made, c.as)
		ends := made.Token.ExpiresAt
		if c.days < 0 && !ends.IsZero() || c.days == 0 && !ends.Equal(soon.Truncate(time.Microsecond)) || c.days > 0 && (time.Until(ends).Hours()/24-float64(c.days))*(time.Until(ends).Hours()/24-float64(c.days)) > 0.1 {
			t.Errorf("%s: it ends at %s", name, ends)
		}
	}
}

// TestServeNames refuses names and addresses that are none before anything listens.
func TestServeNames(t *testing.T) {
	for _, c := range []app.ServeConfig{
		{Addr: "unix:/tmp/x"},
		{Addr: "127.0.0.1"},
		{Addr: "127.0.0.1:70000"},
	} {
		if _, err := c.Check(); regie.CodeOf(err) != regie.CodeBadRequest {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestTokensRefused asks for tokens that cannot be, and shows what is none.
func TestTokensRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	for _, body := range []string{
		`{}`, `{"name":"x"}`, `{"name":"x","scopes":[]}`, `{"name":"x","scopes":["root"]}`, `{"name":" ","scopes":["read"]}`,
		`{"name":"x","scopes":["read"],"on_approval":"allow"}`, `{"name":"x","scopes":["read"],"expires_at":"2020-01-01T00:00:00Z"}`,
		`{"name":"` + strings.Repeat("x", 101) + `","scopes":["read"]}`, `{"name":"` + h.token + `","scopes":["read"]}`, `{"name":"x","scopes":["read"],"secret":"x"}`,
		`{"name":"x","scopes":["read"],"workspaces":[]}`, // no workspace is not every workspace
		`{"name":"x","scopes":["read"],"never_expires":true,"expires_at":"2999-01-01T00:00:00Z"}`,
	} {
		h.json("POST", "/api/v1/tokens", body, 400, nil)
	}
	h.json("POST", "/api/v1/tokens", `{"name":"x","scopes":["read"],"workspaces":["`+regie.NewID().String()+`"]}`, 404, nil)
	made := h.add(control.TokenRequest{Name: "x", Scopes: regie.TokenScopes()})
	cookie := func(r *http.Request) {
		r.Header.Del("Authorization")
		r.AddCookie(&http.Cookie{Name: "regie-" + h.served.URL[strings.LastIndexByte(h.served.URL, ':')+1:], Value: made.Secret})
	}
	h.json("GET", "/api/v1/sessions", "", 401, nil, cookie) // a program's token is no browser's
	for _, wrong := range []string{made.Secret[:len(made.Secret)-1], made.Secret + "x", strings.ToUpper(made.Secret), "regie_", "x"} {
		h.json("GET", "/api/v1/sessions", "", 401, nil, bearer(wrong))
	}
	var said answered
	if h.json("GET", "/v1/models", "", 401, &said, bearer("x")); said.Error.Code != "NO_TOKEN" {
		t.Errorf("to a client of OpenAI's: %+v", said)
	}
	if _, metrics := h.said("GET", "/metrics", ""); !strings.Contains(metrics, `regie_http_refused_total{reason="token"}`) {
		t.Error("nobody counts what was refused")
	}
}

// TestTokensGiveNoMore: a token that makes tokens gives away nothing that it has not; one that sees
// some workspaces makes none, sees none and ends only itself.
func TestTokensGiveNoMore(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t)).serve("127.0.0.1:0")
	one := h.placeAt(t.TempDir())
	lead := control.TokenRequest{Name: "lead", Scopes: []regie.TokenScope{regie.ScopeAdmin, regie.ScopeRead}, OnApproval: "deny"}
	as := bearer(h.add(lead).Secret)
	h.json("POST", "/api/v1/tokens", `{"name":"x","scopes":["approve"]}`, 403, nil, as)
	var child control.MadeToken
	h.json("POST", "/api/v1/tokens", `{"name":"child","scopes":["read"],"on_approval":"park"}`, 201, &child, as)
	if child.Token.OnApproval != "deny" || !strings.Contains(child.Token.CreatedBy, "lead") {
		t.Errorf("the child is %+v", child.Token)
	}
	lead.Workspaces = []regie.ID{one.ID}
	some := h.add(lead)
	as = bearer(some.Secret)
	h.json("POST", "/api/v1/tokens", `{"name":"x","scopes":["read"]}`, 403, nil, as)
	h.json("GET", "/api/v1/tokens", "", 403, nil, as)
	h.json("DELETE", "/api/v1/tokens/"+child.Token.ID.String(), "", 403, nil, as)
	h.json("DELETE", "/api/v1/tokens/"+some.Token.ID.String(), "", 200, nil, as)
}

// TestTokensMakeNoWorkspace: which directories agents work in is said by the owner, and by a token
// with the scope admin: what another token names has to be one already, however it names it, and it
// does not learn what there is on the machine.
func TestTokensMakeNoWorkspace(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Hello."))).serve("127.0.0.1:0")
	there, strange := h.placeAt(t.TempDir()), t.TempDir()
	all := []regie.TokenScope{}
	for _, scope := range regie.TokenScopes() {
		if scope != regie.ScopeAdmin {
			all = append(all, scope)
		}
	}
	as := bearer(h.add(control.TokenRequest{Name: "lesser", Scopes: all}).Secret)
	admin := bearer(h.add(control.TokenRequest{Name: "admin", Scopes: regie.TokenScopes()}).Secret)
	ask := func(path string, body map[string]any, who func(*http.Request)) (int, string) {
		t.Helper()
		data, _ := json.Marshal(body)
		return h.said("POST", path, string(data), who)
	}
	for _, here := range []bool{false, true} {
		for _, dir := range []string{strange, "/", "/etc", filepath.Join(strange, "none")} {
			if code, said := ask("/api/v1/workspaces", map[string]any{"path": dir, "here": here}, as); code != 403 || !strings.Contains(said, "MISSING_SCOPE") {
				t.Errorf("opening %s, here %v: %d %s", dir, here, code, said)
			}
			run := map[string]any{"client_message_id": "1", "session_id": regie.NewID(), "root": dir, "found_by": "directory", "here": here, "text": "Hello"}
			if code, said := ask("/api/v1/runs", run, as); code != 403 || !strings.Contains(said, "MISSING_SCOPE") {
				t.Errorf("a run in %s, here %v: %d %s", dir, here, code, said)
			}
		}
		if code, said := ask("/api/v1/workspaces", map[string]any{"path": there.Root, "here": here}, as); code != 200 || !strings.Contains(said, there.ID.String()) {
			t.Errorf("one that is there: %d %s", code, said)
		}
	}
	if found, err := h.engine.Service().Workspaces.List(access.AsOwner(t.Context())); err != nil || len(found) != 1 {
		t.Errorf("there are %+v, %v", found, err)
	}
	run := map[string]any{"client_message_id": "1", "session_id": regie.NewID(), "root": there.Root, "found_by": "directory", "text": "Hello"}
	if code, said := ask("/api/v1/runs", run, as); code != 202 {
		t.Errorf("a run in one that is there: %d %s", code, said)
	}
	if code, said := ask("/api/v1/workspaces", map[string]any{"path": strange}, admin); code != 200 {
		t.Errorf("the admin's: %d %s", code, said)
	}
}

func (h *house) placeAt(dir string) (place regie.Workspace) {
	h.t.Helper()
	path, _ := json.Marshal(dir)
	h.json("POST", "/api/v1/workspaces", `{"here":true,"path":`+string(path)+`}`, 200, &place)
	return place
}

// TestTokenLimits: a token that asks too often, or has too much open, is told when to come again;
// the owner is not.
func TestTokenLimits(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.settings.File.TokenLimits = config.TokenLimits{RequestsPerMinute: 60, ConcurrentStreams: 1}
	h := b.serve("127.0.0.1:0")
	as := bearer(h.add(control.TokenRequest{Name: "eager", Scopes: []regie.TokenScope{regie.ScopeRead}}).Secret)
	stream := h.ask("GET", "/api/v1/events", "", as)
	defer stream.Body.Close()
	if stream.StatusCode != 200 {
		t.Fatalf("the stream: %d", stream.StatusCode)
	}
	if second := h.ask("GET", "/api/v1/events", "", as); second.StatusCode != 429 || second.Header.Get("Retry-After") == "" { //nolint:bodyclose // the helper closes it with the test
		t.Errorf("a second stream: %d %v", second.StatusCode, second.Header)
	}
	if second := h.ask("GET", "/api/v1/ws", "", as); second.StatusCode != 429 { //nolint:bodyclose // as above
		t.Errorf("a WebSocket beside it: %d", second.StatusCode)
	}
	refused := false
	for range 200 { // more than may come at once, and than flow back meanwhile
		response := h.ask("GET", "/api/v1/agents", "", as)
		refused = response.StatusCode == 429 && response.Header.Get("Retry-After") != ""
		_ = response.Body.Close()
		if refused {
			break
		}
	}
	if !refused {
		t.Error("it may ask for ever")
	}
	for range 20 {
		h.json("GET", "/api/v1/agents", "", 200, nil)
	}
}

// TestBrowserLeaves: a browser's login is listed, ended by itself, and ended from elsewhere; and it
// survives a restart.
func TestBrowserLeaves(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	browse := func() *http.Client {
		t.Helper()
		browser := h.browser()
		link, _ := url.Parse(h.served.Setup)
		if in, _, _ := h.asks(browser, "POST", "/setup", url.Values{"code": {link.Query().Get("code")}}); in != 303 {
			t.Fatal(in)
		}
		return browser
	}
	status := func(browser *http.Client, method, path string, changes ...func(*http.Request)) int {
		t.Helper()
		status, _, _ := h.asks(browser, method, path, nil, changes...)
		return status
	}
	browser := browse()
	base, _ := url.Parse(h.served.URL)
	stolen := browser.Jar.Cookies(base)[0]
	h.json("POST", "/api/v1/logout", "", 409, nil) // a program is none
	if got := status(browser, "POST", "/api/v1/logout", carrying("Origin", "https://evil.example")); got != 403 {
		t.Errorf("another's page logs out: %d", got)
	}
	if got := status(browser, "POST", "/api/v1/logout"); got != 200 {
		t.Errorf("logging out: %d", got)
	}
	if len(browser.Jar.Cookies(base)) != 0 {
		t.Error("the cookie stays")
	}
	h.json("GET", "/api/v1/sessions", "", 401, nil, func(r *http.Request) { r.Header.Del("Authorization"); r.AddCookie(stolen) })

	fatal(t, h.engine.Close())
	h = b.serve("127.0.0.1:0")
	browser = browse()
	var list struct{ Items []regie.Token }
	if h.json("GET", "/api/v1/tokens?kind=browser", "", 200, &list); len(list.Items) != 1 || !strings.HasPrefix(list.Items[0].Name, "Go-http-client") {
		t.Fatalf("browsers: %+v", list.Items)
	}
	if got := status(browser, "GET", "/api/v1/users/me"); got != 200 {
		t.Errorf("it is known: %d", got)
	}
	h.json("GET", "/api/v1/sessions", "", 401, nil, bearer(browser.Jar.Cookies(base)[0].Value)) // a cookie is no bearer
	// Another browser comes in by a link of the owner's; a token, whatever it opens, makes none.
	h.json("POST", "/api/v1/setup-links", "", 403, nil, bearer(h.add(control.TokenRequest{Name: "x", Scopes: regie.TokenScopes()}).Secret))
	var link control.SetupLink
	h.json("POST", "/api/v1/setup-links", "", 201, &link)
	h.served.Setup = link.URL
	if got := status(browse(), "GET", "/api/v1/users/me"); got != 200 {
		t.Errorf("by a second link: %d", got)
	}
	h.json("DELETE", "/api/v1/tokens/"+list.Items[0].ID.String(), "", 200, nil)
	if got := status(browser, "GET", "/api/v1/users/me"); got != 401 {
		t.Errorf("ended from elsewhere: %d", got)
	}
}

// TestTokensOnOtherNodes: what one node makes opens another, and what one revokes opens nothing on
// any, and ends there what it has open.
func TestTokensOnOtherNodes(t *testing.T) {
	t.Parallel()
	b, _ := shared(t, newModel(t))
	one := b.serve("127.0.0.1:0")
	there := *b
	there.settings.DataDir = b.elsewhere()
	two := there.serve("127.0.0.1:0")
	made := one.add(control.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeRead}})
	as := bearer(made.Secret)
	two.json("GET", "/api/v1/sessions", "", 200, nil, as)
	stream := two.ask("GET", "/api/v1/events", "", as)
	defer stream.Body.Close()
	one.json("DELETE", "/api/v1/tokens/"+made.Token.ID.String(), "", 200, nil)
	two.json("GET", "/api/v1/sessions", "", 401, nil, as)
	_, _ = io.Copy(io.Discard, stream.Body) // it ends
}

// TestTokenOfTheEndpoint: what becomes of what needs an approval is the token's word, and the
// server's where it says nothing (decision 35).
func TestTokenOfTheEndpoint(t *testing.T) {
	t.Parallel()
	again := func() http.HandlerFunc {
		return replyWith("", call{"w", "files__write_file", `{"path":"x","content":"x"}`})
	}
	b := newHarness(t, newModel(t, again(), again(), replyWith("I may not."), again(), replyWith("I may not."))) //nolint:gocritic // each is a reply of its own
	h := b.serve("127.0.0.1:0")
	for _, c := range []struct{ policy, want string }{{"park", "WAITING_VALIDATION"}, {"deny", "IDLE"}, {"", "IDLE"}} {
		made := h.add(control.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeCompletions}, OnApproval: c.policy})
		response := h.ask("POST", "/v1/chat/completions", `{"model":"main","messages":[{"role":"user","content":"write"}]}`, bearer(made.Secret)) //nolint:bodyclose // the helper closes it
		data, _ := io.ReadAll(response.Body)
		id, err := regie.ParseID(response.Header.Get("X-Regie-Session"))
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("%q: %d %s", c.policy, response.StatusCode, data)
		}
		session, err := h.engine.Service().Sessions.Get(access.AsOwner(t.Context()), id)
		if err != nil || string(session.State) != c.want {
			t.Errorf("%q: the session is %s (%v), want %s: %s", c.policy, session.State, err, c.want, data)
		}
		h.json("GET", "/api/v1/sessions/"+id.String(), "", 403, nil, bearer(made.Secret))
	}
	// What a person has begun is not the endpoint's: neither to speak in, nor to read.
	made := h.add(control.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeCompletions}})
	own := h.placeAt(filepath.Join(h.settings.DataDir, "workspace"))
	var session regie.Session
	h.json("POST", "/api/v1/sessions", `{"workspace_id":"`+own.ID.String()+`"}`, 201, &session)
	h.json("POST", "/v1/chat/completions", `{"model":"main","metadata":{"session_id":"`+session.ID.String()+`"},"messages":[{"role":"user","content":"x"}]}`, 404, nil, bearer(made.Secret))
}
