package app_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/store"
)

// TestWebChat_Edit edits the arguments of a call, sees what that would do, and allows it.
func TestWebChat_Edit(t *testing.T) {
	t.Parallel()
	p := newHarness(t, writesFile(t)).servePages("127.0.0.1:0").login()
	chat := p.begin("Move stripe to 6278")
	asked := p.waits(chat)
	path := "/approvals/" + asked.ID.String() + "/edit"
	call := asked.Reviews[0].CallID.String()
	status, page := p.get(path + "?call=" + call)
	if status != 200 || !strings.Contains(page, "stripe: 6278") {
		t.Fatalf("the page: %d %s", status, page)
	}
	form := url.Values{"csrf": {field(t, page, "csrf")}, "call": {call}, "arguments": {`{"path":`}}
	if status, page = p.post(path, form); status != 409 || !strings.Contains(page, "are no JSON") {
		t.Errorf("no JSON: %d %s", status, page)
	}
	form.Set("arguments", `{"path":"vat.yaml","content":"stripe: 6222\n"}`)
	if status, page = p.post(path, form); status != 200 || !strings.Contains(page, "This is what the edited call would do.") {
		t.Fatalf("the edited call: %d %s", status, page)
	}
	hidden := func(name string) string {
		value := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
		return strings.NewReplacer("&#34;", `"`, "&#43;", "+").Replace(value[1])
	}
	allow := url.Values{
		"csrf": form["csrf"], "next": {"/chats/" + chat}, "call": {call}, "answer": {"allow"},
		"arguments": {hidden("arguments")}, "shown": {hidden("shown")},
	}
	target := filepath.Join(p.root, "vat.yaml")
	fatal(t, os.WriteFile(target, []byte("not seen\n"), 0o600))
	if status, page = p.post("/approvals/"+asked.ID.String(), allow); status != 409 || !strings.Contains(page, "vat.yaml exists already") {
		t.Errorf("changed since: %d %s", status, page)
	}
	fatal(t, os.Remove(target))
	if status, page = p.post("/approvals/"+asked.ID.String(), allow); status != 200 {
		t.Errorf("allowed: %d %s", status, page)
	}
	p.ends(chat)
	if data, err := os.ReadFile(target); err != nil || string(data) != "stripe: 6222\n" {
		t.Errorf("%q, %v", data, err)
	}
	if status, _ = p.get(path + "?call=" + call); status != 404 {
		t.Errorf("answered already: %d", status)
	}
}

// TestWebChat_Actions undoes, forks, renames, exports and deletes a chat by forms.
func TestWebChat_Actions(t *testing.T) {
	t.Parallel()
	p := newHarness(t, writesFile(t)).servePages("127.0.0.1:0").login()
	chat := p.begin("Move stripe")
	asked := p.waits(chat)
	form := p.forms(chat)
	p.post("/approvals/"+asked.ID.String(), form(url.Values{"call": {asked.Reviews[0].CallID.String()}, "answer": {"allow"}}))
	p.ends(chat)
	_, page := p.get("/chats/" + chat)
	if status, page := p.post("/chats/"+chat+"/fork", form(url.Values{"round": {field(t, page, "round")}})); status != 200 ||
		!strings.Contains(page, "Files are not forked.") || !strings.Contains(page, "is there.") {
		t.Errorf("a fork: %d %s", status, page)
	}
	if _, page := p.post("/chats/"+chat+"/rename", form(url.Values{"name": {"Stripe <b>"}})); !strings.Contains(page, `<h1 title="Stripe &lt;b&gt;">`) {
		t.Errorf("renamed: %s", page)
	}
	if status, page := p.post("/chats/"+chat+"/rename", form(url.Values{"name": {" "}})); status != 409 || !strings.Contains(page, "the name is empty") {
		t.Errorf("no name: %d %s", status, page)
	}
	if _, text := p.get("/chats/" + chat + "/export?format=markdown"); !strings.HasPrefix(text, "# Stripe <b>\n") || !strings.Contains(text, "vat.yaml") {
		t.Errorf("as Markdown: %s", text)
	}
	var export struct{ Session regie.Session }
	if _, text := p.get("/chats/" + chat + "/export"); json.Unmarshal([]byte(text), &export) != nil || export.Session.ID.String() != chat {
		t.Errorf("as JSON: %s", text)
	}
	p.undo(chat, form)
	if status, page := p.post("/chats/"+chat+"/delete", form(url.Values{})); status != 200 || strings.Contains(page, chat) {
		t.Errorf("deleted: %d %s", status, page)
	}
	if status, _ := p.get("/chats/" + chat); status != 404 {
		t.Errorf("the deleted chat: %d", status)
	}
}

