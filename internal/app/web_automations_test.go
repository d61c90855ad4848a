package app_test

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// completes is the reply that ends the run of an automation.
func completes() http.HandlerFunc {
	return replyWith("", call{"done", "session__complete", `{"summary":"All is written."}`})
}

// TestBrowser_Automations creates an automation by keyboard, with its next times shown while the
// schedule is typed, edits, runs and pauses it, and reads its history. The focus stays.
func TestBrowser_Automations(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, completes(), completes())).servePages("127.0.0.1:0") //nolint:gocritic // it says the same again
	b := openTab(t, "en")
	b.login(h)
	b.tabTo(`a[href="/automations"]`)
	b.press("\r")
	b.wait(`document.querySelector("#no-automations h2")`)
	b.screens("automations-empty")
	b.tabTo(`a[href="/automations/new"]`)
	b.press("\r")
	b.wait(`location.pathname == "/automations/new" && document.activeElement`)
	b.tabTo("#text")
	b.press("Book the week's bank lines")
	b.tabTo("#when")
	b.press("weekly mon 09:0")
	b.wait(`document.querySelector("#preview .warning")`)
	b.do(chromedp.SendKeys("#when", "\r"), chromedp.WaitVisible(".problem"))
	b.screens("automation-wrong")
	b.wait(`document.activeElement.id == "when" && document.activeElement.value == "weekly mon 09:0" && document.querySelector("#text").value == "Book the week's bank lines"`)
	b.press(kb.End)
	b.press("0")
	b.wait(`document.querySelectorAll("#preview li").length == 5 && document.activeElement.id == "when"`)
	b.tabTo("#zone")
	b.press("Europe/Paris")
	b.wait(`document.querySelector("#preview li").textContent.startsWith("Mon ") && / 09:00 \+0[12]:00$/.test(document.querySelector("#preview li").textContent)`)
	b.press("\r") // in a field: it saves
	b.wait(`/^\/automations\/[0-9a-f-]{36}$/.test(location.pathname) && document.querySelector("#no-fires p")`)
	b.wait(`document.querySelector(".starts").textContent == "every Monday at 09:00 (Europe/Paris)" && document.querySelectorAll("#next-times li").length == 5`)

	page := b.eval("location.pathname")
	b.tabTo(`main a[href$="/edit"]`)
	b.press("\r")
	b.wait(`location.pathname.endsWith("/edit") && document.querySelector("#when").value == "weekly mon 09:00"`)
	b.screens("automation-edit")
	b.tabTo("#name")
	b.press("a", chromedp.ModifierCtrl)
	b.press("Bank lines")
	b.press("\r")
	b.wait(`location.pathname == "` + page + `" && document.querySelector("h1").textContent == "Bank lines"`)

	b.tabTo("[value=run]")
	b.press("\r")
	b.wait(`document.querySelector("#items .chip")?.textContent == "Completed" && document.querySelector("#automation-state .chip").textContent == "Enabled"`)
	b.wait(`document.querySelector("#items").innerText.includes("cost unknown")`) // this model has no price
	if focus := b.eval("document.activeElement.value ?? document.activeElement.tagName"); focus != "run" {
		t.Errorf("after the run the focus is on %s", focus)
	}
	b.tabTo(".does summary")
	b.press("\r")
	b.tabTo("[value=pause]")
	b.press("\r")
	b.wait(`document.querySelector("#automation-state .chip").textContent == "Paused" && document.activeElement.matches(".does summary") && !document.querySelector(".does [open]")`)
	b.press("\r")
	b.tabTo("[value=resume]")
	b.press("\r")
	b.wait(`document.querySelector("#automation-state .chip").textContent == "Enabled"`)
	b.tabTo(`#items a[href^="/chats/"]`)
	b.press("\r")
	b.wait(`location.pathname.startsWith("/chats/") && document.querySelector('main a[href="` + page + `"]')?.textContent == "Bank lines"`)
	b.do(chromedp.Navigate(h.served.URL + "/automations"))
	b.wait(`document.querySelector("#items .to-chip").textContent == "Completed"`)
}

