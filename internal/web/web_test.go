package web

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html/template"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yuin/goldmark"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// constants returns the values of a type's constants in the root package.
func constants(t *testing.T, of string) (values []string) {
	t.Helper()
	for _, file := range []string{"session.go", "round.go", "call.go", "automation.go"} {
		syntax, err := parser.ParseFile(token.NewFileSet(), "../../"+file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == of {
				literal, _ := spec.Values[0].(*ast.BasicLit)
				value, _ := strconv.Unquote(literal.Value)
				values = append(values, value)
			}
			return true
		})
	}
	if len(values) < 3 {
		t.Fatalf("constants of %s: %v", of, values)
	}
	return values
}

// TestChips: every state of the root package has its word and icon, in two languages.
func TestChips(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"en", "fr"} {
		text := i18n.New(language)
		check := func(state string, c chip) {
			if c.Word == "" || c.Icon == "" || strings.Contains(c.Word, state) {
				t.Errorf("%s: %s is shown as %+v", language, state, c)
			}
		}
		for _, state := range constants(t, "SessionState") {
			check(state, sessionChip(text, &store.SessionSummary{Session: regie.Session{State: regie.SessionState(state)}}))
		}
		for _, end := range constants(t, "RoundEnd") {
			check(end, endChip(text, regie.RoundEnd(end)))
		}
		for _, state := range constants(t, "CallState") {
			check(state, callChip(text, &regie.Call{State: regie.CallState(state), NotRun: regie.NotRunDenied}))
		}
		for _, code := range constants(t, "NotRunCode") {
			check(code, notRunChip(text, regie.NotRunCode(code)))
		}
		fires := []store.FireView{{Fire: regie.Fire{Outcome: regie.FireRan}, State: regie.SessionWaitingValidation}}
		for _, outcome := range constants(t, "FireOutcome") {
			fires = append(fires, store.FireView{Fire: regie.Fire{Outcome: regie.FireOutcome(outcome)}})
		}
		for _, end := range constants(t, "SessionEnd") {
			fires = append(fires, store.FireView{Fire: regie.Fire{Outcome: regie.FireRan}, State: regie.SessionClosed, EndReason: regie.SessionEnd(end)})
		}
		seen := map[template.HTML]bool{}
		for i := range fires {
			shown, err := (&visit{text: text}).fragment("fire-chip", &fires[i])
			if err != nil || !strings.Contains(string(shown), `class="chip`) || seen[shown] {
				t.Errorf("%s: %+v is shown as %q (%v)", language, fires[i], shown, err)
			}
			seen[shown] = true
		}
	}
}

// TestRenderBlocks: finished blocks stay what they were while text is added, and nothing in them
// acts or loads.
func TestRenderBlocks(t *testing.T) {
	t.Parallel()
	text := "# Head\n\ntext **bold**\n\n1. one\n\n   more\n2. two\n\n```go\nx := \"<b>\"\n\ny()\n```\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n" +
		"![pic](http://evil.example/a.png) <script>alert(1)</script> <img src=x onerror=alert(1)> [l](javascript:alert(1)) [m](/relative) https://good.example\n\nend"
	whole := renderBlocks(text, 0)
	if len(whole) != 7 {
		t.Fatalf("%d blocks: %q", len(whole), whole)
	}
	for at := range len(text) {
		part := renderBlocks(text[:at], 0)
		for i := range max(0, len(part)-1) {
			if part[i] != whole[i] {
				t.Fatalf("after %d bytes block %d is %q, at the end %q", at, i, part[i], whole[i])
			}
		}
	}
	if tail := renderBlocks(text, 5); len(tail) != 2 || tail[0] != whole[5] {
		t.Errorf("from block 5 on: %q", tail)
	}
	page := ""
	for _, block := range whole {
		page += string(block)
	}
	for _, bad := range []string{"<img", "<script", "onerror", "javascript:", `href="/relative`, "style="} {
		if strings.Contains(page, bad) {
			t.Errorf("%s in %s", bad, page)
		}
	}
	for _, good := range []string{
		`<h3>Head</h3>`, `<td align="right">2</td>`, `href="http://evil.example/a.png"`, `>pic</a>`,
		`noreferrer`, `<div class="scroll" tabindex="0"><table>`, `<pre tabindex="0"><code class="language-go">`, `href="https://good.example"`,
	} {
		if !strings.Contains(page, good) {
			t.Errorf("no %s in %s", good, page)
		}
	}
}

// listsWithFences made goldmark v1.8.0 panic.
var listsWithFences = []string{"+\n  \t`", "- Run:\n  \t`", "> \t`", "*\n\t* \t~", "*\n\t ~~~\n\t0", ">  ```\n>\t0"}