// undo undoes the newest run after its preview, and brings it back.
func (p *pages) undo(chat string, form func(url.Values) url.Values) {
	p.t.Helper()
	agree := func(path string) (int, string) {
		p.t.Helper()
		status, page := p.get(path)
		if status != 200 || !strings.Contains(page, `class="diff"`) {
			p.t.Fatalf("the plan: %d %s", status, page)
		}
		return p.post("/chats/"+chat+"/undo", form(url.Values{
			"undo_id": {field(p.t, page, "undo_id")}, "target": {field(p.t, page, "target")}, "plan": {field(p.t, page, "plan")},
		}))
	}
	target := filepath.Join(p.root, "vat.yaml")
	fatal(p.t, os.WriteFile(target, []byte("changed\n"), 0o600))
	if status, page := p.get("/chats/" + chat + "/undo"); status != 200 || !strings.Contains(page, "it has been changed since") ||
		!strings.Contains(page, "force=yes") || strings.Contains(page, `class="primary"`) {
		p.t.Errorf("a conflict: %d %s", status, page)
	}
	fatal(p.t, os.WriteFile(target, []byte("stripe: 6278\n"), 0o600))
	status, page := agree("/chats/" + chat + "/undo")
	if _, err := os.Stat(target); status != 200 || err == nil || !strings.Contains(page, "log folded") {
		p.t.Errorf("undone: %d %v %s", status, err, page)
	}
	back := regexp.MustCompile(`/chats/[^"]+/undo\?target=[^"]+`).FindString(page)
	status, page = agree(back)
	if _, err := os.Stat(target); status != 200 || err != nil || strings.Contains(page, "log folded") {
		p.t.Errorf("brought back: %d %v %s", status, err, page)
	}
}

// TestWebChat_FirstRefused: a first message that is refused keeps the mode that was chosen for it.
func TestWebChat_FirstRefused(t *testing.T) {
	t.Parallel()
	p := newHarness(t, writesFile(t)).servePages("127.0.0.1:0").login()
	_, page := p.get("/")
	status, page := p.post("/chats", url.Values{"csrf": {field(t, page, "csrf")}, "session_id": {field(t, page, "session_id")}, "mode": {"plan"}, "text": {" "}})
	if status != 409 || !strings.Contains(page, `<option value="plan" selected`) {
		t.Errorf("%d %s", status, page)
	}
}

// TestWebChat_Messages names a file with @ and gives a command of the workspace.
func TestWebChat_Messages(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Read."), replyWith("Done."))
	h := newHarness(t, m)
	p := h.servePagesWith(map[string]string{"docs/plan.md": "the plan", "secret.png": "x"}).login()
	chat := p.begin("See @docs/plan.md and @/etc/passwd and @secret.png")
	p.ends(chat)
	_, page := p.get("/chats/" + chat)
	if strings.Count(page, `<span class="mention">`) != 1 || !strings.Contains(page, "docs/plan.md</span> and @/etc/passwd and @secret.png") {
		t.Errorf("the message: %s", page)
	}
	if sent := m.last(); !strings.Contains(sent, "the plan") || strings.Contains(sent, "root:") {
		t.Errorf("the model got %s", sent)
	}
	workspace := regexp.MustCompile(`data-workspace="([^"]+)"`).FindStringSubmatch(page)[1]
	for word, want := range map[string]string{"@pla": `[{"insert":"@docs/plan.md"}]`, "/x": "[]"} {
		status, list := p.get("/offers?workspace=" + workspace + "&word=" + url.QueryEscape(word))
		if status != 200 || !strings.Contains(list, want) {
			t.Errorf("%s: %d %s", word, status, list)
		}
	}
	if status, _ := p.get("/offers?word=@&workspace=" + regie.NewID().String()); status != 404 {
		t.Errorf("of no workspace: %d", status)
	}
	form := p.forms(chat)
	if status, page := p.post("/chats/"+chat+"/messages", form(url.Values{"text": {"And on"}, "model": {"nowhere/none"}})); status != 200 {
		t.Errorf("another model: %d %s", status, page)
	}
	for _, path := range []string{"/stream", "/stream?page=/stream", "/stream?page=/inbox", "/stream?page=x"} {
		if status, _ := p.get(path); status != 400 && status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, page := p.get("/more"); status != 200 || !strings.Contains(page, `name="theme"`) || !strings.Contains(page, `href="/inbox"`) {
		t.Errorf("more: %d %s", status, page)
	}
}

// TestBrowser_Composer completes a file by keyboard, refuses a paste that is too large, keeps its
// draft, and says that its chat was deleted.
func TestBrowser_Composer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Hello."), replyWith("I read it.", call{"a", "files__write_file", `{"path":"b.md","content":"x\n"}`}),
		replyWith("Written."))).servePagesWith(map[string]string{"docs/plan.md": "the plan", "docs/place.md": "no"})
	b := openTab(t, "en")
	b.login(h)
	b.begin("Good morning")
	b.wait(`document.querySelector(".turn.end .actions")`)
	b.do(chromedp.SendKeys("#text", "See @pla"), chromedp.WaitVisible(`#offer-1[aria-selected="false"]`))
	b.screens("offers-en")
	b.do(chromedp.SendKeys("#text", kb.ArrowDown+"\r"))
	b.wait(`/^See @docs\/plan\.md\s+$/.test(document.getElementById("text").value)`)
	b.do(chromedp.SendKeys("#text", "and go on\r"), chromedp.WaitVisible(".mention"), chromedp.WaitVisible(".card.you"))
	b.wait(`document.activeElement.matches(".card.you")`) // nothing is being written
	b.do(chromedp.KeyEvent("a"))
	b.wait(`document.activeElement.matches(".card .primary")`)
	b.click(".edit a")
	b.do(chromedp.WaitVisible("#arguments"))
	b.screens("edit-en")
	b.click(".page-foot .primary")
	b.do(chromedp.WaitVisible(".card .diff"), chromedp.Click(".card .primary"), chromedp.WaitVisible("#items"))
	b.shows("Written.")
	b.wait(`document.querySelectorAll(".turn.end .actions").length == 2`)
	b.click("#chat-menu > summary")
	b.screens("menu-en")
	b.click(".turn.end:last-child .actions a")
	b.do(chromedp.WaitVisible(".undo-file .diff"))
	b.screens("undo-en")
	b.click(".page-foot .primary")
	b.do(chromedp.WaitVisible("#items .folded, #items details .row.open"))
	b.screens("undone-en")
	b.do(chromedp.SendKeys("#text", "/mode plan\r"))
	b.wait(`document.querySelector("#modes select").value == "plan" && !document.getElementById("text").value.trim()`)
	b.eval(`const big = new DataTransfer(); big.setData("text", "x".repeat(10_000_000));
		document.getElementById("text").dispatchEvent(new ClipboardEvent("paste", { clipboardData: big, bubbles: true, cancelable: true })), ""`)
	b.wait(`document.querySelector(".composer .problem")?.textContent.includes("too large")`)
	b.do(chromedp.SendKeys("#text", "a draft"), chromedp.Reload(), chromedp.WaitVisible("#items"))
	b.wait(`document.getElementById("text").value.trim() == "a draft"`)
	b.do(chromedp.KeyEvent("/", chromedp.KeyModifiers(2)), chromedp.WaitVisible("dialog[open]"))
	b.screens("keys-en")
	b.do(chromedp.KeyEvent("\u001b"), chromedp.WaitNotVisible("dialog"))
	chat := b.eval("location.pathname")
	other := &tab{t, nil}
	ctx, end := chromedp.NewContext(b.ctx)
	defer end()
	other.ctx = ctx
	other.do(chromedp.Navigate(h.served.URL+chat), chromedp.WaitVisible("#items"), chromedp.Click("#chat-menu > summary"),
		chromedp.Click("#chat-delete > summary"), chromedp.Click("#chat-delete button"), chromedp.WaitVisible(".jobs"))
	b.wait(`document.querySelector("#composer .problem")?.innerText.includes("This chat was deleted.") && document.querySelector("#composer .problem button")`)
	b.wait(`document.getElementById("text").value.trim() == "a draft"`)
	b.screens("deleted-en")
	b.do(chromedp.KeyEvent("n", chromedp.KeyModifiers(1)), chromedp.WaitVisible(".jobs"))
}

