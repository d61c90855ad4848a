package app_test

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestWebInbox sets an item aside and takes it back, extends its deadline, decides and goes on to
// the next one, until nothing waits, without scripts.
func TestWebInbox(t *testing.T) {
	t.Parallel()
	p := transfers(t).login()
	conn := p.engine.Control()
	run := p.startRun(conn, approval.Policy{})
	asked := p.parked(conn, run.SessionID).Approvals[0]
	path := "/inbox/" + asked.ID.String()
	_, page := p.get("/inbox")
	form := func(fields url.Values) url.Values {
		fields.Set("csrf", field(t, page, "csrf"))
		fields.Set("next", "/inbox?kind=")
		return fields
	}
	shows := func(want string, without ...string) {
		t.Helper()
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
		for _, text := range without {
			if strings.Contains(page, text) {
				t.Errorf("%s in %s", text, page)
			}
		}
	}
	shows(`Decide <span class="quiet">1</span>`, "Nothing waits")
	_, page = p.post(path, form(url.Values{"until": {"hour"}}))
	shows("Set aside: 1. The next comes back at ", `<b class="count">`, `action="/approvals/`)
	_, page = p.get("/inbox?kind=aside")
	shows("Show again now")
	_, page = p.post(path, form(url.Values{"until": {"now"}}))
	shows(`<b class="count">1</b>`)
	_, page = p.post(path, form(url.Values{"do": {"extend"}}))
	shows("6 days left")
	if inbox, err := conn.Inbox(t.Context(), store.InboxFilter{ID: asked.ID}); err != nil || time.Until(inbox.Approvals[0].ExpiresAt) < 6*24*time.Hour {
		t.Errorf("the deadline is %+v, %v", inbox, err)
	}
	for i := range asked.Reviews {
		_, page = p.post("/approvals/"+asked.ID.String(), form(url.Values{"call": {asked.Reviews[i].CallID.String()}, "answer": {"allow"}}))
	}
	if status, page := p.post(path, form(url.Values{"until": {"hour"}})); status != http.StatusConflict || !strings.Contains(page, "no longer waits") || !strings.Contains(page, "Allowed once by") {
		t.Errorf("set aside after the decision: %d %s", status, page)
	}
	p.await(conn, run)
	_, page = p.get("/inbox?kind=decide")
	shows("Did this happen: bank.transfer?", "Finished while")
	_, page = p.post("/calls/"+asked.Reviews[len(asked.Reviews)-1].CallID.String(), form(url.Values{"as": {"happened"}, "note": {"seen"}}))
	shows("Finished while you were away", "Did this happen")
	_, page = p.post("/inbox/"+run.SessionID.String(), form(url.Values{"do": {"seen"}}))
	shows("Nothing waits for you.", "Finished while")
	if status, page := p.post("/inbox/"+run.RoundID.String(), form(url.Values{"until": {"hour"}})); status != http.StatusConflict || !strings.Contains(page, "there is no item of the inbox") {
		t.Errorf("a round is set aside: %d %s", status, page)
	}
}

// TestWebInbox_Sessions shows a session that failed, and one that is paused and goes on.
func TestWebInbox_Sessions(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	paused := once(func(_ http.ResponseWriter, r *http.Request) { begun <- struct{}{}; <-r.Context().Done() }, replyWith("Done."))
	p := newHarness(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(sent(r), "wait for me") {
			paused(w, r)
			return
		}
		refusesWith(http.StatusUnauthorized, "no key")(w, r)
	})).servePages("127.0.0.1:0").login()
	conn := p.engine.Control()
	failed := p.startRun(conn, everything)
	p.await(conn, failed)
	_, page := p.get("/inbox?kind=failed")
	if !strings.Contains(page, "Model error") || !strings.Contains(page, "Dismiss") {
		t.Errorf("what failed: %s", page)
	}
	token := field(t, page, "csrf")
	p.post("/inbox/"+failed.SessionID.String(), url.Values{"csrf": {token}, "do": {"seen"}, "next": {"/inbox"}})
	run := p.submit(conn, func(in *dispatch.RunRequest) { in.Text = "wait for me" })
	<-begun
	fatal(t, p.engine.Service().Rounds.Pause(access.AsOwner(t.Context()), run.RoundID))
	if _, page = p.get("/inbox"); !strings.Contains(page, "Paused: resume or stop it") || strings.Contains(page, `waiting bad`) {
		t.Errorf("what is paused: %s", page)
	}
	p.post("/inbox/"+run.SessionID.String(), url.Values{"csrf": {token}, "do": {"resume"}, "next": {"/inbox"}})
	if view := p.await(conn, run); view.Round.End != "ANSWERED" {
		t.Errorf("after resuming: %s", view.Round.End)
	}
}

