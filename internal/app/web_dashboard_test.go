package app_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestDashboard counts a run that ended, on a page that follows.
func TestDashboard(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "fr"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, newModel(t,
				replyWith("", call{"l", "files__list_files", `{}`}, call{"m", "files__list_files", `{}`}), replyWith("One."), replyWith("Two."),
			)).servePagesWith(map[string]string{"a.txt": "a"})
			b := openTab(t, language)
			b.login(h)
			b.do(chromedp.Navigate(h.served.URL+"/dashboard"), chromedp.WaitVisible(`#dashboard a[href="/dashboard?days=30"]`))
			other, end := chromedp.NewContext(b.ctx)
			defer end()
			chat := &tab{t, other}
			chat.do(chromedp.Navigate(h.served.URL+"/"), chromedp.WaitVisible("#text"))
			chat.begin("List the files twice")
			chat.shows("One.")
			b.wait(`document.querySelector(".figures .value")?.textContent == "1"`)
			b.click("#t-runs summary")
			chat.do(chromedp.SendKeys("#text", "Again\r"))
			chat.shows("Two.")
			b.wait(`document.querySelector(".figures .value")?.textContent == "2" && document.querySelector("#t-runs").open`)
			if tools := b.eval(`document.querySelector(".tools-table tbody").innerText`); !strings.HasPrefix(tools, "files.list_files\t1\t") {
				t.Errorf("the tools are %q", tools)
			}
			if caught := b.eval(`[...document.querySelectorAll(".figures .value")].at(-1).textContent`); caught != "1" {
				t.Errorf("%s duplicates were caught", caught)
			}
			b.screens("dashboard-" + language)
		})
	}
}

// TestDashboard_Forms chooses a period without scripts.
func TestDashboard_Forms(t *testing.T) {
	t.Parallel()
	p := newHarness(t, newModel(t, replyWith("One."))).servePages("127.0.0.1:0").login()
	p.ends(p.begin("Go"))
	for path, want := range map[string]string{
		"/dashboard":        `<dd class="value">1</dd>`,
		"/dashboard?days=1": "Runs an hour",
		"/dashboard?from=2020-01-01&to=2020-01-09": "No runs in this period",
	} {
		if status, page := p.get(path); status != 200 || !strings.Contains(page, want) || strings.Contains(page, "style=") {
			t.Errorf("%s: %d without %q:\n%s", path, status, want, page)
		}
	}
	if status, page := p.get("/dashboard?from=x"); status != 400 || !strings.Contains(page, `role="alert"`) {
		t.Errorf("a period that is none: %d", status)
	}
}
