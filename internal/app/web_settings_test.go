package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

// set posts a form of a section of the settings.
func (p *pages) set(section string, fields url.Values) (int, string) {
	p.t.Helper()
	_, page := p.get("/settings/" + section)
	fields.Set("csrf", field(p.t, page, "csrf"))
	return p.post("/settings/"+section, fields)
}

// TestWebSettings_Limits sets limits, has errors beside their fields, and leaves alone what a file
// fixes.
func TestWebSettings_Limits(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.settings.File.Limits.Chat.Retries = 2
	p := b.servePages("127.0.0.1:0").login()
	_, page := p.get("/settings/limits")
	if !strings.Contains(page, "Fixed by limits.chat.max_action_retries in") || strings.Contains(page, `name="limits.chat.max_action_retries"`) {
		t.Errorf("a fixed limit: %s", page)
	}
	const key = "limits.automation.max_autonomous_roundtrips"
	for _, bad := range []string{"many", "-3", "0", "2000000000"} {
		status, page := p.set("limits", url.Values{"do": {"save"}, key: {bad}})
		at := strings.Index(page, `id="hint-`+key)
		if status != 409 || at < 0 || !strings.Contains(page[at:min(len(page), at+200)], `class="problem"`) || !strings.Contains(page, `value="`+bad+`"`) {
			t.Errorf("%s: %d %s", bad, status, page)
		}
	}
	set := func(to string, want int) {
		t.Helper()
		if status, page := p.set("limits", url.Values{"do": {"save"}, key: {to}}); status != 200 {
			t.Errorf("%d %s", status, page)
		}
		limits, err := p.engine.Service().Limits.Get(access.AsOwner(t.Context()))
		if err != nil || limits.Automation.Total.Stored != want {
			t.Errorf("%+v (%v)", limits.Automation.Total, err)
		}
	}
	set("7", 7)
	set("", 0)
	if status, _ := p.post("/settings/limits", url.Values{"do": {"save"}, key: {"9"}}); status != 403 {
		t.Errorf("a forged form: %d", status)
	}
}

// TestWebSettings_Tokens makes a token, whose secret is shown once and works, and revokes it.
func TestWebSettings_Tokens(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t)).servePages("127.0.0.1:0").login()
	status, page := p.set("tokens", url.Values{"do": {"add"}, "name": {"backup"}, "scope": {"read"}, "days": {"never"}})
	if status != 409 || !strings.Contains(page, "is not a number of days") || !strings.Contains(page, `value="backup"`) {
		t.Errorf("%d %s", status, page)
	}
	_, page = p.set("tokens", url.Values{"do": {"add"}, "name": {"backup"}, "scope": {"read"}, "days": {"5"}})
	secret := regexp.MustCompile(`regie_\w{49}`).FindString(page)
	asks := func() int {
		response := p.ask(http.MethodGet, "/api/v1/sessions", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+secret) })
		_ = response.Body.Close()
		return response.StatusCode
	}
	if got := asks(); got != 200 {
		t.Errorf("the new token: %d", got)
	}
	_, page = p.get("/settings/tokens")
	id := regexp.MustCompile(`name="id" value="([^"]+)">\s*<div><p>backup`).FindStringSubmatch(page)
	if strings.Contains(page, secret) || id == nil || !strings.Contains(page, "this browser") {
		t.Fatalf("the list: %s", page)
	}
	p.set("tokens", url.Values{"do": {"revoke"}, "id": {id[1]}})
	for section, form := range map[string]url.Values{ // what another page has removed
		"tokens": {"do": {"revoke"}, "id": {regie.NewID().String()}}, "rules": {"do": {"revoke"}, "id": {regie.NewID().String()}},
		"agents": {"do": {"delete"}, "name": {"gone"}}, "providers": {"do": {"delete"}, "name": {"gone"}},
	} {
		if status, page := p.set(section, form); status != 409 || strings.Count(page, `class="problem"`) != 1 {
			t.Errorf("%s: %d %s", section, status, page)
		}
	}
	if got := asks(); got != 401 {
		t.Errorf("the revoked token: %d", got)
	}
	if _, page = p.set("tokens", url.Values{"do": {"link"}}); !strings.Contains(page, "/setup?code=regie_") {
		t.Errorf("a link: %s", page)
	}
}

