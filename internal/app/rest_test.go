package app_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store"
)

// again is the house after its engine has ended and another one has begun.
func (h *house) again() *house {
	h.t.Helper()
	fatal(h.t, h.engine.Close())
	return h.serve("127.0.0.1:0")
}

// TestKeyOverRestart: a key stands for one request also after a restart, however its JSON is
// written; what is told as a stream says that it is told again.
func TestKeyOverRestart(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("one"))).serve("127.0.0.1:0")
	path, key := "/api/v1/sessions/"+h.session()+"/messages", carrying("Idempotency-Key", "k")
	var sent, repeated httpapi.Accepted
	h.json("POST", path, `{"content":"hello"}`, 202, &sent, key)
	h = h.again()
	if status, said := h.said("POST", path, `{"content":"goodbye"}`, key); status != 409 || !strings.Contains(said, string(regie.CodeKeyReused)) {
		t.Errorf("another request with the key: %d %s", status, said)
	}
	if h.json("POST", path, ` { "content" : "hello" } `, 202, &repeated, key); repeated != sent {
		t.Errorf("the same request is answered %+v, and before %+v", repeated, sent)
	}
	streamed := h.ask("POST", path, `{"content":"hello"}`, key, carrying("Accept", "text/event-stream"))
	if _ = streamed.Body.Close(); streamed.StatusCode != 200 || streamed.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("as a stream: %d %v", streamed.StatusCode, streamed.Header)
	}
}

// TestLimitSettings: limits that are stored hold from the next round on, also after a restart; what
// a file fixes is refused with its place.
func TestLimitSettings(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("one"), replyWith("two"), replyWith("three")))
	b.settings.File.Limits.Automation.Retries = 9
	b.settings.Origin = map[string]string{"file": "/etc/regie/regie.yaml"}
	h := b.serve("127.0.0.1:0")
	var limits dispatch.LimitSettings
	h.json("GET", "/api/v1/settings/limits", "", 200, &limits)
	if got := limits.Chat.Queries; got != (dispatch.LimitValue{Value: 10, Origin: "default", Default: 10}) {
		t.Errorf("by default: %+v", got)
	}
	if got := limits.Automation.Retries; got.Value != 9 || !got.Fixed || !strings.Contains(got.Origin, "limits.automation.max_action_retries in /etc/regie") {
		t.Errorf("of the file: %+v", got)
	}
	for body, status := range map[string]int{
		`{}`: 400, `{"chat":{"max_action_retries":-1}}`: 400, `{"chat":{"max_action_retries":1e12}}`: 400, `{"chat":{"max_tool_calls":3}}`: 400,
		`{"automation":{"max_action_retries":4}}`: 409, `{"chat":{"max_action_retries":4},"automation":{"max_action_retries":4}}`: 409,
	} {
		h.json("PATCH", "/api/v1/settings/limits", body, status, nil)
	}
	session := h.session()
	round := func() regie.Limits {
		t.Helper()
		var sent httpapi.Accepted
		h.json("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"go"}`, 202, &sent)
		var view store.RoundView
		h.json("GET", "/api/v1/rounds/"+sent.RoundID.String(), "", 200, &view)
		fatal(t, h.engine.Wait(t.Context(), sent.RoundID))
		return view.Round.Limits
	}
	if got := round(); got.Retries != 3 || got.Total != 20 {
		t.Errorf("before: %+v", got)
	}
	h.json("PATCH", "/api/v1/settings/limits", `{"chat":{"max_action_retries":6,"max_autonomous_roundtrips":30},"by":"ada"}`, 200, &limits)
	if got := limits.Chat.Retries; got != (dispatch.LimitValue{Value: 6, Origin: "api", Stored: 6, Default: 3}) {
		t.Errorf("stored: %+v", got)
	}
	if got := round(); got.Retries != 6 || got.Total != 30 {
		t.Errorf("the next round: %+v", got)
	}
	h = h.again()
	h.json("PATCH", "/api/v1/settings/limits", `{"chat":{"max_autonomous_roundtrips":0}}`, 200, &limits)
	if got := round(); got.Retries != 6 || got.Total != 20 {
		t.Errorf("after a restart, and one taken back: %+v", got)
	}
}

