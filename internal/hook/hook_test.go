package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/hook"
)

// TestMain makes this program the hooks of its tests: what HOOK_TEST says is what it does.
func TestMain(m *testing.M) {
	do, is := os.LookupEnv("HOOK_TEST")
	if !is {
		os.Exit(m.Run())
	}
	told, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(1)
	}
	what, arg, _ := strings.Cut(do, " ")
	switch what {
	case "say":
		fmt.Print(arg)
	case "refuse":
		fmt.Fprintln(os.Stderr, arg)
		os.Exit(2)
	case "fail":
		fmt.Fprintln(os.Stderr, "oh\nno")
		os.Exit(3)
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		hang()
	case "hang": // with a child that would outlive it
		attr := os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}, Env: []string{"HOOK_TEST=hang-on"}}
		child, err := os.StartProcess(os.Args[0], os.Args, &attr)
		if err == nil {
			err = os.WriteFile(arg, fmt.Appendf(nil, "%d", child.Pid), 0o600)
		}
		if err != nil {
			os.Exit(1)
		}
		hang()
	case "hang-on":
		hang()
	case "flood":
		for range 10_000 {
			fmt.Println(strings.Repeat("x", 100))
		}
	case "keep":
		env, _ := json.Marshal(os.Environ())
		dir, _ := os.Getwd()
		_ = os.WriteFile(arg, []byte(string(told)+"\n"+string(env)+"\n"+dir), 0o600)
	}
	os.Exit(0)
}

// hang waits for a signal that never comes.
func hang() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGWINCH)
	<-never
}

// set returns one hook that does something.
func set(t *testing.T, h hook.Hook, do string) *hook.Set {
	t.Helper()
	if h.Command == nil {
		h.Command = []string{os.Args[0]}
	}
	h.Where, h.Dir = "file (hooks[1])", t.TempDir()
	environ := func(named []string, _ string) []string {
		return append([]string{"HOOK_TEST=" + do, "PATH=" + os.Getenv("PATH")}, named...)
	}
	return hook.NewSet([]hook.Hook{h}, environ, slog.New(slog.DiscardHandler))
}

func input(t *testing.T, on regie.HookPoint) regie.HookInput {
	t.Helper()
	in := regie.HookInput{On: on, RoundID: regie.NewID(), Workspace: t.TempDir()}
	if on == regie.HookBeforeTool || on == regie.HookAfterTool {
		in.Call = &regie.HookCall{ID: regie.NewID(), Tool: "files.write_file", Arguments: json.RawMessage(`{"path":"a"}`)}
	}
	return in
}

func TestAnswers(t *testing.T) {
	const tool, round, after = regie.HookBeforeTool, regie.HookBeforeRound, regie.HookAfterTool
	for _, c := range []struct {
		name    string
		on      regie.HookPoint
		failure regie.Verdict
		do      string
		verdict regie.Verdict
		says    string // in the objection
	}{
		{"nothing is no objection", tool, "", "say ", "", ""},
		{"allow is none either", tool, "", `say {"decision":"allow","reason":"fine"}`, "", ""},
		{"ask", tool, "", `say {"decision":"ask","reason":"look"}`, regie.VerdictMustAsk, "requires an approval: look"},
		{"ask, without a reason", tool, "", `say {"decision":"ask"}`, regie.VerdictMustAsk, "requires an approval"},
		{"forbid", tool, "", `say {"decision":"forbid","reason":"no"}`, regie.VerdictForbid, "forbids it: no"},
		{"exit code 2", tool, "", "refuse not\there", regie.VerdictForbid, "forbids it: not here"},
		{"exit code 2 counts whatever fails closed means", tool, regie.VerdictAllow, "refuse no", regie.VerdictForbid, "no"},
		{"nobody is asked about a round", round, "", `say {"decision":"ask","reason":"look"}`, regie.VerdictForbid, "look"},
		{"a round is refused", round, "", "refuse not today", regie.VerdictForbid, "not today"},
		{"another exit code", tool, "", "fail", regie.VerdictForbid, "the call is blocked: it ended with exit code 3: oh no"},
		{"it may be asked about then", tool, regie.VerdictMustAsk, "fail", regie.VerdictMustAsk, "failed: it ended with exit code 3"},
		{"or pass", tool, regie.VerdictAllow, "fail", "", ""},
		{"killed", tool, "", "die", regie.VerdictForbid, "killed"},
		{"no decision", tool, "", `say {"decision":"yes"}`, regie.VerdictForbid, `its decision is "yes"`},
		{"a key in another case", tool, "", `say {"Decision":"allow"}`, regie.VerdictForbid, "its output is not"},
		{"a key twice", tool, "", `say {"decision":"forbid","decision":"allow"}`, regie.VerdictForbid, "its output is not"},
		{"words", tool, "", "say fine by me", regie.VerdictForbid, "its output is not"},
		{"more than anybody reads", tool, "", "flood", regie.VerdictForbid, "its output is not"},
		{"after it nothing can be refused", after, "", "refuse no", "", ""},
		{"after it what is written is not read", after, "", "say fine", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := set(t, hook.Hook{On: c.on, OnFailure: c.failure, Timeout: time.Minute}, c.do).Run(t.Context(), input(t, c.on))
			if len(ran) != 1 || ran[0].Verdict != c.verdict || ran[0].On != c.on || ran[0].Hook != "file (hooks[1])" {
				t.Fatalf("%+v, want %q", ran, c.verdict)
			}
			if said := ran[0].Objection().String(); c.verdict != "" && !strings.Contains(said, c.says) || len(said) > 1500 {
				t.Errorf("%q has no %q, or is too long", said, c.says)
			}
			if heard := strings.HasPrefix(c.do, "say") && !strings.Contains(c.says, "output") && !strings.Contains(c.says, "its decision"); heard && !ran[0].Failure.IsZero() {
				t.Errorf("it was heard: %v", ran[0].Failure)
			}
		})
	}
}

