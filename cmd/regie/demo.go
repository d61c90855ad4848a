package main

import (
	"bufio"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/doctor"
	"github.com/regie-run/regie/internal/store"
)

//go:embed demofiles
var demoFiles embed.FS

// demoTimeout bounds a demo without a person.
const demoTimeout = time.Minute

// newDemoCommand shows the whole job on a scratch copy.
func newDemoCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Annotations: map[string]string{localOnly: "yes"}, Args: checkArgCount(0, 0),
		Short: env.T("Show a whole job without a key: search, approval, kill -9, resume, undo, automation"),
		Long:  env.T("Run a whole job on a scratch copy of a few files, without a key and without a model: it searches, asks before it writes, is killed with kill -9 in the middle of ten writes, continues, is undone, and does the same once more as an automation whose server is killed; its log is verified. At a terminal you answer its questions; elsewhere it runs by itself, in less than a minute. Your own files and data are not touched, and nothing is left behind."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			d := &demonstration{environment: env, person: isAttended(env.stdin, env.stderr) && isTerminal(env.stdout)}
			if !d.person {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, demoTimeout,
					regie.Errorf(regie.CodeTimeout, "the demo took longer than %s", demoTimeout))
				defer cancel()
			}
			err := d.runSteps(ctx)
			if cause := context.Cause(ctx); regie.CodeOf(cause) == regie.CodeTimeout {
				return cause
			}
			if ctx.Err() != nil {
				return exit{exitInterrupted}
			}
			return err
		},
	}
}

// demonstration is one scratch copy with its data directory.
type demonstration struct {
	*environment
	dir    string
	person bool // sits there and answers
	left   bool // the person did not undo the run
	round  regie.ID
}

func (d *demonstration) workspacePath(name ...string) string {
	return filepath.Join(append([]string{d.dir, "workspace"}, name...)...)
}

func (d *demonstration) printLine(line string) { fmt.Fprintln(d.stdout, line) }

// runSteps runs the steps in a directory of their own, and removes it afterwards.
func (d *demonstration) runSteps(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "regie-demo-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	files, err := fs.Sub(demoFiles, "demofiles")
	if err == nil {
		err = os.CopyFS(d.workspacePath(), files)
	}
	if err != nil {
		return err
	}
	for i, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{d.T("A scratch copy of a few notes. Your own files and data are not touched."), d.showFiles},
		{d.T("It searches by itself. Before it writes it asks, and shows what would change."), d.proposeWrite},
		{d.T("Now ten writes in one go, allowed beforehand; and in the middle of them the process is killed."), d.killRun},
		{d.T("The same run continues where it stopped. Finished writes are not repeated; the started one is checked."), d.resumeRun},
		{d.T("One command undoes all file changes of the run, also those from before the crash."), d.undoRun},
		{d.T("An automation does the same job by itself. The server is killed at it, and it still runs once."), d.fireAutomation},
		{d.T("Everything is in a log that is chained with a key: any changed row is detected."), d.verifyLogs},
	} {
		if i > 0 {
			d.printLine("")
		}
		d.printLine("# " + step.title)
		err := step.run(ctx)
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// startChild returns this program in the scratch copy, without the person's settings and data.
func (d *demonstration) startChild(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, args...)
	child.Dir = d.workspacePath()
	child.Env = []string{
		"HOME=" + d.dir, "REGIE_DATA_DIR=" + filepath.Join(d.dir, "data"),
		"REGIE_LANG=" + d.text.Language(), "OLLAMA_HOST=127.0.0.1:9",
	}
	for name := range strings.FieldsSeq("PATH TERM LC_ALL LC_CTYPE LANG NO_COLOR VISUAL EDITOR TMPDIR TZ") {
		if value, set := os.LookupEnv(name); set {
			child.Env = append(child.Env, name+"="+value)
		}
	}
	return child, nil
}

// runCommand shows a command and its output, and returns its exit code. A command that asks reads
// the person's answers itself.
func (d *demonstration) runCommand(ctx context.Context, asks bool, args ...string) (int, error) {
	child, err := d.startChild(ctx, args...)
	if err != nil {
		return 0, err
	}
	d.printLine(commandLine(args))
	if asks && d.person {
		child.Stdin, child.Stdout, child.Stderr = d.stdin, d.stdout, d.stderr
		child.Cancel = func() error { return nil } // the person's Ctrl-C reaches it
		child.WaitDelay = 10 * time.Second
	} else {
		child.Stdout = d.stdout
		child.Stderr = d.stdout // the same pipe keeps the order
	}
	err = child.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		if code := ended.ExitCode(); code != exitInterrupted {
			return code, nil
		}
		return 0, exit{exitInterrupted}
	}
	return 0, err
}

