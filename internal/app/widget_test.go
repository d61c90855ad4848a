package app_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// servesWidget serves the pages with a widget for an origin.
func (b *harness) servesWidget(tools regie.ToolScope, change func(*config.Widget), origins ...string) *house {
	b.t.Helper()
	b.priced(config.Budget{})
	b.settings.File.Agents = map[string]config.Agent{"shop": {Tools: tools}}
	widget := config.Widget{
		Agent: "shop", Workspace: b.root, Origins: append(origins, "https://shop.example"),
		Title: "Orders and delivery", Company: "Maison Moreau", USDPerDay: 50_000_000,
	}
	if change != nil {
		change(&widget)
	}
	b.settings.File.Widgets = map[string]config.Widget{"support": widget}
	return b.servePages("127.0.0.1:0")
}

// visit posts a form of the widget as a browser without scripts, or as the frame's module.
func (h *house) visit(path string, form url.Values, module bool) (status int, body string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, h.served.URL+path, strings.NewReader(form.Encode()))
	fatal(h.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if module {
		r.Header.Set("Accept", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	fatal(h.t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	fatal(h.t, err)
	return response.StatusCode, string(data)
}

// sendVisit sends a visitor's message as the frame's module, and returns the secret of a new chat.
func (h *house) sendVisit(secret, text string) string {
	h.t.Helper()
	status, body := h.visit("/widget/support", url.Values{"visitor": {secret}, "text": {text}}, true)
	var said struct{ Visitor string }
	if err := json.Unmarshal([]byte(body), &said); err != nil || status != 200 {
		h.t.Fatalf("a visitor's message: %d %s", status, body)
	}
	return said.Visitor
}

// visited returns the newest session of a visitor.
func (h *house) visited() regie.ID {
	h.t.Helper()
	rounds, err := h.engine.Control().List(h.t.Context(), store.RoundFilter{Limit: 1})
	fatal(h.t, err)
	if len(rounds) != 1 {
		h.t.Fatal("no visitor has a session")
	}
	return rounds[0].Session.ID
}

// TestWidget chats without scripts: an approval lands in the owner's inbox, the visitor gets the
// answer, and reads nothing of tools, costs and the owner.
func TestWidget(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("I write it.", call{"a", "files__write_file", `{"path":"vat.yaml","content":"stripe: 6278\n"}`}),
		replyWith("## Done\n\nIt is there."), replyWith("That one too."))).servesWidget(regie.ToolScope{"files.*"}, nil)
	response, err := http.Get(h.served.URL + "/widget/support") //nolint:noctx // as a frame
	fatal(t, err)
	_ = response.Body.Close()
	if got := response.Header.Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors https://shop.example; base-uri 'none'") ||
		response.Header.Get("X-Frame-Options") != "" {
		t.Errorf("the page may be shown by %s, %v", got, response.Header)
	}
	status, page := h.visit("/widget/support", url.Values{"text": {"Where is order 4417?"}}, false)
	if status != 200 || !strings.Contains(page, "Where is order 4417?") || !strings.Contains(page, "An AI agent of Maison Moreau") ||
		!strings.Contains(page, "do what the team lets it do") {
		t.Fatalf("%d %s", status, page)
	}
	secret, session := field(t, page, "visitor"), h.visited()
	asked := h.parked(h.engine.Control(), session).Approvals[0]
	view, err := h.engine.Control().Session(t.Context(), session)
	if fatal(t, err); !view.Tainted {
		t.Error("what a visitor wrote is taken for the owner's word")
	}
	// a form that was reloaded changes nothing
	form := url.Values{"visitor": {secret}, "text": {"And order 4418?"}, "client_message_id": {"again"}}
	h.visit("/widget/support", form, false)
	_, page = h.visit("/widget/support", form, false)
	if n := strings.Count(page, "And order 4418?"); n != 1 || strings.Contains(page, "1 step") || !strings.Contains(page, "I have asked the team; you get the answer here.") {
		t.Errorf("%d messages: %s", n, page)
	}
	owner := h.login()
	if _, inbox := owner.get("/inbox"); !strings.Contains(inbox, `action="/approvals/`+asked.ID.String()) {
		t.Errorf("the approval is not in the inbox: %s", inbox)
	}
	if _, home := owner.get("/"); strings.Contains(home, "4417") {
		t.Errorf("the visitor's chat is among the owner's: %s", home)
	}
	_, inbox := owner.get("/inbox")
	owner.post("/approvals/"+asked.ID.String(), url.Values{
		"csrf": {field(t, inbox, "csrf")}, "next": {"/inbox"}, "call": {asked.Reviews[0].CallID.String()}, "answer": {"allow"},
	})
	h.ended(session)
	_, page = h.visit("/widget/support", url.Values{"visitor": {secret}, "text": {" "}}, false)
	for _, want := range []string{"<h4>Done</h4>", "1 step", "the message is empty"} {
		if !strings.Contains(page, want) {
			t.Errorf("the chat lacks %s: %s", want, page)
		}
	}
	for _, bad := range []string{"write_file", "$", "Allowed", session.String(), asked.ID.String(), h.root} {
		if strings.Contains(page, bad) {
			t.Errorf("the visitor reads %q: %s", bad, page)
		}
	}
}

// ended waits until the rounds of a session have ended.
func (h *house) ended(session regie.ID) {
	h.t.Helper()
	h.until(h.engine.Control(), session, func(*regie.Event) bool {
		view, err := h.engine.Control().Session(h.t.Context(), session)
		return err == nil && (view.State == regie.SessionIdle || view.State == regie.SessionClosed)
	})
}

// TestWidget_Rights tries everything with a visitor's secret but its own chat.
func TestWidget_Rights(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("", write("w", "x.txt", "one\n")))).
		servesWidget(regie.ToolScope{"files.*"}, nil)
	first := h.sendVisit("", "Write it")
	victim := h.visited()
	asked := h.parked(h.engine.Control(), victim).Approvals[0]
	second := h.sendVisit("", "I am another")
	h.parked(h.engine.Control(), h.visited())
	for _, one := range []struct{ method, path, body string }{
		{"GET", "/api/v1/sessions", ""},
		{"GET", "/api/v1/sessions/" + victim.String(), ""},
		{"GET", "/api/v1/me", ""},
		{"POST", "/api/v1/approvals/" + asked.ID.String() + "/decide", "{}"},
		{"GET", "/inbox", ""},
		{"GET", "/chats/" + victim.String(), ""},
		{"POST", "/approvals/" + asked.ID.String(), ""},
	} {
		response := h.ask(one.method, one.path, one.body, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+first) })
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s answers %d", one.method, one.path, response.StatusCode)
		}
	}
	// and below the transports
	s := h.engine.Service()
	caller := &access.Caller{Via: access.ViaVisitor, Visitor: &access.Visitor{Widget: "support", Session: victim}, Token: regie.Token{ID: victim}}
	ctx := access.With(t.Context(), caller)
	for name, try := range map[string]func() error{
		"list":     func() error { _, err := s.Sessions.List(ctx, store.SessionFilter{}); return err },
		"get":      func() error { _, err := s.Sessions.Get(ctx, victim); return err },
		"inbox":    func() error { _, err := s.Approvals.Inbox(ctx, store.InboxFilter{}); return err },
		"decide":   func() error { _, err := s.Approvals.Decide(ctx, decide(asked, "x")); return err },
		"answer":   func() error { _, err := s.Approvals.Answer(ctx, dispatch.AnswerRequest{}); return err },
		"follow":   func() error { return s.Events.Follow(ctx, victim, 0, nil) },
		"submit":   func() error { _, err := s.Rounds.Submit(ctx, dispatch.RunRequest{SessionID: victim}); return err },
		"me":       func() error { _, err := s.Users.Me(ctx); return err },
		"remove":   func() error { _, err := s.Sessions.Remove(ctx, dispatch.RemoveRequest{SessionID: victim}); return err },
		"open":     func() error { _, err := s.Workspaces.Open(ctx, dispatch.WorkspaceRequest{Path: h.root}); return err },
		"workflow": func() error { _, err := s.Visits.Thread(access.AsOwner(t.Context())); return err }, // an owner is no visitor
	} {
		if err := try(); regie.CodeOf(err) != regie.CodeForbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, page := h.visit("/widget/support", url.Values{"visitor": {second}, "text": {"Hello"}}, false)
	if strings.Contains(page, "Write it") || !strings.Contains(page, "I am another") {
		t.Errorf("the second visitor reads %s", page)
	}
	for _, secret := range []string{"x", strings.ToUpper(first), h.token} {
		if status, body := h.visit("/widget/support/stream", url.Values{"visitor": {secret}}, true); status != http.StatusUnauthorized {
			t.Errorf("the stream of %q: %d %s", secret, status, body)
		}
	}
	if status, body := h.visit("/widget/other", url.Values{"visitor": {first}, "text": {"x"}}, true); status != 404 {
		t.Errorf("another widget: %d %s", status, body)
	}
	_, err := s.Sessions.Stop(access.AsOwner(t.Context()), h.visited())
	fatal(t, err)
	h.ended(h.visited())
	_, err = s.Sessions.Remove(access.AsOwner(t.Context()), dispatch.RemoveRequest{SessionID: h.visited()})
	fatal(t, err)
	if status, _ := h.visit("/widget/support/stream", url.Values{"visitor": {second}}, true); status != http.StatusUnauthorized {
		t.Errorf("the stream of a removed session: %d", status)
	}
}