// TestTimeout has a hook hang, with a child of its own: nothing of them is left.
func TestTimeout(t *testing.T) {
	file := filepath.Join(t.TempDir(), "child")
	ran := set(t, hook.Hook{On: regie.HookBeforeTool, Timeout: 2 * time.Second}, "hang "+file).Run(t.Context(), input(t, regie.HookBeforeTool))
	if len(ran) != 1 || ran[0].Verdict != regie.VerdictForbid || !strings.Contains(ran[0].Failure.String(), "longer than 2s") {
		t.Fatalf("%+v", ran)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(string(data), &child); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; { // it is reaped by whoever adopted it
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the hook's child %d lives: %s", child, stat)
		}
	}
}

// TestCut has the caller's context end: what was cut says nothing.
func TestCut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ran := set(t, hook.Hook{On: regie.HookBeforeTool}, "say ").Run(ctx, input(t, regie.HookBeforeTool)); len(ran) != 0 {
		t.Errorf("%+v", ran)
	}
}

func TestWhatItIsTold(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept")
	in := input(t, regie.HookBeforeTool)
	s := set(t, hook.Hook{On: regie.HookBeforeTool, Env: []string{"WISHED=1"}}, "keep "+kept)
	if ran := s.Run(t.Context(), in); len(ran) != 1 || ran[0].Verdict != "" || ran[0].CallID != in.Call.ID || ran[0].Tool != in.Call.Tool {
		t.Fatalf("%+v", ran)
	}
	data, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	told, rest, _ := strings.Cut(string(data), "\n")
	environ, dir, _ := strings.Cut(rest, "\n")
	var back regie.HookInput
	if err := json.Unmarshal([]byte(told), &back); err != nil || back.RoundID != in.RoundID || back.Call.ID != in.Call.ID || string(back.Call.Arguments) != `{"path":"a"}` {
		t.Errorf("%s: %v", told, err)
	}
	for _, want := range []string{`"REGIE_HOOK=before_tool"`, `"REGIE_WORKSPACE=` + in.Workspace + `"`, `"WISHED=1"`} {
		if !strings.Contains(environ, want) {
			t.Errorf("no %s in %s", want, environ)
		}
	}
	if dir == in.Workspace || dir == "" {
		t.Errorf("it ran in %q", dir)
	}
}

// TestFromTheWorkspace has hooks that a model could have written: none runs.
func TestFromTheWorkspace(t *testing.T) {
	in := input(t, regie.HookBeforeTool)
	script := filepath.Join(in.Workspace, "check.sh")
	ran := filepath.Join(t.TempDir(), "ran")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(script, link); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{script}, {link}, {"sh", script}, {"sh", link}, {"no-such-program-anywhere"}} {
		out := set(t, hook.Hook{On: regie.HookBeforeTool, Command: command}, "").Run(t.Context(), in)
		if len(out) != 1 || out[0].Verdict != regie.VerdictForbid || out[0].Failure.IsZero() {
			t.Errorf("%v: %+v", command, out)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran")
	}
}

// TestOrder has several hooks: they run in their order until one forbids, each only for its tools.
func TestOrder(t *testing.T) {
	environ := func(named []string, _ string) []string { return named }
	one := func(say string, tools ...string) hook.Hook {
		return hook.Hook{On: regie.HookBeforeTool, Tools: tools, Command: []string{os.Args[0]}, Env: []string{"HOOK_TEST=" + say}, Where: say, Dir: t.TempDir()}
	}
	s := hook.NewSet([]hook.Hook{
		one("say ", "shell.*"), one(`say {"decision":"ask"}`, "files.*"), one("refuse a", "*.write_file"), one("refuse b"),
	}, environ, slog.New(slog.DiscardHandler))
	ran := s.Run(t.Context(), input(t, regie.HookBeforeTool))
	if len(ran) != 2 || ran[0].Verdict != regie.VerdictMustAsk || ran[1].Reason != "a" {
		t.Errorf("%+v", ran)
	}
	if worst := regie.Strictest(ran); worst == nil || worst.Reason != "a" {
		t.Errorf("%+v", worst)
	}
	if !s.Matches(regie.HookBeforeTool, "notes.add") || s.Matches(regie.HookAfterTool, "notes.add") || s.Matches(regie.HookBeforeRound, "") {
		t.Error("what they are about is not told")
	}
}
