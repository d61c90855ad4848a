package regie_test

import (
	"encoding/json"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

func TestIDs(t *testing.T) {
	before := regie.NewID()
	for range 10_000 {
		next := regie.NewID()
		if next.String() <= before.String() {
			t.Fatalf("%s after %s", next, before)
		}
		before = next
	}
	if before[6]>>4 != 7 || before[8]>>6 != 2 {
		t.Errorf("%s is no UUIDv7", before)
	}
	parsed, err := regie.ParseID(before.String())
	if err != nil || parsed != before {
		t.Errorf("%s came back as %s, %v", before, parsed, err)
	}
	for _, bad := range []string{"", "x", "0197e0a1-2b3c-7d4e-8f50-61728394A5B6", "0197e0a12b3c-7d4e-8f50-61728394a5b6-", "0197e0a1-2b3c-7d4e-8f50-61728394a5bg", "\x00"} {
		if _, err := regie.ParseID(bad); regie.CodeOf(err) != regie.CodeBadID {
			t.Errorf("%q: %v", bad, err)
		}
	}
	data, err := json.Marshal(struct {
		A regie.ID   `json:"a"`
		B regie.ID   `json:"b,omitzero"`
		C regie.Hash `json:"c,omitzero"`
	}{})
	if err != nil || string(data) != `{"a":""}` {
		t.Errorf("%s, %v", data, err)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("0197e0a1-2b3c-7d4e-8f50-61728394a5b6")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := regie.ParseID(s); err == nil && !id.IsZero() && id.String() != s {
			t.Errorf("%q was read as %s", s, id)
		}
	})
}

func TestErrors(t *testing.T) {
	cause := errors.New("no space")
	err := regie.Errorf(regie.CodeDiskFull, "the disk is full: %v", cause)
	if !errors.Is(err, cause) || err.Error() != "the disk is full: no space" {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		err  error
		want regie.Code
	}{{nil, ""}, {cause, regie.CodeInternal}, {errors.Join(cause, err), regie.CodeDiskFull}} {
		if got := regie.CodeOf(c.err); got != c.want {
			t.Errorf("%v has %q, want %q", c.err, got, c.want)
		}
	}
}

var update = flag.Bool("update", false, "write the generated pages")

// TestErrorCodesPage compares docs/error-codes.md with the codes' comments; -update writes it.
func TestErrorCodesPage(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	page := "# Error codes\n\nGenerated from `errors.go`. A code never changes once it is released.\n\n" +
		"| code | meaning | what to do |\n|---|---|---|\n"
	codes := 0
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			comment := strings.ReplaceAll(strings.TrimSpace(value.Doc.Text()), "\n", " ")
			meaning, fix, found := strings.Cut(strings.TrimPrefix(comment, value.Names[0].Name+": "), " Fix: ")
			if !found {
				t.Errorf("the comment of %s names no fix", value.Names[0].Name)
			}
			literal, ok := value.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			code := strings.Trim(literal.Value, `"`)
			page += "| `" + code + "` | " + meaning + " | " + fix + " |\n"
			codes++
		}
	}
	if codes < 40 {
		t.Fatalf("only %d codes were found", codes)
	}
	if *update {
		if err := os.WriteFile("docs/error-codes.md", []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("docs/error-codes.md")
	if err != nil || string(have) != page {
		t.Errorf("docs/error-codes.md is old (go test -run TestErrorCodesPage -update .): %v", err)
	}
}

// TestSentenceIsKept takes sentences through the forms in which they are stored, also what was
// stored before they were sentences.
func TestSentenceIsKept(t *testing.T) {
	nested := regie.SayOf("The run stopped because %s was reached.", regie.Say("the limit on replies (%s)", "3"))
	if got := nested.String(); got != "The run stopped because the limit on replies (3) was reached." {
		t.Errorf("in English: %q", got)
	}
	for _, s := range []regie.Sentence{nested, regie.Verbatim("100% of \x00 \"words\" {}"), {}} {
		stored, err := s.Value()
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var column, event regie.Sentence
		if err := errors.Join(column.Scan(stored), json.Unmarshal(body, &event)); err != nil {
			t.Fatal(err)
		}
		for where, got := range map[string]regie.Sentence{"its column": column, "its event": event} {
			if !reflect.DeepEqual(got, s) {
				t.Errorf("%s gives %+v of %+v", where, got, s)
			}
		}
	}
	for _, text := range []string{"a plain text", "{ no JSON", `{"other":1}`, "[]", "null", ""} {
		var column, event regie.Sentence
		body, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(column.Scan([]byte(text)), json.Unmarshal(body, &event)); err != nil || column.String() != text || event.String() != text {
			t.Errorf("of %q: %+v, %+v, %v", text, column, event, err)
		}
	}
	var s regie.Sentence
	if s.Scan(7) == nil || json.Unmarshal([]byte("7"), &s) == nil {
		t.Error("a number was taken for a sentence")
	}
}
