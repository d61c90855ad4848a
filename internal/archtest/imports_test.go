package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"sort"
	"strings"
	"testing"
)

// edge is an import; both ends are relative to the module.
type edge struct{ from, to string }

// TestImportGraph holds the imports of the module to the arrows of docs/design.md.
func TestImportGraph(t *testing.T) {
	src := load(t)
	for _, problem := range imports(src, debts) {
		t.Error(problem)
	}
	for _, problem := range purity(src) {
		t.Error(problem)
	}
}

// TestImportGraphCanFail shows the rules what they must catch.
func TestImportGraphCanFail(t *testing.T) {
	for _, bad := range []struct {
		name, file, text, want string
	}{
		{"engine → dispatch", "internal/engine/x.go", `package engine; import _ "` + module + `/internal/dispatch"`, "internal/engine may not import internal/dispatch"},
		{"engine → a database", "internal/engine/x.go", `package engine; import _ "` + module + `/internal/store/sqlite"`, "internal/engine may not import internal/store/sqlite"},
		{"under another build tag", "internal/tool/x_windows.go", "//go:build faults\n\npackage tool\n\nimport _ \"" + module + `/internal/engine"`, "internal/tool may not import internal/engine"},
		{"toolkit → toolkit", "internal/toolkit/shell/x.go", `package shell; import _ "` + module + `/internal/toolkit/files"`, "internal/toolkit/shell may not import internal/toolkit/files"},
		{"vendor → vendor", "internal/provider/openai/x.go", `package openai; import _ "` + module + `/internal/provider/demo"`, "internal/provider/openai may not import internal/provider/demo"},
		{"something → app", "internal/httpapi/x.go", `package httpapi; import _ "` + module + `/internal/app"`, "internal/httpapi may not import internal/app"},
		{"app → the command", "internal/app/x.go", `package app; import _ "` + module + `/internal/crash"`, "nothing may import internal/crash"},
		{"no place", "internal/misc/x.go", `package misc`, "internal/misc has no arrow"},
		{"root → library", "x.go", `package regie; import _ "golang.org/x/text/language"`, "the root may import only the standard library"},
		{"pure → file", "internal/prompt/x.go", `package prompt; import _ "os"`, "internal/prompt is pure and may not import os"},
		{"pure → network", "internal/approval/x.go", `package approval; import _ "net/http"`, "internal/approval is pure and may not import net/http"},
		{"pure → clock", "internal/prompt/x.go", "package prompt\n\nimport clock \"time\"\n\nvar now = clock.Now", "may not call time.Now"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			src := parse(t, map[string]string{bad.file: bad.text})
			problems := append(imports(src, nil), purity(src)...)
			if !strings.Contains(strings.Join(problems, "\n"), bad.want) {
				t.Errorf("not caught: want %q among %q", bad.want, problems)
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		var text strings.Builder
		text.WriteString("package engine\n")
		for i := range maxInternal["internal/engine"] + 1 {
			fmt.Fprintf(&text, "import _ %q\n", fmt.Sprintf("%s/internal/p%d", module, i))
		}
		src := parse(t, map[string]string{"internal/engine/x.go": text.String()})
		if problems := imports(src, nil); !strings.Contains(strings.Join(problems, "\n"), "imports 9 packages of this module, at most 8") {
			t.Errorf("not caught: %q", problems)
		}
	})
	t.Run("debt that is paid", func(t *testing.T) {
		src := parse(t, map[string]string{"internal/tool/x.go": "package tool"})
		if problems := imports(src, map[edge]string{{"internal/tool", "internal/engine"}: "why"}); len(problems) != 1 {
			t.Errorf("not caught: %q", problems)
		}
	})
	t.Run("allowed", func(t *testing.T) {
		src := parse(t, map[string]string{
			"internal/engine/x.go": `package engine; import (_ "` + module + `"; _ "` + module + `/internal/store"; _ "sync")`,
			"internal/prompt/x.go": `package prompt; import "time"; var d time.Duration`,
		})
		if problems := append(imports(src, nil), purity(src)...); len(problems) != 0 {
			t.Errorf("allowed, but reported: %q", problems)
		}
	})
}

// imports lists what breaks the arrows.
func imports(src *source, debts map[edge]string) []string {
	graph, problems := map[string]map[string]bool{}, []string{}
	for _, f := range src.code() {
		if graph[f.pkg] == nil {
			graph[f.pkg] = map[string]bool{}
		}
		for _, imported := range f.imports {
			to, own := internal(imported)
			switch {
			case own:
				graph[f.pkg][to] = true
			case f.pkg == "." && strings.Contains(strings.Split(imported, "/")[0], "."):
				problems = append(problems, fmt.Sprintf("%s: the root may import only the standard library, not %s", f.path, imported))
			}
		}
	}
	unpaid := maps.Clone(debts)
	for from, tos := range graph {
		rule := arrowOf(from)
		if rule == nil {
			problems = append(problems, from+" has no arrow in arrows_test.go: decide what it may import")
			continue
		}
		others := 0
		for to := range tos {
			if to != "." {
				others++
			}
			switch _, owed := debts[edge{from, to}]; {
			case slices.Contains(nothingImports, to):
				problems = append(problems, fmt.Sprintf("nothing may import %s, and %s does", to, from))
			case owed:
				delete(unpaid, edge{from, to})
			case !slices.ContainsFunc(rule.to, func(pattern string) bool { return matches(pattern, to) }):
				problems = append(problems, fmt.Sprintf("%s may not import %s (%s)", from, to, rule.why))
			}
		}
		if bound := maxInternal[from]; bound > 0 && others > bound {
			problems = append(problems, fmt.Sprintf("%s imports %d packages of this module, at most %d are allowed", from, others, bound))
		}
	}
	for paid := range unpaid {
		problems = append(problems, fmt.Sprintf("%s does not import %s any more: take it off the list of debts", paid.from, paid.to))
	}
	sort.Strings(problems)
	return problems
}

// internal returns the place of an import in this module.
func internal(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

func arrowOf(pkg string) *arrow {
	for i := range arrows {
		if matches(arrows[i].from, pkg) {
			return &arrows[i]
		}
	}
	return nil
}

// matches reports whether a package is what a name of the table means.
func matches(pattern, pkg string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == below || strings.HasPrefix(pkg, below+"/")
	}
	return pattern == pkg
}

// purity lists what makes a pure package depend on more than its arguments.
func purity(src *source) []string {
	var problems []string
	for _, f := range src.code() {
		if !slices.Contains(pure, f.pkg) {
			continue
		}
		for _, imported := range f.imports {
			if slices.ContainsFunc(impure, func(bad string) bool { return matches(bad+"/...", imported) }) {
				problems = append(problems, fmt.Sprintf("%s: %s is pure and may not import %s", f.path, f.pkg, imported))
			}
		}
		name := localName(f, "time")
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := selector.X.(*ast.Ident); ok && name != "" && x.Name == name && slices.Contains(clock, selector.Sel.Name) {
				problems = append(problems, fmt.Sprintf("%s: %s is pure and may not call time.%s", src.set.Position(selector.Pos()), f.pkg, selector.Sel.Name))
			}
			return true
		})
	}
	return problems
}

// localName is the name under which a file knows an imported package, "" if it does not import it.
func localName(f *file, imported string) string {
	for i, spec := range f.syntax.Imports {
		switch {
		case f.imports[i] != imported:
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return imported
		}
	}
	return ""
}