// TestWebSearch finds what was said and what files hold, and shows hostile text as text.
func TestWebSearch(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t, replyWith("Tessier <b>SARL</b> is paid."))).servePagesWith(map[string]string{"due.csv": "Bois,1\n<i>TESSIER</i>,2\n"}).login()
	chat := p.begin("Pay what is due")
	p.ends(chat)
	status, page := p.get("/search?q=tessier")
	for _, want := range []string{
		`href="/chats/` + chat + `?from=`, "<mark>Tessier</mark> &lt;b&gt;SARL", "due.csv:2", "&lt;i&gt;<mark>TESSIER</mark>", `value="tessier"`,
	} {
		if status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("%d, no %s in %s", status, want, page)
		}
	}
	if _, page := p.get("/search?q=nobody+said+this"); !strings.Contains(page, "Nothing was found for") {
		t.Errorf("nothing: %s", page)
	}
	if _, page := p.get("/search"); !strings.Contains(page, `href="/search" aria-current="page"`) {
		t.Errorf("the empty page: %s", page)
	}
}

// TestBrowser_Inbox works through the inbox by keyboard.
func TestBrowser_Inbox(t *testing.T) {
	t.Parallel()
	h := transfers(t)
	b := openTab(t, "fr")
	b.login(h)
	conn := h.engine.Control()
	for range 3 {
		h.parked(conn, h.startRun(conn, approval.Policy{}).SessionID)
	}
	b.do(chromedp.Navigate(h.served.URL+"/inbox"), chromedp.WaitVisible(".waiting.current a"))
	b.wait(`document.querySelectorAll(".waiting").length == 3`)
	b.screens("inbox-list-fr")
	b.eval(`document.querySelector(".waiting a").focus(), ""`)
	b.do(chromedp.KeyEvent("j"))
	b.wait(`document.activeElement == document.querySelectorAll(".waiting a")[1]`)
	b.do(chromedp.KeyEvent("\r"), chromedp.WaitVisible(".inbox.picked .card.you"))
	link := func(n string) string {
		return b.eval(`document.querySelectorAll(".waiting a")[` + n + `].getAttribute("href")`)
	}
	first, third := link("0"), link("2")
	b.click(".later summary")
	b.do(chromedp.WaitVisible(".later .menu-body button"))
	b.screens("inbox-item-fr")
	b.click(`.later button[value="hour"]`)
	b.do(chromedp.WaitReady(`.current a[href="` + third + `"]`))
	b.wait(`document.querySelectorAll(".waiting").length == 2`)
	b.click(".card.you .primary")
	b.do(chromedp.WaitReady(`.current a[href="` + first + `"]`))
	b.wait(`document.readyState == "complete" && document.querySelector(".card.you .primary")`)
	b.eval(`{ const ask = fetch; fetch = async (...what) => { const answer = await ask(...what); document.querySelector(".search-link").click(); return answer; } } ""`)
	b.click(".card.you .primary") // and the person goes elsewhere before its answer comes
	b.wait(`location.pathname == "/search"`)
	b.do(chromedp.Navigate(h.served.URL+"/search?q=tessier"), chromedp.WaitVisible("mark"))
	b.screens("search-fr")
	if os.Getenv("REGIE_SCREENS") != "" {
		b.do(chromedp.Navigate(h.served.URL+"/runs"), chromedp.WaitVisible("#items a"))
		b.screens("runs-fr")
	}
}

// TestBrowser_Unread: what ends in a tab that is hidden waits in the inbox until the tab is looked
// at, and then leaves the inbox of another tab.
func TestBrowser_Unread(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, replyWith("The first answer."), replyWith("The second answer."))).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	b.begin("Answer twice")
	b.shows("The first answer.")
	second, end := chromedp.NewContext(b.ctx)
	defer end()
	inbox := &tab{t, second}
	inbox.do(chromedp.Navigate(h.served.URL + "/inbox"))
	inbox.wait(`document.querySelector("#empty h2")`)
	b.eval(`Object.defineProperty(document, "hidden", { get: () => !window.seen }), composer.elements.text.value = "Again", composer.requestSubmit(), ""`)
	b.shows("The second answer.")
	inbox.shows("Finished while you were away")
	b.eval(`window.seen = true, document.dispatchEvent(new Event("visibilitychange")), ""`)
	inbox.wait(`document.querySelector("#empty h2")`)
}