// TestRenderBlocks_Heavy: what a model writes neither ends the process nor keeps it busy.
func TestRenderBlocks_Heavy(t *testing.T) {
	t.Parallel()
	for _, text := range listsWithFences {
		if page := fmt.Sprint(renderBlocks(text, 0)); !strings.Contains(page, "<li>") && !strings.Contains(page, "<blockquote>") {
			t.Errorf("%q is shown as %s", text, page)
		}
	}
	marks, table := strings.Repeat("*a_ ", 20000), "|"+strings.Repeat("a|", 5000)+"\n|"+strings.Repeat("-|", 5000)+"\n"+strings.Repeat("a\n", 5000)
	for text, want := range map[string]string{
		marks: "*a_ *a_", "# " + marks: "# *a_", "- " + marks: "<li>\n<pre", marks + "\n===": "<p>===", table: "|a|a|a",
		strings.Repeat("[a](", 20000): "[a]([a](", strings.Repeat("[a]: b\n", 36000): "[a]: b\n[a]", strings.Repeat("> ", 100000): "&gt; &gt;",
		strings.Repeat("1. ", 80000): "1. 1.", strings.Repeat("**a** ", 1<<16): "**a** **a**",
	} {
		began := time.Now()
		page := fmt.Sprint(renderBlocks(text, 0))
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%.20q takes %v", text, took)
		}
		if !strings.Contains(page, want) {
			t.Errorf("%.20q is shown as %.100s", text, page)
		}
	}
	for text, want := range map[string]string{
		strings.Repeat("**a** ", 1000): "<strong>a</strong> <strong>", strings.Repeat("-", 200): "<hr",
		"|a|\n|-|\n" + strings.Repeat("|b|\n", 5000): "<td>b</td>", "```\n" + marks + "\n```": "<code>*a_",
	} {
		if page := fmt.Sprint(renderBlocks(text, 0)); !strings.Contains(page, want) {
			t.Errorf("%.20q is shown as %.100s", text, page)
		}
	}
}

// TestRenderBlocks_Panics shows a text as it is where goldmark panics. It is not parallel: it
// changes what others use.
func TestRenderBlocks_Panics(t *testing.T) { //nolint:paralleltest // as above
	before := markdown
	defer func() { markdown = before }()
	markdown = func() goldmark.Markdown { panic("index out of range") }
	if page := fmt.Sprint(renderBlocks("a <b>\n", 0)); page != `[<p class="lines">a &lt;b&gt;`+"\n</p>]" {
		t.Errorf("it is shown as %s", page)
	}
	if rest := renderBlocks("a\n\nb", 1); len(rest) != 0 { // it would show twice what shows already
		t.Errorf("behind the first block: %s", rest)
	}
}

