package web

import (
	"go/ast"
	"go/parser"
	"go/token"
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
		for _, state := range constants(t, "RoundState") {
			check(state, roundChip(text, &regie.Round{State: regie.RoundState(state), End: regie.EndAnswered}))
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
