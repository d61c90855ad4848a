package app_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/tool"
)

// transfers serves a workspace whose agent reads, meets a busy model once, asks for two calls of
// which one fails without a known outcome, and answers.
func transfers(t *testing.T) *house {
	t.Helper()
	lost := action(t, "bank.transfer", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{}, regie.Errorf(regie.CodeInternal, "the connection was lost")
	}, nil)
	b := newHarness(t, newModel(t,
		replyWith("", call{"l", "files__list_files", `{}`}, call{"r", "files__read_file", `{"path":"due.csv"}`}),
		once(refusesWith(http.StatusServiceUnavailable, "busy"),
			replyWith("", call{"w", "files__write_file", `{"path":"paid.csv","content":"Bois,640.00\n"}`}, call{"t", "bank__transfer", `{"name":"Tessier SARL"}`})),
		replyWith("I do not know whether the transfer happened.")), lost)
	return b.servePagesWith(map[string]string{"due.csv": "Bois & Co,640.00\nTessier SARL,1284.00\n"})
}

// TestWebRuns reads the list of runs, a run, its problems and one of its calls without scripts.
func TestWebRuns(t *testing.T) {
	t.Parallel()
	p := transfers(t).login()
	chat := p.begin("Pay what is due")
	asked := p.waits(chat)
	if _, page := p.get("/runs?state=WAITING"); !strings.Contains(page, "Pay what is due") || !strings.Contains(page, "Needs you") {
		t.Errorf("what waits: %s", page)
	}
	run := "/runs/" + asked.RoundID.String()
	edited := asked.Reviews[0].CallID.String()
	if _, page := p.get(run + "/calls/" + edited); !strings.Contains(page, `action="/approvals/`+asked.ID.String()) {
		t.Errorf("the call does not ask: %s", page)
	}
	answer := p.forms(chat)
	p.post("/approvals/"+asked.ID.String(), answer(url.Values{"call": {edited, asked.Reviews[1].CallID.String()}, "answer": {"allow"}}))
	p.ends(chat)
	for path, want := range map[string][]string{
		"/runs?state=ENDED":                     {"Pay what is due", "A message"},
		"/runs?state=FAILED":                    {"No such runs."},
		"/runs?from=2001-01-01":                 {"Pay what is due"},
		"/runs?to=2001-01-01":                   {"No such runs."},
		run:                                     {"Outcome unknown", "2 attempts", "Waited for approval: ", `class="bar-bad"`, `class="bar-unknown"`, "4 <span", "done, 1 outcome unknown"},
		run + "?view=steps":                     {"Attempt 1 failed", "busy", "I do not know whether"},
		run + "/calls/" + edited:                {"Allowed once by", "verified before it is repeated", "paid.csv"},
		run + "/calls/" + edited + "?replay=1":  {"rebuilt byte for byte", "3 of 3 requests", "nothing was changed"},
		run + "/calls/" + edited + "?request=1": {"byte for byte, by its SHA-256", "&#34;messages&#34;"},
		"/chats/" + chat:                        {run + "/calls/" + edited},
	} {
		status, page := p.get(path)
		for _, text := range want {
			if status != http.StatusOK || !strings.Contains(page, text) {
				t.Errorf("%s: %d, lacks %s: %s", path, status, text, page)
			}
		}
	}
	const alert = "The outcome of an action is unknown."
	for path, want := range map[string]string{"/chats/" + chat: `<span class="chip unknown">`, "/": "lamp-unknown", "/dashboard": alert} {
		if _, page := p.get(path); !strings.Contains(page, want) {
			t.Errorf("%s lacks %s: %s", path, want, page)
		}
	}
	_, page := p.get(run + "?problems=1")
	if rows := strings.Count(page, `class="step`); rows != 2 {
		t.Errorf("%d problems: %s", rows, page)
	}
	if status, _ := p.get(run + "/calls/" + regie.NewID().String()); status != http.StatusNotFound {
		t.Errorf("a call of no run: %d", status)
	}
	p.post("/calls/"+asked.Reviews[1].CallID.String(), answer(url.Values{"as": {"did_not_happen"}}))
	if _, page := p.get(run); strings.Contains(page, "Outcome unknown") {
		t.Errorf("after the finding: %s", page)
	}
	if _, page := p.get("/dashboard"); strings.Contains(page, alert) || strings.Contains(page, "lamp-unknown") {
		t.Errorf("the dashboard after the finding: %s", page)
	}
}

