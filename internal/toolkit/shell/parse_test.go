package shell

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
)

// TestLiteral is what commands mean that are nothing but words.
func TestLiteral(t *testing.T) {
	for _, row := range []struct {
		command string
		want    []string
	}{
		{"git status", []string{"git", "status"}},
		{"  git   status  ", []string{"git", "status"}},
		{"git log --oneline -n 5", []string{"git", "log", "--oneline", "-n", "5"}},
		{"go test ./...", []string{"go", "test", "./..."}},
		{"make -j4 test", []string{"make", "-j4", "test"}},
		{"./build.sh", []string{"./build.sh"}},
		{"/usr/bin/env", []string{"/usr/bin/env"}},
		{"grep 'a b' file", []string{"grep", "a b", "file"}},
		{`grep "a b" file`, []string{"grep", "a b", "file"}},
		{`grep 'a;b|c&d>e<f$g' file`, []string{"grep", "a;b|c&d>e<f$g", "file"}},
		{`grep '*' file`, []string{"grep", "*", "file"}},
		{`grep '' file`, []string{"grep", "", "file"}},
		{`grep "" file`, []string{"grep", "", "file"}},
		{`git commit -m "It's done"`, []string{"git", "commit", "-m", "It's done"}},
		{`git commit -m 'é'`, []string{"git", "commit", "-m", "é"}},
		{`a'b'"c"d`, []string{"abcd"}},
		{"echo a=b", []string{"echo", "a=b"}},
		{"date +%F", []string{"date", "+%F"}},
		{"user@host", []string{"user@host"}},
	} {
		got, ok := literal(row.command)
		if !ok || !slices.Equal(got, row.want) {
			t.Errorf("%q: got %q, %v", row.command, got, ok)
		}
	}
}

// allowed are the commands that the rules of TestRuleAttacks allow: what people let agents do.
var allowed = []string{"git status", "git log", "ls", "cat README.md", "go test ./...", "make test", "echo hello", "npm test", "git diff --stat", "./build.sh", "grep -r todo .", "true"}

