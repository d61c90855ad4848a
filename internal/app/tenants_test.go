package app_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// tenants is a server with two workspaces: theirs has a session that waits for an approval, with a
// rule; ours is seen by a token that opens everything in it.
type tenants struct {
	*house
	ours, theirs regie.Workspace
	token        control.MadeToken
	session      regie.ID
	round        regie.ID
	asked        regie.Approval
	rule         regie.ID
	automation   regie.ID
	whole        regie.Token // sees everything
}

func newTenants(t *testing.T) *tenants {
	t.Helper()
	b := newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "x")), replyWith("", write("b", "b.txt", "x")), replyWith("Done.")))
	b.settings.File.Notifications = map[string]config.Channel{"phone": {Type: config.ChannelNtfy, URL: "http://127.0.0.1:1/x"}}
	n := &tenants{house: b.serve("127.0.0.1:0")}
	session := n.house.session()
	n.theirs, n.ours = n.placeAt(b.root), n.placeAt(t.TempDir())
	n.token = n.add(control.TokenRequest{Name: "ours", Scopes: regie.TokenScopes(), Workspaces: []regie.ID{n.ours.ID}})
	n.whole = n.add(control.TokenRequest{Name: "whole", Scopes: regie.TokenScopes()}).Token
	first := n.parks(session, "their secret")
	n.session = first.SessionID
	n.round = first.RoundID
	if _, err := n.engine.Service().Approvals.Decide(access.AsOwner(t.Context()), decide(first, "1", regie.Decision{CallID: first.Reviews[0].CallID, Answer: regie.AnswerAlways})); err != nil {
		t.Fatal(err)
	}
	n.asked = b.next(n.engine.Control(), n.session, first.ID)
	rules, err := n.engine.Service().Rules.List(access.AsOwner(t.Context()), store.RuleFilter{})
	if err != nil || len(rules.Rules) != 1 {
		t.Fatalf("%+v, %v", rules, err)
	}
	n.rule = rules.Rules[0].ID
	made, err := n.engine.Service().Automations.Create(access.AsOwner(t.Context()), dispatch.NewAutomation{WorkspaceID: n.theirs.ID, Text: "their secret"})
	fatal(t, err)
	n.automation = made.ID
	return n
}

