// Package shell is the toolkit that runs commands (spec 8.2): shell.shell_exec, confined as package
// sandbox can on this machine. A command that is literal runs without a shell. Rules allow such
// commands, alone or joined by pipes, && and the like; anything else asks, each time.
//
// The toolkit starts no goroutine. What a call runs has ended, with everything that it started,
// before the call returns.
package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// Name is the tool's canonical name.
const Name = "shell.shell_exec"

const (
	defaultTimeout = 30 * time.Second // spec 4.3
	maxPlaces      = 5                // that a result names
	maxTaken       = 30               // places that git runs, and that a result names
	// ending is what comes to a command's own time: to find the sandbox, and to end what the
	// command has started.
	ending = 30 * time.Second
)

// MaxTimeout bounds what a call may take where the settings say nothing.
const MaxTimeout = 10 * time.Minute

// Config sets up the toolkit. Sandbox is required.
type Config struct {
	Sandbox *sandbox.Sandbox
	// MaxTimeout bounds the timeout that a call may ask for; zero means MaxTimeout.
	MaxTimeout time.Duration
	// Snapshots secure what the workspace holds before a command runs; nil: no undo takes back what
	// commands change.
	Snapshots *snapshot.Store
}

type toolkit struct {
	sandbox   *sandbox.Sandbox
	online    *sandbox.Sandbox // of a command that asks for the network
	snapshots *snapshot.Store
	most      time.Duration
}

type args struct {
	Command string `json:"command" jsonschema:"the command line, for a POSIX shell or bash"`
	Cwd     string `json:"cwd,omitempty" jsonschema:"the directory to run it in, relative to the workspace; the workspace itself where it is left out"`
	Timeout int    `json:"timeout,omitempty" jsonschema:"seconds after which it is ended, with everything that it has started; 30 where it is left out"`
	Network bool   `json:"network,omitempty" jsonschema:"the command needs other machines, such as npm install; a person is asked for that, so leave it out where it does not"`
}

// Tools returns shell.shell_exec (spec 8.2).
func Tools(c Config) ([]tool.Tool, error) {
	k := &toolkit{sandbox: c.Sandbox, snapshots: c.Snapshots, most: c.MaxTimeout}
	if c.Sandbox != nil {
		k.online = c.Sandbox.Online()
	}
	if k.most <= 0 {
		k.most = MaxTimeout
	}
	t, err := tool.New(regie.ToolDefinition{
		Name: Name, Aliases: []string{"shell_exec"}, Kind: regie.KindAction, Class: regie.ClassOnce,
		Risk: regie.RiskExternal, Timeout: k.most + ending,
		Description: "Run a command in the workspace. A person is asked, unless a rule allows exactly this command; plain commands, alone or joined by |, &&, || or ;, " +
			"without redirections, variables or wildcards, can be allowed for longer. Standard input is empty. It can write only in the workspace and in a temporary directory, " +
			"and has no network unless network is true. Nothing that it starts lives longer than it. The result has the exit code and the output, of a long one its beginning and its end, " +
			"and which files it changed. " +
			"Use the files tools to read and change files.",
	}, tool.Handler[args]{
		Run: k.run, Prepare: k.prepare, Preview: k.preview, CheckPreconditions: k.check, MustAsk: k.mustAsk,
		Command: k.command, Track: k.track, Changes: k.changes,
		Flow: k.flow,
		Schema: func(s *jsonschema.Schema) {
			least, most := 1.0, k.most.Seconds()
			s.Properties["timeout"].Minimum, s.Properties["timeout"].Maximum = &least, &most
			s.Properties["timeout"].Default = json.RawMessage(strconv.Itoa(int(defaultTimeout.Seconds())))
			length := MaxCommand
			s.Properties["command"].MaxLength = &length
		},
	})
	if err != nil {
		return nil, err
	}
	return []tool.Tool{t}, nil
}

// intent is what is stored with STARTED: under what the command was started.
type intent struct {
	Sandbox string   `json:"sandbox"`        // as in the precondition
	Argv    []string `json:"argv,omitempty"` // of a literal command
	Dir     string   `json:"cwd"`
	// Tree names the snapshot of what the workspace held.
	Tree regie.Hash `json:"tree,omitzero"`
	// Guarded says that only the session's mode allows the command: secret files are hidden from it
	// and git directories are read-only, where the sandbox can do that.
	Guarded bool `json:"guarded,omitempty"`
}