// ruleAttacks are commands that begin with, hold, or look like an allowed one, and are another one.
// None may run by a rule.
var ruleAttacks = []string{
	// A second command.
	"git status; rm -rf .", "git status;rm -rf .", "git status ; rm -rf .", "git status\nrm -rf .", "git status\r\nrm -rf .", "git status && rm -rf .", "git status || rm -rf .",
	"git status & rm -rf .", "git status &", "git status | sh", "git status |& sh", "git status ;", "rm -rf . ; git status", "rm -rf . && git status", "rm -rf .\ngit status", "git status;;", "; git status",
	"! git status", "time git status", "coproc git status", "{ git status; }", "( git status )", "(git status)", "if true; then git status; fi", "while true; do git status; done", "for i in a; do git status; done",
	"until git status; do true; done", "case a in a) git status;; esac", "f() { git status; }; f", "function f { git status; }", "select x in a; do git status; done", "[[ -f a ]] && git status", "(( 1 )) && git status", "((git status))",
	"git status &! ", "git status &|", "git status |", "git status &&",
	// Substitutions and expansions.
	"git $(rm -rf .)", "git status $(rm -rf .)", "git `rm -rf .`", "git status `id`", `git "$(rm -rf .)"`, "git \"`id`\"", "$(echo git) status", "git $0", "git $HOME", "git ${HOME}", "git $((1+1))", "git $[1+1]", "git <(id)", "git >(id)",
	"git status $'\\n'rm", `git $'status'`, `git $"status"`, "git sta*", "git s?atus", "git [s]tatus", "git {status,log}", "git stat{us,}", "git {1..3}", "~/git status", "git ~", "git ~root", "git a:~/b", "ls *", "ls ?", "ls [a-z]*", "ls !(a)", "ls @(a|b)", "ls +(a)", "ls ?(a)", "ls **/*",
	"$git status", "${git} status", "git ${IFS}status", "git$IFS status", "git${IFS}status", "git !status", "!git status", "!!", "^git^rm", "git \"!status\"", "git $*", "git $@", "git \"$@\"", "git $1", "git $?", "git $$", "git $!", "git $-", "git $_",
	// Redirections and here-documents.
	"git status > ~/.bashrc", "git status >x", "git status >> x", "git status 2>x", "git status &>x", "git status >&2", "git status < /etc/passwd", "git status <<EOF\nx\nEOF", "git status <<<x", "git status <<-EOF\nx\nEOF", "> x git status", "<x git status", "2>&1 git status", "git status >|x", "git status <>x", "git status {fd}>x", "git status 3<&0", "exec 3<>/dev/tcp/h/1",
	// Assignments.
	"A=b git status", "PATH=. git status", "LD_PRELOAD=./x.so git status", "GIT_SSH_COMMAND=id git log", "PAGER=id git log", "A=b", "A+=b git status", "A[0]=b git status", "A=(b c)", "export A=b", "declare A=b", "readonly A=b", "local A=b", "typeset A=b", "let a=1",
	// Escapes and odd letters.
	`git\ status`, `g\it status`, `git sta\tus`, "git \\\nstatus", `git "sta\tus"`, `git "a\"b"`, "git\tstatus", "git\u00a0status", "gіt status", "git status\u200b", "git\u202e sutats", "git status\x00", "git status\x1b[2K", "git status\x7f", "\ufeffgit status", "git stat\u00adus", "git status\xff", "git status # and more", "# git status", "git status #", "git\vstatus", "git\fstatus", "git status\u2028rm -rf .",
	"git sta'tus", `git "status`, "git status'", "git status\\", "git status )", "git status }", "git status `", "git status $(", "git status ${", "git status <<", "git 'sta''tus\n'", "'git\nstatus'",
	// What a shell does by itself, and programs that run others.
	"eval git status", "exec git status", "command git status", "builtin cd", "source x", ". x", "cd ..", "alias git=rm", "trap id EXIT", "set -x", "unset PATH", "hash -p /tmp/x git", "enable -f x y", "umask 0", "ulimit -c unlimited", "type git", "test", "history", "read x", "wait", ":", "exit", "return", "function",
	"env git status", "sudo git status", "nice git status", "xargs git status", "sh -c 'git status'", "bash -c 'git status; id'", "nohup git status", "timeout 9 git status", "busybox git status", "stdbuf -o0 git status", "find . -exec git status", "watch git status", "script -c id", "git -c core.pager=id log", "git -c alias.status=!id status", "git --exec-path=. status", "ssh h git status",
	// The same letters at other places.
	"git status .", "git statuses", "git", "status git", "gitstatus", "git  log -p", "git log --output=x", "git log --ext-diff", "git diff --stat --ext-diff", "ls -la", "ls ..", "ls /", "cat README.md /etc/passwd", "cat README.md.bak", "cat ./README.md x", "cat ../README.md", "go test ./... -exec=id", "go test -exec id ./...", "go test ./../...", "make test SHELL=id", "make -f evil test", "make test evil", "echo hello world", "echo -e hello",
	"npm test --script-shell=id", "npm test -- --x", "./build.sh x", "build.sh", ".//build.sh", "../build.sh", "./build.sh.x", "/build.sh", "./x/../build.sh", "grep -r todo . --include=x", "grep -r todo", "grep -r todo ..", "grep -r todo /", "/tmp/git status", "./git status", "bin/git status", "Git status", "GIT status", "git Status", "git 'status '", "git ' status'", "git '' status", "git status ''", "true true", "-git status", "a=b", "%git status", "git=status", ".. status",
}

