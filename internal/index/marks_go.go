package index

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

const maxNames = 6 // of a group of constants that stand for it

// goMarks finds the declarations of a Go file, each with the comment over it. In the middle of an
// edit the parser returns the declarations that it can read.
func goMarks(src *source) []mark {
	set := token.NewFileSet()
	file, _ := parser.ParseFile(set, "", src.text, parser.ParseComments|parser.SkipObjectResolution|parser.AllErrors)
	if file == nil {
		return nil
	}
	var out []mark
	add := func(at token.Pos, doc *ast.CommentGroup, symbol string) {
		if doc != nil {
			at = doc.Pos()
		}
		if at.IsValid() {
			out = append(out, mark{line: set.PositionFor(at, false).Line - 1, symbol: clipText(symbol, maxSymbol)})
		}
	}
	add(file.Package, file.Doc, "package "+file.Name.Name)
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			add(d.Pos(), d.Doc, receiverName(d)+d.Name.Name)
		case *ast.GenDecl:
			add(d.Pos(), d.Doc, strings.Join(declaredNames(d), ", "))
		}
	}
	return out
}

// receiverName returns the name of a method's type with a dot; a function has none.
func receiverName(d *ast.FuncDecl) (name string) {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name + "."
		}
		return name == ""
	})
	return name
}

// declaredNames returns the first name of each line of a group.
func declaredNames(d *ast.GenDecl) (out []string) {
	for _, spec := range d.Specs[:min(len(d.Specs), maxNames)] {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			out = append(out, s.Name.Name)
		case *ast.ValueSpec:
			out = append(out, s.Names[0].Name)
		}
	}
	return out
}