// TestWidget_Repeated sends first messages again: each begins one chat, however it comes, and the
// id of a message opens no one else's.
func TestWidget_Repeated(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{replyWith("Hello.")}, 6)...)).servesWidget(regie.ToolScope{"files.read_file"}, nil)
	count := func(want int) {
		t.Helper()
		rounds, err := h.engine.Control().List(t.Context(), store.RoundFilter{Limit: 10})
		if err != nil || len(rounds) != want {
			t.Fatalf("%d runs, want %d (%v)", len(rounds), want, err)
		}
	}
	fresh := func() string {
		t.Helper()
		response, err := http.Get(h.served.URL + "/widget/support") //nolint:noctx // as a frame
		fatal(t, err)
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		fatal(t, err)
		return field(t, string(page), "fresh")
	}
	form := url.Values{"fresh": {fresh()}, "text": {"Where is order 4417?"}, "client_message_id": {"one"}}
	var answers [4]string
	var sends sync.WaitGroup
	for i := range answers {
		sends.Go(func() { _, answers[i] = h.visit("/widget/support", form, true) })
	}
	sends.Wait()
	for _, answer := range answers {
		if answer != answers[0] || !strings.Contains(answer, form.Get("fresh")) {
			t.Errorf("%s, and %s before", answer, answers[0])
		}
	}
	count(1)
	h.ended(h.visited())
	if _, page := h.visit("/widget/support", form, false); strings.Count(page, "Where is order 4417?") != 1 || field(t, page, "visitor") != form.Get("fresh") {
		t.Errorf("the form without scripts again: %s", page)
	}
	count(1)
	first := form.Get("fresh")
	for n, other := range []string{fresh(), "", "regie_guessed"} {
		form.Set("fresh", other)
		_, page := h.visit("/widget/support", form, false)
		if secret := field(t, page, "visitor"); secret == first || !access.Whole(secret) || strings.Count(page, "Where is order 4417?") != 1 {
			t.Errorf("another visitor gets %s: %s", secret, page)
		}
		count(n + 2)
		h.ended(h.visited())
	}
}