// TestRuleAttacks holds each attack against every rule, as the verdict does (spec 12.5): none is
// allowed, and a rule that forbids one of the commands never lets through what it cannot compare.
func TestRuleAttacks(t *testing.T) {
	if len(ruleAttacks) < 120 {
		t.Fatalf("only %d attacks", len(ruleAttacks))
	}
	workspace, session := regie.NewID(), regie.NewID()
	rules := func(verdict regie.Verdict) (out []regie.Rule) {
		for _, command := range allowed {
			argv, ok := literal(command)
			if !ok {
				t.Fatalf("%q should be literal", command)
			}
			out = append(out, regie.Rule{
				ID: regie.NewID(), WorkspaceID: workspace, Verdict: verdict, Author: "ann",
				Scope: regie.Scope{Tool: Name, Kind: regie.ScopeArgv, Field: regie.FieldCommand, Value: regie.Command{Argv: argv, Dir: "."}.String()},
			})
		}
		return out
	}
	judge := func(command string, dir string, rules []regie.Rule, files ...approval.FileRule) regie.Verdict {
		return approval.Decide(approval.Input{
			Tool: Name, Kind: regie.KindAction, Risk: regie.RiskExternal, Signature: regie.HashOf([]byte(command)),
			Arguments: map[string]any{"command": command}, Rules: rules, Files: files, Runs: true, Parts: partsOf(command, dir),
			WorkspaceID: workspace, SessionID: session, Now: time.Now(), Levels: []approval.Level{{Source: regie.SourceApp, Require: approval.RequireWrites}},
		}).Verdict
	}
	for _, command := range allowed {
		if got := judge(command, ".", rules(regie.VerdictAllow)); got != regie.VerdictAllow {
			t.Errorf("%q: the rule for it gives %s", command, got)
		}
		if got := judge(command, "sub", rules(regie.VerdictAllow)); got != regie.VerdictAsk {
			t.Errorf("%q in another directory: got %s", command, got)
		}
	}
	// The same as rules of a file: for these commands, for every command, for every call.
	ofFile := func(command, dir string, rules ...approval.FileRule) regie.Verdict {
		return judge(command, dir, nil, rules...)
	}
	var inFile []approval.FileRule
	for _, command := range allowed {
		argv, _ := literal(command)
		inFile = append(inFile, approval.FileRule{Tool: Name, Argv: argv, Verdict: regie.VerdictAllow})
	}
	for _, command := range allowed {
		for dir, want := range map[string]regie.Verdict{".": regie.VerdictAllow, "docs": regie.VerdictAsk} {
			for _, rules := range [][]approval.FileRule{inFile, {{Tool: Name, Verdict: regie.VerdictAllow}}, {{Tool: "*", Verdict: regie.VerdictAllow}}} {
				if got := ofFile(command, dir, rules...); got != want {
					t.Errorf("%q in %s: a file gives %s", command, dir, got)
				}
			}
		}
	}
	seen := map[string]bool{}
	for _, command := range ruleAttacks {
		if got := ofFile(command, ".", inFile...); got != regie.VerdictAsk {
			t.Errorf("%q: got %s from rules of a file for other commands", command, got)
		}
		for _, name := range []string{Name, "shell.*", "*"} {
			if got := ofFile(command, ".", approval.FileRule{Tool: name, Cwd: "**", Verdict: regie.VerdictAllow}); partsOf(command, ".") == nil && got != regie.VerdictAsk {
				t.Errorf("%q: got %s from a rule of a file for every command", command, got)
			}
			if got := ofFile(command, ".", approval.FileRule{Tool: name, Verdict: regie.VerdictForbid}); got != regie.VerdictForbid {
				t.Errorf("%q: got %s where every command is forbidden", command, got)
			}
		}
		if seen[command] {
			t.Errorf("%q stands there twice", command)
		}
		seen[command] = true
		if got := judge(command, ".", rules(regie.VerdictAllow)); got != regie.VerdictAsk {
			t.Errorf("%q: got %s from rules for other commands", command, got)
		}
		if partsOf(command, ".") == nil {
			if got := judge(command, ".", rules(regie.VerdictForbid)); got != regie.VerdictMustAsk {
				t.Errorf("%q may hold what is forbidden, and gets %s", command, got)
			}
		}
	}
	t.Logf("%d attacks on %d rules", len(ruleAttacks), len(allowed))
}

// partsOf are the simple commands of a command.
func partsOf(command, dir string) (out []regie.Command) {
	l, _ := parseLine(command)
	for _, argv := range l.parts {
		out = append(out, regie.Command{Argv: argv, Dir: dir})
	}
	return out
}