// officeModel is the model of an office: payments need an approval, scans fail.
func officeModel(t *testing.T) *model {
	t.Helper()
	return newModel(t, func(w http.ResponseWriter, r *http.Request) {
		switch asked := sent(r); {
		case strings.Contains(asked, "Scan the inbox"):
			refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)(w, r)
		case strings.Contains(asked, "Remind whoever"):
			replyWith("", call{"w", "files__write_file", `{"path":"reminders.md","content":"Tessier SARL\n"}`})(w, r)
		default:
			completes()(w, r)
		}
	})
}

// TestBrowser_AutomationStates: the list shows the state of each automation, as the runs go on, and
// the history says why a time did not run.
func TestBrowser_AutomationStates(t *testing.T) {
	t.Parallel()
	m := officeModel(t)
	m.steps = slices.Repeat(m.steps, 30)
	h := newHarness(t, m).servePages("127.0.0.1:0")
	ctx, all := access.AsOwner(t.Context()), h.engine.Service().Automations
	made := map[string]regie.ID{}
	for _, in := range []dispatch.NewAutomation{
		{Name: "Supplier payments", Text: "Pay the invoices that are due this week, and list what is left.", When: "weekly mon-fri 09:00"},
		{Name: "November reminders", Text: "Remind whoever has not paid.", When: "weekly mon 10:30"},
		{Name: "Scan inbox and route", Text: "Scan the inbox.", When: "every 15m"},
		{Name: "Month-end close", Text: "Close the month.", When: "monthly -1 18:00"},
		{Name: "Nightly tests of the ledger interface", Text: "Run the tests.", When: "daily 02:30", Disabled: true},
		{Name: "When a PDF lands in scans", Text: "File the scan.", Definition: regie.AutomationDefinition{Files: []string{"scans/*.pdf"}, Webhook: true}},
	} {
		in.Root = h.root
		if in.When != "" {
			in.Definition.Schedule = &regie.Schedule{Zone: "Europe/Paris"}
		}
		view, err := all.Create(ctx, in)
		fatal(t, err)
		made[view.Name] = view.ID
	}
	b := openTab(t, "en")
	b.login(h)
	b.do(chromedp.Navigate(h.served.URL+"/automations"), chromedp.WaitVisible("#items"))
	state := func(name, class, word string) {
		t.Helper()
		b.wait(`document.querySelector("#a-` + made[name].String() + ` .` + class + `")?.textContent.includes("` + word + `")`)
	}
	run := func(name string) {
		t.Helper()
		b.click("#run-" + made[name].String())
	}
	run("Supplier payments")
	state("Supplier payments", "last", "Completed")
	run("November reminders")
	state("November reminders", "last", "Needs you")
	state("November reminders", "state", "Running")
	run("November reminders")
	state("November reminders", "last", "Waits to begin")
	for range 3 {
		run("Scan inbox and route")
		state("Scan inbox and route", "last", "Failed")
		b.wait(`!document.querySelector("[aria-busy]")`)
	}
	state("Scan inbox and route", "state", "its last runs failed: 3")
	state("Nightly tests of the ledger interface", "state", "Disabled")
	b.screens("automations-en")
	b.click("#s-" + made["Scan inbox and route"].String())
	b.screens("automations-menu")
	b.click("#s-" + made["Scan inbox and route"].String())
	b.click("#a-" + made["November reminders"].String() + " [value=stop]")
	state("November reminders", "last", "Skipped")
	b.do(chromedp.Navigate(h.served.URL + "/automations/" + made["November reminders"].String()))
	b.wait(`document.querySelector("#items .why").textContent == "a person stopped the automation's runs" && document.querySelector("#items").innerText.includes("Stopped")`)
	b.screens("automation-en")
}

