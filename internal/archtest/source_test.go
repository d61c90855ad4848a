package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/regie-run/regie"

// file is a parsed Go file.
type file struct {
	path    string // relative to the module, with slashes
	pkg     string // its directory
	text    string
	lines   int
	test    bool
	syntax  *ast.File
	imports []string
}

// source is the whole module.
type source struct {
	set   *token.FileSet
	files []*file
}

// load parses every Go file of the module, whatever its build tags.
func load(t *testing.T) *source {
	t.Helper()
	root := moduleRoot(t)
	src := &source{set: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skip(root, name, entry.Name())
		case filepath.Ext(name) != ".go":
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return src.add(filepath.ToSlash(rel), string(text))
	})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// skip leaves out what is not source of this module: hidden directories, test data, nested modules.
func skip(root, dir, name string) error {
	if dir == root {
		return nil
	}
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(text), "module "+module+"\n") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatalf("no go.mod of %s above this test", module)
		}
		dir = filepath.Dir(dir)
	}
}

// add parses a file; name is relative to the module.
func (s *source) add(name, text string) error {
	syntax, err := parser.ParseFile(s.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{
		path: name, pkg: path.Dir(name), text: text, syntax: syntax, test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1,
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		f.imports = append(f.imports, imported)
	}
	s.files = append(s.files, f)
	return nil
}

// code returns the files that are not tests.
func (s *source) code() []*file {
	var out []*file
	for _, f := range s.files {
		if !f.test {
			out = append(out, f)
		}
	}
	return out
}

// parse makes a source of a few files, for the tests of the rules themselves.
func parse(t *testing.T, files map[string]string) *source {
	t.Helper()
	src := &source{set: token.NewFileSet()}
	for name, text := range files {
		if err := src.add(name, text); err != nil {
			t.Fatal(err)
		}
	}
	return src
}
