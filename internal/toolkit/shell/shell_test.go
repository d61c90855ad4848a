package shell

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/tool"
)

func TestMain(m *testing.M) {
	if code, ours := sandbox.Stage(os.Args); ours {
		syscall.Exit(code) // the race detector would sleep a second in os.Exit
	}
	os.Exit(m.Run())
}

// desk is the toolkit in a workspace.
type desk struct {
	t    *testing.T
	root string
	tool tool.Tool
}

func newDesk(t *testing.T, c sandbox.Config) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = os.Mkdir(filepath.Join(root, "sub"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Environ = os.Environ()
	box := sandbox.New(c)
	if found := box.For(t.Context(), root); c.Tier != "" && (found.Err != nil || found.Tier != c.Tier) {
		if os.Getenv("REGIE_CI") != "" && runtime.GOOS == "linux" {
			t.Fatalf("CI runs every tier, and %s does not work: %+v", c.Tier, found)
		}
		t.Skipf("the tier %s does not work here", c.Tier)
	}
	tools, err := Tools(Config{Sandbox: box, MaxTimeout: time.Minute, Snapshots: snapshot.New(t.TempDir(), "", snapshot.DefaultBounds())})
	if err != nil {
		t.Fatal(err)
	}
	return &desk{t, root, tools[0]}
}

func (d *desk) invocation(arguments map[string]any) *tool.Invocation {
	d.t.Helper()
	data, err := json.Marshal(arguments)
	if err != nil {
		d.t.Fatal(err)
	}
	return &tool.Invocation{CallID: regie.NewID(), Workspace: regie.Workspace{ID: regie.NewID(), Root: d.root}, Arguments: data}
}

// call shows, prepares and runs a command as the engine does, with a person's word where there was
// a preview.
func (d *desk) call(ctx context.Context, arguments map[string]any) tool.Outcome {
	d.t.Helper()
	inv := d.invocation(arguments)
	preview, problem := tool.DescribeCall(ctx, d.tool, inv)
	if problem != nil {
		return tool.Outcome{State: regie.CallFailed, Error: problem}
	}
	inv.Preconditions = preview.Preconditions
	if inv.Intent, problem = tool.Prepare(ctx, d.tool, inv); problem != nil {
		return tool.Outcome{State: regie.CallFailed, Error: problem}
	}
	return tool.Run(ctx, d.tool, inv)
}

var tiers = []sandbox.Tier{sandbox.Bubblewrap, sandbox.Landlock, sandbox.None}

func TestRuns(t *testing.T) {
	for _, tier := range tiers {
		t.Run(string(tier), func(t *testing.T) {
			d := newDesk(t, sandbox.Config{Tier: tier})
			for _, row := range []struct{ command, cwd, want string }{
				{"echo 'a  $b'", "", "exit code: 0\noutput:\na  $b\n"},
				{"true", "", "exit code: 0\nno output\n"},
				{"false", "", "exit code: 1\nno output\n"},
				{"pwd", "sub", "exit code: 0\noutput:\n" + d.root + "/sub\n"},
				{"cat", "", "exit code: 0\nno output\n"},
				{"echo $((1+1)) | tr 2 3", "", "exit code: 0\noutput:\n3\n"},
				{"echo {a,b}; [[ a == a ]] && echo bash", "", "exit code: 0\noutput:\na b\nbash\n"},
				{"kill -9 $$", "", "exit code: 137\nended by the signal SIGKILL\nno output\n"},
				{"exit 300", "", "exit code: 44\nno output\n"},
				{`printf 'a.txt\0deep/b.txt\0'`, "", "exit code: 0\noutput: 17 bytes that are not text, not shown\n"},
				{`printf 'h\0e\0l\0l\0o\0'`, "", "exit code: 0\noutput: 10 bytes that are not text, not shown\n"},
				{`printf 'a name\0\0\0\0\001'`, "", "exit code: 0\noutput: 11 bytes that are not text, not shown\n"},
				{`printf '\377\376\0'`, "", "exit code: 0\noutput: 3 bytes that are not text, not shown\n"},
				{`printf 'a\377b\n'`, "", "exit code: 0\noutput:\na\uFFFDb\n"},
				{`printf '\rone\rtwo\r\r\nend'`, "", "exit code: 0\noutput:\none\ntwo\nend\n"},
				{`printf '\033[31mred\033[0m \033]0;title\007 \u202e\r\nx'`, "", "exit code: 0\noutput:\nred  \nx\n"},
			} {
				got := d.call(t.Context(), map[string]any{"command": row.command, "cwd": row.cwd})
				if got.State != regie.CallSucceeded || got.Result != row.want {
					t.Errorf("%s: %s %q, %+v", row.command, got.State, got.Result, got.Error)
				}
			}
			long := d.call(t.Context(), map[string]any{"command": "seq 1 100000"})
			if len(long.Result) > 32<<10 || !strings.HasPrefix(long.Result, "exit code: 0\noutput, 588895 bytes:\n1\n2\n") || !strings.HasSuffix(long.Result, "99999\n100000\n") || long.Whole != "" ||
				!strings.Contains(long.Result, "bytes left out") {
				t.Errorf("a long output: %d bytes, %q … %q", len(long.Result), long.Result[:60], long.Result[len(long.Result)-60:])
			}
		})
	}
}

// TestExceeded ends a command with more processes than it may have, and says so to the model.
func TestExceeded(t *testing.T) {
	for _, tier := range tiers {
		t.Run(string(tier), func(t *testing.T) {
			d := newDesk(t, sandbox.Config{Tier: tier, Processes: 20})
			got := d.call(t.Context(), map[string]any{"command": "echo begun; for i in $(seq 40); do sleep 30 & done; wait"})
			if got.State != regie.CallUnknown || got.Error == nil || got.Error.Code != regie.CodeProcessLimit {
				t.Fatalf("got %s %q, %+v", got.State, got.Result, got.Error)
			}
			if text := got.Error.Message; !strings.Contains(text, "more than 20 processes") || !strings.Contains(text, "shell.max_processes") || !strings.Contains(text, "begun") {
				t.Errorf("it says %q", text)
			}
		})
	}
}

// TestNotRun is what fails without anything having happened.
func TestNotRun(t *testing.T) {
	d := newDesk(t, sandbox.Config{Tier: sandbox.Landlock})
	if err := os.Symlink("/", filepath.Join(d.root, "out")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		command, cwd string
		code         regie.Code
	}{
		{"", "", regie.CodeBadArguments},
		{"  \n", "", regie.CodeBadArguments},
		{"a\x00b", "", regie.CodeBadArguments},
		{"ls", "nothing", regie.CodeNotADirectory},
		{"ls", "..", regie.CodePathOutside},
		{"ls", "/etc", regie.CodePathOutside},
		{"ls", "out", regie.CodePathOutside},
		{"ls", "out/etc", regie.CodePathOutside},
		{"ls", "sub/../..", regie.CodePathOutside},
		{"no-such-program-here", "", regie.CodeNoProgram},
		{"./nothing", "", regie.CodeNoProgram},
		{"./sub", "", regie.CodeNoProgram},
	} {
		got := d.call(t.Context(), map[string]any{"command": row.command, "cwd": row.cwd})
		if got.State != regie.CallFailed || got.Error.Code != row.code {
			t.Errorf("%q in %q: %s %+v", row.command, row.cwd, got.State, got.Error)
		}
	}
}

// TestCutShort: what a command has done when its time is over, or when it is stopped, nobody knows
// (decision 5).
func TestCutShort(t *testing.T) {
	for _, tier := range tiers {
		t.Run(string(tier), func(t *testing.T) {
			d := newDesk(t, sandbox.Config{Tier: tier})
			late := d.call(t.Context(), map[string]any{"command": "echo begun; sleep 60", "timeout": 1})
			if late.State != regie.CallUnknown || !strings.Contains(late.Error.Message, "ended after 1s") || !strings.Contains(late.Error.Message, "begun") {
				t.Errorf("its time: %s %+v", late.State, late.Error)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			inv := d.invocation(map[string]any{"command": "echo begun; sleep 60"})
			preview, _ := tool.DescribeCall(ctx, d.tool, inv)
			inv.Preconditions = preview.Preconditions
			inv.Intent, _ = tool.Prepare(ctx, d.tool, inv)
			inv.Output = func(string) { cancel(regie.Errorf(regie.CodeStopRequested, "a person stops it")) }
			if got := tool.Run(ctx, d.tool, inv); got.State != regie.CallUnknown || got.Duration > 5*time.Second || !strings.Contains(got.Error.Message, "stopped") {
				t.Errorf("a stop: %s %+v after %s", got.State, got.Error, got.Duration)
			}
			if got := tool.Run(ctx, d.tool, inv); got.State != regie.CallFailed {
				t.Errorf("stopped before: %s %+v", got.State, got.Error)
			}
		})
	}
}

// TestLabels is what a person reads, and what an answer may cover, in each tier.
func TestLabels(t *testing.T) {
	for _, row := range []struct {
		config  sandbox.Config
		command string
		says    string
		warns   string
		binds   string
		scopes  int
		asks    bool
	}{
		{sandbox.Config{Tier: sandbox.Bubblewrap}, "git status", "run git status in ./, confined by bubblewrap, without network", "", "bubblewrap", 2, false},
		{sandbox.Config{Tier: sandbox.Landlock}, "git status", "run git status in ./, confined by landlock, without network", "", "landlock", 2, false},
		{sandbox.Config{Tier: sandbox.Bubblewrap, Network: true}, "git status", "run git status in ./, confined by bubblewrap, with the network", "send anything", "bubblewrap+network", 2, false},
		{sandbox.Config{Tier: sandbox.Landlock, Network: true}, "git status", "run git status in ./, confined by landlock, with the network", "send anything", "landlock+network", 2, false},
		{sandbox.Config{Tier: sandbox.None}, "git status", "run git status in ./, WITHOUT a sandbox", "it is not confined", "none", 0, true},
		{sandbox.Config{Tier: sandbox.None, Network: true}, "git status", "run git status in ./, WITHOUT a sandbox", "it is not confined", "none", 0, true},
		{sandbox.Config{Tier: sandbox.Bubblewrap}, "git status | cat", "run git status | cat in ./, confined by bubblewrap, without network", "", "bubblewrap", 2, false},
		{sandbox.Config{Tier: sandbox.Bubblewrap}, "git status | sh", "run git status | sh in ./, confined by bubblewrap, without network", "it runs in a shell", "bubblewrap", 0, false},
	} {
		d := newDesk(t, row.config)
		inv := d.invocation(map[string]any{"command": row.command})
		p, problem := tool.DescribeCall(t.Context(), d.tool, inv)
		var warnings []string
		for _, w := range p.Warnings {
			warnings = append(warnings, w.String())
		}
		if problem != nil || p.Sentence.String() != row.says || !strings.Contains(strings.Join(warnings, "\n"), row.warns) || row.warns == "" && len(warnings) > 0 {
			t.Errorf("%+v: %q, %q, %v", row.config, p.Sentence, warnings, problem)
		}
		if len(p.Preconditions) != 1 || p.Preconditions[0].Name != row.binds || len(p.Scopes) != row.scopes || p.Diff != "$ "+row.command+"\n" {
			t.Errorf("%+v: binds %+v, covers %+v, shows %q", row.config, p.Preconditions, p.Scopes, p.Diff)
		}
		if got := tool.MustAsk(t.Context(), d.tool, inv); (len(got) > 0) != row.asks {
			t.Errorf("%+v: must ask: %v", row.config, got)
		}
	}
}

// TestNetwork shows that a command reaches others exactly if its call asks for the network, and
// that the person reads so.
func TestNetwork(t *testing.T) {
	for _, tier := range []sandbox.Tier{sandbox.Bubblewrap, sandbox.Landlock} {
		d := newDesk(t, sandbox.Config{Tier: tier})
		server, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		_, port, _ := net.SplitHostPort(server.Addr().String())
		for _, network := range []bool{false, true} {
			arguments := map[string]any{"command": "exec 3<>/dev/tcp/127.0.0.1/" + port, "network": network}
			inv := d.invocation(arguments)
			said, _ := tool.DescribeCall(t.Context(), d.tool, inv)
			line, _ := tool.Command(t.Context(), d.tool, inv)
			got := d.call(t.Context(), arguments)
			if reached := strings.HasPrefix(got.Result, "exit code: 0"); reached != network || line.Network != network ||
				line.Confined == network || strings.HasSuffix(said.Sentence.String(), "with the network") != network {
				t.Errorf("%s with network %v: %q, %+v, %q", tier, network, got.Result, line, said.Sentence)
			}
			inv = d.invocation(arguments)
			inv.Preconditions = []regie.Precondition{{Kind: regie.PreconditionSandbox, Name: string(tier)}}
			if _, problem := tool.Prepare(t.Context(), d.tool, inv); (problem != nil) != network {
				t.Errorf("%s with network %v under an approval without one: %+v", tier, network, problem)
			}
		}
	}
}

// TestUnconfined holds a command back where it is not confined and nobody has allowed this very
// one, whoever else let it through.
func TestUnconfined(t *testing.T) {
	d := newDesk(t, sandbox.Config{Tier: sandbox.None})
	inv := d.invocation(map[string]any{"command": "echo x"})
	if _, problem := tool.Prepare(t.Context(), d.tool, inv); problem == nil || problem.Code != regie.CodeNoSandbox {
		t.Errorf("without a person's word: %+v", problem)
	}
	inv.Unattended = true
	if _, problem := tool.DescribeCall(t.Context(), d.tool, inv); problem == nil || problem.Code != regie.CodeNoSandbox {
		t.Errorf("unattended, it is asked about: %+v", problem)
	}
	inv.Preconditions = []regie.Precondition{{Kind: regie.PreconditionSandbox, Name: "none"}}
	if _, problem := tool.Prepare(t.Context(), d.tool, inv); problem == nil || problem.Code != regie.CodeNoSandbox {
		t.Errorf("unattended, with an approval: %+v", problem)
	}
	inv.Unattended, inv.Intent = true, json.RawMessage(`{"sandbox":"none","cwd":"."}`)
	if got := tool.Run(t.Context(), d.tool, inv); got.State != regie.CallFailed || got.Error.Code != regie.CodeNoSandbox {
		t.Errorf("unattended, run: %s %+v", got.State, got.Error)
	}
	confined := newDesk(t, sandbox.Config{Tier: sandbox.Landlock})
	inv = confined.invocation(map[string]any{"command": "echo x"})
	inv.Unattended = true
	intent, problem := tool.Prepare(t.Context(), confined.tool, inv)
	inv.Intent = intent
	if got := tool.Run(t.Context(), confined.tool, inv); problem != nil || got.State != regie.CallSucceeded {
		t.Errorf("unattended in a sandbox: %v, %s %+v", problem, got.State, got.Error)
	}
}

// TestOtherConditions: an approval binds what confines the command (decision 20).
func TestOtherConditions(t *testing.T) {
	d := newDesk(t, sandbox.Config{Tier: sandbox.Landlock})
	inv := d.invocation(map[string]any{"command": "echo x"})
	for _, name := range []string{"bubblewrap", "none", "landlock+network"} {
		inv.Preconditions = []regie.Precondition{{Kind: regie.PreconditionSandbox, Name: name}}
		if _, problem := tool.Prepare(t.Context(), d.tool, inv); problem == nil || problem.Code != regie.CodeStalePreview {
			t.Errorf("approved under %s: %+v", name, problem)
		}
		inv.Intent = json.RawMessage(`{"sandbox":"` + name + `","cwd":"."}`)
		if got := tool.Run(t.Context(), d.tool, inv); got.State != regie.CallFailed || got.Error.Code != regie.CodeNoSandbox {
			t.Errorf("prepared under %s: %s %+v", name, got.State, got.Error)
		}
	}
}

// TestStreams is what is told of an output while it comes.
func TestStreams(t *testing.T) {
	for _, row := range []struct {
		pieces []string
		want   string
	}{
		{[]string{"a", "b\n"}, "ab\n"},
		{[]string{"a\xff", "b\xc3"}, "a\uFFFDb\uFFFD"},
		{[]string{"a", "\x00b", "c"}, "a\n[…]\n"},
	} {
		var b strings.Builder
		s := &shown{tell: func(text string) { b.WriteString(text) }}
		for _, piece := range row.pieces {
			s.write([]byte(piece))
		}
		if b.String() != row.want {
			t.Errorf("%q: got %q", row.pieces, b.String())
		}
	}
	told := 0
	s := &shown{tell: func(text string) { told += len(text) }}
	for range 10_000 {
		s.write(make([]byte, 0))
		s.write([]byte(strings.Repeat("x", 1000)))
	}
	if told > maxShown+100 {
		t.Errorf("%d bytes were told", told)
	}
}

// FuzzOutput has no output render as what is no text, or as more than its bound.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("text\x1b[1mbold\x1b[0m\x1b]0;t\x07\xc3"), uint8(4))
	f.Add([]byte("\x1b"), uint8(200))
	f.Fuzz(func(t *testing.T, data []byte, limit uint8) {
		e := sandbox.NewExcerpt(int(limit) + 1)
		_, _ = e.Write(data)
		got := output(e)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\a") || len(got) > 3*2*(int(limit)+1)+200 || brief(e) == "" {
			t.Errorf("%q became %q", data, got)
		}
	})
}
