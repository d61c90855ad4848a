package app_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/regie-run/regie"
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