// TestBrowser_Runs follows a run while it works, and looks at its calls.
func TestBrowser_Runs(t *testing.T) {
	t.Parallel()
	h := transfers(t)
	b := openTab(t, "en")
	b.login(h)
	b.begin("Supplier payments: pay what is due.")
	b.do(chromedp.WaitVisible(".card.you .primary"))
	second, end := chromedp.NewContext(b.ctx)
	defer end()
	other := &tab{t, second}
	other.do(chromedp.Navigate(h.served.URL+"/runs"), chromedp.WaitVisible("#items a"))
	other.screens("runs-list")
	other.click("#items a")
	other.do(chromedp.WaitVisible(".step.you"))
	b.click(".card.you .primary")
	other.wait(`document.querySelector(".step.unknown .bar-unknown") && document.querySelector("#run-state .chip.unknown")`)
	other.wait(`[...document.querySelectorAll(".step.first")].length == 3`)
	other.screens("run-timeline")
	other.click(".step.unknown a")
	other.do(chromedp.WaitVisible(".inspector .card.unknown"))
	other.screens("run-call")
	other.do(chromedp.Navigate(other.eval("location.href")+"?replay=1"), chromedp.WaitVisible("#dry"))
	other.screens("run-dry")
	if n := other.eval(`String(document.querySelectorAll("[style]").length)`); n != "0" {
		t.Errorf("%s elements with a style", n)
	}
}

// TestBrowser_RunWorks follows the timeline and the steps of a run while its reply streams into its
// chat, until both say that it has ended. The reply stands in neither before it is there.
func TestBrowser_RunWorks(t *testing.T) {
	t.Parallel()
	begun, half, whole := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := newHarness(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "I begin.\n\n"})
		begun <- struct{}{}
		<-half
		chunk(w, map[string]any{"content": "This is half.\n\n"})
		<-whole
		replyWith("And that is all.")(w, r)
	})).servePages("127.0.0.1:0")
	timeline := openTab(t, "en")
	timeline.login(h)
	open := func(path string) *tab {
		ctx, end := chromedp.NewContext(timeline.ctx)
		t.Cleanup(end)
		other := &tab{t, ctx}
		other.do(chromedp.Navigate(h.served.URL + path))
		return other
	}
	run := h.startRun(h.engine.Control(), everything)
	<-begun
	page := "/runs/" + run.RoundID.String()
	chat, steps := open("/chats/"+run.SessionID.String()), open(page+"?view=steps")
	timeline.do(chromedp.Navigate(h.served.URL + page))
	for _, one := range []*tab{timeline, steps} {
		one.wait(`document.querySelector("#run-state .stop") && document.body.innerText.includes("Exchange 1")`)
		one.eval(`(() => { window.faults = []; addEventListener("error", (e) => faults.push(e.message));
			new MutationObserver(() => faults.push(...[...document.querySelectorAll("tbody > li")].map((e) => e.outerHTML))).observe(document.body, { childList: true, subtree: true });
			return "" })()`)
	}
	close(half)
	chat.shows("This is half.")
	close(whole)
	for _, one := range []*tab{timeline, steps} {
		one.wait(`!document.querySelector("#run-state .stop") && document.getElementById("run-state").innerText.includes("Answered")`)
		if said := one.eval(`faults.join()`); said != "" {
			t.Error(said)
		}
	}
	steps.wait(`document.getElementById("steps")?.innerText.includes("And that is all.")`)
}

// TestBrowser_Widths: the words of a list of runs are whole at 1280 pixels, and no list scrolls
// sideways at 320.
func TestBrowser_Widths(t *testing.T) {
	t.Parallel()
	h := transfers(t)
	b := openTab(t, "fr")
	b.login(h)
	conn := h.engine.Control()
	h.parked(conn, h.startRun(conn, approval.Policy{}).SessionID)
	b.do(chromedp.Navigate(h.served.URL+"/runs"), chromedp.WaitVisible("#items a"))
	b.eval(`document.querySelector("#items a").textContent = "October bank reconciliation: move Stripe to account 6278. ".repeat(5)`)
	b.eval(`document.querySelector("#items td:last-child").textContent = "coût inconnu, au moins $12.3456"`)
	b.eval(`document.querySelector("#items time").textContent = "2026-11-28 14:37"`)
	b.do(chromedp.EmulateViewport(1280, 800))
	lines := b.eval(`[...document.querySelectorAll(".runs th, .by, #items time")].map((e) => { const words = document.createRange(); words.selectNodeContents(e); return words.getClientRects().length }).join("")`)
	if strings.Trim(lines, "1") != "" {
		t.Errorf("the words stand on %s lines", lines)
	}
	b.do(chromedp.EmulateViewport(320, 640))
	wide := `[...document.querySelectorAll("main *")].filter((e) => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX == "auto" && !e.matches(".segments")).map((e) => e.className).join()`
	for _, path := range []string{"", "/inbox"} {
		if path != "" {
			b.do(chromedp.Navigate(h.served.URL+path), chromedp.WaitVisible("#items a"))
		}
		if got := b.eval(wide); got != "" {
			t.Errorf("%s scrolls sideways: %s", path, got)
		}
	}
}
