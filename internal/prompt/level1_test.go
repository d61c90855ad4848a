package prompt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

// every calls f with each combination of what the chunks depend on.
func every(f func(d Documentation)) {
	for _, kind := range []regie.SessionType{regie.SessionChat, regie.SessionAutomation} {
		for _, dialect := range []regie.Dialect{"", regie.DialectNative, regie.DialectJSON} {
			for degree := range 5 {
				for bits := range 32 {
					d := Documentation{
						Type: kind, Dialect: dialect, Degree: degree, French: bits&1 != 0, Questions: bits&2 != 0,
						Limits: regie.Limits{Total: 20, Queries: 10, Retries: 3, FormatErrors: 3, CallsInReply: 10, Tokens: 1000, Seconds: 60},
					}
					if bits&4 != 0 {
						d.Toolkits, d.Servers = []string{"files", "shell"}, []string{"billing", "ledger"}
					}
					d.Index = bits&16 != 0
					if bits&8 != 0 {
						d.Instructions = "You keep papers.\n\n## limits\nNone.\n\n## Ours\n- be brief"
					}
					f(d)
				}
			}
		}
	}
}

// TestLevel1 renders every documentation twice: the bytes are the same, each chunk stands there
// once, and taking it apart loses nothing.
func TestLevel1(t *testing.T) {
	seen := map[string]bool{}
	every(func(d Documentation) {
		level := Level1(d)
		if level != Level1(d) {
			t.Fatalf("%+v: rendered twice it is another one", d)
		}
		var all strings.Builder
		once := map[string]bool{}
		for _, s := range Sections(level) {
			all.WriteString(s.Text)
			if s.Name == "" || once[s.Name] {
				t.Fatalf("%+v: a section %q\n%s", d, s.Name, level)
			}
			once[s.Name], seen[s.Name] = true, true
		}
		if all.String() != level {
			t.Fatalf("%+v: taken apart it is another one", d)
		}
		for name, wanted := range map[string]bool{
			"role": true, "limits": true, "unattended": d.Type == regie.SessionAutomation, "instructions": d.Instructions != "",
			"questions": d.Questions && d.Degree != 1, "files": len(d.Toolkits) > 0 && d.Degree != 1, "shell": len(d.Toolkits) > 0 && d.Degree != 1, "outside": len(d.Servers) > 0 && d.Degree != 1,
			"steps": len(d.Toolkits) > 0 && d.Degree != 1, "search": len(d.Toolkits) > 0 && d.Degree != 1 && d.Index,
			"plan": d.Degree >= 3, "style": d.Degree == 4 && d.Type == regie.SessionChat,
		} {
			if once[name] != wanted {
				t.Fatalf("%+v: %s is said: %v", d, name, once[name])
			}
		}
		if json := strings.Contains(level, "pre_text"); json != (d.Type == regie.SessionAutomation && d.Dialect == regie.DialectJSON) {
			t.Fatalf("%+v: pre_text is said: %v", d, json)
		}
	})
	for i := range chunks {
		c := &chunks[i]
		if !seen[c.id] || c.degree < Essential || c.degree > Nice || c.made == nil && (c.english == "" || c.french == "") {
			t.Errorf("the chunk %s is never said, or not in both languages, or of no degree", c.id)
		}
	}
}

// TestLevel1Grows has each degree say what the one below says, in the same words and order.
func TestLevel1Grows(t *testing.T) {
	every(func(d Documentation) {
		if d.Degree == 0 || d.Degree == Nice {
			return
		}
		more := d
		more.Degree++
		rest := Sections(Level1(more))
		for _, s := range Sections(Level1(d)) {
			for len(rest) > 0 && rest[0] != s {
				rest = rest[1:]
			}
			if len(rest) == 0 {
				t.Fatalf("%+v: degree %d does not say what degree %d says: %s", d, more.Degree, d.Degree, s.Name)
			}
		}
	})
}

