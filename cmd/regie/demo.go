package main

import (
	"bufio"
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

//go:embed demofiles
var demoFiles embed.FS

const (
	demoTimeout = time.Minute
	// killAfter is how many writes the demo lets happen before it kills the run.
	killAfter = 3
	// demoTries bounds how often the demo starts over where the run was faster than the kill.
	demoTries = 5
)

func (c *command) demoCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Args: usage(cobra.NoArgs),
		Short: c.text.T("The whole job without a key: real files, a real kill -9, a resume"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), demoTimeout, regie.Errorf(regie.CodeTimeout, "the demo took longer than %s", demoTimeout))
			defer cancel()
			return c.demo(ctx, keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, c.text.T("keep the scratch copy"))
	return cmd
}

// demo runs the main job on a scratch copy, kills it in the middle of a batch of writes, resumes it, and counts what was written.
func (c *command) demo(ctx context.Context, keep bool) error {
	dir, err := os.MkdirTemp("", "regie-demo-")
	if err != nil {
		return err
	}
	if keep {
		defer fmt.Fprintln(c.stdout, c.text.T("kept in %s", dir))
	} else {
		defer os.RemoveAll(dir)
	}
	d := &demonstration{command: c}
	for try := 1; ; try++ {
		d.dir = filepath.Join(dir, fmt.Sprint(try))
		killed, err := d.start(ctx)
		if err != nil {
			return err
		}
		if killed {
			break
		}
		if try == demoTries {
			return regie.Errorf(regie.CodeInternal, "the run ended before it could be killed, %d times", demoTries)
		}
		d.say(c.text.T("The run was faster than the kill. Once more, on a new copy."))
	}
	if err := d.inspect(ctx); err != nil {
		return err
	}
	if err := d.resume(ctx); err != nil {
		return err
	}
	return d.count(ctx)
}

// demonstration is one scratch copy with its data directory.
type demonstration struct {
	*command
	dir   string
	round regie.ID
}

func (d *demonstration) workspace() string { return filepath.Join(d.dir, "workspace") }
func (d *demonstration) data() string      { return filepath.Join(d.dir, "data") }

func (d *demonstration) say(format string) { fmt.Fprintln(d.stdout, format) }

// start copies the files and runs the job in another process until it has written a few files; then it kills it.
func (d *demonstration) start(ctx context.Context) (killed bool, err error) {
	if err := copyFiles(d.workspace()); err != nil {
		return false, err
	}
	job := d.text.T("Summarise every text of notes/ into summaries/")
	d.say("$ regie run --provider demo --allow files.write_file \"" + job + "\"")
	child, err := d.child(ctx, "run", "--json", "--provider", "demo", "--allow", "files.write_file", job)
	if err != nil {
		return false, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return false, err
	}
	var complaints bytes.Buffer // progress too, but that is shown from the events
	child.Stderr = &complaints
	if err := child.Start(); err != nil {
		return false, err
	}
	written := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && written < killAfter {
		if d.see(lines.Bytes()) {
			written++
		}
	}
	if written == killAfter {
		if err := child.Process.Kill(); err != nil {
			return false, err
		}
		d.say(d.text.T("kill -9 %s, in the middle of its batch of writes", strconv.Itoa(child.Process.Pid)))
	}
	_, _ = io.Copy(io.Discard, out) // what it still said is in the log
	err = child.Wait()
	var died *exec.ExitError
	if errors.As(err, &died) && died.ExitCode() == -1 {
		return true, nil
	}
	if err != nil {
		d.say(plain.Strip(complaints.String()))
	}
	return false, err
}

// see shows an event of the run, and reports whether it is a write that was done.
func (d *demonstration) see(line []byte) bool {
	var event struct {
		Type regie.EventType `json:"type"`
		Data struct {
			Tool    string          `json:"tool"`
			State   regie.CallState `json:"state"`
			RoundID regie.ID        `json:"round_id"`
			AI      *regie.AIReply  `json:"ai_message_json"`
		} `json:"data"`
	}
	if json.Unmarshal(line, &event) != nil {
		return false
	}
	switch {
	case event.Type == regie.EventRound && d.round != event.Data.RoundID:
		d.round = event.Data.RoundID
	case event.Type == regie.EventMessage && event.Data.AI != nil:
		d.say("  " + event.Data.AI.Text())
	case event.Type == regie.EventToolResult:
		d.say(fmt.Sprintf("  ✓ %s", event.Data.Tool))
		return event.Data.Tool == "files.write_file" && event.Data.State == regie.CallSucceeded
	}
	return false
}

func (d *demonstration) child(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, args...)
	child.Dir = d.workspace()
	child.Stderr = d.stderr
	// Nothing of the person's own settings reaches the demo: no other model, no other data.
	child.Env = []string{"HOME=" + d.dir, "PATH=" + os.Getenv("PATH"), "REGIE_DATA_DIR=" + d.data(), "REGIE_LANG=" + d.text.Language()}
	return child, nil
}

// inspect shows what the killed process has left in the store.
func (d *demonstration) inspect(ctx context.Context) error {
	view, err := d.view(ctx)
	if err != nil {
		return err
	}
	states := map[regie.CallState]int{}
	last := view.Exchanges[len(view.Exchanges)-1]
	for i := range last.Calls {
		states[last.Calls[i].State]++
	}
	d.say(d.text.T("The store says: the run is %s; of its %d writes %d are done, %d was started, %d have not begun.",
		string(view.Round.State), len(last.Calls), states[regie.CallSucceeded], states[regie.CallStarted], states[regie.CallProposed]))
	return nil
}

func (d *demonstration) resume(ctx context.Context) error {
	d.say("$ regie run --resume " + d.round.String())
	child, err := d.child(ctx, "run", "--resume", d.round.String())
	if err != nil {
		return err
	}
	child.Stdout = d.stdout
	child.Stderr = d.stdout
	return child.Run()
}

// count checks on the disk that each write happened once.
func (d *demonstration) count(ctx context.Context) error {
	notes, err := os.ReadDir(filepath.Join(d.workspace(), "notes"))
	if err != nil {
		return err
	}
	index, err := os.ReadFile(filepath.Join(d.workspace(), "summaries", "index.md"))
	if err != nil {
		return err
	}
	d.say("$ cat summaries/index.md")
	d.say(strings.TrimRight(string(index), "\n"))
	for _, note := range notes {
		if lines := strings.Count(string(index), "(notes/"+note.Name()+")\n"); lines != 1 {
			return regie.Errorf(regie.CodeInternal, "%s stands %d times in the index", note.Name(), lines)
		}
		if _, err := os.Stat(filepath.Join(d.workspace(), "summaries", note.Name())); err != nil {
			return err
		}
	}
	if lines := strings.Count(string(index), "\n"); lines != len(notes) {
		return regie.Errorf(regie.CodeInternal, "the index has %d lines for %d notes", lines, len(notes))
	}
	view, err := d.view(ctx)
	if err != nil {
		return err
	}
	if view.Audit == nil {
		return regie.Errorf(regie.CodeChainBroken, "%s", view.AuditError)
	}
	d.say(d.text.T("Each of the %d notes has one summary and one line: every write happened once. The log of %d events verifies.", len(notes), view.Audit.Events))
	return nil
}

func (d *demonstration) view(ctx context.Context) (view store.RoundView, err error) {
	settings := d.config
	settings.DataDir = d.data()
	conn, err := app.Connect(ctx, app.Options{Config: settings, ReadOnly: true})
	if err != nil {
		return view, err
	}
	var control dispatch.Control = conn
	view, err = control.Get(ctx, d.round)
	return view, errors.Join(err, conn.Close())
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