// TestBrowser_AutomationOfChat makes an automation of a chat, from its menu.
func TestBrowser_AutomationOfChat(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Hello."))).servePages("127.0.0.1:0")
	b := openTab(t, "fr")
	b.login(h)
	b.begin("Bonjour")
	b.shows("Hello.")
	b.tabTo("#chat-menu summary")
	b.press("\r")
	b.tabTo(`a[href^="/automations/new?from="]`)
	b.press("\r")
	b.wait(`document.querySelector("#text")?.value == "Bonjour" && document.querySelector("#name").value == "Bonjour"`)
	b.screens("automation-new-fr")
	b.tabTo("#name")
	b.press("\r")
	b.wait(`document.querySelector("#automation-state .chip")?.textContent == "Activée"`)
}

// automate posts the form of an automation with some fields changed, as a browser without scripts.
func (p *pages) automate(path string, fields url.Values) (int, string) {
	p.t.Helper()
	_, page := p.get(path)
	form := url.Values{"agent": {"main"}, "missed": {"once"}, "overlap": {"queue_one"}, "on_approval": {"park"}, "mode": {"ask"}, "enabled": {"yes"}}
	for _, name := range []string{"csrf", "new_id", "version", "place"} {
		form.Set(name, field(p.t, page, name))
	}
	for _, name := range []string{"copy", "from"} {
		if strings.Contains(page, `name="`+name+`"`) {
			form.Set(name, field(p.t, page, name))
		}
	}
	maps.Copy(form, fields)
	return p.post(strings.TrimSuffix(strings.Split(path, "?")[0], "/new"), form)
}

// automations lists what is stored.
func (p *pages) automations() []dispatch.AutomationView {
	p.t.Helper()
	found, err := p.engine.Service().Automations.List(access.AsOwner(p.t.Context()), store.AutomationFilter{})
	fatal(p.t, err)
	return found
}

// TestWebAutomations creates, runs, changes and removes an automation without scripts.
func TestWebAutomations(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t, completes(), completes())).servePagesWith(map[string]string{"rules.md": "None."}).login() //nolint:gocritic // it says the same again
	if status, page := p.get("/automations"); status != 200 || !strings.Contains(page, "No automations yet.") {
		t.Fatalf("%d %s", status, page)
	}
	whole := url.Values{
		"text": {"Follow @rules.md"}, "name": {"Nightly"}, "when": {"daily 02:30"}, "zone": {"Europe/Paris"}, "missed": {"skip"}, "overlap": {"parallel"},
		"on_approval": {"deny"}, "files": {"my scans/*.pdf\r\n*.csv"}, "allow": {"files.*"}, "ask": {"files.delete_file"}, "total": {"7"}, "usd": {"0,50"},
		"mode": {"accept_edits"}, "webhook": {"yes"}, "require_validation": {"yes"},
	}
	status, page := p.automate("/automations/new", whole)
	hook := regexp.MustCompile(`<code>(http://[^/]+)(/hooks/[^<]+)</code>`).FindStringSubmatch(page)
	if status != 200 || hook == nil || hook[1] != p.served.URL {
		t.Fatalf("created: %d %s", status, page)
	}
	all := p.automations()
	a := all[0]
	d := a.Definition
	if len(all) != 1 || a.Name != "Nightly" || a.When != "daily 02:30" || d.Schedule.Zone != "Europe/Paris" || d.Missed != regie.MissedSkip || d.Overlap != regie.OverlapParallel ||
		d.OnApproval != "deny" || strings.Join(d.Files, "|") != "my scans/*.pdf|*.csv" || d.Allow[0] != "files.*" || d.Ask[0] != "files.delete_file" || d.Limits.Total != 7 ||
		d.USDPerRun != 0.5 || !d.RequireValidation || a.ApprovalMode != regie.ModeAcceptEdits || !a.Enabled || len(a.Segments) != 2 || a.Segments[1].Enrichment == nil {
		t.Fatalf("stored: %+v", all)
	}
	path := "/automations/" + a.ID.String()
	if _, page := p.get(path); strings.Contains(page, hook[2]) || !strings.Contains(page, "<dt>Every call asks</dt>") || !strings.Contains(page, "Every day at 02:30 (Europe/Paris)") && !strings.Contains(page, "every day at 02:30 (Europe/Paris)") {
		t.Errorf("the automation: %s", page)
	}
	does := func(do, next string) (int, string) {
		t.Helper()
		_, page := p.get("/automations")
		return p.post(path, url.Values{"csrf": {field(t, page, "csrf")}, "do": {do}, "next": {next}})
	}
	if status, page := p.post(path, url.Values{"do": {"run"}}); status != 403 || p.automations()[0].LastFire != nil {
		t.Errorf("a forged run: %d %s", status, page)
	}
	if response := p.ask(http.MethodPost, hook[2], "{}"); response.StatusCode != http.StatusAccepted { //nolint:bodyclose // at the end of the test
		t.Errorf("the webhook: %d", response.StatusCode)
	}
	if _, page := does("token", path); !strings.Contains(page, "Copy the address now") || strings.Contains(page, hook[2]) {
		t.Errorf("a new token: %s", page)
	}
	if response := p.ask(http.MethodPost, hook[2], "{}"); response.StatusCode != http.StatusNotFound { //nolint:bodyclose // at the end of the test
		t.Errorf("the old address: %d", response.StatusCode)
	}
	for _, step := range [][2]string{{"pause hour", "Paused until "}, {"resume", "Enabled</span>"}, {"disable", "Disabled</span>"}, {"enable", "Enabled</span>"}, {"stop", "Enabled</span>"}} {
		if status, page := does(step[0], "/automations"); status != 200 || !strings.Contains(page, step[1]) {
			t.Errorf("%s: %d %s", step[0], status, page)
		}
	}
	if status, page := does("remove", "/automations"); status != 200 || !strings.Contains(page, "No automations yet.") {
		t.Errorf("removed: %d %s", status, page)
	}
	if status, page := does("run", "/automations"); status != 404 || !strings.Contains(page, "there is no automation") {
		t.Errorf("one that was removed: %d %s", status, page)
	}
}

