package client_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie/client"
)

// reached collects the types of this module's internal packages that somebody meets who uses a
// type.
func reached(of reflect.Type, seen map[reflect.Type]bool, out map[string]bool) {
	if seen[of] {
		return
	}
	seen[of] = true
	if of.Name() != "" && !strings.Contains(of.Name(), "[") && strings.Contains(of.PkgPath(), "regie/internal/") {
		out[of.Name()] = true
	}
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		reached(of.Elem(), seen, out)
	case reflect.Map:
		reached(of.Key(), seen, out)
		reached(of.Elem(), seen, out)
	case reflect.Func:
		for in := range of.Ins() {
			reached(in, seen, out)
		}
		for result := range of.Outs() {
			reached(result, seen, out)
		}
	case reflect.Struct:
		for field := range of.Fields() {
			if field.IsExported() {
				reached(field.Type, seen, out)
			}
		}
	default:
	}
}

// TestTypesHaveNames: whatever a client's method takes, with all that is in it, and what it gives
// has a name that a program outside of this module can write.
func TestTypesHaveNames(t *testing.T) {
	wanted := map[string]bool{}
	seen := map[reflect.Type]bool{}
	types := []reflect.Type{reflect.TypeFor[*client.Client]()}
	for field := range reflect.TypeFor[client.Client]().Fields() {
		if field.IsExported() && field.Type.Kind() == reflect.Pointer { // a noun
			types = append(types, field.Type)
		}
	}
	for _, of := range types {
		for method := range of.Methods() {
			for in := range method.Type.Ins() {
				reached(in, seen, wanted)
			}
			for given := range method.Type.Outs() {
				for given.Kind() == reflect.Slice || given.Kind() == reflect.Pointer {
					given = given.Elem()
				}
				if strings.Contains(given.PkgPath(), "regie/internal/") {
					wanted[given.Name()] = true
				}
			}
		}
	}
	named := map[string]bool{}
	for _, name := range []string{"types.go", "sessions.go", "tokens.go", "agents.go", "attachments.go", "automations.go", "notifications.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Assign.IsValid() {
				of, ok := spec.Type.(*ast.SelectorExpr)
				named[spec.Name.Name] = ok && of.Sel.Name == spec.Name.Name
			}
			return true
		})
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !named[name] {
			t.Errorf("%s has no name in package client", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !wanted[name] {
			t.Errorf("%s is named, and nothing leads to it", name)
		}
	}
}

// TestOutside builds and runs a program of another module, which uses the client with nothing of
// this module's internals.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, requires, _ := strings.Cut(string(module), "\nrequire")
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join("testdata", "outside", "main.go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/outside\n\ngo 1.26.0\n\nrequire github.com/regie-run/regie v0.0.0\n\nreplace github.com/regie-run/regie => " + repository + "\n\nrequire" + requires,
		"go.sum": string(sums), "main.go": string(program),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := newDocument(t)
	server := httptest.NewServer(d)
	defer server.Close()
	command := exec.CommandContext(t.Context(), "go", "run", ".", server.URL)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if said, err := command.CombinedOutput(); err != nil || string(said) != "done\n" {
		t.Errorf("%v: %s", err, said)
	}
}