// place is a command's directory, in the workspace without links.
func place(inv *tool.Invocation, a args) (dir string, err error) {
	if inv.Workspace.Root == "" {
		return "", regie.Errorf(regie.CodeNotFound, "this workspace has no directory")
	}
	root, err := workspace.Open(inv.Workspace.Root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if a.Cwd == "" || a.Cwd == "." {
		return ".", nil
	}
	at, err := root.Place(a.Cwd)
	if err != nil {
		return "", tool.Advice{Err: err, Param: "cwd"}
	}
	if _, isDir, err := root.Look(at.Path); err != nil || !isDir {
		return "", tool.Advice{
			Err:   regie.Errorf(regie.CodeNotADirectory, "there is no directory %s", at.Path),
			Param: "cwd",
		}
	}
	return path.Clean(at.Path), nil
}

// command returns what rules and modes compare of a call: the simple commands that it consists of,
// none where its directory is unknown. A path through a link differs from the written one.
func (k *toolkit) command(ctx context.Context, inv *tool.Invocation, a args) tool.CommandLine {
	found, err := k.confined(ctx, inv, a)
	out := tool.CommandLine{
		Network:  k.asksNetwork(a),
		Confined: err == nil && found.Tier != sandbox.None && !k.box(a).Network(),
	}
	out.Unprotected = k.unprotectedPath(inv, a)
	l, ok := parseLine(a.Command)
	dir, err := place(inv, a)
	if !ok || err != nil {
		return out
	}
	for _, argv := range l.parts {
		out.Parts = append(out.Parts, regie.Command{Argv: argv, Dir: dir, Network: out.Network})
	}
	return out
}

// notInPath cuts a command into what may be paths.
var notInPath = regexp.MustCompile(`[^\pL\pN._/~@+-]+`)

// gitQueries are the git commands that change no repository.
var gitQueries = []string{
	"blame", "cat-file", "describe", "diff", "grep", "help", "log", "ls-files", "ls-tree", "merge-base", "rev-list",
	"rev-parse", "shortlog", "show", "show-ref", "status", "version",
}

// unprotectedPath returns a path in a command that is the name of a file that may hold a secret, or
// lies in a git directory, or a git command that changes a repository. It reads the command as
// text, so that a person is asked before the sandbox refuses; what a program opens by itself it
// does not see.
func (k *toolkit) unprotectedPath(inv *tool.Invocation, a args) string {
	root, err := workspace.Open(inv.Workspace.Root)
	if err != nil {
		return ""
	}
	defer root.Close()
	words := notInPath.Split(a.Command, -1)
	for i, word := range words {
		if path.Base(word) == "git" && i+1 < len(words) && !slices.Contains(gitQueries, words[i+1]) {
			return "git " + words[i+1]
		}
		if slices.Contains(strings.Split(word, "/"), ".git") {
			return word
		}
		for _, name := range []string{path.Join(a.Cwd, word), path.Base(word)} { // the second also behind $PWD
			if at, err := root.Place(name); err == nil && at.Secret {
				return at.Path
			}
		}
	}
	return ""
}

// asksNetwork reports whether a call asks for a network that commands do not have anyway.
func (k *toolkit) asksNetwork(a args) bool { return a.Network && !k.sandbox.Network() }

// box is the sandbox of a call.
func (k *toolkit) box(a args) *sandbox.Sandbox {
	if k.asksNetwork(a) {
		return k.online
	}
	return k.sandbox
}

// networkMark ends the label of a sandbox with the network.
const networkMark = "+network"

// label is what a command runs under, as a precondition names it.
func (k *toolkit) label(found sandbox.Found, a args) string {
	if k.box(a).Network() && found.Tier != sandbox.None {
		return string(found.Tier) + networkMark
	}
	return string(found.Tier)
}

// confined returns the confinement of a call. It refuses the call where the sandbox that the
// settings demand does not work, and without confinement in an unattended run.
func (k *toolkit) confined(ctx context.Context, inv *tool.Invocation, a args) (sandbox.Found, error) {
	found := k.box(a).For(ctx, inv.Workspace.Root)
	switch {
	case ctx.Err() != nil:
		return found, ctx.Err()
	case found.Err != nil:
		return found, found.Err
	case found.Tier == sandbox.None && inv.Unattended:
		return found, regie.Errorf(regie.CodeNoSandbox,
			"commands are not run unattended without a sandbox, and none works here: regie doctor says what is missing")
	default:
		return found, nil
	}
}

// mustAsk returns why a person decides each time regardless of the rules: nothing confines the
// command.
func (k *toolkit) mustAsk(ctx context.Context, inv *tool.Invocation, a args) []regie.Sentence {
	if found, err := k.confined(ctx, inv, a); err == nil && found.Tier == sandbox.None {
		return []regie.Sentence{regie.Say("commands are not confined here: a person decides each time")}
	}
	return nil
}

// check compares what the command would run under now with what the person was shown.
func (k *toolkit) check(ctx context.Context, inv *tool.Invocation, a args, preconditions []regie.Precondition) error {
	found, err := k.confined(ctx, inv, a)
	if err != nil {
		return err
	}
	for _, p := range preconditions {
		if p.Kind == regie.PreconditionSandbox && p.Name != k.label(found, a) {
			return regie.Errorf(regie.CodeStalePreview,
				"the command would run under other conditions than were shown (%s, not %s): it has to be approved anew",
				k.label(found, a), p.Name)
		}
	}
	return nil
}

// prepare fixes the confinement of the command. Unconfined it runs only with a person's approval of
// this very call.
func (k *toolkit) prepare(ctx context.Context, inv *tool.Invocation, a args) (json.RawMessage, error) {
	if err := runnable(a); err != nil {
		return nil, err
	}
	if err := k.check(ctx, inv, a, inv.Preconditions); err != nil {
		return nil, err
	}
	found, err := k.confined(ctx, inv, a)
	if err != nil {
		return nil, err
	}
	shown := slices.ContainsFunc(inv.Preconditions, func(p regie.Precondition) bool {
		return p.Kind == regie.PreconditionSandbox
	})
	if found.Tier == sandbox.None && !shown {
		return nil, regie.Errorf(regie.CodeNoSandbox,
			"nothing confines commands here, and nobody has allowed this very one")
	}
	dir, err := place(inv, a)
	if err != nil {
		return nil, err
	}
	tree, err := k.secure(ctx, inv)
	if err != nil {
		return nil, err
	}
	argv, _ := literal(a.Command)
	return json.Marshal(intent{Sandbox: k.label(found, a), Argv: argv, Dir: dir, Tree: tree, Guarded: inv.Unapproved})
}

// run runs the command. It fails with NotDone only where the command was never started; after a
// timeout or a stop its effects until then remain, and they are unknown (decision 5).
func (k *toolkit) run(ctx context.Context, inv *tool.Invocation, a args) (tool.Result, error) {
	var intended intent
	if err := json.Unmarshal(inv.Intent, &intended); err != nil {
		return tool.Result{}, tool.NotDone{Err: regie.Errorf(regie.CodeInternal, "the call was not prepared: %v", err)}
	}
	found, err := k.confined(ctx, inv, a)
	if err == nil && k.label(found, a) != intended.Sandbox {
		err = regie.Errorf(regie.CodeNoSandbox,
			"the sandbox is not the one that the command was prepared for: nothing was run")
	}
	dir, placed := place(inv, a)
	if err == nil {
		err = placed
	}
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	argv := append(shellArgv(), a.Command)
	if l, ok := parseLine(a.Command); ok && len(l.parts) == 1 {
		argv = l.parts[0]
	} else if ok {
		argv = append(shellArgv(), l.script())
	}
	timeout := min(time.Duration(a.Timeout)*time.Second, k.most)
	if timeout <= 0 {
		timeout = min(defaultTimeout, k.most)
	}
	var secrets []string
	if intended.Guarded {
		if secrets, err = workspace.SecretPaths(ctx, inv.Workspace.Root); err != nil {
			return tool.Result{}, tool.NotDone{Err: regie.Errorf(regie.CodeNoSandbox,
				"the mode auto cannot hide the secret files from the command: %v; ask for an approval in the mode ask", err)}
		}
	}
	said, show := sandbox.NewExcerpt(excerpt), &shown{tell: inv.Output}
	result, err := k.box(a).Run(ctx, sandbox.Command{
		Argv: argv, Root: inv.Workspace.Root, Dir: filepath.Join(inv.Workspace.Root, filepath.FromSlash(dir)),
		Tier: found.Tier, Timeout: timeout, Left: inv.Left, Hidden: secrets, ReadOnlyGit: intended.Guarded,
		Output: func(p []byte) {
			_, _ = said.Write(p)
			show.write(p)
		},
	})
	if end := slices.Concat(said.Head(), said.Tail()); inv.Output != nil && len(end) > 0 && end[len(end)-1] != '\n' {
		inv.Output("\n") // what comes next is not the command's
	}
	switch {
	case err != nil && regie.CodeOf(err) != regie.CodeToolError:
		return tool.Result{}, tool.NotDone{Err: err}
	case err != nil:
		return tool.Result{}, regie.Errorf(regie.CodeToolError, "%v\n%s", err, takenBack(result.Removed))
	case result.Exceeded != "" && !result.Stopped:
		return tool.Result{}, k.exceeded(result.Exceeded, said)
	case result.TimedOut:
		return tool.Result{}, regie.Errorf(regie.CodeTimeout,
			"the command was ended after %s, with everything that it had started; what it did until then stays. %s%s",
			timeout, takenBack(result.Removed), brief(said))
	case result.Stopped:
		return tool.Result{}, regie.Errorf(regie.CodeStopRequested,
			regie.CommandStopped+
				"the command was ended, with everything that it had started; what it did until then stays. %s%s",
			takenBack(result.Removed), brief(said))
	}
	return tool.Result{
		Content: report(result, said),
		Rest:    "run it again with its output in a file of the workspace, and read that",
	}, nil
}

// exceeded says at which bound a command was ended.
func (k *toolkit) exceeded(code regie.Code, said *sandbox.Excerpt) error {
	processes, memory := k.sandbox.Bounds()
	bound := fmt.Sprintf("%d processes, or too many threads (shell.max_processes)", processes)
	if code == regie.CodeMemoryLimit {
		bound = fmt.Sprintf("%d MiB of memory (shell.max_memory_bytes)", memory>>20)
	}
	return regie.Errorf(code,
		"the command was ended, with everything that it had started: it had more than %s; "+
			"what it did until then stays. Have it use less, or ask a person to raise the limit. %s", bound, brief(said))
}

// shellArgv returns the shell that runs what is not literal; the command is its last argument.
// Models write for bash, and a shell without its extensions would read some of that in another way.
func shellArgv() []string {
	for _, bash := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(bash); err == nil {
			return []string{bash, "--noprofile", "--norc", "-c"}
		}
	}
	return []string{"/bin/sh", "-c"}
}

