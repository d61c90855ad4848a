package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tool"
)

// showing is a tool with a preview.
type showing struct {
	scripted
	preview func(ctx context.Context) (regie.Preview, error)
	check   func(preconditions []regie.Precondition) error
}

func (s *showing) Sides() tool.Sides {
	return tool.Sides{
		Preview: func(ctx context.Context, _ *tool.Invocation) (regie.Preview, error) { return s.preview(ctx) },
		CheckPreconditions: func(_ context.Context, _ *tool.Invocation, preconditions []regie.Precondition) error {
			return s.check(preconditions)
		},
	}
}

func shows(preview func(ctx context.Context) (regie.Preview, error)) *showing {
	return &showing{scripted: scripted{definition: definition("mail.send", regie.ClassOnce)}, preview: preview}
}

// sound reports what every preview must be, whatever the tool gave.
func sound(t *testing.T, p regie.Preview) {
	t.Helper()
	if p.Sentence.IsZero() || len(p.Diff) > regie.MaxDiff {
		t.Errorf("it says %q with a diff of %d bytes", p.Sentence.Format, len(p.Diff))
	}
	texts := []string{p.Sentence.String()}
	for _, warning := range p.Warnings {
		texts = append(texts, warning.String())
	}
	for _, scope := range p.Scopes {
		texts = append(texts, scope.Sentence.String())
	}
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsFunc(text, sanitize.Hidden) || strings.ContainsAny(text, "\n\t") {
			t.Errorf("it says %q", text)
		}
	}
	if !utf8.ValidString(p.Diff) || strings.ContainsFunc(p.Diff, sanitize.Hidden) {
		t.Errorf("the diff is %.200q", p.Diff)
	}
	if len(p.Scopes) == 0 || p.Scopes[0].Kind != regie.ScopeExact || p.Scopes[0].Field != "" || p.Scopes[0].Tool == "" {
		t.Errorf("the default scope is %+v", p.Scopes)
	}
}

func TestDescribeWithoutAPreview(t *testing.T) {
	for _, row := range []struct{ arguments, says, diff string }{
		{`{"to": "a@b.c", "n":1,"deep":{"x":[1,2]}}`, `{"to":"a@b.c","n":1,"deep":{"x":[1,2]}}`, "{\n  \"to\": \"a@b.c\",\n  \"n\": 1,\n  \"deep\": {\n    \"x\": [\n      1,\n      2\n    ]\n  }\n}\n"},
		{``, "{}", "{}\n"},
		{`{"a":"` + strings.Repeat("é", 100) + `"}`, `{"a":"` + strings.Repeat("é", 77) + "… (208 bytes in all)", "{\n  \"a\": \"" + strings.Repeat("é", 100) + "\"\n}\n"},
		{"{\"a\":\"x\u202ey\U000e0041\u007f\"}", `{"a":"x<U+202E>y<U+E0041>␡"}`, "{\n  \"a\": \"x\\u202ey\\udb40\\udc41␡\"\n}\n"},
		{"no \x1bJSON\xff", "no ␛JSON\uFFFD", "no ␛JSON\uFFFD\n"},
	} {
		p, refusal := tool.DescribeCall(t.Context(), idle("mail.send", regie.ClassOnce), &tool.Invocation{Arguments: json.RawMessage(row.arguments)})
		sound(t, p)
		if refusal != nil || p.Diff != row.diff || p.Sentence.String() != "call mail.send with "+row.says || len(p.Warnings) != 0 {
			t.Errorf("%q: %q with %q, %v, %+v", row.arguments, p.Sentence.String(), p.Diff, p.Warnings, refusal)
		}
	}
}

