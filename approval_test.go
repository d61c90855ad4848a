package regie_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

func TestSentence(t *testing.T) {
	for want, s := range map[string]regie.Sentence{
		"":                    {},
		"nothing changes":     regie.Say("nothing changes"),
		`write a%d to "b c"`:  regie.Say("write %s to %q", "a%d", "b c"),
		"100 % of %!s(int=1)": regie.Say("100 %% of %s", "%!s(int=1)"),
	} {
		if s.String() != want {
			t.Errorf("got %q, want %q", s.String(), want)
		}
	}
}

func TestPreviewJSON(t *testing.T) {
	whole := regie.Preview{
		Sentence: regie.Say("append %s lines to %s", "2", "a"), Diff: "+x\n", Warnings: []regie.Sentence{regie.Say("the lines end in CRLF")},
		Preconditions: []regie.Precondition{
			{Kind: regie.PreconditionFile, Name: "a", Hash: regie.HashOf([]byte("x"))},
			{Kind: regie.PreconditionFile, Name: "b"},
		},
		Scopes: []regie.Scope{{Tool: "a.b", Field: "path", Kind: regie.ScopeUnder, Value: "docs", Sentence: regie.Say("any file below %s/", "docs")}},
	}
	data, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	var back regie.Preview
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, whole) {
		t.Errorf("%s comes back as %+v, %v", data, back, err)
	}
	for _, part := range []string{
		`"sentence":{"format":"append %s lines to %s","args":["2","a"]}`, `{"kind":"file","name":"b"}`,
		`{"tool":"a.b","field":"path","kind":"under","value":"docs","sentence":{`,
	} {
		if !strings.Contains(string(data), part) {
			t.Errorf("%s lacks %s", data, part)
		}
	}
}

func TestScopeMatches(t *testing.T) {
	signature := regie.HashOf([]byte("the call"))
	under := regie.Scope{Tool: "files.write_file", Field: "path", Kind: regie.ScopeUnder, Value: "docs"}
	for _, row := range []struct {
		name  string
		scope regie.Scope
		tool  string
		path  any
		want  bool
	}{
		{"below", under, "files.write_file", "docs/a", true},
		{"deep below", under, "files.write_file", "docs/a/b.md", true},
		{"not clean", under, "files.write_file", "./docs//a", true},
		{"the directory itself", under, "files.write_file", "docs", false},
		{"a longer name", under, "files.write_file", "docs2/a", false},
		{"another directory", under, "files.write_file", "src/docs/a", false},
		{"out and in again", under, "files.write_file", "x/../docs/a", false},
		{"in and out again", under, "files.write_file", "docs/../src/a", false},
		{"in and back", under, "files.write_file", "docs/a/../b", false},
		{"absolute", under, "files.write_file", "/docs/a", false},
		{"a backslash", under, "files.write_file", `docs/..\a`, false},
		{"a NUL", under, "files.write_file", "docs/\x00a", false},
		{"home", under, "files.write_file", "~/docs/a", false},
		{"no path", under, "files.write_file", nil, false},
		{"a path that is no text", under, "files.write_file", 1.0, false},
		{"empty", under, "files.write_file", "", false},
		{"another tool", under, "files.read_file", "docs/a", false},
		{"below everything", regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeUnder, Value: "."}, "a.b", "docs/a", false},
		{"below nothing", regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeUnder}, "a.b", "docs/a", false},
		{"below what is not clean", regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeUnder, Value: "docs/"}, "a.b", "docs/a", false},
		{"below the outside", regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeUnder, Value: ".."}, "a.b", "../a", false},
		{"this one", regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeExact, Value: "a"}, "a.b", "a", true},
		{"this one, letter by letter", regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeExact, Value: "a"}, "a.b", "./a", false},
		{"exactly, without a field of that name", regie.Scope{Tool: "a.b", Field: "name", Kind: regie.ScopeExact}, "a.b", "a", false},
		{"this call", regie.Scope{Tool: "a.b", Kind: regie.ScopeExact, Value: signature.String()}, "a.b", "whatever", true},
		{"another call", regie.Scope{Tool: "a.b", Kind: regie.ScopeExact, Value: regie.HashOf(nil).String()}, "a.b", "a", false},
		{"any", regie.Scope{Tool: "a.b", Kind: regie.ScopeAny}, "a.b", nil, true},
		{"any of something", regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeAny, Value: "x"}, "a.b", "a", false},
		{"any of no tool", regie.Scope{Kind: regie.ScopeAny}, "", "a", false},
		{"a kind of tomorrow", regie.Scope{Tool: "a.b", Field: "path", Kind: "glob", Value: "a"}, "a.b", "a", false},
		{"zero", regie.Scope{}, "a.b", "a", false},
	} {
		arguments := map[string]any{}
		if row.path != nil {
			arguments["path"] = row.path
		}
		if got := row.scope.Matches(row.tool, signature, arguments); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	if (regie.Scope{Tool: "a.b", Kind: regie.ScopeExact}).Matches("a.b", regie.Hash{}, nil) {
		t.Error("a call without a signature is this call")
	}
}

// FuzzScopeUnder looks for a path that a scope covers and that its letters lead out of it.
func FuzzScopeUnder(f *testing.F) {
	for _, path := range []string{"docs/a", "docs/../a", "docs/./a", "./docs/a", "docs//../x", "docs/.../a", "docs/..a"} {
		f.Add(path)
	}
	scope := regie.Scope{Tool: "a.b", Field: "path", Kind: regie.ScopeUnder, Value: "docs"}
	f.Fuzz(func(t *testing.T, path string) {
		if !scope.Matches("a.b", regie.Hash{}, map[string]any{"path": path}) {
			return
		}
		var at []string
		for part := range strings.SplitSeq(path, "/") {
			switch part {
			case "", ".":
			case "..":
				t.Fatalf("%q goes up", path)
			default:
				at = append(at, part)
			}
		}
		if len(at) < 2 || at[0] != "docs" || path[0] == '/' {
			t.Errorf("%q lies at %q", path, at)
		}
	})
}