// TestLines holds joined commands to the rules for their parts, and to what no rule may cover.
func TestLines(t *testing.T) {
	rule := func(verdict regie.Verdict, argv ...string) approval.FileRule {
		return approval.FileRule{Tool: Name, Argv: argv, Verdict: verdict}
	}
	rules := []approval.FileRule{rule(regie.VerdictForbid, "rm", "-rf", "x")}
	for _, argv := range [][]string{{"ls"}, {"git", "status"}, {"sh"}, {"wc", "-l"}, {"head"}, {"xargs", "rm"}, {"sort"}, {"tee", "a"}, {"awk", "1"}, {"A=1"}} {
		rules = append(rules, rule(regie.VerdictAllow, argv...))
	}
	for command, want := range map[string]regie.Verdict{
		"ls && git status": regie.VerdictAllow, "ls ; git status": regie.VerdictAllow, "ls||git status": regie.VerdictAllow,
		"git status | wc -l": regie.VerdictAllow, "git status | sort | head && ls": regie.VerdictAllow, "sh && ls": regie.VerdictAllow,
		"ls && npm test": regie.VerdictAsk, "npm test; ls": regie.VerdictAsk, "ls | grep x": regie.VerdictAsk, "ls 'a b' && ls": regie.VerdictAsk,
		"ls && rm -rf x": regie.VerdictForbid, "rm -rf x | wc -l": regie.VerdictForbid,
		// What a shell makes of it cannot be compared: it might be what is forbidden.
		"git status | sh": regie.VerdictMustAsk, "ls | xargs rm": regie.VerdictMustAsk, "ls | ./head": regie.VerdictMustAsk,
		"ls | tee a": regie.VerdictMustAsk, "ls | awk 1": regie.VerdictMustAsk, "ls | sh | head": regie.VerdictMustAsk,
		"ls |& head": regie.VerdictMustAsk, "ls & git status": regie.VerdictMustAsk, "ls && git status &": regie.VerdictMustAsk,
		"ls && git status > x": regie.VerdictMustAsk, "ls 2>&1 | head": regie.VerdictMustAsk, "ls | head < x": regie.VerdictMustAsk,
		"A=1 ls && ls": regie.VerdictMustAsk, "A=1 && ls": regie.VerdictMustAsk, "PATH=. ; ls": regie.VerdictMustAsk,
		"ls && $(git status)": regie.VerdictMustAsk, "ls && `git status`": regie.VerdictMustAsk, "ls && git $X": regie.VerdictMustAsk,
		"(ls && git status)": regie.VerdictMustAsk, "{ ls; git status; }": regie.VerdictMustAsk, "! ls | head": regie.VerdictMustAsk,
		"ls && cd sub && git status": regie.VerdictMustAsk, "alias ls=rm; ls": regie.VerdictMustAsk, "set -f; ls": regie.VerdictMustAsk,
		"ls\ngit status": regie.VerdictMustAsk, "ls &&\ngit status": regie.VerdictMustAsk, "ls; git status;": regie.VerdictMustAsk,
		"ls && git status # x": regie.VerdictMustAsk, "ls && git sta*": regie.VerdictMustAsk, "time ls | head": regie.VerdictMustAsk,
		"if ls; then ls; fi": regie.VerdictMustAsk, "ls && exec sh": regie.VerdictMustAsk, "f() { ls; }; ls": regie.VerdictMustAsk,
	} {
		got := approval.Decide(approval.Input{
			Tool: Name, Kind: regie.KindAction, Risk: regie.RiskExternal, Runs: true, Arguments: map[string]any{"command": command},
			Parts: partsOf(command, "."), Files: rules, WorkspaceID: regie.NewID(), Now: time.Now(),
		}).Verdict
		if got != want {
			t.Errorf("%q: got %s, want %s", command, got, want)
		}
	}
	l, ok := parseLine(`echo 'a  b'|cat&&ls "x y";true||false`)
	if want := `echo 'a  b' | cat && ls 'x y' ; true || false`; !ok || l.script() != want {
		t.Errorf("runs %q", l.script())
	}
}

// TestScopesAreTheToolsOwn shows that a rule about a command says nothing of other tools, and that
// no argument of a call can pose as one.
func TestScopesAreTheToolsOwn(t *testing.T) {
	value := regie.Command{Argv: []string{"git", "status"}, Dir: "."}.String()
	scope := regie.Scope{Tool: Name, Kind: regie.ScopeArgv, Field: regie.FieldCommand, Value: value}
	for _, row := range []struct {
		tool      string
		arguments map[string]any
		want      bool
	}{
		{Name, map[string]any{regie.FieldCommand: value}, true},
		{Name, map[string]any{regie.FieldCommand: regie.Command{Argv: []string{"git", "status"}, Dir: ".", Network: true}.String()}, false},
		{"mcp.run", map[string]any{regie.FieldCommand: value}, false},
		{Name, map[string]any{"command": "git status"}, false},
		{Name, map[string]any{regie.FieldCommand: []any{"git", "status"}}, false},
		{Name, map[string]any{regie.FieldCommand: `["git","status"]`}, false},
		{Name, nil, false},
	} {
		if got := scope.Matches(row.tool, regie.Hash{}, row.arguments); got != row.want {
			t.Errorf("%s with %v: got %v", row.tool, row.arguments, got)
		}
	}
	tools, err := Tools(Config{Sandbox: nil})
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if err := json.Unmarshal(tools[0].Definition().Parameters, &schema); err != nil || schema.Properties[regie.FieldCommand] != nil || string(schema.Additional) == "true" {
		t.Errorf("the tool takes an argument %s: %s", regie.FieldCommand, tools[0].Definition().Parameters)
	}
}

// FuzzLiteral compares what is taken for literal with what a shell makes of it.
func FuzzLiteral(f *testing.F) {
	for _, command := range slices.Concat(allowed, ruleAttacks) {
		f.Add(command)
	}
	sh, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("no bash to compare with")
	}
	f.Fuzz(func(t *testing.T, command string) {
		argv, ok := literal(command)
		if !ok || len(command) > 4000 {
			return
		}
		// The shell reads the same words and prints them, each ended by a byte that no word can
		// hold.
		words, found := strings.CutPrefix(strings.TrimLeft(command, " "), argv[0])
		if !found { // the program's name was quoted
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out, err := exec.CommandContext(ctx, sh, "--noprofile", "--norc", "-c", `printf '%s\0' x`+words).Output()
		if err != nil {
			t.Fatalf("%q: %v", command, err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if want[0] = argv[0]; !slices.Equal(argv, want) && !strings.HasPrefix(words, "'") {
			t.Errorf("%q: read as %q, the shell has %q", command, argv, want)
		}
	})
}