// TestWidget_Workspace: a visitor's chat in a workspace of its own does not change in which one
// the owner begins chats.
func TestWidget_Workspace(t *testing.T) {
	t.Parallel()
	shop := filepath.Join(t.TempDir(), "0") // before the harness's by its name
	fatal(t, os.Mkdir(shop, 0o700))
	h := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{replyWith("Hello.")}, 6)...)).
		servesWidget(regie.ToolScope{"files.read_file"}, func(w *config.Widget) { w.Workspace = shop })
	owner := h.login()
	first := func() string {
		t.Helper()
		_, page := owner.get("/")
		found := regexp.MustCompile(`<option value="([0-9a-f-]{36})">([^<]+)`).FindAllStringSubmatch(page, -1)
		if len(found) == 0 {
			t.Fatalf("no workspace in %s", page)
		}
		return found[0][2]
	}
	own := filepath.Base(h.root)
	h.sendVisit("", "Where is order 4417?")
	if got := first(); got != own {
		t.Errorf("on a new server chats begin in %s, not %s", got, own)
	}
	_, page := owner.get("/")
	other := regexp.MustCompile(`<option value="([0-9a-f-]{36})">0<`).FindStringSubmatch(page)
	if other == nil {
		t.Fatalf("the workspace of the widget is not offered: %s", page)
	}
	owner.post("/chats", url.Values{
		"csrf": {field(t, page, "csrf")}, "session_id": {field(t, page, "session_id")}, "workspace_id": {other[1]}, "text": {"in the shop"},
	})
	if got := first(); got != "0" {
		t.Errorf("after a chat in 0 chats begin in %s", got)
	}
	owner.begin("in the shop again")
	h.sendVisit("", "Where is order 4418?")
	if got := first(); got != "0" {
		t.Errorf("after a visit chats begin in %s", got)
	}
}

