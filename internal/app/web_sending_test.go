package app_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
)

// messages returns what a person said in a session, in its order.
func (h *house) messages(session regie.ID) (texts []string) {
	h.t.Helper()
	view, err := h.engine.Service().Sessions.Get(access.AsOwner(h.t.Context()), session)
	fatal(h.t, err)
	for _, m := range slices.Concat(view.Thread, view.Pending) {
		if m.Message.Sender == regie.SenderUser {
			texts = append(texts, m.Message.Text+regie.LinearText(m.Message.Rich))
		}
	}
	return texts
}

// TestBrowser_SlowServer sends two messages before the first is acknowledged, and one again whose
// acknowledgement was lost: each is there once, in their order.
func TestBrowser_SlowServer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{replyWith("I heard you.")}, 9)...)).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	b.begin("Zero")
	b.shows("I heard you.")
	b.wait(`document.querySelector(".turn.end") && !document.querySelector("#send .stop")`)
	b.eval(`(() => { const real = fetch; window.released = new Promise((release) => { window.release = release; });
		window.fetch = async (...all) => { await window.released; const answer = await real(...all); if (window.lose) throw new TypeError("lost"); return answer; };
		return "" })()`)
	b.do(chromedp.SendKeys("#text", "One\r"), chromedp.SendKeys("#text", "Two\r"))
	b.wait(`document.querySelectorAll(".sending").length == 2`)
	b.eval(`(() => { window.release(); return "" })()`)
	b.wait(`!document.querySelector(".sending") && document.querySelectorAll(".turn.person").length == 3`)
	b.eval(`(() => { window.lose = true; return "" })()`)
	b.do(chromedp.SendKeys("#text", "Three\r"))
	b.wait(`document.querySelector(".composer .problem") && document.getElementById("text").value.trim() == "Three"`)
	b.eval(`(() => { window.lose = false; return "" })()`)
	b.press("\r")
	b.wait(`document.getElementById("text").value.trim() == "" && !document.querySelector(".sending, .composer .problem")`)
	b.do(chromedp.SendKeys("#text", "Four\r"))
	b.shows("Four")
	b.wait(`!document.querySelector(".sending, .composer .problem")`)
	if diff := cmp.Diff([]string{"Zero", "One", "Two", "Three", "Four"}, h.messages(h.visited())); diff != "" {
		t.Errorf("the messages (-want +got):\n%s", diff)
	}
}

// TestBrowser_Queued queues a message before and while an answer streams in: it stands behind the
// answer, and a loaded page shows the same.
func TestBrowser_Queued(t *testing.T) {
	t.Parallel()
	begun, half := make(chan struct{}), make(chan struct{})
	h := newHarness(t, newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush() // the test ends without it
		begun <- struct{}{}
		<-half
		chunk(w, map[string]any{"content": "This is half."})
		<-r.Context().Done()
	})).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	b.begin("Never end")
	<-begun
	b.do(chromedp.SendKeys("#text", "and then the rent\r"), chromedp.WaitVisible(".pending"))
	close(half)
	b.shows("This is half.")
	order := func() string {
		return b.eval(`[...document.getElementById("items").children].map((e) => e.innerText.split("\n")[0]).join("|")`)
	}
	if got := order(); got != "Never end|This is half.|and then the rent" {
		t.Errorf("the order is %s", got)
	}
	b.do(chromedp.SendKeys("#text", "and the tax\r"))
	b.wait(`document.querySelectorAll(".pending").length == 2 && !document.querySelector(".sending")`)
	if got := order(); got != "Never end|This is half.|and then the rent|and the tax" {
		t.Errorf("the order is %s", got)
	}
}