// TestWebSettings_Agents adds, changes and deletes an agent; one of a file is shown only.
func TestWebSettings_Agents(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.settings.File.Agents = map[string]config.Agent{"fixed": {Description: "of the file"}}
	p := b.servePages("127.0.0.1:0").login()
	agent := func(do, name, version, definition string) (int, string) {
		t.Helper()
		return p.set("agents", url.Values{"do": {do}, "name": {name}, "version": {version}, "definition": {definition}})
	}
	for _, bad := range []string{"{", `{"tools":[]}`, `{"color":"red"}`} {
		if status, page := agent("add", "shop", "", bad); status != 409 || !strings.Contains(page, `class="problem"`) {
			t.Errorf("%s: %d %s", bad, status, page)
		}
	}
	agent("add", "shop", "", `{"description":"sells","temperature":1,"budget":{"usd_per_day":2,"usd_per_round":1}}`)
	agent("save", "shop", "1", `{"description":"buys","budget":{"usd_per_round":1}}`)
	if status, page := agent("save", "shop", "1", `{"description":"late"}`); status != 409 || !strings.Contains(page, "late") {
		t.Errorf("an old version: %d %s", status, page)
	}
	now, err := p.engine.Control().Agents.Get(t.Context(), dispatch.AgentQuery{Name: "shop"})
	if text := string(now.Definition); err != nil || now.Version != 2 || strings.Contains(text, "temperature") || strings.Contains(text, "usd_per_day") || !strings.Contains(text, "buys") {
		t.Errorf("version %d: %s (%v)", now.Version, text, err)
	}
	if status, page := agent("delete", "fixed", "", ""); status != 409 || !strings.Contains(page, "change it in regie.yaml") {
		t.Errorf("one of a file: %d %s", status, page)
	}
	agent("delete", "shop", "2", "")
	if _, page := p.get("/settings/agents"); strings.Contains(page, `value="shop"`) || !strings.Contains(page, "In regie.yaml, under agents.fixed.") {
		t.Errorf("after the deletion: %s", page)
	}
	for _, section := range []string{"providers", "workspaces", "checks"} {
		if status, page := p.get("/settings/" + section); status != 200 || !strings.Contains(page, `class="line"`) && !strings.Contains(page, "Data directory") {
			t.Errorf("%s: %d %s", section, status, page)
		}
	}
}

// TestBrowser_Settings revokes a standing rule with scripts, and takes pictures.
func TestBrowser_Settings(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writesFile(t)).servePages("127.0.0.1:0")
	p := h.login()
	chat := p.begin("Move stripe")
	asked := p.waits(chat)
	always := decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAlways, Scope: &asked.Reviews[0].Preview.Scopes[0]})
	if _, err := h.engine.Control().Decide(t.Context(), always); err != nil {
		t.Fatal(err)
	}
	p.ends(chat)
	link, err := h.engine.LinkBrowser(t.Context())
	fatal(t, err)
	b := openTab(t, "en")
	b.do(chromedp.Navigate(link.URL), chromedp.Submit("form"), chromedp.WaitVisible("#text"))
	_, err = h.engine.Control().Catalog.AddProvider(t.Context(), client.NewProvider{Name: "lab", Type: "openai", ProviderFields: client.ProviderFields{BaseURL: modelList(t)}})
	fatal(t, err)
	for _, section := range []string{"limits", "tokens", "agents", "checks", "providers#provider-lab", "rules"} {
		b.do(chromedp.Navigate(h.served.URL+"/settings/"+section), chromedp.WaitVisible(".settings form, .settings .checks"))
		b.eval(`document.querySelectorAll("details.line").forEach(d => d.open = true), ""`)
		b.screens("settings-" + strings.TrimSuffix(section, "#provider-lab"))
	}
	b.do(chromedp.Click(".settings .line button"), chromedp.WaitVisible(".settings h2")) // there is none left
}

