package app_test

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"
)

// press presses keys where the focus is.
func (b *tab) press(keys string, modifiers ...chromedp.Modifier) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys, chromedp.KeyModifiers(modifiers...)))
}

// tabTo presses Tab until the focus is on an element that a selector names.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	quoted, _ := json.Marshal(selector)
	for range 80 {
		if b.eval(`String(document.activeElement.matches(`+string(quoted)+`))`) == "true" {
			return
		}
		b.press("\t")
	}
	b.t.Fatalf("Tab never comes to %s; the focus is on %s", selector, b.eval("document.activeElement.outerHTML"))
}

// allow goes to the first card and allows it once. Keys do nothing before the page has its module.
func (b *tab) allow() {
	b.t.Helper()
	for range 500 {
		b.press("a", chromedp.ModifierAlt)
		b.press("a")
		if b.eval(`String(document.activeElement.matches(".card-foot .primary"))`) == "true" {
			b.press("\r")
			return
		}
	}
	b.t.Fatalf("the keys go nowhere; the focus is on %s", b.eval("document.activeElement.outerHTML"))
}

// TestBrowser_Keyboard goes through the chat, the inbox, search, a run and one of its calls, the
// dashboard and the settings without a mouse.
func TestBrowser_Keyboard(t *testing.T) {
	t.Parallel()
	h := newHarness(t, newModel(t,
		replyWith("I write it.", call{"a", "files__write_file", `{"path":"one.txt","content":"1\n"}`}),
		replyWith("And another.", call{"b", "files__write_file", `{"path":"two.txt","content":"2\n"}`}),
		replyWith("Both files are there."),
	)).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.do(chromedp.Navigate(h.served.Setup))
	b.tabTo("button")
	b.press("\r")
	b.wait(`document.activeElement?.id == "text"`)
	b.press("Write two files")
	b.press("\r")
	b.wait(`document.querySelector(".card.you")`)
	b.allow()
	b.shows("And another.")
	b.wait(`document.querySelector(".card.you")`)

	b.press("i", chromedp.ModifierAlt)
	b.wait(`location.pathname == "/inbox" && document.querySelector("#items a")`)
	b.tabTo("#items a")
	b.press("\r")
	b.wait(`location.pathname.startsWith("/inbox/") && document.querySelector(".card.you")`)
	decided := b.eval("location.pathname")
	b.allow()
	b.wait(`location.pathname != "` + decided + `" && document.readyState == "complete" && !document.querySelector(".card.you")`)

	b.press("k", chromedp.ModifierCtrl)
	b.wait(`location.pathname == "/search" && document.activeElement?.id == "q"`)
	b.press("another")
	b.press("\r")
	b.wait(`document.querySelector("main a[href*='/chats/']")`)
	b.tabTo("main a[href*='/chats/']")
	b.press("\r")
	b.shows("Both files are there.")

	b.tabTo("a[href^='/runs/']:not([href*='/calls/'])")
	b.press("\r")
	b.wait(`document.querySelector(".timeline")`)
	b.tabTo("a[href*='/calls/']")
	b.press("\r")
	b.wait(`document.querySelector("a[href*='show=request'], a[href*='request']")`)
	b.tabTo("a[href*='request']")
	b.press("\r")
	b.wait(`document.body.innerText.includes("Write two files") && document.body.innerText.includes("SHA-256")`)
	for _, place := range []string{"/dashboard", "/settings/limits"} {
		b.tabTo(`a[href="` + place + `"]`)
		b.press("\r")
		b.wait(`location.pathname == "` + place + `" && document.querySelector("main h1")`)
	}
}
