package files

import (
	"os"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

func one(old, fresh string) []object { return []object{{"old": old, "new": fresh}} }

func TestEdit(t *testing.T) {
	for name, row := range map[string]struct {
		before string
		edits  []object
		after  string
		says   string
	}{
		"one place":        {"one\ntwo\nthree\n", one("two", "2"), "one\n2\nthree\n", "edited f in 1 place, now 3 lines, 12 bytes"},
		"several lines":    {"a\nb\nc\nd\n", one("b\nc\n", "x\n"), "a\nx\nd\n", "edited f in 1 place, now 3 lines, 6 bytes"},
		"removed":          {"a\nb\nc\n", one("b\n", ""), "a\nc\n", "edited f in 1 place, now 2 lines, 4 bytes"},
		"all of them":      {"x x\nx\n", []object{{"old": "x", "new": "yy", "all": true}}, "yy yy\nyy\n", "edited f in 3 places, now 2 lines, 9 bytes"},
		"one on another":   {"a\n", []object{{"old": "a", "new": "b\nb2"}, {"old": "b2", "new": "c"}}, "b\nc\n", "edited f in 2 places, now 2 lines, 4 bytes"},
		"places move":      {"a\nb\nc\n", []object{{"old": "c", "new": "C"}, {"old": "a\n", "new": "1\n2\n3\n"}}, "1\n2\n3\nb\nC\n", "edited f in 2 places, now 5 lines, 10 bytes"},
		"CRLF from LF":     {"one\r\ntwo\r\nthree\r\n", one("one\ntwo\n", "1\n2\n"), "1\r\n2\r\nthree\r\n", "edited f in 1 place, now 3 lines, 13 bytes; line ends written as CRLF like the rest of the file"},
		"CRLF within":      {"one\r\ntwo\r\n", one("one", "1\nx"), "1\r\nx\r\ntwo\r\n", "edited f in 1 place, now 3 lines, 11 bytes; line ends written as CRLF like the rest of the file"},
		"LF from CRLF":     {"one\ntwo\n", one("one\r\ntwo", "1\r\n2"), "1\n2\n", "edited f in 1 place, now 2 lines, 4 bytes; line ends written as LF like the rest of the file"},
		"no last line end": {"a\nb", one("b", "c"), "a\nc", "edited f in 1 place, now 2 lines, 3 bytes"},
		"to nothing":       {"a", one("a", ""), "", "edited f in 1 place, now 0 lines, 0 bytes"},
		"a mark stays":     {"\uFEFFa\n", one("a", "b"), "\uFEFFb\n", "edited f in 1 place, now 1 line, 5 bytes"},
		"special letters":  {"a.b*c\r\nd\r\n", one("a.b*c\nd", "$1\nx"), "$1\r\nx\r\n", "edited f in 1 place, now 2 lines, 7 bytes; line ends written as CRLF like the rest of the file"},
	} {
		d := newDesk(t)
		d.file("f", row.before)
		d.must(os.Chmod(d.abs("f"), 0o640))
		out := d.do("edit_file", object{"path": "f", "edits": row.edits})
		if out.State != regie.CallSucceeded || out.Result != row.says || d.content("f") != row.after {
			t.Errorf("%s: %q holding %q, %+v", name, out.Result, d.content("f"), out.Error)
		}
		if info, err := os.Stat(d.abs("f")); err != nil || info.Mode() != 0o640 {
			t.Errorf("%s: permissions %v", name, info.Mode())
		}
	}
}

func TestEditRefuses(t *testing.T) {
	text := "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	for name, row := range map[string]struct {
		before string
		edits  []object
		code   regie.Code
		says   string
		hint   string
	}{
		"not there": {text, one("func c()", "x"), regie.CodeTextNotFound, "the text to replace does not stand in f", "read the file again and copy the text from there, without the line numbers"},
		"nothing like it": {
			text, one("zzzzzzzzzzzz", "x"), regie.CodeTextNotFound, "the text to replace does not stand in f", "read the file again and copy the text from there, without the line numbers",
		},
		"twice": {
			text, one("\treturn 1", "x"), regie.CodeTextAmbiguous, "the text to replace stands in f 2 times, at lines 2, 6",
			"take more of the text around the place that you mean, or give all to replace each of them",
		},
		"all or none": {
			text,
			[]object{{"old": "func a", "new": "func z"}, {"old": "nowhere at all", "new": ""}},
			regie.CodeTextNotFound,
			"edit 2 of 2: the text to replace does not stand in f; none of them was made", "read the file again and copy the text from there, without the line numbers",
		},
		"nothing to replace": {text, one("", "x"), regie.CodeBadArguments, "there is no text to replace", "name the text to replace; write_file with mode append adds to the end"},
		"no change":          {text, one("a", "a"), regie.CodeBadArguments, "old and new are the same: nothing would change", ""},
		"there and back":     {text, []object{{"old": "func a", "new": "func z"}, {"old": "func z", "new": "func a"}}, regie.CodeBadArguments, "the edits leave f as it is", ""},
		"bytes":              {"a\x00b", one("a", "b"), regie.CodeBadArguments, "f is not text in UTF-8: it can only be replaced as a whole", ""},
		"Latin-1":            {"caf\xe9 au lait, au lait", one("lait,", "x"), regie.CodeBadArguments, "f is not text in UTF-8: it can only be replaced as a whole", ""},
		"gone":               {"", one("a", "b"), regie.CodeTextNotFound, "the text to replace does not stand in f", "read the file again and copy the text from there, without the line numbers"},
	} {
		d := newDesk(t)
		d.file("f", row.before)
		out := d.do("edit_file", object{"path": "f", "edits": row.edits})
		if out.State != regie.CallFailed || out.Error.Code != row.code || out.Error.Message != row.says || out.Error.Hint != row.hint {
			t.Errorf("%s: %s %+v", name, out.State, out.Error)
		}
		if d.content("f") != row.before {
			t.Errorf("%s: the file holds %q", name, d.content("f"))
		}
	}
	d := newDesk(t)
	if out := d.do("edit_file", object{"path": "none", "edits": one("a", "b")}); codeOf(out) != regie.CodeFileNotFound || out.Error.Hint != "write_file makes new files" {
		t.Errorf("%+v", out.Error)
	}
	if _, problem := d.check("edit_file", object{"path": "f", "edits": []object{{"old_string": "a", "new_string": "b"}}}); problem == nil ||
		!strings.Contains(problem.Message, "an array of objects with new, old and, where needed, all") {
		t.Errorf("other names of an edit: %+v", problem)
	}
	if _, problem := d.check("edit_file", object{"path": "none", "edits": []object{}}); problem == nil {
		t.Error("no edits at all are accepted")
	}
}