// TestSearchWorkspace looks for what was said and for what stands in files, in one workspace and no
// other.
func TestSearchWorkspace(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("The invoice of Zürich is paid.")))
	h := b.serve("127.0.0.1:0")
	fatal(t, os.WriteFile(filepath.Join(b.root, "letter.md"), []byte("# Letters\n\nAbout the ZÜRICH invoice.\n"), 0o600))
	var place, other regie.Workspace
	elsewhere := t.TempDir()
	fatal(t, os.WriteFile(filepath.Join(elsewhere, "secret.md"), []byte("The other invoice of Zürich.\n"), 0o600))
	h.json("POST", "/api/v1/workspaces", fmt.Sprintf(`{"path":%q}`, b.root), 200, &place)
	h.json("POST", "/api/v1/workspaces", fmt.Sprintf(`{"path":%q}`, elsewhere), 200, &other)
	session := h.session()
	h.read("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"What of the Zürich invoice?"}`, nil, carrying("Accept", "text/event-stream"))
	look := func(more string, of regie.Workspace) (out dispatch.Found) {
		t.Helper()
		h.json("GET", "/api/v1/search?workspace="+of.ID.String()+more, "", 200, &out)
		return out
	}
	found := look("&q="+url.QueryEscape("zürich"), place)
	if len(found.Messages) != 2 || found.Messages[0].Sender != regie.SenderAI || found.Messages[0].SessionID.String() != session || found.Next != "" {
		t.Errorf("of what was said: %+v", found.Messages)
	}
	if len(found.Files) != 1 || found.Files[0].Path != "letter.md" || found.Files[0].Start != 3 || found.Mode != dispatch.SearchExact {
		t.Errorf("of files: %+v", found.Files)
	}
	first := look("&in=sessions&limit=1&q=invoice", place)
	if len(first.Messages) != 1 || first.Next == "" || len(first.Files) != 0 {
		t.Fatalf("the first page: %+v", first)
	}
	second := look("&in=sessions&limit=1&q=invoice&cursor="+first.Next, place)
	if len(second.Messages) != 1 || second.Messages[0].MessageID == first.Messages[0].MessageID || second.Messages[0].Sender != regie.SenderUser {
		t.Errorf("the second page: %+v", second)
	}
	if got := look("&in=files&mode=semantic&q=letter+about+an+invoice", place); len(got.Files) == 0 || got.Files[0].Path != "letter.md" || got.Mode == dispatch.SearchExact {
		t.Errorf("by what it is about: %+v", got)
	}
	if got := look("&q=invoice", other); len(got.Messages) != 0 || len(got.Files) != 1 || got.Files[0].Path != "secret.md" {
		t.Errorf("of another workspace: %+v", got)
	}
	for query, status := range map[string]int{
		"q=x": 400, "workspace=" + regie.NewID().String() + "&q=x": 404, "workspace=" + place.ID.String(): 400, "workspace=" + place.ID.String() + "&q=x&in=notes": 400,
		"workspace=" + place.ID.String() + "&q=x&limit=101": 400, "workspace=" + place.ID.String() + "&q=" + strings.Repeat("x", 1001): 400,
	} {
		h.json("GET", "/api/v1/search?"+query, "", status, nil)
	}
}