// TestWebAutomations_Wrong has each error at its field, and loses nothing that was typed.
func TestWebAutomations_Wrong(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t)).servePages("127.0.0.1:0").login()
	for name, c := range map[string]struct{ field, value, want string }{
		"no text":               {"text", "", "the automation has no text"},
		"no schedule":           {"when", "sometimes <b>", "is not a schedule"},
		"a day that is not":     {"when", "monthly 32 09:00", "is not a day of the month"},
		"a time that has gone":  {"when", "once 2001-01-01T09:00", "has no run after now"},
		"no zone":               {"zone", "Europe/Atlantis", "is not a time zone"},
		"no number":             {"total", "-3", "is not a limit"},
		"no amount":             {"usd", "NaN", "is not an amount of dollars"},
		"no pattern of files":   {"files", "a.txt\r\nb[", "is not a pattern of paths"},
		"no tool":               {"allow", "files.*\r\nfiles.reed_file", "matches no tool"},
		"no tool that asks":     {"ask", "spaceship.start", "matches no tool"},
		"an agent that is gone": {"agent", "nobody", "there is no agent"},
	} {
		fields := url.Values{"text": {"Count the money"}, "name": {"Money"}, "when": {"daily 09:00"}, "usd": {"2"}, "webhook": {"yes"}, "enabled": {""}}
		fields.Set(c.field, c.value)
		status, page := p.automate("/automations/new", fields)
		at := strings.Index(page, `id="hint-`+c.field+`"`)
		if status != 409 || at < 0 || !strings.Contains(page[at:min(len(page), at+120)], `class="problem"`) || strings.Count(page, `class="problem"`) != 1 || !strings.Contains(page, c.want) {
			t.Errorf("%s: %d %s", name, status, page)
		}
		page = strings.ReplaceAll(page, "\r\n", "\n")
		for field, values := range fields {
			typed := strings.ReplaceAll(template.HTMLEscapeString(values[0]), "\r\n", "\n")
			switch {
			case field == "agent" || field == "enabled": // one that is gone cannot be chosen
			case field == "webhook":
				if !regexp.MustCompile(`name="webhook" value="yes" checked`).MatchString(page) || strings.Contains(page, `name="enabled" value="yes" checked`) {
					t.Errorf("%s: the checks are lost: %s", name, page)
				}
			case !strings.Contains(page, `name="`+field+`" value="`+typed+`"`) && !strings.Contains(page, "\n"+typed+"</textarea>"):
				t.Errorf("%s: %s is lost: %s", name, field, page)
			}
		}
	}
	if found := p.automations(); len(found) != 0 {
		t.Errorf("stored: %+v", found)
	}
	if status, _ := p.automate("/automations/new", url.Values{"text": {"x"}, "csrf": {"forged"}}); status != 403 || len(p.automations()) != 0 {
		t.Errorf("a forged form: %d", status)
	}
	status, page := p.automate("/automations/new", url.Values{"text": {"Count"}, "when": {"weekly mon 09:00"}, "zone": {"Europe/Paris"}, "do": {"check"}})
	if status != 200 || strings.Count(page, " 09:00 &#43;0") != 5 || !strings.Contains(page, "\nCount</textarea>") || len(p.automations()) != 0 {
		t.Errorf("checked: %d %s", status, page)
	}
}

