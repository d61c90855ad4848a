package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
)

//go:embed demofiles
var demoFiles embed.FS

// demoTimeout bounds a demo that nobody has to answer.
const demoTimeout = time.Minute

// errLeft says that the person had enough.
var errLeft = errors.New("left")

func (c *command) demoCommand() *cobra.Command {
	var keep string
	cmd := &cobra.Command{
		Use: "demo", Annotations: map[string]string{ofThisMachine: "yes"}, Args: usage(cobra.NoArgs),
		Short: c.text.T("The whole job without a key: a search, a write that asks, a real kill -9, a resume, an undo"),
		Long:  c.text.T("Run the whole job on a scratch copy of a few files, without a key and without a model: it searches, asks before it writes, is killed with kill -9 in the middle of ten writes, goes on, is undone, and its log is verified. At a terminal you answer what it asks; elsewhere it runs by itself, in less than a minute. Your own files and data are not touched, and nothing is left behind."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			d := &demonstration{command: c, person: attended(c.stdin, c.stderr) && isTerminal(c.stdout)}
			if !d.person {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, demoTimeout,
					regie.Errorf(regie.CodeTimeout, "the demo took longer than %s", demoTimeout))
				defer cancel()
			}
			err := d.whole(ctx, keep)
			switch {
			case ctx.Err() != nil && regie.CodeOf(context.Cause(ctx)) == regie.CodeTimeout:
				return context.Cause(ctx)
			case ctx.Err() != nil:
				return exit{exitInterrupted}
			case errors.Is(err, errLeft):
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", c.text.T("make the scratch copy in this directory, and keep it"))
	return cmd
}

// demonstration is one scratch copy with its data directory.
type demonstration struct {
	*command
	dir    string
	person bool // somebody sits there and answers
	round  regie.ID
	step   int
}

func (d *demonstration) workspace() string { return filepath.Join(d.dir, "workspace") }
func (d *demonstration) data() string      { return filepath.Join(d.dir, "data") }

func (d *demonstration) say(line string) { fmt.Fprintln(d.stdout, line) }

// whole runs the demo in a directory of its own, and takes it away afterwards unless it is to be
// kept.
func (d *demonstration) whole(ctx context.Context, keep string) (err error) {
	if keep == "" {
		if d.dir, err = os.MkdirTemp("", "regie-demo-"); err != nil {
			return err
		}
		defer func() {
			if failed := os.RemoveAll(d.dir); err == nil {
				err = failed
			}
		}()
	} else {
		if d.dir, err = newDirectory(keep); err != nil {
			return err
		}
		defer func() { d.say(d.text.T("kept in %s", d.dir)) }()
	}
	if err := copyFiles(d.workspace()); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{d.look, d.propose, d.crash, d.resume, d.undo, d.audit} {
		if err := step(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// newDirectory makes a directory that holds nothing yet, so that nothing of anybody's is written
// over.
func newDirectory(name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", regie.Errorf(codeUsage, "the directory %s cannot be used: %v", name, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", regie.Errorf(codeUsage, "the directory %s cannot be used: %v", name, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", regie.Errorf(codeUsage, "the directory %s cannot be used: %v", name, err)
	}
	if len(entries) > 0 {
		return "", regie.Errorf(codeUsage, "the directory %s is not empty: name a new one", name)
	}
	return dir, nil
}

// tell says in a line what is about to be seen. A person goes on when they have read it, or leaves.
func (d *demonstration) tell(ctx context.Context, line string) error {
	d.step++
	if d.step > 1 {
		d.say("")
	}
	d.say("# " + line)
	if !d.person {
		return nil
	}
	fmt.Fprint(d.stderr, d.text.T("  [Enter goes on, q leaves] "))
	answer, err := d.typed(ctx)
	if err != nil {
		fmt.Fprintln(d.stderr)
		return errLeft
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); strings.HasPrefix(answer, "q") {
		return errLeft
	}
	return nil
}

// typed reads a line, byte by byte: what is typed beyond it belongs to the program that is started
// next.
func (d *demonstration) typed(ctx context.Context) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		var out []byte
		one := make([]byte, 1)
		for {
			n, err := d.stdin.Read(one)
			if n == 1 && one[0] == '\n' {
				read <- line{text: string(out)}
				return
			}
			if err != nil || n == 0 {
				read <- line{err: io.EOF}
				return
			}
			out = append(out, one[0])
		}
	}()
	select {
	case l := <-read:
		return l.text, l.err
	case <-ctx.Done(): // the read is left behind: the process ends
		return "", context.Cause(ctx)
	}
}

// child is this program in the scratch copy. Nothing of the person's own settings reaches it: no
// other model, no other data.
func (d *demonstration) child(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, args...)
	child.Dir = d.workspace()
	child.Env = []string{
		"HOME=" + d.dir, "REGIE_DATA_DIR=" + d.data(),
		"REGIE_LANG=" + d.text.Language(), "OLLAMA_HOST=127.0.0.1:9",
	}
	for _, name := range []string{
		"PATH", "TERM", "LC_ALL", "LC_CTYPE", "LANG", "NO_COLOR",
		"VISUAL", "EDITOR", "TMPDIR", "TZ",
	} {
		if value, set := os.LookupEnv(name); set {
			child.Env = append(child.Env, name+"="+value)
		}
	}
	return child, nil
}

// run shows a command and what it prints, and returns its exit code. What a person is to answer
// they are asked by the command itself.
func (d *demonstration) run(ctx context.Context, asks bool, args ...string) (int, error) {
	child, err := d.child(ctx, args...)
	if err != nil {
		return 0, err
	}
	d.say("$ regie " + shown(args))
	if asks && d.person {
		child.Stdin, child.Stdout, child.Stderr = d.stdin, d.stdout, d.stderr
		child.Cancel = func() error { return nil } // it gets the person's Ctrl-C itself
		child.WaitDelay = 10 * time.Second
	} else {
		child.Stdout = d.stdout
		child.Stderr = d.stdout // the same pipe, so that what it says stays in its order
	}
	err = child.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		if code := ended.ExitCode(); code != exitInterrupted {
			return code, nil
		}
		return exitInterrupted, errLeft
	}
	return 0, err
}

// shown writes a command as it would be typed.
func shown(args []string) string {
	out := make([]string, len(args))
	for i, arg := range args {
		if out[i] = arg; strings.ContainsAny(arg, " \"") {
			out[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

func copyFiles(to string) error {
	return fs.WalkDir(demoFiles, "demofiles", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(strings.TrimPrefix(name, "demofiles"), "/"))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := demoFiles.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}