// TestRestOfTheTable: models, one agent, a thread read backwards, an export to be read, and what
// changes of a session.
func TestRestOfTheTable(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("one"), replyWith("two")))
	h := b.serve("127.0.0.1:0")
	session := h.session()
	path := "/api/v1/sessions/" + session
	for _, text := range []string{"first", "second"} {
		h.read("POST", path+"/messages", fmt.Sprintf(`{"content":%q}`, text), nil, carrying("Accept", "text/event-stream"))
	}
	var all, last httpapi.Page[store.MessageView]
	h.json("GET", path+"/messages", "", 200, &all)
	end := all.Items[len(all.Items)-1].Seq
	h.json("GET", fmt.Sprintf("%s/messages?before=%d&limit=2", path, end+1), "", 200, &last)
	if len(last.Items) != 2 || last.Items[1].Seq != end || last.Items[0].Seq != all.Items[len(all.Items)-2].Seq {
		t.Errorf("the last two: %+v", last.Items)
	}
	h.json("GET", fmt.Sprintf("%s/messages?before=%d&limit=2", path, last.Items[0].Seq), "", 200, &last)
	if len(last.Items) != 2 || last.Items[0].Seq != all.Items[len(all.Items)-4].Seq {
		t.Errorf("those before them: %+v", last.Items)
	}
	h.json("GET", fmt.Sprintf("%s/messages?before=%d", path, all.Items[0].Seq), "", 200, &last)
	if len(last.Items) != 0 {
		t.Errorf("before the first: %+v", last.Items)
	}
	h.json("GET", path+"/messages?before=3&after=1", "", 400, nil)
	h.json("GET", path+"/messages?cursor=x", "", 400, nil)
	want, _ := threadPage(&all)
	if got := turned(h, path+"/messages?", threadPage); !slices.Equal(got, want) {
		t.Errorf("page by page: %v, want %v", got, want)
	}
	slices.Reverse(want)
	if got := turned(h, fmt.Sprintf("%s/messages?before=%d&", path, end+1), func(p *httpapi.Page[store.MessageView]) ([]regie.ID, string) {
		slices.Reverse(p.Items)
		return threadPage(p)
	}); !slices.Equal(got, want) {
		t.Errorf("page by page backwards: %v, want %v", got, want)
	}

	var export store.SessionExport
	h.json("GET", path+"/export", "", 200, &export)
	h.json("GET", path+"/export?format=pdf", "", 400, nil)

	h.json("PATCH", path, `{"name":"Letters"}`, 200, nil)
	h.json("PATCH", path, `{"name":"Letters","state":"CLOSED"}`, 400, nil)
	h.json("PATCH", path, `{"state":"ACTIVE"}`, 400, nil)
	h.json("PATCH", path, `{"state":"CLOSED"}`, 200, nil)
	var view store.SessionView
	h.json("GET", path, "", 200, &view)
	if view.Name != "Letters" || view.State != regie.SessionClosed {
		t.Errorf("changed: %+v", view)
	}
	var models httpapi.Page[dispatch.ProviderModels]
	h.json("GET", "/api/v1/models", "", 200, &models)
	if len(models.Items) == 0 {
		t.Error("no provider has models")
	}
}

// TestKeysOfClients: two clients may call different requests by one key.
func TestKeysOfClients(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	place := h.placeAt(h.root)
	seen := map[regie.ID]bool{}
	for _, name := range []string{"one", "two"} {
		made := h.add(control.TokenRequest{Name: name, Scopes: []regie.TokenScope{regie.ScopeRead, regie.ScopeChat}})
		var session regie.Session
		h.json("POST", "/api/v1/sessions", fmt.Sprintf(`{"workspace_id":%q,"name":%q}`, place.ID, name), 201, &session, bearer(made.Secret), carrying("Idempotency-Key", "k"))
		seen[session.ID] = true
	}
	if len(seen) != 2 {
		t.Errorf("%d sessions of two clients", len(seen))
	}
}

// threadPage are the messages of a page.
func threadPage(p *httpapi.Page[store.MessageView]) ([]regie.ID, string) {
	return ids(p.Items, func(m *store.MessageView) regie.ID { return m.Message.ID }), p.Next
}