// modelList is a model server that lists one model, and wants this key where any is shown.
func modelList(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if shown := r.Header.Get("Authorization"); shown != "" && shown != "Bearer canary-0123456" {
			http.Error(w, `{"error":{"message":"bad key"}}`, http.StatusUnauthorized)
			return
		}
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestWebSettings_Providers tries a provider before it stores it, has errors beside their fields,
// shows no key and sends none to another address.
func TestWebSettings_Providers(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.settings.File.Providers = map[string]config.Provider{"fixed": {Type: "openai"}}
	p := b.servePages("127.0.0.1:0").login()
	address, elsewhere := modelList(t), modelList(t)
	provider := func(do string, fields ...string) (int, string) {
		t.Helper()
		form := url.Values{"do": {do}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		status, page := p.set("providers", form)
		if strings.Contains(page, "canary") || strings.Contains(page, "wrong-key") {
			t.Errorf("%v shows a key: %s", fields, page)
		}
		return status, page
	}
	lab := func(field, value string) []string {
		form := []string{"name", "lab", "type", "openai", "base_url", address, "key", "canary-0123456", "model", "m"}
		return append(form, field, value)
	}
	for field, bad := range map[string]string{"name": "Lab", "base_url": "ftp://x", "key": "wrong-key-012", "model": "n"} {
		status, page := provider("add", lab(field, bad)...)
		at := strings.Index(page, `id="hint-`+field+`"`)
		if status != 409 || at < 0 || !strings.Contains(page[at:min(len(page), at+100)], `class="problem"`) {
			t.Errorf("%s: %d %s", field, status, page)
		}
	}
	if _, page := provider("add", lab("key", "keyring:openai")...); !strings.Contains(page, "that is not a key") {
		t.Errorf("a reference as a key: %s", page)
	}
	if _, page := provider("add", lab("name", "fixed")...); !strings.Contains(page, "is fixed by providers.fixed in") {
		t.Errorf("one of a file: %s", page)
	}
	if status, page := provider("add", lab("chosen", "yes")...); status != 200 || !strings.Contains(page, "restart regie serve to use it") {
		t.Errorf("%d %s", status, page)
	}
	if status, page := provider("save", "name", "lab", "base_url", elsewhere); status != 409 || !strings.Contains(page, "give the key for the new address") {
		t.Errorf("the stored key for another address: %d %s", status, page)
	}
	if status, page := provider("save", "name", "lab", "base_url", elsewhere, "key", "canary-0123456"); status != 200 {
		t.Errorf("%d %s", status, page)
	}
	stored, err := config.ReadSetup(b.settings.SetupFile)
	want := config.Provider{Type: "openai", BaseURL: elsewhere + "/v1", APIKey: "canary-0123456", Models: map[string]string{"medium": "m"}}
	if got := stored.Providers["lab"]; err != nil || !got.Same(want) || stored.Provider != "lab" || stored.Model != "m" {
		t.Errorf("stored: %+v (%v)", stored, err)
	}
	remote, err := client.New(p.served.URL, p.token, "en")
	fatal(t, err)
	defer remote.Close()
	now, err := remote.Catalog.ChangeProvider(t.Context(), client.ProviderEdit{Name: "lab"})
	if err != nil || !now.Restart || !now.HasKey || now.Model != "m" {
		t.Errorf("over the API: %+v (%v)", now, err)
	}
	if _, page := provider("delete", "name", "lab"); strings.Contains(page, `value="lab"`) {
		t.Errorf("after the deletion: %s", page)
	}
	if err := remote.Catalog.RemoveProvider(t.Context(), "lab"); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("removed twice: %v", err)
	}
}

// TestWebSettings_Trust trusts and withdraws by plain forms. The page shows no key and no markup of
// the workspace, and a form of older content trusts nothing.
func TestWebSettings_Trust(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.distrusted()
	p := b.servePages("127.0.0.1:0").login()
	path := "/settings/workspaces/" + p.placeAt(b.root).ID.String()
	empty := "/settings/workspaces/" + p.placeAt(t.TempDir()).ID.String()
	if _, page := p.get("/settings/workspaces"); !strings.Contains(page, `href="`+path+`"`) || !strings.Contains(page, "not trusted") || !strings.Contains(page, "nothing for agents") {
		t.Errorf("the list: %s", page)
	}
	_, page := p.get(path)
	for _, want := range []string{
		"not trusted", "AGENTS.md is sent", "in force once you trust it", "in force without trust", "ignored in a workspace", "sh -c &#39;id; echo ${HOME}&#39;", "HOME", "bank&lt;U&#43;202E&gt;",
		"/review", "Review &lt;script&gt;", "How letters are sealed here.", "SHA-256 ", ".regie/skills/sealing/SKILL.md", "Trust exactly this",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in %s", want, page)
		}
	}
	for _, hidden := range []string{"canary", "<script>alert", "<b>", "\x1b", "\u202e", "Withdraw trust"} {
		if strings.Contains(page, hidden) {
			t.Errorf("%q is in %s", hidden, page)
		}
	}
	form := url.Values{"do": {"trust"}, "csrf": {field(t, page, "csrf")}, "sha256": {field(t, page, "sha256")}}
	b.file(".regie/commands/review.md", "Review $1 once more.")
	status, page := p.post(path, form)
	if status != 409 || !strings.Contains(page, "has changed since it was shown") || !strings.Contains(page, "once more") || !strings.Contains(page, "not trusted") {
		t.Errorf("a form of older content: %d %s", status, page)
	}
	form.Set("sha256", field(t, page, "sha256"))
	form.Set("csrf", "forged")
	if status, _ := p.post(path, form); status != 403 {
		t.Errorf("a forged form: %d", status)
	}
	form.Set("csrf", field(t, page, "csrf"))
	if status, page = p.post(path, form); status != 200 || !strings.Contains(page, "trusted since") || strings.Contains(page, "Trust exactly this") {
		t.Errorf("trusted: %d %s", status, page)
	}
	b.file(".regie/commands/review.md", "Review $1.")
	if _, page = p.get(path); !strings.Contains(page, "it has changed since") || !strings.Contains(page, "~ .regie/commands/review.md") || !strings.Contains(page, "Trust exactly this") {
		t.Errorf("a changed file: %s", page)
	}
	form.Set("do", "distrust")
	if status, page = p.post(path, form); status != 200 || strings.Contains(page, "it has changed since") || strings.Contains(page, "Withdraw trust") {
		t.Errorf("withdrawn: %d %s", status, page)
	}
	if _, page = p.get(empty); !strings.Contains(page, "this workspace has nothing for agents") || strings.Contains(page, "Trust exactly this") {
		t.Errorf("an empty workspace: %s", page)
	}
	if status, _ = p.get("/settings/workspaces/" + regie.NewID().String()); status != 404 {
		t.Errorf("no workspace: %d", status)
	}
}