// takenBack names what the command made or changed although git or Regie runs it.
func takenBack(all []sandbox.Moved) string {
	var b strings.Builder
	for _, m := range all[:min(len(all), maxTaken)] {
		from, to := sanitize.Line(m.From), sanitize.Line(m.To)
		fmt.Fprintf(&b, "a command may not make, change or remove %s, because git or regie runs what it says", from)
		if m.Err != nil {
			fmt.Fprintf(&b, "; it could not be put back (%s): have a person look at it before anybody runs git here",
				sanitize.Line(m.Err.Error()))
		}
		if m.Restored {
			b.WriteString("; it was put back")
		}
		if to != "" {
			b.WriteString("; what was written there is in " + to)
		}
		b.WriteByte('\n')
	}
	if more := len(all) - maxTaken; more > 0 {
		fmt.Fprintf(&b, "and %d more such places\n", more)
	}
	return b.String()
}

// report is what a model reads of a command that has ended.
func report(r sandbox.Result, said *sandbox.Excerpt) string {
	var b strings.Builder
	fmt.Fprintf(&b, regie.CommandExit+"%d\n", r.Exit)
	if r.Signal != "" {
		fmt.Fprintf(&b, "ended by the signal %s\n", r.Signal)
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "processes that it had left running, and that were ended: %d\n", r.Left)
	}
	b.WriteString(takenBack(r.Removed))
	places := func(names []string, what string) {
		if len(names) > 0 {
			shown := names[:min(len(names), maxPlaces)]
			fmt.Fprintf(&b, "%s: %s", what, sanitize.Line(strings.Join(shown, ", ")))
			if more := len(names) - len(shown); more > 0 {
				fmt.Fprintf(&b, " and %d more", more)
			}
			b.WriteByte('\n')
		}
	}
	places(r.Closed,
		"nothing can be written in these places, because there is more in them than is looked through for git repositories, or because they cannot be read")
	places(r.Unseen,
		"the command made more in these places than is looked through for git repositories: what runs programs there is not known")
	b.WriteString(output(said))
	return b.String()
}
