package app_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie/internal/config"
)

// tab is a page in a real browser.
type tab struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // the tab itself, as chromedp has it
}

// openTab starts a browser that speaks a language; without Chromium the test is skipped.
func openTab(t *testing.T, language string, flags ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("REGIE_CI") != "" {
		t.Fatal("Chromium is required: apt-get install chromium")
	} else if err != nil {
		t.Skip("no Chromium here")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(flags, chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Headless,
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.Flag("accept-lang", language), chromedp.WindowSize(1440, 900))...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	return &tab{t, ctx}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		page, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.t.Fatalf("%v on the page:\n%s", err, page)
	}
}

// eval returns what an expression is.
func (b *tab) eval(expression string) (text string) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	fatal(b.t, err)
	return text
}

// wait waits until an expression is true.
func (b *tab) wait(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingInterval(20*time.Millisecond)))
		if err == nil {
			return
		}
		gone := strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated")
		if !gone { // else another page has come meanwhile
			b.t.Fatalf("never true: %s (%v); the page:\n%s", expression, err, b.eval("document.body.innerText"))
		}
	}
}

// click clicks the first element that a selector names, which the stream may replace at any moment.
func (b *tab) click(selector string) {
	b.t.Helper()
	quoted, _ := json.Marshal(selector)
	b.wait(`(() => { const e = document.querySelector(` + string(quoted) + `); e?.click(); return e })()`)
}

// shows waits until the conversation shows a text.
func (b *tab) shows(text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.wait(`document.getElementById("items")?.innerText.includes(` + string(quoted) + `)`)
}

// login uses the setup link.
func (b *tab) login(h *house) {
	b.t.Helper()
	b.do(chromedp.Navigate(h.served.Setup), chromedp.Submit("form"), chromedp.WaitVisible("#text"))
}

// begin writes the first message of a chat, by keyboard.
func (b *tab) begin(text string) {
	b.t.Helper()
	b.do(chromedp.SendKeys("#text", text), chromedp.Click(".composer .primary"), chromedp.WaitVisible("#items"))
}

// thread returns the items of the conversation as the page has them.
func (b *tab) thread() (items []string) {
	b.t.Helper()
	text := b.eval(`JSON.stringify([...document.getElementById("items").children].map((e) => e.outerHTML.replace(' open=""', "")))`)
	fatal(b.t, json.Unmarshal([]byte(text), &items))
	return items
}

// screens takes pictures of a page where REGIE_SCREENS names a directory for them.
func (b *tab) screens(name string) {
	b.t.Helper()
	dir := os.Getenv("REGIE_SCREENS")
	if dir == "" {
		return
	}
	for _, theme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}, {320, 640}} {
			b.eval(`document.documentElement.dataset.theme = "` + theme + `"`)
			b.do(chromedp.EmulateViewport(size[0], size[1]), chromedp.Sleep(300*time.Millisecond))
			picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			fatal(b.t, err)
			fatal(b.t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%s-%d.png", name, theme, size[0])), picture, 0o600))
		}
	}
	b.eval(`delete document.documentElement.dataset.theme, ""`)
	b.do(chromedp.ResetViewport())
}

// TestBrowser goes from the setup link to an answered approval with scripts, in a second tab too.
func TestBrowser(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "fr"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, newModel(t,
				replyWith("I look at the rules first.", call{"p", "session__update_plan", `{"steps":[{"text":"Read the rules","status":"done"},{"text":"Move stripe to 6278","status":"active"},{"text":"Write the note","status":"pending"}]}`},
					call{"l", "files__list_files", `{}`}, call{"r", "files__read_file", `{"path":"rules/vat.yaml"}`}),
				replyWith("Stripe goes to 6278.", call{"a", "files__edit_file", `{"path":"rules/vat.yaml","edits":[{"old":"627 }","new":"6278 }"}]}`}),
				replyWith("## Done\n\nThe file **rules/vat.yaml** is there. Three lines are open:\n\n| Date | Supplier | Amount |\n|---|---|--:|\n| 04 Oct | Stripe | −312.18 |\n| 11 Oct | Tessier SARL | −1,284.00 |\n\n1. Look at `FT-2291`.\n2. Ask the bank."),
			)).servePagesWith(map[string]string{"rules/vat.yaml": "suppliers:\n  stripe: { account: 627 }\n  tessier: { account: 6061 }\n"})
			b := openTab(t, language)
			b.login(h)
			b.screens("new-" + language)
			b.begin("October bank reconciliation: move Stripe to account 6278.")
			b.do(chromedp.WaitVisible(".card.you .primary"))
			b.screens("approval-" + language)
			b.wait(`document.title.startsWith("(1)") && document.getElementById("say").textContent.length > 10`)
			second, end := chromedp.NewContext(b.ctx)
			defer end()
			other := &tab{t, second}
			other.do(chromedp.Navigate(h.served.URL+"/inbox"), chromedp.WaitVisible(".card.you .primary"))
			other.screens("inbox-" + language)
			b.click(".card.you .primary")
			b.shows("Tessier SARL")
			b.wait(`document.querySelector(".turn.end") && !document.querySelector(".card, #items [aria-busy]")`)
			other.wait(`!document.querySelector(".card") && document.querySelector("#empty h2")`)
			b.screens("answer-" + language)
			live := b.thread()
			b.do(chromedp.Reload(), chromedp.WaitVisible("#items"))
			if diff := cmp.Diff(live, b.thread()); diff != "" {
				t.Errorf("the page that followed (-) and the one that was loaded (+):\n%s", diff)
			}
			other.do(chromedp.Navigate(h.served.URL + "/runs"))
			other.screens("runs-" + language)
			other.click("table.list a")
			other.do(chromedp.WaitVisible(".timeline .step"))
			other.screens("run-" + language)
		})
	}
}