// The default scope is the call's own signature, whatever form the arguments come in.
func TestDefaultScope(t *testing.T) {
	r := registry(t, idle("mail.send", regie.ClassOnce))
	checked := r.Check("mail__send", `{"b":1,"a":"é"}`)
	for arguments, want := range map[string]bool{
		string(checked.Arguments): true, `{"b": 1.0, "a":"\u00e9"}`: true, `{"a":"é","b":2}`: false, `{}`: false,
	} {
		p, _ := tool.DescribeCall(t.Context(), checked.Tool, &tool.Invocation{Arguments: json.RawMessage(arguments)})
		if got := p.Scopes[0].Matches("mail.send", checked.Signature, nil); got != want || len(p.Scopes) != 1 {
			t.Errorf("%s: %v, %+v", arguments, got, p.Scopes)
		}
	}
}

func TestDescribeFailures(t *testing.T) {
	const generic = `call mail.send with {"a":1}`
	for _, row := range []struct {
		name    string
		preview func(ctx context.Context) (regie.Preview, error)
		refusal regie.Code
		warns   string
	}{
		{"refused", func(context.Context) (regie.Preview, error) {
			return regie.Preview{}, tool.Advice{Err: regie.Errorf(regie.CodePathOutside, "it leads out"), Param: "path"}
		}, regie.CodePathOutside, ""},
		{"panicked", func(context.Context) (regie.Preview, error) { panic("oh\x1b[2J\nno") }, "", "the tool panicked: oh␛[2J␊no"},
		{"went away", func(context.Context) (regie.Preview, error) { runtime.Goexit(); return regie.Preview{}, nil }, "", "gave up"},
		{"failed", func(context.Context) (regie.Preview, error) { return regie.Preview{}, errors.New("no idea") }, "", "no idea"},
		{"failed for a while", func(context.Context) (regie.Preview, error) {
			return regie.Preview{}, regie.Errorf(regie.CodeDatabaseLocked, "busy")
		}, "", "busy"},
		{"says nothing", func(context.Context) (regie.Preview, error) { return regie.Preview{Diff: "x"}, nil }, "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, refusal := tool.DescribeCall(t.Context(), shows(row.preview), &tool.Invocation{Arguments: json.RawMessage(`{"a":1}`)})
			sound(t, p)
			if p.Sentence.String() != generic || p.Diff != "{\n  \"a\": 1\n}\n" {
				t.Errorf("it says %q with %q", p.Sentence.String(), p.Diff)
			}
			if (refusal == nil) != (row.refusal == "") || refusal != nil && (refusal.Code != row.refusal || refusal.Param != "path") {
				t.Errorf("refusal: %+v", refusal)
			}
			if row.warns == "" != (len(p.Warnings) == 0) || row.warns != "" && !strings.Contains(p.Warnings[0].String(), row.warns) {
				t.Errorf("warnings: %v", p.Warnings)
			}
		})
	}
}

// A preview that ignores its time is given up; a person waits for it no longer than for that.
func TestDescribeSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		slow := shows(func(context.Context) (regie.Preview, error) { <-release; return regie.Preview{}, nil })
		slow.definition.Timeout = time.Hour
		started := time.Now()
		p, refusal := tool.DescribeCall(t.Context(), slow, &tool.Invocation{})
		if took := time.Since(started); took != 15*time.Second || refusal != nil || len(p.Warnings) != 1 {
			t.Errorf("after %s: %v, %+v", took, p.Warnings, refusal)
		}
		sound(t, p)
		close(release)
		synctest.Wait()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, refusal := tool.DescribeCall(ctx, shows(func(context.Context) (regie.Preview, error) { panic("it was run") }), &tool.Invocation{})
	sound(t, p)
	if refusal != nil || strings.Contains(p.Warnings[0].String(), "panic") {
		t.Errorf("stopped: %v, %+v", p.Warnings, refusal)
	}
}