// TestRestitution: whose words they are is said in every form, and what is wanted.
func TestRestitution(t *testing.T) {
	texts := map[string]bool{}
	for _, dialect := range []regie.Dialect{regie.DialectNative, regie.DialectJSON} {
		for bits := range 4 {
			r := Restitution{Dialect: dialect, Withheld: bits&1 != 0, French: bits&2 != 0}
			text := r.Text()
			if texts[text] || r.French != strings.HasPrefix(text, "[Indication, pas de la personne] ") || r.French == strings.HasPrefix(text, "[Guidance, not from the person] ") {
				t.Errorf("%+v: %s", r, text)
			}
			if strings.Contains(text, "pre_text") != (dialect == regie.DialectJSON && r.Withheld || dialect == regie.DialectJSON) {
				t.Errorf("%+v: %s", r, text)
			}
			texts[text] = true
		}
	}
}

func TestSections(t *testing.T) {
	for level, want := range map[string][]Section{
		"":                              nil,
		"one line":                      {{"", "one line"}},
		"before\n## role\nx\n## y\nz":   {{"", "before\n"}, {"role", "## role\nx\n## y\nz"}},
		"## role\n## limits\n## role\n": {{"role", "## role\n"}, {"limits", "## limits\n## role\n"}},
	} {
		if diff := cmp.Diff(want, Sections(level)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", level, diff)
		}
	}
}

// TestLevel2 is the document of a workspace below an introduction, cut at the end of a line where
// it is too long.
func TestLevel2(t *testing.T) {
	for name, c := range map[string]struct {
		data UserData
		want string
	}{
		"nothing":       {UserData{}, ""},
		"blank":         {UserData{Agents: []byte(" \n\t\n"), More: true}, ""},
		"a text":        {UserData{Agents: []byte("\uFEFF# Ways\r\n- in French\n\n")}, "\n\n# Ways\r\n- in French\n"},
		"bad bytes":     {UserData{Agents: []byte("a\x00b\xff")}, "\n\na\uFFFDb\uFFFD\n"},
		"repaired":      {UserData{Agents: []byte("caf\uFFFD"), Repaired: true}, "\n\ncaf\uFFFD\n[AGENTS.md is not written in UTF-8: what could not be read is shown as \uFFFD]\n"},
		"unread":        {UserData{Unread: regie.CodeNotAFile}, "AGENTS.md is there and was not read: it cannot be read (NOT_A_FILE).\n"},
		"unread French": {UserData{Unread: regie.CodePathProtected, French: true}, "AGENTS.md est là et n'a pas été lu (PATH_PROTECTED).\n"},
		"unread, odd":   {UserData{Unread: regie.CodeToolError, French: true}, "AGENTS.md est là et n'a pas été lu (TOOL_ERROR).\n"},
		"cut":           {UserData{Agents: []byte("one\ntwo\nthr"), More: true}, "\n\none\ntwo\n[… cut here: files.read_file reads the rest of AGENTS.md]\n"},
		"cut, one line": {UserData{Agents: []byte("one two thr"), More: true}, "\n\none two thr\n[… cut here: files.read_file reads the rest of AGENTS.md]\n"},
		"cut, French":   {UserData{Agents: []byte("un\ndeux\ntr"), More: true, French: true}, "\n\nun\ndeux\n[… coupé ici : files.read_file lit le reste de AGENTS.md]\n"},
	} {
		got := Level2(c.data)
		if c.want == "" {
			if got != "" {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		opening := heading + AgentsFile + "\n"
		if c.data.Unread == "" {
			opening += introText(c.data.French)
		}
		if want := opening + c.want; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if s := Sections(got); len(s) != 1 || s[0].Name != AgentsFile {
			t.Errorf("%s: sections %+v", name, s)
		}
	}
	if n := Level2Bytes(regie.Limits{ContextTokens: 80_000}); n != 80_000 {
		t.Errorf("a quarter of 80,000 tokens is %d bytes", n)
	}
}
