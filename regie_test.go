package regie_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
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

// TestReadmeListsTheCodes keeps the promise that stands beside the codes.
func TestReadmeListsTheCodes(t *testing.T) {
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`Code = "([A-Z_]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(codes) < 40 {
		t.Fatalf("only %d codes were found", len(codes))
	}
	for _, code := range codes {
		if !strings.Contains(string(readme), "\n| `"+code[1]+"` | ") {
			t.Errorf("README has no row for %s", code[1])
		}
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