// What a tool shows is made harmless and bounded, and none proposes a scope for another.
func TestDescribeIsHarmless(t *testing.T) {
	const evil = "a\x1b[8m\nb\u202ec\xff"
	const tame = "a␛[8m␊b<U+202E>c\uFFFD"
	given := regie.Preview{
		Sentence: regie.Say("mail to %s", evil), Diff: evil, Warnings: []regie.Sentence{regie.Say("it goes to %s", evil)},
		Scopes: []regie.Scope{{Tool: "shell.run", Kind: regie.ScopeAny, Sentence: regie.Say("any mail to %s", evil)}},
	}
	p, _ := tool.DescribeCall(t.Context(), shows(func(context.Context) (regie.Preview, error) { return given, nil }), &tool.Invocation{})
	sound(t, p)
	if p.Sentence.String() != "mail to "+tame || p.Diff != strings.Replace(tame, "␊", "\n", 1) || p.Warnings[0].String() != "it goes to "+tame {
		t.Errorf("%q, %q, %v", p.Sentence.String(), p.Diff, p.Warnings)
	}
	if len(p.Scopes) != 2 || p.Scopes[1].Tool != "mail.send" || p.Scopes[1].Sentence.String() != "any mail to "+tame {
		t.Errorf("%+v", p.Scopes)
	}
	if given.Warnings[0].Args[0] != evil || given.Sentence.Args[0] != evil {
		t.Error("what the tool gave was changed")
	}
	for name, long := range map[string]string{
		"lines":           strings.Repeat("a line\n", regie.MaxDiff),
		"one line":        strings.Repeat("é", regie.MaxDiff),
		"grows over it":   strings.Repeat("\x1b\n", regie.MaxDiff/3),
		"grows fourfold":  strings.Repeat("\u0085", regie.MaxDiff/2),
		"a byte too much": strings.Repeat("x", regie.MaxDiff+1),
	} {
		given.Diff, given.Sentence.Args = long, []string{long}
		p, _ := tool.DescribeCall(t.Context(), shows(func(context.Context) (regie.Preview, error) { return given, nil }), &tool.Invocation{})
		sound(t, p)
		if !strings.HasSuffix(p.Diff, " bytes]\n") || len(p.Warnings) != 2 || !strings.HasSuffix(p.Sentence.Args[0], "…") || len(p.Diff) < regie.MaxDiff/2 {
			t.Errorf("%s: %d bytes ending in %q, %v", name, len(p.Diff), p.Diff[len(p.Diff)-40:], p.Warnings[1:])
		}
	}
	given.Diff = strings.Repeat("x", regie.MaxDiff)
	if p, _ := tool.DescribeCall(t.Context(), shows(func(context.Context) (regie.Preview, error) { return given, nil }), &tool.Invocation{}); p.Diff != given.Diff {
		t.Errorf("what just fits was cut to %d bytes", len(p.Diff))
	}
}

func TestCheckPreconditions(t *testing.T) {
	some := []regie.Precondition{{Kind: regie.PreconditionFile, Name: "a"}}
	var seen []regie.Precondition
	checker := shows(nil)
	checker.check = func(p []regie.Precondition) error { seen = p; return nil }
	if err := tool.CheckPreconditions(t.Context(), checker, &tool.Invocation{}, some); err != nil || len(seen) != 1 {
		t.Errorf("got %v, %v", err, seen)
	}
	for name, row := range map[string]struct {
		check func([]regie.Precondition) error
		code  regie.Code
	}{
		"gone":     {func([]regie.Precondition) error { return regie.Errorf(regie.CodeStalePreview, "gone") }, regie.CodeStalePreview},
		"panicked": {func([]regie.Precondition) error { panic("oh") }, regie.CodeToolError},
	} {
		checker.check = row.check
		if err := tool.CheckPreconditions(t.Context(), checker, &tool.Invocation{}, some); regie.CodeOf(err) != row.code {
			t.Errorf("%s: %v", name, err)
		}
		if err := tool.CheckPreconditions(t.Context(), checker, &tool.Invocation{}, nil); err != nil {
			t.Errorf("%s, with nothing to check: %v", name, err)
		}
	}
	if err := tool.CheckPreconditions(t.Context(), idle("a.b", regie.ClassOnce), &tool.Invocation{}, some); regie.CodeOf(err) != regie.CodeStalePreview {
		t.Errorf("a tool that cannot check: %v", err)
	}
	out := tool.Run(t.Context(), &scripted{definition: definition("a.b", regie.ClassRead), run: func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{}, regie.Errorf(regie.CodeStalePreview, "gone")
	}}, &tool.Invocation{})
	if !out.Error.Retryable {
		t.Error("a call whose preview is stale may be proposed again")
	}
}