// TestWidget_Limits: a visitor, a widget and its money come to an end, each by itself.
func TestWidget_Limits(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{replyWith("Hello.")}, 6)...)).servesWidget(regie.ToolScope{"files.read_file"}, func(w *config.Widget) {
		w.MessagesPerVisitor, w.MessagesPerWidget = 2, 6
	})
	refused := func(secret, want string) {
		t.Helper()
		if status, body := h.visit("/widget/support", url.Values{"visitor": {secret}, "text": {"x"}}, true); status != 429 || !strings.Contains(body, want) {
			t.Errorf("%d %s, want %s", status, body, want)
		}
	}
	first := h.sendVisit("", "one")
	h.sendVisit(first, "two")
	h.sendVisit(first, "three")
	refused(first, "Come back in 10 minutes.")
	h.sendVisit("", "another visitor")
	h.ended(h.visited())
	h.sendVisit("", "and another")
	h.sendVisit("", "the sixth")
	refused("", "Come back in 10 minutes.")
	for _, poor := range []struct {
		cap     config.Cap
		claims  string
		refused string
	}{
		{8_000, used, ""}, // the engine makes no call that it cannot pay
		{45_000, `{"prompt_tokens":4000,"completion_tokens":9000}`, "Come back tomorrow."},
	} {
		m := newModel(t, claims(poor.claims, replyWith("Hello.")))
		h := newHarness(t, m).servesWidget(regie.ToolScope{"files.read_file"}, func(w *config.Widget) { w.USDPerDay = poor.cap })
		secret := h.sendVisit("", "one")
		h.ended(h.visited())
		status, body := h.visit("/widget/support", url.Values{"visitor": {secret}, "text": {" "}}, false)
		if poor.refused == "" {
			if n := len(m.asked()); n != 0 || !strings.Contains(body, "This did not work.") || strings.Contains(body, "budget") {
				t.Errorf("%d requests: %d %s", n, status, body)
			}
		} else if status, body = h.visit("/widget/support", url.Values{"visitor": {secret}, "text": {"x"}}, true); status != 429 || !strings.Contains(body, poor.refused) {
			t.Errorf("%d %s", status, body)
		}
	}
}

// embedded is the frame of the widget on a page of another site.
type embedded struct{ *tab }

// widgetRoot is the place of the launcher and its frame in a page.
const widgetRoot = `[...document.body.children].find((e) => e.shadowRoot).shadowRoot`

// openWidget opens the launcher of a page.
func (b *tab) openWidget(page string) *embedded {
	b.t.Helper()
	// the tab has the focus, as that of a person has: a loaded machine may not give it to a window
	_, err := chromedp.Call(b.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	fatal(b.t, err)
	b.do(chromedp.Navigate(page))
	b.wait(`[...document.body.children].some((e) => e.shadowRoot)`)
	b.do(chromedp.Click(chromedp.JSPath(widgetRoot + `.querySelector("button")`)))
	b.wait(widgetRoot + `.querySelector("iframe")`)
	return &embedded{b}
}

// find polls in the frame. Its document may be another one since it was looked for, so each second
// looks for it again.
func (e *embedded) find(ctx context.Context, expression string) (string, error) {
	nodes, err := chromedp.Run(ctx, chromedp.Nodes(chromedp.JSPath(widgetRoot+`.querySelector("iframe")`)))
	if err != nil {
		return "", err
	}
	return chromedp.Run(ctx, chromedp.Poll[string](expression, chromedp.WithPollingInFrame(nodes[0]),
		chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(time.Second)))
}

// waits waits until an expression is true in the frame, which may still be loading.
func (e *embedded) waits(expression string) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.ctx, 30*time.Second)
	defer cancel()
	for {
		if _, err := e.find(ctx, "("+expression+") && 'yes'"); err == nil {
			return
		} else if ctx.Err() != nil {
			text, _ := e.find(e.ctx, `document.hasFocus() + " " + document.body.innerText`)
			e.t.Fatalf("never true in the frame: %s (%v); it shows:\n%s", expression, err, text)
		}
	}
}