// TestBrowser_Trust trusts a workspace and withdraws that with scripts, and takes pictures.
func TestBrowser_Trust(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "fr"} {
		h := newHarness(t, newModel(t))
		h.distrusted()
		served := h.servePages("127.0.0.1:0")
		place := served.placeAt(h.root).ID.String()
		b := openTab(t, language)
		b.login(served)
		b.do(chromedp.Navigate(served.served.URL+"/settings/workspaces"), chromedp.WaitVisible(".settings .line"))
		b.screens("workspaces-" + language)
		b.click(`.settings .line a[href$="` + place + `"]`)
		b.do(chromedp.WaitVisible(`.trust [value="trust"]`))
		b.eval(`document.querySelector(".trust details").open = true, ""`)
		b.screens("trust-" + language)
		b.click(`.trust [value="trust"]`)
		b.wait(`document.querySelector('.trust [value="distrust"]') && !document.querySelector('.trust [value="trust"]')`)
		h.file(".regie/commands/new.md", "Do $1.")
		b.do(chromedp.Reload(), chromedp.WaitVisible(`.trust [value="trust"]`))
		b.screens("trust-changed-" + language)
		b.click(`.trust [value="distrust"]`)
		b.wait(`document.querySelector('.trust [value="trust"]') && !document.querySelector('.trust [value="distrust"]')`)
	}
}
