package dialect

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestFrench reads the sources of this package: each phrase that a model is told of a reply's form
// has a French one.
func TestFrench(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	check := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			said, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			said = strings.NewReplacer("%s", "x", "%q", "x").Replace(said)
			// numbers are made with the constants of the package
			if strings.Contains(said, "%d") || said == "" || said == ", " || strings.HasPrefix(byteOf.String(), said) || said == " of the object" {
				return true
			}
			seen++
			if _, known := frenchPhrases[said]; !known && inFrench(said) == said && inFrench(said+"x") == said+"x" {
				t.Errorf("%q has no French", said)
			}
			return true
		})
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "add" && len(n.Args) == 4 {
					for _, arg := range n.Args[1:] {
						if call, ok := arg.(*ast.CallExpr); ok { // describe, quoted, meant: what a model wrote
							if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "Sprintf" {
								continue
							}
						}
						check(arg)
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Expected" || key.Name == "Found" || key.Name == "Hint") {
					check(n.Value)
				}
			case *ast.AssignStmt:
				if sel, ok := n.Lhs[0].(*ast.SelectorExpr); ok && (sel.Sel.Name == "Expected" || sel.Sel.Name == "Found" || sel.Sel.Name == "Hint") {
					for _, value := range n.Rhs {
						check(value)
					}
				}
			}
			return true
		})
	}
	if seen < 60 {
		t.Errorf("only %d phrases were found: the test no longer knows how they are said", seen)
	}
}
