package app_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
)

// readAxe returns the source of axe-core; without the packages of npm the test is skipped.
func readAxe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile("testdata/npm/node_modules/axe-core/axe.min.js")
	if err != nil && os.Getenv("REGIE_CI") != "" {
		t.Fatalf("axe-core is required: make npm (%v)", err)
	} else if err != nil {
		t.Skip("no axe-core here: make npm")
	}
	return string(source)
}

// violations returns what axe-core has against the page as it is shown, for WCAG 2.2 AA.
func (b *tab) violations() (found []string) {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] })
		.then((r) => JSON.stringify(r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target + " " + n.failureSummary))))`, chromedp.EvalAwaitPromise))
	fatal(b.t, err)
	fatal(b.t, json.Unmarshal([]byte(text), &found))
	return found
}

// TestBrowser_Accessible has axe-core look at each page: once here; in each theme, language and
// width for make proof.
func TestBrowser_Accessible(t *testing.T) {
	t.Parallel()
	axe := readAxe(t)
	languages, themes, widths := []string{"en"}, []string{"light"}, []int64{1280}
	if os.Getenv("REGIE_PROOF") != "" {
		languages, themes, widths = []string{"en", "fr"}, []string{"light", "dark"}, []int64{320, 1280}
	}
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, newModel(t,
				replyWith("## Done\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n```go\nfunc main() {}\n```\n\n- [one](https://example.com)", call{"l", "files__list_files", `{}`}),
				replyWith("I write it.", call{"a", "files__write_file", `{"path":"a.txt","content":"a\nb\n"}`}),
			)).servePagesWith(map[string]string{"rules/vat.yaml": "stripe: 627\n"})
			b := openTab(t, language)
			look := func(page string) {
				t.Helper()
				b.eval(axe + `; ""`)
				for _, theme := range themes {
					for _, width := range widths {
						b.eval(`document.documentElement.dataset.theme = "` + theme + `"`)
						b.do(chromedp.EmulateViewport(width, 900))
						for _, found := range b.violations() {
							t.Errorf("%s, %s, %d: %s", page, theme, width, found)
						}
					}
				}
				b.do(chromedp.ResetViewport())
			}
			visit := func(path string) {
				t.Helper()
				b.do(chromedp.Navigate(h.served.URL + path))
				look(path)
			}
			b.do(chromedp.Navigate(h.served.Setup), chromedp.WaitVisible("button"))
			look("setup")
			b.login(h)
			look("new chat")
			b.begin("Look at the rules, then write a file")
			b.do(chromedp.WaitVisible(".card.you .primary"))
			look("chat")
			chat := b.eval("location.pathname")
			edit := b.eval(`document.querySelector(".card a[href*='/edit']").getAttribute("href")`)
			h.distrusted()
			trust := "/settings/workspaces/" + h.placeAt(h.root).ID.String()
			for _, path := range []string{
				edit, chat + "/undo", "/inbox", "/inbox?kind=aside", "/automations", "/runs", "/dashboard", "/search?q=rules", "/more", "/settings/limits",
				"/settings/rules", "/settings/tokens", "/settings/providers", "/settings/agents", "/settings/workspaces", trust, "/settings/checks", "/chats/nothing",
			} {
				visit(path)
			}
			made, err := h.engine.Service().Automations.Create(access.AsOwner(t.Context()), dispatch.NewAutomation{Root: h.root, Text: "Count", When: "daily 09:00"})
			fatal(t, err)
			for _, path := range []string{"/automations", "/automations/new", "/automations/" + made.ID.String(), "/automations/" + made.ID.String() + "/edit"} {
				visit(path)
			}
			b.do(chromedp.SendKeys("#when", "x\r"))
			b.wait(`document.querySelector(".problem")`)
			look("a refused automation")
			b.do(chromedp.Navigate(h.served.URL+"/automations"), chromedp.WaitReady("#items"))
			b.click(".does summary") // the stream may draw the row anew
			b.wait(`document.querySelector("[value=disable]")?.checkVisibility()`)
			look("the menu of an automation")
			visit("/runs")
			visit(b.eval(`document.querySelector("table.list a").getAttribute("href")`))
			visit(b.eval(`document.querySelector("a[href*='/calls/']").getAttribute("href")`))
			b.do(chromedp.Navigate(h.served.URL + "/login"))
			look("login")
		})
	}
}
