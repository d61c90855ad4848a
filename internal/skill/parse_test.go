package skill_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/skill"
)

const good = "---\nname: pdf-forms\ndescription: Fill in forms.\n---\n"

// front is a SKILL.md of pdf-forms with further lines in its front matter.
func front(lines string) string {
	return "---\nname: pdf-forms\ndescription: Fill in forms.\n" + lines + "\n---\nDo it.\n"
}

func utf16le(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return string(out)
}

func TestParse(t *testing.T) {
	plainOne := skill.Skill{Name: "pdf-forms", Description: "Fill in forms."}
	with := func(change func(*skill.Skill)) skill.Skill {
		s := plainOne
		s.Body = "Do it."
		change(&s)
		return s
	}
	for _, row := range []struct {
		name, text string
		want       skill.Skill
		notes      int
	}{
		{"the least", good, plainOne, 0},
		{"without a last line feed", strings.TrimSuffix(good, "\n"), plainOne, 0},
		{"CRLF", strings.ReplaceAll(good, "\n", "\r\n"), plainOne, 0},
		{"a byte order mark", "\uFEFF" + good, plainOne, 0},
		{"a rule in the body", good + "a\n---\nb\n", skill.Skill{Name: "pdf-forms", Description: "Fill in forms.", Body: "a\n---\nb"}, 0},
		{"folded", "---\nname: pdf-forms\ndescription: >\n  Fill in\n  forms.\n---\nDo it.", with(func(*skill.Skill) {}), 0},
		{"with a line feed in it", "---\nname: pdf-forms\ndescription: \"Fill in\\n\\n## forms.\"\n---\nDo it.", with(func(s *skill.Skill) { s.Description = "Fill in ## forms." }), 0},
		{"compatibility", front("compatibility: Requires git"), with(func(s *skill.Skill) { s.Compatibility = "Requires git" }), 0},
		{"tools that its author would allow", front("allowed-tools:\n  - Bash(git:*)\n  - Read"), with(func(*skill.Skill) {}), 1},
		{"another program's key", front("version: 2\nuser-invocable: true"), with(func(*skill.Skill) {}), 2},
		{"1,024 characters of three bytes", "---\nname: pdf-forms\ndescription: " + strings.Repeat("語", 1024) + "\n---\nDo it.", with(func(s *skill.Skill) { s.Description = strings.Repeat("語", 1024) }), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, notes, err := skill.Parse("pdf-forms", []byte(row.text))
			if err != nil || len(notes) != row.notes {
				t.Fatalf("%v, notes %v", err, notes)
			}
			if diff := cmp.Diff(row.want, got, cmpopts.IgnoreUnexported(skill.Skill{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]"
	named := func(name string) string { return "---\nname: " + name + "\ndescription: d\n---\n" }
	described := func(d string) string { return "---\nname: pdf-forms\ndescription: " + d + "\n---\n" }
	for _, row := range []struct {
		name, text, says string
		code             regie.Code
	}{
		{"nothing", "", "does not begin", ""},
		{"no front matter", "# Forms\n", "does not begin", ""},
		{"something before it", "\n" + good, "does not begin", ""},
		{"no end", "---\nname: pdf-forms\n", "no line --- at its end", ""},
		{"an endless front matter", "---\n" + strings.Repeat("# x\n", 10_000), "16384", regie.CodeFileTooLarge},
		{"huge", good + strings.Repeat("x", 300<<10), "262144", regie.CodeFileTooLarge},
		{"binary", good + "\x00\x01", "not text", regie.CodeNotText},
		{"UTF-16", utf16le(good), "UTF-8", regie.CodeNotText},
		{"Latin-1", good + "caf\xe9", "UTF-8", regie.CodeNotText},
		{"empty", "---\n---\n", "not a list of keys with values", ""},
		{"a list", "---\n- a\n---\n", "not a list of keys with values", ""},
		{"a text", "---\njust words\n---\n", "not a list of keys with values", ""},
		{"two documents", "---\nname: pdf-forms\n...\n--- \ndescription: x\n---\n", "no description", ""},
		{"a colon", described("Use when: always"), "in quotes", ""},
		{"a tab", "---\nname: pdf-forms\n\tdescription: x\n---\n", "not YAML", ""},
		{"twice", front("name: other"), "name is repeated", ""},
		{"an anchor", front("license: &x MIT"), "anchors", ""},
		{"a bomb", front(bomb), "anchors", ""},
		{"a merge", front("<<: {license: MIT}"), "anchors", ""},
		{"a tag", front("license: !!binary aGk="), "anchors", ""},
		{"somebody's tag", front("license: !python/object x"), "anchors", ""},
		{"deep", front("metadata: " + strings.Repeat("[", 90) + strings.Repeat("]", 90)), "deeper", ""},
		{"deeper than the parser goes", "---\n" + strings.Repeat("[", 15_000) + "\n---\n", "brackets", ""},
		{"many", front("metadata: [" + strings.Repeat("a,", 1000) + "]"), "more than 400 parts", ""},
		{"a key that is none", front("[a, b]: c"), "a key must be a word", ""},
		{"no name", "---\ndescription: x\n---\n", "no name", ""},
		{"name is nothing", named(""), "name is not text", ""},
		{"name is a list", named("[a]"), "name is not text", ""},
		{"capitals", named("PDF-Forms"), "not a valid skill name", ""},
		{"up", named("../../etc"), "not a valid skill name", ""},
		{"a slash", named("a/b"), "not a valid skill name", ""},
		{"a dot", named("a.b"), "not a valid skill name", ""},
		{"a hyphen first", named("\"-pdf\""), "not a valid skill name", ""},
		{"a hyphen last", named("pdf-"), "not a valid skill name", ""},
		{"two hyphens", named("pdf--forms"), "not a valid skill name", ""},
		{"letters that look like it", named("pdf-fоrms"), "not a valid skill name", ""},
		{"65 characters", named(strings.Repeat("a", 65)), "65 characters", ""},
		{"an escape in the name", named(`"a\u001b[2J"`), "U+001B", ""},
		{"another directory's name", named("other"), `"other"`, ""},
		{"no description", "---\nname: pdf-forms\n---\n", "no description", ""},
		{"a blank description", described(`"  \n "`), "no description", ""},
		{"description is nothing", described("~"), "description is not text", ""},
		{"description is a map", described("{a: b}"), "description is not text", ""},
		{"1,025 characters", described(strings.Repeat("x", 1025)), "1025 characters, at most 1024", ""},
		{"an escape in the description", described(`"Fill \x1b[31min"`), "U+001B", ""},
		{"a title for the terminal", described(`"\x1b]0;owned\x07"`), "U+001B", ""},
		{"a bell", described(`"a\a"`), "U+0007", ""},
		{"turned around", described(`"Fill \u202Etxt.exe"`), "U+202E", ""},
		{"nothing to see", described(`"Fill \u200Bin"`), "U+200B", ""},
		{"tags of letters", described(`"Fill \U000E0041"`), "U+E0041", ""},
		{"compatibility", front("compatibility: " + strings.Repeat("x", 501)), "501", ""},
		{"compatibility is nothing", front("compatibility:"), "compatibility is not text", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, _, err := skill.Parse("pdf-forms", []byte(row.text))
			want := row.code
			if want == "" {
				want = regie.CodeBadRequest
			}
			if regie.CodeOf(err) != want || !strings.Contains(err.Error(), row.says) {
				t.Fatalf("%v; %+v", err, s)
			}
			if len(err.Error()) > 1000 || sanitize.Count(err.Error()) > 0 {
				t.Errorf("the sentence is %d bytes long, with %d hidden characters: %q", len(err.Error()), sanitize.Count(err.Error()), err)
			}
		})
	}
}

// FuzzParse holds whatever is taken to what level 2 and terminals need of it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		good, front("metadata: {a: b}\nallowed-tools: [x]"), front("x: &a [*a]"), "---\n? a\n: b\n---\n", "---\nname: !!str pdf-forms\n---", utf16le(good), "---\n\"\\x1b\": 1\n---\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, notes, err := skill.Parse("pdf-forms", data)
		if err != nil {
			if regie.CodeOf(err) == "" || sanitize.Count(err.Error()) > 0 {
				t.Errorf("%q", err)
			}
			return
		}
		if s.Name != "pdf-forms" || s.Description == "" || utf8.RuneCountInString(s.Description) > 1024 || strings.ContainsAny(s.Description, "\n\r\t") || sanitize.Count(s.Description) > 0 {
			t.Errorf("%+v", s)
		}
		for _, note := range notes {
			if sanitize.Count(note.String()) > 0 {
				t.Errorf("%q", note)
			}
		}
		again, _, err := skill.Parse("pdf-forms", []byte("---\nname: pdf-forms\ndescription: "+quoted(s.Description)+"\n---\n"+s.Body))
		if err != nil || again.Description != s.Description || again.Body != s.Body {
			t.Errorf("written again it is another: %v\n%s", err, cmp.Diff(s.Description, again.Description))
		}
	})
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