// commandLine writes a command as it would be typed.
func commandLine(args []string) string { return "$ regie " + doctor.QuoteAll(args) }

// killAfter is the number of writes before the kill.
const killAfter = 3

// showFiles shows the files.
func (d *demonstration) showFiles(context.Context) error {
	notes, err := os.ReadDir(d.workspacePath("notes"))
	names := make([]string, len(notes))
	for i, note := range notes {
		names[i] = note.Name()
	}
	d.printLine("$ ls notes\n" + strings.Join(names, "  "))
	return err
}

// proposeWrite has an agent search and write. The write asks; without a person the run waits, and
// other commands approve it.
func (d *demonstration) proposeWrite(ctx context.Context) error {
	code, err := d.runCommand(ctx, true, "run", "--provider", "demo",
		d.T("search for March in notes/ and write the result to march.md"))
	if err == nil && code == exitParked && !d.person {
		if code, err = d.runCommand(ctx, false, "approvals", "show", "last"); err == nil && code == exitDone {
			code, err = d.runCommand(ctx, false, "approve", "last")
		}
	}
	if err != nil {
		return err
	}
	_, err = os.Stat(d.workspacePath("march.md"))
	switch {
	case code == exitDone && err == nil:
		d.printLine(d.T("Approved once, written once."))
	case d.person && errors.Is(err, fs.ErrNotExist):
		d.printLine(d.T("You did not allow it, so nothing was written."))
	default:
		return regie.Errorf(regie.CodeInternal, "the approved write ended with the exit code %d", code)
	}
	return nil
}

// killRun runs the main job in another process, kills it during its batch of writes, and shows the
// resulting store.
func (d *demonstration) killRun(ctx context.Context) error {
	if err := os.CopyFS(filepath.Join(d.dir, "before"), os.DirFS(d.workspacePath())); err != nil {
		return err
	}
	job := d.T("Summarise every text of notes/ into summaries/")
	args := []string{"run", "--provider", "demo", "--allow", "files.write_file", job}
	child, err := d.startChild(ctx, args...)
	if err != nil {
		return err
	}
	d.printLine(commandLine(args))
	progress, err := child.StderrPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		return err
	}
	written := 0
	for lines := bufio.NewScanner(progress); written < killAfter && lines.Scan(); {
		line := lines.Text()
		d.printLine(line)
		for word := range strings.FieldsSeq(line) {
			if id, err := regie.ParseID(word); err == nil && d.round.IsZero() {
				d.round = id
			}
		}
		if strings.HasPrefix(line, "  ✓ files.write_file") {
			written++
		}
	}
	if written < killAfter {
		return errors.Join(child.Wait(), regie.Errorf(regie.CodeInternal, "the run ended before it could be killed"))
	}
	if err := child.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	d.printLine(d.T("kill -9 %s, in the middle of its batch of writes", strconv.Itoa(child.Process.Pid)))
	_ = child.Wait() // it was killed
	return d.inspectStore(ctx)
}

// inspectStore shows the store after the kill.
func (d *demonstration) inspectStore(ctx context.Context) error {
	settings := *d.environment
	settings.config.DataDir = filepath.Join(d.dir, "data")
	view, err := readStore(ctx, &settings, func(conn *app.Conn) (store.RoundView, error) {
		return conn.Get(ctx, d.round)
	})
	if err != nil || len(view.Exchanges) == 0 {
		return err
	}
	states := map[regie.CallState]int{}
	calls := view.Exchanges[len(view.Exchanges)-1].Calls
	for i := range calls {
		states[calls[i].State]++
	}
	d.printLine(d.T("The store says: the run is %s; of its %d writes %d are done, %d was started, %d have not begun.",
		string(view.Round.State), len(calls), states[regie.CallSucceeded],
		states[regie.CallStarted], states[regie.CallProposed]))
	return nil
}

// resumeRun resumes the killed run, and counts the files on the disk.
func (d *demonstration) resumeRun(ctx context.Context) error {
	if code, err := d.runCommand(ctx, false, "run", "--resume", d.round.String()); err != nil || code != exitDone {
		return errors.Join(err, regie.Errorf(regie.CodeInternal,
			"the run that was resumed ended with the exit code %d", code))
	}
	return d.countWrites()
}

// countWrites checks on the disk that each write happened once.
func (d *demonstration) countWrites() error {
	notes, err := os.ReadDir(d.workspacePath("notes"))
	if err != nil {
		return err
	}
	index, err := os.ReadFile(d.workspacePath("summaries", "index.md"))
	if err != nil {
		return err
	}
	d.printLine("$ cat summaries/index.md\n" + strings.TrimRight(string(index), "\n"))
	for _, note := range notes {
		lines := strings.Count(string(index), "(notes/"+note.Name()+")\n")
		if _, err := os.Stat(d.workspacePath("summaries", note.Name())); err != nil || lines != 1 {
			return regie.Errorf(regie.CodeInternal, "%s stands %d times in the index", note.Name(), lines)
		}
	}
	d.printLine(d.T("Each of the %d notes has one summary and one line: every write happened once.", len(notes)))
	return nil
}