// servePagesWith serves the pages of a workspace with some files.
func (b *harness) servePagesWith(files map[string]string) *house {
	b.t.Helper()
	for name, text := range files {
		path := filepath.Join(b.root, name)
		fatal(b.t, os.MkdirAll(filepath.Dir(path), 0o755))
		fatal(b.t, os.WriteFile(path, []byte(text), 0o600))
	}
	return b.servePages("127.0.0.1:0")
}

// serving is what a process that serves pages is told.
type serving struct {
	Settings   config.Config
	Root, Addr string
}

// serveInChild serves the pages in a process of its own, which can be killed.
func (b *harness) serveInChild(addr string) (process *exec.Cmd, link string) {
	b.t.Helper()
	process = b.child(serving{b.settings, b.root, addr})
	out, err := process.StdoutPipe()
	fatal(b.t, err)
	fatal(b.t, process.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if link, ok := strings.CutPrefix(lines.Text(), "link "); ok {
			return process, link
		}
	}
	b.t.Fatal("the process serves nothing")
	return nil, ""
}

// TestBrowser_Killed kills the server in the middle of an answer: the page goes on by itself, and
// shows the same as one that is loaded afterwards, nothing missing, nothing twice.
func TestBrowser_Killed(t *testing.T) {
	var told serving
	if isChild(t, &told) {
		b := &harness{t: t, root: told.Root, settings: told.Settings}
		fmt.Println("link", b.servePages(told.Addr).served.Setup) //nolint:forbidigo // for the parent
		<-t.Context().Done()                                      // it is killed before
	}
	t.Parallel()
	half := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "The first paragraph is whole.\n\nThe second one is cut in the mid"})
		<-r.Context().Done()
	}
	whole := replyWith("The first paragraph is whole.\n\nThe second one is whole as well.\n\n- one\n- two")
	b := newHarness(t, newModel(t, once(half, whole), replyWith("A second answer.")))
	process, link := b.serveInChild("127.0.0.1:0")
	page := openTab(t, "en")
	page.do(chromedp.Navigate(link), chromedp.Submit("form"), chromedp.WaitVisible("#text"))
	page.begin("Say two paragraphs")
	page.shows("cut in the mid")
	fatal(t, process.Process.Kill())
	_ = process.Wait() // it was killed
	at, err := url.Parse(link)
	fatal(t, err)
	process, _ = b.serveInChild(at.Host)
	page.shows("whole as well")
	page.wait(`document.querySelector(".turn.end")`)
	page.do(chromedp.SendKeys("#text", "Again\r"))
	page.shows("A second answer.")
	page.wait(`document.querySelectorAll(".turn.end").length == 2 && !document.querySelector("#items [aria-busy]")`)
	live := page.thread()
	if n := len(slices.DeleteFunc(slices.Clone(live), func(item string) bool { return !strings.Contains(item, `class="turn person"`) })); n != 2 {
		t.Errorf("%d messages of the person", n)
	}
	page.do(chromedp.Reload(), chromedp.WaitVisible("#items"))
	if diff := cmp.Diff(live, page.thread()); diff != "" {
		t.Errorf("the page that followed (-) and the one that was loaded (+):\n%s", diff)
	}
	fatal(t, process.Process.Kill())
	_ = process.Wait() // it was killed
}

