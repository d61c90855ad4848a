package i18n

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "github.com/regie-run/regie"
	root   = "../.."
)

// englishOnly are packages whose errors only models read, which are English (spec 6.1), or only
// those who work on Regie itself. Their sentences may be translated; nobody asks for it.
var englishOnly = []string{"internal/tool/", "internal/toolkit/", "internal/bench/", "internal/crash/"}

// sentence is a string of the code that people read.
type sentence struct {
	text    string
	at      string // file:line
	args    int    // how many arguments it is given, -1 where they come as a slice
	english bool   // in a package that is English only
	said    bool   // by regie.Say: its arguments are kept as text
}

// collector gathers the sentences of a module, and the places where it cannot tell what the
// sentence is.
type collector struct {
	set   *token.FileSet
	files []parsed
	// passers are functions that hand a parameter on as a sentence, such as broken(format,
	// args...), by "directory.name": their callers say the sentence. The value is which parameter.
	passers   map[string]spoken
	sentences []sentence
	problems  []string
}

// spoken is which argument of a call is a sentence, and whether it is one of regie.Say.
type spoken struct {
	at   int
	said bool
}

// parsed is one file.
type parsed struct {
	dir, name string // relative to the module
	syntax    *ast.File
	local     string // how it calls the package with Errorf
	english   bool
}

func newCollector() *collector {
	return &collector{set: token.NewFileSet(), passers: map[string]spoken{}}
}

// collect reads the code of the whole module, except tests.
func collect(t *testing.T) *collector {
	t.Helper()
	c := newCollector()
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && rel != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || rel == "tools"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".html"):
			return c.addTemplate(name, filepath.ToSlash(rel))
		case entry.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return c.add(filepath.ToSlash(rel), string(text))
	})
	if err != nil {
		t.Fatal(err)
	}
	c.gather()
	return c
}

// spokenInTemplate is a sentence in a template of the web pages: {{t "Stop"}}.
var spokenInTemplate = regexp.MustCompile(`\bt ("(?:[^"\\]|\\.)*")`)

// addTemplate gathers the sentences of a template.
func (c *collector) addTemplate(name, rel string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for n, line := range strings.Split(string(text), "\n") {
		for _, found := range spokenInTemplate.FindAllStringSubmatch(line, -1) {
			said, err := strconv.Unquote(found[1])
			if err != nil {
				return err
			}
			c.sentences = append(c.sentences, sentence{text: said, at: fmt.Sprintf("%s:%d", rel, n+1), args: -1})
		}
	}
	return nil
}

// add parses one file; name is relative to the module.
func (c *collector) add(name, text string) error {
	syntax, err := parser.ParseFile(c.set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := parsed{dir: path.Dir(name), name: name, syntax: syntax, local: rootName(syntax)}
	for _, dir := range englishOnly {
		f.english = f.english || strings.HasPrefix(name, dir)
	}
	if f.dir != "internal/i18n" { // the printer itself
		c.files = append(c.files, f)
	}
	return nil
}

// gather finds the functions that pass sentences on, then the sentences.
func (c *collector) gather() {
	for _, f := range c.files {
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				c.passer(f, fn)
			}
		}
	}
	for _, f := range c.files {
		for _, decl := range f.syntax.Decls {
			params := map[string]int{}
			if fn, ok := decl.(*ast.FuncDecl); ok {
				params = stringParams(fn)
			}
			ast.Inspect(decl, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.CallExpr:
					c.call(f, node, params)
				case *ast.CompositeLit:
					c.literalSentence(f, node)
				}
				return true
			})
		}
	}
}

// passer remembers a function that hands one of its string parameters on as a sentence.
func (c *collector) passer(f parsed, fn *ast.FuncDecl) {
	params := stringParams(fn)
	ast.Inspect(fn.Body, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			if found, ok := c.sentenceOf(f, call); ok {
				if name, ok := call.Args[found.at].(*ast.Ident); ok {
					if index, ok := params[name.Name]; ok {
						c.passers[f.dir+"."+fn.Name.Name] = spoken{index, found.said}
					}
				}
			}
		}
		return true
	})
}