// undoRun undoes the whole run, and compares every file with its earlier copy.
func (d *demonstration) undoRun(ctx context.Context) error {
	args := []string{"undo"}
	if !d.person {
		args = append(args, "--yes")
	}
	code, err := d.runCommand(ctx, true, args...)
	switch {
	case err != nil:
		return err
	case code != exitDone && d.person:
		d.printLine(d.T("You left it as it is; regie undo would still do it later."))
		d.left = true
		return nil
	case code != exitDone:
		return regie.Errorf(regie.CodeInternal, "the undo ended with the exit code %d", code)
	}
	before, err := readTree(filepath.Join(d.dir, "before"))
	if err != nil {
		return err
	}
	now, err := readTree(d.workspacePath())
	if err != nil {
		return err
	}
	if before != now {
		return regie.Errorf(regie.CodeInternal, "the files have changed")
	}
	d.printLine(d.T("Every file is byte for byte what it was before that run."))
	return nil
}

// automationIn is how long after its making the demo's automation runs.
const automationIn = 2 * time.Second

// fireAutomation has an automation do the main job under a server that is killed during it, and
// under the next one. The person's files are as before the first run, unless the person left them.
func (d *demonstration) fireAutomation(ctx context.Context) error {
	if d.left {
		d.printLine(d.T("Its files are still there, so this is left out."))
		return nil
	}
	at := time.Now().Add(automationIn)
	code, err := d.runCommand(ctx, false, "automations", "add", d.T("Summarise every text of notes/ into summaries/"),
		"--when", "once "+at.UTC().Format("2006-01-02T15:04:05"), "--zone", "UTC", "--allow", "files.write_file")
	if err != nil || code != exitDone {
		return errors.Join(err, regie.Errorf(regie.CodeInternal, "adding the automation ended with the exit code %d", code))
	}
	server, err := d.startServer(ctx)
	if err != nil {
		return err
	}
	for written := 0; written < killAfter && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		entries, _ := os.ReadDir(d.workspacePath("summaries")) // it comes with the first write
		written = len(entries)
	}
	_ = server.Process.Kill() // it may have ended
	d.printLine(d.T("kill -9 %s, in the middle of its batch of writes", strconv.Itoa(server.Process.Pid)))
	_ = server.Wait() // it was killed
	if server, err = d.startServer(ctx); err != nil {
		return err
	}
	settings := *d.environment
	settings.config.DataDir = filepath.Join(d.dir, "data")
	for done := false; !done && err == nil && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		done, err = readStore(ctx, &settings, func(conn *app.Conn) (bool, error) {
			found, err := conn.Automations.List(ctx, store.AutomationFilter{})
			return len(found) == 1 && found[0].LastFire != nil && found[0].LastFire.EndReason != "", err
		})
	}
	_ = server.Process.Signal(os.Interrupt) // it may have ended
	if err = errors.Join(err, server.Wait()); err != nil {
		return err
	}
	if _, err := d.runCommand(ctx, false, "automations", "runs", "last"); err != nil {
		return err
	}
	return d.countWrites()
}

// startServer starts a server of the scratch copy, with the scripted model.
func (d *demonstration) startServer(ctx context.Context) (*exec.Cmd, error) {
	args := []string{"serve", "--addr", "127.0.0.1:0", "--log-level", "error"}
	server, err := d.startChild(ctx, args...)
	if err != nil {
		return nil, err
	}
	server.Env = append(server.Env, "REGIE_PROVIDER=demo")
	d.printLine(commandLine(args))
	err = server.Start()
	return server, err
}

// readTree returns the names and contents of a directory as one text.
func readTree(dir string) (string, error) {
	var out strings.Builder
	files := os.DirFS(dir)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		fmt.Fprintf(&out, "%q %q\n", name, data)
		return err
	})
	return out.String(), err
}

// verifyLogs verifies the log of all that was done.
func (d *demonstration) verifyLogs(ctx context.Context) error {
	if code, err := d.runCommand(ctx, false, "verify"); err != nil || code != exitDone {
		return errors.Join(err, regie.Errorf(regie.CodeChainBroken,
			"the logs of the demo do not verify (exit code %d)", code))
	}
	d.printLine("\n" + d.T("All of it was real: files, approval, kill, undo, log. Only the model was scripted. For a real model: regie setup"))
	return nil
}