// asks are what the token of another workspace asks of each operation that has no {id}, and of some
// that have one: an address behind the path, or a body.
func (n *tenants) asks() map[string][]string {
	root, session, round := n.theirs.Root, n.session.String(), n.round.String()
	place, call := n.theirs.ID.String(), n.asked.Reviews[0].CallID.String()
	part := session[len(session)-8:]
	return map[string][]string{
		"list_automations":  {"", "?root=" + root, "?id=" + n.automation.String(), "?short=" + n.automation.String()[28:]},
		"create_automation": {`{"text":"x","workspace_id":"` + place + `"}`, `{"text":"x","root":"` + root + `"}`, `{"from_session":"` + session + `"}`, `{"from_automation":"` + n.automation.String() + `"}`},
		"preview_schedule":  {`{"when":"daily 09:00","workspace_id":"` + place + `"}`, `{"when":"daily 09:00","root":"` + root + `"}`},
		"edit_automation":   {`{"name":"mine"}`}, "run_automation": {`{}`}, "pause_automation": {`{}`},
		"list_sessions":  {"", "?root=" + root, "?id=" + session, "?short=" + part, "?id=" + round, "?limit=1"},
		"list_rounds":    {"", "?root=" + root},
		"list_approvals": {"", "?root=" + root, "?session=" + session, "?state=all"},
		"show_inbox":     {"", "?root=" + root, "?session=" + session, "?id=" + n.asked.ID.String(), "?short=" + n.asked.ID.String()[28:]},
		"list_rules":     {"", "?root=" + root, "?ended=true", "?id=" + n.rule.String(), "?short=" + n.rule.String()[28:]},
		"show_prompt":    {"?session=" + session, "?round=" + round + "&exchange=1", "?call=" + call, "?call_part=" + call[28:], "?root=" + root + "&session=" + session},
		"show_spending":  {"", "?root=" + root},
		"verify_logs":    {"", "?root=" + root, "?id=" + session, "?short=" + part, "?id=" + place},
		"show_cache":     {"", "?root=" + root},
		"show_stats":     {"", "?root=" + root, "?group=workspace"}, "rebuild_stats": {""},
		"list_notifications": {"", "?root=" + root}, "test_notifications": {`{}`, `{"channel":"phone"}`},
		"list_workspaces": {""}, "list_agents": {"", "?root=" + root}, "list_tools": {""}, "list_providers": {""}, "list_users": {""}, "show_me": {""},
		"create_provider": {`{"name":"x"}`}, "edit_provider": {`{"model":"x"}`}, "remove_provider": {""},
		"show_agent": {"", "?root=" + root}, "list_agent_versions": {""}, "create_agent": {`{"name":"x"}`},
		"change_agent": {`{"definition":{}}`}, "remove_agent": {""}, "upload_attachment": {`{"name":"a.png","data":"` + base64.StdEncoding.EncodeToString(drawPNG(2, 2)) + `"}`},
		"list_tokens":     {"", "?ended=true", "?id=" + n.whole.ID.String()},
		"open_workspace":  {`{"path":"` + root + `"}`, `{"path":"` + filepath.Join(root, "x") + `"}`},
		"create_session":  {`{"workspace_id":"` + place + `"}`, `{"workspace_id":"` + n.ours.ID.String() + `","session_id":"` + session + `"}`},
		"start_run":       {`{"text":"x","session_id":"` + session + `"}`, `{"text":"x","session_id":"` + regie.NewID().String() + `","workspace_id":"` + place + `"}`, `{"text":"x","session_id":"` + regie.NewID().String() + `","root":"` + root + `","agent":"main","provider":"demo","model":"x"}`},
		"trust_workspace": {`{"sha256":"` + regie.HashOf(nil).String() + `"}`},
		"query_workspace": {`{"workspace_id":"` + place + `","tool":"files.list_files"}`},
		"plan_undo":       {`{"target":"` + round + `"}`, `{"session_id":"` + session + `"}`, `{"root":"` + root + `"}`, `{"short":"` + round[28:] + `"}`},
		"undo":            {`{"target":"` + round + `"}`, `{"session_id":"` + session + `"}`, `{"root":"` + root + `","force":true}`, `{"short":"` + round[28:] + `"}`},
		"revoke_rules":    {`{"rule_ids":["` + n.rule.String() + `"]}`},
		"clear_cache":     {`{"root":"` + root + `"}`},
		"add_token":       {`{"name":"x","scopes":["read"],"workspaces":["` + place + `"]}`},
		"revoke_tokens":   {`{"token_ids":["` + n.whole.ID.String() + `"]}`},
		"watch_sessions":  nil, "open_websocket": nil, "logout": nil, // TestTenantsStreams; and who logs out is itself
		"make_setup_link": nil, // TestBrowserLeaves
		"search":          {"?workspace=" + place + "&q=secret", "?workspace=" + n.ours.ID.String() + "&q=secret", "?workspace=" + n.ours.ID.String() + "&q=secret&mode=semantic"},
		"healthz":         {""}, "readyz": {""}, "version": {""}, "docs": {""}, "openapi_json": {""},
		// it is refused below
		"metrics": nil,
		// people are there, not workspaces
		"list_models": {""}, "show_limits": {""}, "list_presence": {""}, "beat": {""},
		"change_limits": {`{"chat":{"max_autonomous_roundtrips":5}}`},

		"decide":            {`{"request_id":"r","decisions":[{"call_id":"` + call + `","decision":"allow"}]}`},
		"review_edit":       {`{"decisions":[{"call_id":"` + call + `","decision":"allow","arguments":{"x":1}}]}`},
		"answer_question":   {`{"request_id":"r","reply":{"text":"x"}}`},
		"resolve_call":      {`{"as":"happened"}`},
		"set_aside":         {`{"until":"2999-01-01T00:00:00Z"}`},
		"extend_deadline":   {`{"until":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `"}`},
		"change_provider":   {`{"provider":"demo"}`},
		"fork_session":      {`{}`},
		"change_session":    {`{"name":"mine"}`, `{"state":"CLOSED"}`},
		"mark_session_read": {`{"read_seq":1}`},
		"send_message":      {`{"content":"x"}`},
		"take_back_message": {`{"message_id":"` + n.asked.ID.String() + `"}`},
		"respond":           {`{"text":"x"}`, `{"question_id":"` + n.asked.ID.String() + `","text":"x"}`},
		"undo_in_session":   {`{}`, `{"force":true}`},
	}
}

// address fills the {id} of a path with what theirs is called.
func (n *tenants) address(path string) string {
	id := n.session
	switch {
	case strings.Contains(path, "/rounds/{id}"):
		id = n.round
	case strings.Contains(path, "/approvals/{id}"), strings.Contains(path, "/questions/{id}"), strings.Contains(path, "/inbox/{id}"):
		id = n.asked.ID
	case strings.Contains(path, "/calls/{id}"):
		id = n.asked.Reviews[0].CallID
	case strings.Contains(path, "/workspaces/{id}"):
		id = n.theirs.ID
	case strings.Contains(path, "/automations/{id}"):
		id = n.automation
	case strings.Contains(path, "/tokens/{id}"):
		id = n.whole.ID
	}
	return strings.NewReplacer("{id}", id.String(), "{name}", "main").Replace(path)
}

// TestTenants asks every operation for what is another workspace's: what has an address is not
// there, and no list names it (spec 10.2, 11.2).
func TestTenants(t *testing.T) {
	t.Parallel()
	n := newTenants(t)
	data, err := os.ReadFile("../httpapi/openapi.json")
	fatal(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		}
	}
	fatal(t, json.Unmarshal(data, &document))
	head := n.head()
	asks := n.asks()
	for path, methods := range document.Paths {
		for method, o := range methods {
			asked, known := asks[o.ID]
			addressed := strings.Contains(path, "{id}")
			if !known && !addressed {
				t.Errorf("nobody has tried what %s tells of other workspaces", o.ID)
			}
			if !known {
				asked = []string{""}
			}
			for _, what := range asked {
				n.keepsFrom(strings.ToUpper(method), n.address(path), what, addressed)
			}
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/responses/resp_" + n.session.String(), ""},
		{"DELETE", "/v1/responses/resp_" + n.session.String(), ""},
		{"POST", "/v1/chat/completions", `{"model":"main","metadata":{"session_id":"` + n.session.String() + `"},"messages":[{"role":"user","content":"x"}]}`},
	} {
		n.keepsFrom(c.method, c.path, c.body, true)
	}
	n.json("GET", "/metrics", "", 403, nil, bearer(n.token.Secret))
	if now := n.head(); now != head {
		t.Errorf("their log has moved from %d to %d", head, now)
	}
	if rules, err := n.engine.Service().Rules.List(access.AsOwner(t.Context()), store.RuleFilter{}); err != nil || len(rules.Rules) != 1 {
		t.Errorf("their rules: %+v, %v", rules, err)
	}
}

func (n *tenants) head() int64 {
	found, err := n.engine.Service().Sessions.List(access.AsOwner(n.t.Context()), store.SessionFilter{ID: n.session})
	if err != nil || len(found) != 1 {
		n.t.Fatalf("%+v, %v", found, err)
	}
	return found[0].Head
}

// keepsFrom asks with the token of the other workspace.
func (n *tenants) keepsFrom(method, path, what string, addressed bool) {
	n.t.Helper()
	query, body := what, ""
	if !strings.HasPrefix(what, "?") {
		query, body = "", what
	}
	status, said := n.said(method, path+query, body, bearer(n.token.Secret))
	if addressed && status != 404 && !strings.Contains(said, "concerns all workspaces") || status >= 500 || status >= 400 && status != 404 && !strings.Contains(said, "whole id") && !strings.Contains(said, "concerns all workspaces") {
		n.t.Errorf("%s %s%s: %d %s", method, path, what, status, said)
	}
	for _, secret := range []string{n.session.String(), n.round.String(), n.asked.ID.String(), n.rule.String(), n.theirs.ID.String(), n.theirs.Root, "their secret", n.whole.ID.String()} {
		// What was asked for may be named again, as what is not there.
		if strings.Contains(said, secret) && (status != 404 || !strings.Contains(path+what, secret)) {
			n.t.Errorf("%s %s%s tells of %s: %d %s", method, path, what, secret, status, said)
		}
	}
}

// TestTenantsOwn: in its own workspace the token does everything; with two of them it says which.
func TestTenantsOwn(t *testing.T) {
	t.Parallel()
	n := newTenants(t)
	as := bearer(n.token.Secret)
	var mine regie.Session
	n.json("POST", "/api/v1/sessions", `{"workspace_id":"`+n.ours.ID.String()+`"}`, 201, &mine, as)
	n.json("GET", "/api/v1/sessions/"+mine.ID.String(), "", 200, nil, as)
	n.json("GET", "/api/v1/search?q=x&workspace="+n.ours.ID.String(), "", 200, nil, as)
	var place regie.Workspace
	if n.json("POST", "/api/v1/workspaces", `{"path":"`+n.ours.Root+`"}`, 200, &place, as); place.ID != n.ours.ID {
		t.Errorf("its own directory is %+v", place)
	}
	remote, err := client.New(n.served.URL, n.add(control.TokenRequest{Name: "both", Scopes: regie.TokenScopes(), Workspaces: []regie.ID{n.ours.ID, n.theirs.ID}}).Secret, "en")
	fatal(t, err)
	defer remote.Close()
	if _, err := remote.Sessions(t.Context(), store.SessionFilter{}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("two workspaces, and none is named: %v", err)
	}
	for _, filter := range []store.SessionFilter{{Root: n.ours.Root}, {ID: mine.ID}} {
		if found, err := remote.Sessions(t.Context(), filter); err != nil || len(found) != 1 || found[0].ID != mine.ID {
			t.Errorf("one of them: %+v, %v", found, err)
		}
	}
	if inbox, err := remote.Inbox(t.Context(), store.InboxFilter{Root: n.theirs.Root}); err != nil || len(inbox.Approvals) != 1 {
		t.Errorf("the inbox of both: %+v, %v", inbox, err)
	}
	if spent, err := remote.Spent(t.Context(), n.ours.Root); err != nil || spent.All != spent.Workspace {
		t.Errorf("spent in both: %+v, %v", spent, err)
	}
}

// TestTenantsStreams: what happens elsewhere is not heard, neither of all sessions nor of one that
// is named.
func TestTenantsStreams(t *testing.T) {
	t.Parallel()
	n := newTenants(t)
	socket := n.websocket(n.token.Secret)
	say := func(word string) string {
		t.Helper()
		fatal(t, socket.Write(t.Context(), websocket.MessageText, []byte(word)))
		_, said, err := socket.Read(t.Context())
		fatal(t, err)
		return string(said)
	}
	if said := say(`{"type":"subscribe","session_id":"` + n.session.String() + `"}`); !strings.Contains(said, "NOT_FOUND") {
		t.Errorf("their session: %s", said)
	}
	if said := say(`{"type":"subscribe","session_id":"*"}`); !strings.Contains(said, "subscribed") {
		t.Fatal(said)
	}
	watch := n.ask("GET", "/api/v1/events", "", bearer(n.token.Secret)) //nolint:bodyclose // at the end of the test
	// Theirs goes on to its end, and then something happens in ours: that is the first that is
	// heard.
	if _, err := n.engine.Service().Approvals.Decide(access.AsOwner(t.Context()), decide(n.asked, "2", regie.Decision{CallID: n.asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		t.Fatal(err)
	}
	fatal(t, n.engine.Wait(t.Context(), n.round))
	var mine regie.Session
	n.json("POST", "/api/v1/sessions", `{"workspace_id":"`+n.ours.ID.String()+`","name":"ours"}`, 201, &mine, bearer(n.token.Secret))
	_, said, err := socket.Read(t.Context())
	if err != nil || !strings.Contains(string(said), mine.ID.String()) {
		t.Errorf("the WebSocket hears %s (%v)", said, err)
	}
	got := frames(t, watch.Body, func(string) bool { return true })
	if len(got) != 1 || !strings.Contains(got[0], mine.ID.String()) {
		t.Errorf("the stream of all hears %v", got)
	}
}

// shows is a way to a server that shows a token.
type shows string

// RoundTrip implements http.RoundTripper.
func (s shows) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(s))
	return http.DefaultTransport.RoundTrip(r)
}

// TestTenantsMCP: an MCP client is who its requests say, in each of them: what another token has
// begun is not its own.
func TestTenantsMCP(t *testing.T) {
	t.Parallel()
	n := newTenants(t)
	whole := n.add(control.TokenRequest{Name: "mcp", Scopes: []regie.TokenScope{regie.ScopeMCP, regie.ScopeRead}}).Secret
	for _, protocol := range []string{"", "2025-11-25"} { // the newer one has no sessions of its own
		session := n.mcpSession(whole, protocol)
		theirs, ours := calls(t, session), calls(t, n.mcpSession(n.token.Secret, protocol))
		if said, _ := theirs("list_workspaces", nil); !strings.Contains(said, n.theirs.ID.String()) || !strings.Contains(said, n.ours.ID.String()) {
			t.Errorf("to the one who sees all: %s", said)
		}
		status := map[string]string{"session_id": n.session.String()}
		if said, _ := theirs("session_status", status); !strings.Contains(said, "WAITING_VALIDATION") {
			t.Errorf("to the one who sees all: %s", said)
		}
		for tool, arguments := range map[string]any{"list_workspaces": nil, "session_status": status, "list_sessions": map[string]string{"workspace": n.theirs.Root}} {
			if said, _ := ours(tool, arguments); strings.Contains(said, n.theirs.ID.String()) || strings.Contains(said, "WAITING_VALIDATION") || strings.Contains(said, `\"session_id\":`) {
				t.Errorf("%s to the other one: %s", tool, said)
			}
		}
		if id := session.ID(); id != "" {
			status, said := n.said("POST", "/mcp", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"list_workspaces","arguments":{}}}`, bearer(n.token.Secret),
				carrying("Mcp-Session-Id", id), carrying("Content-Type", "application/json"), carrying("Accept", "application/json, text/event-stream"), carrying("Mcp-Protocol-Version", protocol))
			if status != 404 {
				t.Errorf("in another's session: %d %s", status, said)
			}
		}
	}
}