// call gathers the sentence of one call, if it has one.
func (c *collector) call(f parsed, call *ast.CallExpr, params map[string]int) {
	which, ok := c.sentenceOf(f, call)
	if !ok {
		return
	}
	at := which.at
	found := sentence{at: c.place(call), args: len(call.Args) - at - 1, english: f.english && !which.said, said: which.said}
	if call.Ellipsis.IsValid() {
		found.args = -1
	}
	if found.text, ok = literal(call.Args[at]); ok {
		c.sentences = append(c.sentences, found)
		return
	}
	if name, isName := call.Args[at].(*ast.Ident); isName {
		if _, passed := params[name.Name]; passed {
			return // the callers say it
		}
	}
	if !found.english {
		c.problems = append(c.problems, found.at+": the sentence is not a string literal, so it cannot be found and translated")
	}
}

// literalSentence complains of a Sentence that is not made by Say, which would not be found.
func (c *collector) literalSentence(f parsed, made *ast.CompositeLit) {
	kind, ok := made.Type.(*ast.SelectorExpr)
	if !ok || kind.Sel.Name != "Sentence" || len(made.Elts) == 0 {
		return
	}
	if x, ok := kind.X.(*ast.Ident); ok && x.Name == f.local {
		c.problems = append(c.problems, c.place(made)+": make the sentence with Say, so that it can be found and translated")
	}
}

func (c *collector) place(node ast.Node) string {
	at := c.set.Position(node.Pos())
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// stringParams returns the places of a function's string parameters by name.
func stringParams(fn *ast.FuncDecl) map[string]int {
	params, at := map[string]int{}, 0
	for _, field := range fn.Type.Params.List {
		kind, _ := field.Type.(*ast.Ident)
		for _, name := range field.Names {
			if kind != nil && kind.Name == "string" {
				params[name.Name] = at
			}
			at++
		}
	}
	return params
}

// rootName is the name under which a file knows the package with Errorf: "" in that package, "-"
// where it does not know it.
func rootName(syntax *ast.File) string {
	if syntax.Name.Name == "regie" {
		return ""
	}
	for _, spec := range syntax.Imports {
		if spec.Path.Value == strconv.Quote(module) {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return "regie"
		}
	}
	return "-"
}

// sentenceOf returns which argument of a call is a sentence: the first of Printer.T, regie.Say and
// regie.SayOf, the second of regie.Errorf, that of a function which passes it on.
func (c *collector) sentenceOf(f parsed, call *ast.CallExpr) (found spoken, ok bool) {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		found, ok = c.passers[f.dir+"."+fun.Name]
		if made, isRoot := ofRoot[fun.Name]; isRoot && f.local == "" {
			found, ok = made, true
		}
	case *ast.SelectorExpr:
		x, plain := fun.X.(*ast.Ident)
		made, isRoot := ofRoot[fun.Sel.Name]
		switch {
		case fun.Sel.Name == "T":
			found, ok = spoken{}, true
		case plain && isRoot && x.Name == f.local:
			found, ok = made, true
		default:
			found, ok = c.passers[f.dir+"."+fun.Sel.Name]
		}
	}
	return found, ok && found.at < len(call.Args)
}

// ofRoot are the functions of the root package that take a sentence.
var ofRoot = map[string]spoken{"Errorf": {1, false}, "Say": {0, true}, "SayOf": {0, true}}

// literal returns the value of a string literal, or of several that are added.
func literal(expr ast.Expr) (string, bool) {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		if expr.Kind == token.STRING {
			text, err := strconv.Unquote(expr.Value)
			return text, err == nil
		}
	case *ast.ParenExpr:
		return literal(expr.X)
	case *ast.BinaryExpr:
		if expr.Op == token.ADD {
			left, ok1 := literal(expr.X)
			right, ok2 := literal(expr.Y)
			return left + right, ok1 && ok2
		}
	}
	return "", false
}
