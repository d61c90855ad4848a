package app_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// focusCard goes to the first card by its key, which does nothing before the page has its module.
func (b *tab) focusCard() {
	b.t.Helper()
	for range 500 {
		if b.press("a", chromedp.ModifierAlt); b.eval(`String(document.activeElement.matches(".card"))`) == "true" {
			return
		}
	}
	b.t.Fatalf("no card has the focus; it is on %s", b.eval("document.activeElement.outerHTML"))
}

// strike presses the key of a letter as a keyboard does: its text is typed unless the page prevents
// that.
func (b *tab) strike(letter string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: kb.KeyDown, Key: letter, Code: "Key" + strings.ToUpper(letter), Text: letter,
	})
	fatal(b.t, err)
}

// TestBrowser_DenyKeys: Enter and Ctrl+Enter in the reason of a denial deny. Without scripts they
// do nothing.
func TestBrowser_DenyKeys(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t,
		replyWith("", call{"a", "files__write_file", `{"path":"one.txt","content":"1\n"}`}),
		replyWith("", call{"b", "files__write_file", `{"path":"two.txt","content":"2\n"}`}),
		replyWith("", call{"c", "files__write_file", `{"path":"three.txt","content":"3\n"}`}),
		replyWith("None was written."),
	)).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	b.begin("Write files")
	b.wait(`document.querySelector(".card.you")?.innerText.includes("one.txt")`)
	b.focusCard()
	b.strike("d")
	b.press("not one")
	b.press("\r")
	b.wait(`document.querySelector(".card.you")?.innerText.includes("two.txt")`)
	b.shows("(not one)")
	b.focusCard()
	b.strike("d")
	b.press("not two")
	b.press("\r", chromedp.ModifierCtrl)
	b.wait(`document.querySelector(".card.you")?.innerText.includes("three.txt")`)
	b.shows("(not two)")

	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	fatal(t, err)
	b.do(chromedp.Reload(), chromedp.WaitVisible(".card.you"))
	b.eval(`(() => { const menu = document.querySelector("details.menu:has([value=deny])"); menu.open = true; menu.querySelector("input").focus(); return "" })()`)
	b.press("not three")
	b.press("\r")
	b.eval(`(() => { document.querySelector(".card [value=deny]").click(); return "" })()`)
	b.shows("(not three)")
	for _, name := range []string{"one.txt", "two.txt", "three.txt"} {
		if _, err := os.Stat(filepath.Join(h.root, name)); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// TestBrowser_Escape closes an open menu of a card, wherever the focus is, before it stops a run.
func TestBrowser_Escape(t *testing.T) {
	t.Parallel()
	h := newHarness(t, writesFile(t)).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	b.begin("Write a file")
	b.focusCard()
	b.strike("d")
	b.wait(`document.activeElement.name == "reason"`)
	b.eval(`(() => { document.activeElement.blur(); return "" })()`)
	b.press(kb.Escape)
	b.wait(`!document.querySelector("details.menu[open]") && document.querySelector(".card.you")`)
	b.press(kb.Escape)
	b.wait(`!document.querySelector(".card.you") && document.querySelector(".turn.end")?.innerText.includes("Stopped")`)
}

// TestBrowser_UnknownKeys: Enter in the note of a call with an unknown outcome says nothing of it.
func TestBrowser_UnknownKeys(t *testing.T) {
	t.Parallel()
	h := transfers(t)
	b := openTab(t, "en")
	b.login(h)
	b.begin("Pay what is due")
	b.wait(`document.querySelector(".card.you")`)
	b.allow()
	b.wait(`document.querySelector(".card.unknown") && document.querySelector(".turn.end")`)
	b.do(chromedp.SendKeys(".card.unknown [name=note]", "I looked it up"))
	b.press("\r")
	b.press("\r", chromedp.ModifierCtrl)
	b.click(`.card.unknown [value="did_not_happen"]`)
	b.wait(`!document.querySelector(".card.unknown")`)
	asOwner := access.AsOwner(t.Context())
	rounds, err := h.engine.Service().Rounds.List(asOwner, store.RoundFilter{})
	fatal(t, err)
	view, err := h.engine.Service().Rounds.Get(asOwner, rounds[0].Round.ID)
	fatal(t, err)
	calls := chat.CallsOf(&view)
	if found := calls[len(calls)-1].Resolution; found == nil || found.As != regie.ResolvedDidNotHappen || found.Note != "I looked it up" {
		t.Errorf("the finding is %+v", found)
	}
}

// TestBrowser_Unticked: a call that was unticked stays so when the page is drawn again,
// and is not allowed.
func TestBrowser_Unticked(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t,
		replyWith("", call{"a", "files__write_file", `{"path":"one.txt","content":"1\n"}`}, call{"b", "files__write_file", `{"path":"two.txt","content":"2\n"}`}),
		replyWith("One was written."),
	)).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	conn := h.engine.Control()
	asked := h.parked(conn, h.startRun(conn, approval.Policy{}).SessionID).Approvals[0]
	b.do(chromedp.Navigate(h.served.URL+"/inbox"), chromedp.WaitVisible(".card.you"))
	second := asked.Reviews[1].CallID.String()
	b.click(`.card [value="` + second + `"]`)
	before := b.eval(`document.querySelector(".card-head p").innerText`)
	fatal(t, h.engine.Service().Approvals.Extend(access.AsOwner(t.Context()), dispatch.ExtendRequest{ItemID: asked.ID, Until: time.Now().Add(90 * time.Hour)}))
	b.wait(`document.querySelector(".card-head p").innerText != ` + strconv.Quote(before))
	b.click(".card.you .primary")
	b.wait(`document.querySelector(".card .decided")`)
	inbox, err := conn.Inbox(t.Context(), store.InboxFilter{ID: asked.ID})
	fatal(t, err)
	if one, two := inbox.Approvals[0].Reviews[0].Decision, inbox.Approvals[0].Reviews[1].Decision; one == nil || two != nil {
		t.Errorf("the decisions are %+v and %+v", one, two)
	}
}

// TestWebCard_Several: the card of two calls says what an answer for longer covers, and what was
// not done is not ticked off.
func TestWebCard_Several(t *testing.T) {
	t.Parallel()
	p := transfers(t).login()
	chat := p.begin("Pay what is due")
	asked := p.waits(chat)
	answer := p.forms(chat)
	_, page := p.get("/chats/" + chat)
	for _, want := range []string{"Allow the marked calls once", "What it covers", "<li>files.write_file with exactly these arguments</li>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the card lacks %s: %s", want, page)
		}
	}
	_, page = p.post("/approvals/"+asked.ID.String(), answer(url.Values{"call": {asked.Reviews[0].CallID.String()}, "answer": {"deny"}}))
	if !strings.Contains(page, `<p class="decided"><svg class="icon" aria-hidden="true"><use href="#i-cross"/>`) || strings.Contains(page, "<li>files.write_file with exactly these arguments</li>") {
		t.Errorf("one is denied: %s", page)
	}
	p.post("/chats/"+chat+"/stop", answer(url.Values{}))
	p.ends(chat)
	_, page = p.get("/chats/" + chat)
	settled := regexp.MustCompile(`(?s)<div class="settled">.*?</div>`).FindString(page)
	if strings.Count(settled, "#i-cross") != 2 || strings.Contains(settled, "#i-tick") {
		t.Errorf("withdrawn: %s", settled)
	}
}