// TestBrowser_LoginEnds revokes the login of a page: it says so, and the draft is there after the
// next login.
func TestBrowser_LoginEnds(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("Hello."))).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	b.begin("Good morning")
	b.shows("Hello.")
	chat := b.eval("location.href")
	b.do(chromedp.SendKeys("#text", "half a sentence"))
	second, end := chromedp.NewContext(b.ctx)
	defer end()
	fresh := &tab{t, second}
	fresh.do(chromedp.Navigate(h.served.URL+"/chats/new"), chromedp.WaitVisible(".jobs"))
	conn := h.connect()
	tokens, err := conn.Tokens.List(t.Context(), store.TokenFilter{})
	fatal(t, err)
	for i := range tokens {
		if tokens[i].Kind == regie.TokenBrowser {
			fatal(t, conn.Tokens.Revoke(t.Context(), control.RevokeTokensRequest{TokenIDs: []regie.ID{tokens[i].ID}}))
		}
	}
	b.wait(`document.getElementById("say").textContent.startsWith("Your login ended.")`)
	b.do(chromedp.SendKeys("#text", "\r"))
	b.wait(`document.querySelector("#composer .problem")?.textContent.startsWith("Your login ended.")`)
	fresh.do(chromedp.SendKeys("#text", "a new chat"), chromedp.Click(".composer .primary"))
	fresh.wait(`document.body.innerText.includes("regie web")`)
	link, err := h.engine.LinkBrowser(t.Context())
	fatal(t, err)
	b.do(chromedp.Navigate(link.URL), chromedp.Submit("form"), chromedp.WaitVisible(".jobs"))
	b.wait(`document.getElementById("text").value.trim() == "a new chat"`)
	b.begin("")
	b.shows("a new chat")
	b.do(chromedp.Navigate(h.served.URL + "/chats/new"))
	b.wait(`document.getElementById("text")?.value === ""`)
	b.do(chromedp.Navigate(chat), chromedp.WaitVisible("#items"))
	b.wait(`document.getElementById("text").value.trim() == "half a sentence"`)
	b.do(chromedp.Navigate(h.served.URL+"/more"), chromedp.WaitVisible(".page-form .keys"))
	b.screens("more-en")
	b.do(chromedp.Navigate(h.served.URL+"/chats/new#side"), chromedp.WaitVisible(".jobs"))
	b.screens("drawer-en")
}