// FuzzDescribe tries what arguments and texts of tools may do to a preview.
func FuzzDescribe(f *testing.F) {
	f.Add([]byte(`{"a":1}`), "diff", "name", uint16(1))
	f.Add([]byte(`{"a":["\u202e`), "\x1b[2J", "\xff\n", uint16(9000))
	f.Add([]byte(`[[[`), "\u0085", "x\u200b", uint16(40000))
	f.Fuzz(func(t *testing.T, arguments []byte, diff, name string, times uint16) {
		diff, name = strings.Repeat(diff[:min(len(diff), 100)], int(times)), strings.Repeat(name[:min(len(name), 10)], int(times))
		inv := &tool.Invocation{Arguments: arguments}
		p, refusal := tool.DescribeCall(t.Context(), idle("a.b", regie.ClassOnce), inv)
		sound(t, p)
		given := regie.Preview{
			Sentence: regie.Say("mail to %s", name), Diff: diff, Warnings: []regie.Sentence{regie.Say("%s of %q", name, name)},
			Scopes: []regie.Scope{{Sentence: regie.Say("%s", name)}},
		}
		q, refused := tool.DescribeCall(t.Context(), shows(func(context.Context) (regie.Preview, error) { return given, nil }), inv)
		sound(t, q)
		if refusal != nil || refused != nil {
			t.Errorf("refused: %+v, %+v", refusal, refused)
		}
	})
}

// guarded is a tool that wants some calls approved whatever the rules say.
type guarded struct {
	scripted
	asks func() []regie.Sentence
}

func (g *guarded) Sides() tool.Sides {
	return tool.Sides{MustAsk: func(context.Context, *tool.Invocation) []regie.Sentence { return g.asks() }}
}

// What a tool says of a call is made harmless, and one that cannot say it is asked about.
func TestMustAsk(t *testing.T) {
	for name, row := range map[string]struct {
		tool tool.Tool
		want string
	}{
		"no such side": {&scripted{definition: definition("mail.send", regie.ClassOnce)}, ""},
		"nothing":      {&guarded{asks: func() []regie.Sentence { return nil }}, ""},
		"a reason":     {&guarded{asks: func() []regie.Sentence { return []regie.Sentence{regie.Say("it reads %s", "a\u202eb\n")} }}, "it reads a<U+202E>b␊"},
		"a panic":      {&guarded{asks: func() []regie.Sentence { panic("no") }}, "the tool could not determine whether this call needs an approval: the tool panicked: no"},
	} {
		got := ""
		for _, s := range tool.MustAsk(t.Context(), row.tool, &tool.Invocation{}) {
			got += s.String()
		}
		if !strings.HasPrefix(got, row.want) || row.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
	once := shows(func(context.Context) (regie.Preview, error) {
		return regie.Preview{Sentence: regie.Say("x"), Once: true}, nil
	})
	if p, _ := tool.DescribeCall(t.Context(), once, &tool.Invocation{}); len(p.Scopes) != 0 {
		t.Errorf("a call that is allowed once has the scopes %v", p.Scopes)
	}
}

// TestDescribeSpaces: what looks like a space and is none is seen where a person decides on it; in
// French prose it stays.
func TestDescribeSpaces(t *testing.T) {
	p, refusal := tool.DescribeCall(t.Context(), shows(func(context.Context) (regie.Preview, error) {
		return regie.Preview{Sentence: regie.Say("run %s", "rm\u00a0x"), Diff: "+a\u2800b\u00a0c\n+Quoi\u00a0?\n"}, nil
	}), &tool.Invocation{})
	sound(t, p)
	if p.Sentence.String() != "run rm<U+00A0>x" || p.Diff != "+a<U+2800>b<U+00A0>c\n+Quoi\u00a0?\n" || refusal != nil {
		t.Errorf("%q with %q, %v", p.Sentence.String(), p.Diff, refusal)
	}
}
