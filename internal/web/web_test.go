package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// constants returns the values of a type's constants in the root package.
func constants(t *testing.T, of string) (values []string) {
	t.Helper()
	for _, file := range []string{"session.go", "round.go", "call.go"} {
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