// TestWebAutomations_Edit keeps the fields that the form does not have, and says that somebody was
// faster.
func TestWebAutomations_Edit(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	p := newHarness(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
		<-goOn
		completes()(w, r)
	})).servePagesWith(map[string]string{"rules.md": "None."}).login()
	ctx, all := access.AsOwner(t.Context()), p.engine.Service().Automations
	made, err := all.Create(ctx, dispatch.NewAutomation{
		Root: p.root, Text: "First", When: "daily 09:00",
		Definition: regie.AutomationDefinition{Limits: regie.Limits{Tokens: 5000}, RequireValidation: true, Schedule: &regie.Schedule{Zone: "Asia/Tokyo"}},
	})
	fatal(t, err)
	path := "/automations/" + made.ID.String()
	same := func() url.Values {
		return url.Values{"text": {"First"}, "name": {"Renamed"}, "when": {"daily 09:00"}, "zone": {"Asia/Tokyo"}, "require_validation": {"yes"}}
	}
	if status, page := p.automate(path+"/edit", same()); status != 200 || !strings.Contains(page, "<h1 title=\"Renamed\">") {
		t.Fatalf("%d %s", status, page)
	}
	now := p.automations()[0]
	if now.Version != 2 || now.SeedID != made.SeedID || !now.SeriesFrom.Equal(made.SeriesFrom) || now.Definition.Limits.Tokens != 5000 || !now.Definition.RequireValidation {
		t.Errorf("renamed: %+v", now)
	}
	if _, err := all.Run(ctx, dispatch.AutomationStart{ID: made.ID}); err != nil {
		t.Fatal(err)
	}
	if _, page := p.get(path + "/edit"); !strings.Contains(page, "It is running. The present run keeps version 2.") {
		t.Errorf("while it runs: %s", page)
	}
	changed := same()
	changed.Set("text", "Follow @rules.md")
	changed.Set("when", "")
	changed.Set("enabled", "")
	changed.Del("require_validation")
	changed.Set("version", "1")
	status, page := p.automate(path+"/edit", changed)
	if status != 409 || !strings.Contains(page, "the automation has version 2, not 1") || !strings.Contains(page, "Save again") || !strings.Contains(page, "Follow @rules.md") || field(t, page, "version") != "2" {
		t.Errorf("somebody was faster: %d %s", status, page)
	}
	changed.Set("version", field(t, page, "version"))
	p.automate(path+"/edit", changed)
	now = p.automations()[0]
	if now.Version != 3 || now.Definition.Schedule != nil || now.Enabled || len(now.Segments) != 2 || now.Segments[1].Enrichment == nil || now.Definition.Limits.Tokens != 5000 || now.Definition.RequireValidation {
		t.Errorf("saved again: %+v", now)
	}
	close(goOn)
	status, page = p.automate("/automations/new?copy="+made.ID.String(), url.Values{"text": {"Follow @rules.md"}, "name": {"Copy"}})
	if found := p.automations(); status != 200 || len(found) != 2 || found[1].Name != "Copy" || found[1].Definition.Limits.Tokens != 5000 || len(found[1].Segments) != 2 || !found[1].Enabled {
		t.Errorf("a copy: %d %+v %s", status, found, page)
	}
	for _, path := range []string{"/automations/" + regie.NewID().String(), "/automations/x", "/automations/" + regie.NewID().String() + "/edit", "/automations/new?copy=" + regie.NewID().String()} {
		if status, _ := p.get(path); status != 404 && status != 400 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestWebAutomations_Pages reads a long list page by page, and a token of another workspace sees
// nothing of it.
func TestWebAutomations_Pages(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t)).servePages("127.0.0.1:0").login()
	ctx, all := access.AsOwner(t.Context()), p.engine.Service().Automations
	var last dispatch.AutomationView
	for i := range 101 {
		var err error
		last, err = all.Create(ctx, dispatch.NewAutomation{Root: p.root, Text: "x", Name: fmt.Sprint("no. ", i)})
		fatal(t, err)
	}
	_, page := p.get("/automations")
	next := regexp.MustCompile(`href="\?(cursor=[^"]+)">More automations`).FindStringSubmatch(page)
	if next == nil || strings.Contains(page, last.ID.String()) {
		t.Fatalf("the first page: %s", page)
	}
	if _, page := p.get("/automations?" + next[1]); strings.Count(page, `<tr id="a-`) != 1 || !strings.Contains(page, last.ID.String()) {
		t.Errorf("the second page: %s", page)
	}
	for _, path := range []string{"/automations?cursor=x", "/automations/" + last.ID.String() + "?cursor=x"} {
		if status, _ := p.get(path); status != 400 {
			t.Errorf("%s: %d", path, status)
		}
	}
	other, err := p.engine.Service().Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: t.TempDir()})
	fatal(t, err)
	made, err := p.engine.Service().Tokens.Add(ctx, control.TokenRequest{Name: "other", Scopes: regie.TokenScopes(), Workspaces: []regie.ID{other.ID}})
	fatal(t, err)
	for path, want := range map[string]int{"/automations": 200, "/automations/" + last.ID.String(): 404, "/automations/" + last.ID.String() + "/edit": 404, "/automations/new?copy=" + last.ID.String(): 404} {
		response := p.ask(http.MethodGet, path, "", bearer(made.Secret)) //nolint:bodyclose // at the end of the test
		body, err := io.ReadAll(response.Body)
		fatal(t, err)
		if response.StatusCode != want || strings.Contains(string(body), "no. ") {
			t.Errorf("%s: %d %s", path, response.StatusCode, body)
		}
	}
}

// TestWatchAutomations: a stream of all sessions has the changes of automations, and a token those
// of its workspaces alone.
func TestWatchAutomations(t *testing.T) {
	t.Parallel()
	n := newTenants(t)
	watch := n.ask(http.MethodGet, "/api/v1/events", "", bearer(n.token.Secret)) //nolint:bodyclose // at the end of the test
	var made dispatch.AutomationView
	for _, place := range []regie.Workspace{n.theirs, n.ours} {
		var err error
		made, err = n.engine.Service().Automations.Create(access.AsOwner(t.Context()), dispatch.NewAutomation{WorkspaceID: place.ID, Text: "x"})
		fatal(t, err)
	}
	got := frames(t, watch.Body, func(frame string) bool { return strings.Contains(frame, "automation") })
	last := got[len(got)-1]
	if !strings.Contains(last, "event: automation") || !strings.Contains(last, made.ID.String()) || strings.Contains(strings.Join(got, ""), n.theirs.ID.String()) {
		t.Errorf("heard: %v", got)
	}
}