// An edit that was prepared and cut is looked up, and what is there decides.
func TestEditProbe(t *testing.T) {
	for name, row := range map[string]struct {
		now  string
		want tool.Evidence
	}{
		"as before": {"one\n", tool.NotHappened}, "as after": {"two\n", tool.Happened}, "otherwise": {"three\n", tool.Unsure},
	} {
		d := newDesk(t)
		d.file("f", "one\n")
		c, _ := d.check("edit_file", object{"path": "f", "edits": one("one", "two")})
		if problem := c.prepare(t); problem != nil {
			t.Fatal(problem)
		}
		d.file("f", row.now)
		got, out := c.probe(t)
		if got != row.want || got == tool.Happened && out.Result != "edited f in 1 place, now 1 line, 4 bytes" {
			t.Errorf("%s: %s %q", name, got, out.Result)
		}
		// Run by itself compares too.
		if out := c.run(t); (out.State == regie.CallSucceeded) != (row.now == "one\n") && row.now != "two\n" {
			t.Errorf("%s: %s %+v", name, out.State, out.Error)
		}
	}
}

// Edits of one reply are shown on top of each other, and of writes before them.
func TestEditsChain(t *testing.T) {
	d := newDesk(t)
	first, _ := d.check("write_file", object{"path": "f", "content": "a\nb\n"})
	states := tool.Foresee(t.Context(), first.tool, first.inv)
	second, _ := d.check("edit_file", object{"path": "f", "edits": one("b", "c")})
	second.inv.Assumed = states
	shown, problem := tool.DescribeCall(t.Context(), second.tool, second.inv)
	if problem != nil || shown.Sentence.String() != "edit f: +1 −1 lines" || !strings.Contains(shown.Diff, "-b\n+c\n") {
		t.Fatalf("%+v %+v", shown, problem)
	}
	states = append(states, tool.Foresee(t.Context(), second.tool, second.inv)...)
	third, _ := d.check("delete_file", object{"path": "f"})
	third.inv.Assumed = states
	shown, problem = tool.DescribeCall(t.Context(), third.tool, third.inv)
	if problem != nil || shown.Sentence.String() != "delete f: 2 lines, 4 bytes" || !strings.Contains(shown.Diff, "-a\n-c\n") {
		t.Fatalf("%+v %+v", shown, problem)
	}
	states = append(states, tool.Foresee(t.Context(), third.tool, third.inv)...)
	if last := states[len(states)-1]; last.Exists || !last.Hash().IsZero() {
		t.Errorf("a deleted file is foreseen as %+v", last)
	}
	fourth, _ := d.check("write_file", object{"path": "f", "content": "new\n"})
	fourth.inv.Assumed = states
	if shown, problem = tool.DescribeCall(t.Context(), fourth.tool, fourth.inv); problem != nil || shown.Sentence.String() != "write 1 line to f (new file)" {
		t.Errorf("%+v %+v", shown, problem)
	}
	for _, c := range []call{first, second, third, fourth} {
		c.inv.Assumed = nil
		if problem := c.prepare(t); problem != nil {
			t.Fatal(problem)
		}
		if out := c.run(t); out.State != regie.CallSucceeded {
			t.Fatalf("%+v", out.Error)
		}
	}
	if d.content("f") != "new\n" {
		t.Errorf("f holds %q", d.content("f"))
	}
}

// FuzzEdit edits any text: it ends, and either says what is wrong or leaves what replacing by hand
// leaves.
func FuzzEdit(f *testing.F) {
	f.Add("one\r\ntwo\n", "one\n", "1\n", uint8(1))
	f.Add("aaaa", "aa", "a", uint8(2))
	f.Add("\n", "\r\n", "1\n", uint8(1))
	f.Fuzz(func(t *testing.T, text, old, fresh string, n uint8) {
		k := newToolkit(defaultBounds())
		before := content(text)
		planned := intent{Path: "f"}
		out, err := k.applyEdits(&planned, &before, []edit{{Old: old, New: fresh, All: n == 0}})
		if err != nil {
			return
		}
		plain := !strings.Contains(text, "\r") && !strings.Contains(fresh, "\r") && !strings.HasPrefix(text, "\xff\xfe") && !strings.HasPrefix(text, "\xfe\xff")
		// A file of LF takes a text of CRLF as the same.
		if want := strings.ReplaceAll(text, strings.ReplaceAll(old, "\r\n", "\n"), fresh); plain && string(out) != want {
			t.Errorf("%q becomes %q, want %q", text, out, want)
		}
	})
}