// TestBrowser_Exfiltration shows an answer that tries to reach another server.
func TestBrowser_Exfiltration(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	foreign := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(foreign.Close)
	evil := strings.ReplaceAll(`![a](EVIL/a.png) ![b][ref] <img src="EVIL/b.png"> <script src="EVIL/c.js"></script>
<style>@import "EVIL/d.css";</style> <iframe src="EVIL/e"></iframe> <link rel="stylesheet" href="EVIL/f.css">

<div style="background:url(EVIL/g.png)">x</div> [x](javascript:fetch('EVIL/h')) <svg onload="fetch('EVIL/i')"></svg>

| a |
|---|
| ![i](EVIL/j.png) |

[ref]: EVIL/k.png "t"

the end`, "EVIL", foreign.URL)
	h := newHarness(t, newModel(t, replyWith(evil))).servePages("127.0.0.1:0")
	b := openTab(t, "en")
	b.login(h)
	b.begin("Show me " + foreign.URL)
	b.shows("the end")
	b.wait(`document.querySelector(".turn.end")`)
	b.do(chromedp.Reload(), chromedp.WaitVisible(".turn.end"))
	if n := b.eval(`String(document.querySelectorAll("#items img, #items script, #items style, #items iframe, #items [onload], #items [style], #items a[href^='javascript']").length)`); n != "0" {
		t.Errorf("%s elements that could reach others", n)
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests reached the other server", n)
	}
}

// TestBrowser_Image pastes an image into the composer of a new chat and drops another into that of
// the chat: their names show, they are sent with the text, and the page shows them.
func TestBrowser_Image(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("A picture."), replyWith("Another.")))
	page := openTab(t, "en")
	page.login(b.servePages("127.0.0.1:0"))
	dispatch := func(name string, width int, event string) {
		t.Helper()
		page.wait(`(() => { const all = new DataTransfer(); all.items.add(new File([Uint8Array.from(atob("` +
			base64.StdEncoding.EncodeToString(drawPNG(width, 200)) + `"), (c) => c.charCodeAt(0))], "` + name + `", { type: "image/png" }));
			const options = { clipboardData: all, dataTransfer: all, bubbles: true, cancelable: true };
			return !document.getElementById("text").dispatchEvent(` + event + `) })()`) // again, until the page's module is there
	}
	attach := func(name string, width int, event string) {
		t.Helper()
		dispatch(name, width, event)
		page.wait(`document.querySelector(".chosen").textContent == "` + name + `"`)
	}
	shown := func(n, width int) {
		t.Helper()
		page.wait(fmt.Sprintf(`document.querySelectorAll(".picture img").length == %d && [...document.querySelectorAll(".picture img")].at(-1).naturalWidth == %d`, n, width))
	}
	attach("shot.png", 300, `new ClipboardEvent("paste", options)`)
	page.do(chromedp.SendKeys("#text", "What is this?\r"), chromedp.WaitVisible("#items"))
	page.shows("A picture.")
	shown(1, 300)
	if title := page.eval(`document.querySelector("h1").textContent`); title != "What is this?" {
		t.Errorf("the chat is called %q", title)
	}
	dispatch("other.png", 100, `new DragEvent("dragover", options)`)
	attach("other.png", 100, `new DragEvent("drop", options)`)
	page.do(chromedp.SendKeys("#text", "And this?\r"))
	page.shows("Another.")
	shown(2, 100)
	page.wait(`document.querySelector(".chosen").textContent == "" && !document.querySelector(".sending")`)
	page.screens("image-en")
}

// TestBrowser_SevenTabs opens more tabs than HTTP/1.1 has connections: all show an answer while it
// is written, each that of its chat, and a further request works.
func TestBrowser_SevenTabs(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	whole := replyWith(" and the rest.")
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(sent(r), "Begin two") {
			replyWith("The first chat.")(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk(w, map[string]any{"content": "Half of the answer"})
		<-goOn
		whole(w, r)
	}, replyWith("The end."))
	h := newHarness(t, m).servePages("127.0.0.1:0")
	first := openTab(t, "en")
	first.login(h)
	first.begin("Begin one")
	first.shows("The first chat.")
	other := first.eval("location.pathname")
	first.do(chromedp.Navigate(h.served.URL + "/"))
	first.begin("Begin two")
	first.shows("Half of the answer")
	tabs := []*tab{first}
	for n := range 6 {
		ctx, end := chromedp.NewContext(first.ctx)
		t.Cleanup(end)
		one := &tab{t, ctx}
		address := first.eval("location.href")
		if n == 5 {
			address = h.served.URL + other
		}
		one.do(chromedp.Navigate(address), chromedp.WaitVisible("#items"))
		tabs = append(tabs, one)
	}
	for _, one := range tabs[:6] {
		one.shows("Half of the answer")
	}
	close(goOn)
	for _, one := range tabs[:6] {
		one.shows("and the rest.")
		one.wait(`document.querySelector(".turn.end")`)
	}
	if text := tabs[6].eval(`document.getElementById("items").innerText`); strings.Contains(text, "Half") {
		t.Errorf("the other chat shows %s", text)
	}
	tabs[6].do(chromedp.SendKeys("#text", "And on\r"))
	tabs[6].shows("The end.")
	tabs[3].do(chromedp.Navigate(h.served.URL+"/runs"), chromedp.WaitVisible("table.list"))
}