// TestBrowser_Widget chats on a page of another site that may show the widget, and shows nothing on
// one that may not.
func TestBrowser_Widget(t *testing.T) {
	t.Parallel()
	var page string
	host := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, page)
	})
	good, bad := httptest.NewServer(host), httptest.NewServer(host)
	t.Cleanup(good.Close)
	t.Cleanup(bad.Close)
	// another site, and not only another port
	site := func(s *httptest.Server) string { return strings.Replace(s.URL, "127.0.0.1", "localhost", 1) }
	b := newHarness(t, newModel(t,
		replyWith("I look it up.", call{"r", "files__read_file", `{"path":"orders.txt"}`}),
		replyWith("Order 4417 left on **Friday**.\n\nDo you want to change the day?"), replyWith("It stays as it is.")))
	fatal(t, os.WriteFile(filepath.Join(b.root, "orders.txt"), []byte("4417: Friday\n"), 0o600))
	h := b.servesWidget(regie.ToolScope{"files.read_file"}, nil, site(good))
	page = `<!doctype html><meta name="viewport" content="width=device-width"><title>Maison Moreau</title><body style="background:#fbf6ee;font:2rem serif">
		<h1>Tables that outlive the house.</h1><script src="` + h.served.URL + `/widget.js" data-widget="support" data-accent="#ffd27f" data-name="Help with orders"></script>`
	b2 := openTab(t, "en", chromedp.Flag("disable-site-isolation-trials", true), // the test looks into the frame
		chromedp.Flag("disable-features", "SitePerProcess,IsolateOrigins"))
	w := b2.openWidget(site(good))
	w.waits(`document.hasFocus() && document.activeElement.id == "text" && document.getElementById("title").textContent == "Help with orders"`)
	w.waits(`document.querySelector("footer > p").textContent == "It can look things up. It cannot change or pay anything."`)
	w.waits(`getComputedStyle(document.documentElement).getPropertyValue("--accent").startsWith("rgb(")`)
	w.do(chromedp.KeyEvent("Where is order 4417?\r"))
	w.waits(`document.getElementById("items").innerText.includes("change the day?") && document.querySelector(".note").innerText.includes("1 step")`)
	w.screens("widget-en")
	w.do(chromedp.KeyEvent("No, thank you.\r"))
	w.waits(`document.getElementById("items").innerText.includes("It stays as it is.") && !document.querySelector(".sending")`)
	w.do(chromedp.KeyEvent("\x1b"))
	w.wait(`document.activeElement.shadowRoot?.activeElement.ariaExpanded == "false"`)
	w = b2.openWidget(site(good)) // the frame knows its chat again
	w.waits(`document.querySelectorAll(".person").length == 2 && document.getElementById("items").innerText.includes("It stays as it is.")`)
	refused := b2.openWidget(site(bad))
	refused.do(chromedp.KeyEvent("Where is order 4418?\r"))
	refused.waits(`document.URL.startsWith("chrome-error:")`)
	if rounds, err := h.engine.Control().List(t.Context(), store.RoundFilter{Limit: 10}); err != nil || len(rounds) != 2 {
		t.Errorf("%d runs (%v)", len(rounds), err)
	}
}

// TestBrowser_WidgetLost sends a first message again whose answer was lost, and then another text:
// the chat is one, and has each once.
func TestBrowser_WidgetLost(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{replyWith("Hello.")}, 6)...)).servesWidget(regie.ToolScope{"files.read_file"}, nil)
	b := openTab(t, "en")
	b.do(chromedp.Navigate(h.served.URL+"/widget/support"), chromedp.WaitVisible("#text"))
	b.eval(`(() => { const real = fetch; window.lose = true;
		window.fetch = async (...all) => { const answer = await real(...all); if (window.lose && all[0] === location.pathname) throw new TypeError("lost"); return answer; };
		return "" })()`)
	lost := func(text string) {
		t.Helper()
		b.do(chromedp.SendKeys("#text", text+"\r"))
		b.wait(`document.querySelector(".problem") && document.getElementById("text").value.trim()`)
	}
	lost("One")
	lost("") // again
	b.eval(`(() => { window.lose = false; document.getElementById("text").value = "Two"; return "" })()`)
	b.press("\r")
	b.wait(`document.querySelectorAll(".turn.agent").length == 2 && !document.querySelector(".sending, .problem")`)
	b.do(chromedp.SendKeys("#text", "Three\r"))
	b.wait(`document.querySelectorAll(".turn.agent").length == 3 && !document.querySelector(".sending, .problem")`)
	if diff := cmp.Diff([]string{"One", "Two", "Three"}, h.messages(h.visited())); diff != "" {
		t.Errorf("the messages (-want +got):\n%s", diff)
	}
}