// TestStreamPages_Panics: a page that panics ends its own stream, and says so in the log once.
func TestStreamPages_Panics(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	s.mux.HandleFunc("GET /bad/stream", func(http.ResponseWriter, *http.Request) { panic("a fault") })
	s.mux.HandleFunc("GET /good/stream", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("event: sync\ndata: {}\n\n"))
	})
	w := httptest.NewRecorder()
	err := s.streamPages(&visit{site: s, w: w, r: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/stream?page=/bad/stream&page=/good/stream", nil)})
	if err != nil || !strings.Contains(w.Body.String(), "event: 1 sync") {
		t.Errorf("%v: %s", err, w.Body)
	}
	if said := log.String(); strings.Count(said, "level=ERROR") != 1 || !strings.Contains(said, "a fault") || !strings.Contains(said, "/bad/stream") {
		t.Errorf("the log says %q", said)
	}
}

// FuzzRenderBlocks: nothing of a text acts or loads, and none of it takes long.
func FuzzRenderBlocks(f *testing.F) {
	for _, text := range append(listsWithFences, "*a_ *b_ [c](", "|a|\n|-|\nb", "<script>x</script>", "# a\n\n> - b") {
		f.Add(text, 0)
	}
	acts := regexp.MustCompile(`(?i)<(script|img|style|iframe|svg|form|link|base)|<[^>]* (on\w+|style|src)=|href="[^hm]`)
	f.Fuzz(func(t *testing.T, text string, from int) {
		began := time.Now()
		if page := fmt.Sprint(renderBlocks(text, max(0, from))); acts.MatchString(page) {
			t.Errorf("%q becomes %s", text, page)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%d bytes take %v", len(text), took)
		}
	})
}

// TestReviewPart shows what a call would do: a diff of a file, and the text of a command as it is.
func TestReviewPart(t *testing.T) {
	t.Parallel()
	v := &visit{text: i18n.New("en")}
	command := v.reviewPart(&regie.Review{Arguments: []byte(`{"command":"make"}`), Preview: regie.Preview{Diff: "$ make \x1b[1m\n+ all\n"}})
	if command.Diff != nil || command.Arguments != "$ make \n+ all" {
		t.Errorf("a command is shown as %+v", command)
	}
	file := v.reviewPart(&regie.Review{Arguments: []byte(`{"path":"a"}`), Preview: regie.Preview{Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"}})
	if len(file.Diff) != 2 || file.Path != "a" {
		t.Errorf("a file is shown as %+v", file)
	}
}

// TestCutThread: a page shows the newest messages, and older ones where its address names one.
func TestCutThread(t *testing.T) {
	t.Parallel()
	thread := make([]store.MessageView, 500)
	for i := range thread {
		thread[i].Seq = int64(10 * i)
	}
	for from, want := range map[int64]int{0: 200, 45: 5, 1990: 199, 2000: 200, 4000: 200, 9999: -1} {
		if got := cutThread(thread, from); got != want {
			t.Errorf("from %d on the page begins at %d, want %d", from, got, want)
		}
	}
	if got := cutThread(thread[:300], 100); got != 0 {
		t.Errorf("a short thread begins at %d", got)
	}
}

// TestParseDiff numbers the lines of a diff.
func TestParseDiff(t *testing.T) {
	t.Parallel()
	lines, added, removed := parseDiff("--- a\n+++ b\n@@ -11,2 +11,3 @@\n same\n-a: 627\n+a: é\n+newer\n@@ -40 +41 @@\n-x\n")
	want := []diffLine{
		{"", "11", "11", "", "same", 0, 0},
		{"del", "12", "", "−", "a: 627", 3, 6},
		{"add", "", "12", "+", "a: é", 3, 5},
		{"add", "", "13", "+", "newer", 0, 0},
		{"hunk", "", "", "", "…", 0, 0},
		{"del", "40", "", "−", "x", 0, 0},
	}
	if added != 2 || removed != 2 || len(lines) != len(want) {
		t.Fatalf("%d added, %d removed: %v", added, removed, lines)
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d is %v, want %v", i, lines[i], want[i])
		}
	}
}

// TestWaitForModel: the status line says that the model is asked again, or sends nothing.
func TestWaitForModel(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 9, 0, 0, 0, time.Local)
	for want, item := range map[string]dispatch.Item{
		"Asks the model again at 09:00:12 RATE_LIMITED": {Event: &regie.Event{
			Type: regie.EventStreamReset, Time: at, Body: []byte(`{"code":"RATE_LIMITED","wait_ms":12000}`),
		}},
		"Working The model has sent nothing for 30 s.": {Delta: &dispatch.Delta{Silent: 30}},
		" ": {Event: &regie.Event{Type: regie.EventMessage}},
	} {
		if got := waitForModel(i18n.New("en"), &item); got.Word+" "+got.More != want {
			t.Errorf("%q, want %q", got.Word+" "+got.More, want)
		}
	}
}

// TestMarkParts marks each place of a line, ignoring case.
func TestMarkParts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, wanted, want string }{
		"twice":          {"Stripe and stripe", "STRIPE", "[Stripe] and [stripe]"},
		"nowhere":        {"abc", "x", "abc"},
		"nothing wanted": {"abc", "", "abc"},
		"side by side":   {"aaa", "a", "[a][a][a]"},
		"longer letters": {"\u0130stanbul", "stan", "\u0130stanbul"}, // its small letter has more bytes: nothing is cut
	} {
		got := ""
		for _, part := range markParts(c.text, c.wanted) {
			if part.Hit {
				part.Text = "[" + part.Text + "]"
			}
			got += part.Text
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTimescale folds gaps, and puts times in their places.
func TestTimescale(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	s := newTimescale([]span{{at(110), at(140)}, {at(0), at(6)}, {at(4), at(10)}, {at(11), at(20)}})
	if s.worked != 50*time.Second || len(s.busy) != 2 {
		t.Fatalf("%s of work in %v", s.worked, s.busy)
	}
	for name, c := range map[string]struct{ got, want float64 }{
		"the begin": {s.at(at(0), false), 0}, "in work": {s.at(at(10), false), 10 * 1.78},
		"a wait begins": {s.at(at(30), false), 20 * 1.78}, "a wait ends": {s.at(at(100), true), 20*1.78 + 9},
		"behind it": {s.at(at(120), false), 30*1.78 + 9}, "the end": {s.at(at(140), true), 98}, "later": {s.at(at(999), true), 98},
	} {
		if math.Abs(c.got-c.want) > 0.001 {
			t.Errorf("%s is at %f, want %f", name, c.got, c.want)
		}
	}
	ticks := s.ticks(&visit{text: i18n.New("en")})
	if len(ticks) != 6 || ticks[1].Label != "10.0 s" || ticks[1].X != "17.80" || ticks[3].X != percent(30*1.78+9) {
		t.Errorf("the scale is %v", ticks)
	}
	if empty := newTimescale(nil); empty.at(start, true) != 0 || len(empty.ticks(&visit{text: i18n.New("en")})) != 1 {
		t.Error("nothing has happened, and it is somewhere")
	}
}

// TestLaterChoices is until when items are set aside.
func TestLaterChoices(t *testing.T) {
	t.Parallel()
	day := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.Local) } //nolint:gosmopolitan // as its reader has it
	for name, c := range map[string]struct {
		choice    int
		now, want time.Time
	}{
		"an hour": {0, day(24, 9), day(24, 10)}, "the afternoon": {1, day(24, 9), day(24, 14)},
		"the next afternoon": {1, day(24, 15), day(25, 14)}, "tomorrow": {2, day(24, 23), day(25, 9)},
		"on a Tuesday": {3, day(24, 9), day(30, 9)}, "on a Monday": {3, day(23, 8), day(30, 9)},
		"on a Sunday": {3, day(29, 8), day(30, 9)},
	} {
		if got := laterChoices(i18n.New("en"), c.now)[c.choice].At; !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
