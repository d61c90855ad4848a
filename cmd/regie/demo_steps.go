package main

import (
	"bufio"
	"bytes"
	"context"
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

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

const (
	// killAfter is how many writes the demo lets happen before it kills the run.
	killAfter = 3
	// demoTries bounds how often the demo starts over where the run was faster than the kill.
	demoTries = 10
)

// look shows the files.
func (d *demonstration) look(ctx context.Context) error {
	if err := d.tell(ctx,
		d.text.T("A scratch copy of a few notes. Your own files and data are not touched.")); err != nil {
		return err
	}
	notes, err := os.ReadDir(filepath.Join(d.workspace(), "notes"))
	if err != nil {
		return err
	}
	d.say("$ ls notes")
	names := make([]string, 0, len(notes))
	for _, note := range notes {
		names = append(names, note.Name())
	}
	d.say(strings.Join(names, "  "))
	return nil
}

// found is the file that the first job writes.
const found = "march.md"

// propose has something searched and written. The write asks; where nobody is there, the run waits
// and is approved by other commands.
func (d *demonstration) propose(ctx context.Context) error {
	if err := d.tell(ctx,
		d.text.T("It searches by itself. Before it writes it asks, and shows what would change.")); err != nil {
		return err
	}
	job := d.text.T("search for March in notes/ and write the result to march.md")
	code, err := d.run(ctx, true, "run", "--provider", "demo", job)
	if err != nil {
		return err
	}
	if code == exitParked && d.person {
		d.say(d.text.T("You left it for later: it waits in the store, and regie approve last would go on with it."))
		return nil
	}
	if code == exitParked {
		if code, err = d.run(ctx, false, "approvals", "show", "last"); err == nil && code == exitDone {
			code, err = d.run(ctx, false, "approve", "last")
		}
		if err != nil {
			return err
		}
	}
	_, err = os.Stat(filepath.Join(d.workspace(), found))
	switch {
	case code == exitDone && err == nil:
		d.say(d.text.T("Approved once, written once."))
	case d.person && errors.Is(err, fs.ErrNotExist):
		d.say(d.text.T("You did not allow it, so nothing was written."))
	default:
		return regie.Errorf(regie.CodeInternal, "the approved write ended with the exit code %d", code)
	}
	return nil
}

// crash runs the main job in another process until it has written a few files, and kills it in the
// middle of its batch of writes. Where it was faster than the kill it is undone, and done once
// more.
func (d *demonstration) crash(ctx context.Context) error {
	if err := d.tell(ctx,
		d.text.T("Now ten writes in one go, allowed beforehand; and in the middle of them the process is killed.")); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(d.dir, "before"), os.DirFS(d.workspace())); err != nil {
		return err
	}
	for try := 1; ; try++ {
		said, killed, err := d.job(ctx)
		if err != nil {
			return err
		}
		if killed {
			fmt.Fprint(d.stdout, said)
			return d.inspect(ctx)
		}
		if try == demoTries {
			return regie.Errorf(regie.CodeInternal, "the run ended before it could be killed, %d times", demoTries)
		}
		d.say(d.text.T("The run was faster than the kill: it is undone, and done once more."))
		if err := d.rewind(ctx); err != nil {
			return err
		}
	}
}

// rewind finishes a run that was killed too late, and takes it back.
func (d *demonstration) rewind(ctx context.Context) error {
	for _, args := range [][]string{{"run", "--resume", d.round.String()}, {"undo", "--yes", d.round.String()}} {
		child, err := d.child(ctx, args...)
		if err != nil {
			return err
		}
		var said bytes.Buffer
		child.Stdout, child.Stderr = &said, &said
		if err := child.Run(); err != nil {
			return regie.Errorf(regie.CodeInternal, "the run could not be taken back: %s", plain.Strip(said.String()))
		}
	}
	return nil
}

// job runs the main job and kills it; what it showed is returned.
func (d *demonstration) job(ctx context.Context) (said string, killed bool, err error) {
	job := d.text.T("Summarise every text of notes/ into summaries/")
	var screen strings.Builder
	fmt.Fprintln(&screen, "$ regie "+shown([]string{"run", "--provider", "demo", "--allow", "files.write_file", job}))
	child, err := d.child(ctx, "run", "--json", "--provider", "demo", "--allow", "files.write_file", job)
	if err != nil {
		return "", false, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", false, err
	}
	var complaints bytes.Buffer // progress too, but that is shown from the events
	child.Stderr = &complaints
	if err := child.Start(); err != nil {
		return "", false, err
	}
	written := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && written < killAfter {
		if d.see(&screen, lines.Bytes()) {
			written++
		}
	}
	if written == killAfter {
		if err := child.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return "", false, err
		}
		fmt.Fprintln(&screen, d.text.T("kill -9 %s, in the middle of its batch of writes",
			strconv.Itoa(child.Process.Pid)))
	}
	_, _ = io.Copy(io.Discard, out) // what it still said is in the log
	err = child.Wait()
	if died, ok := errors.AsType[*exec.ExitError](err); ok && died.ExitCode() == -1 && written == killAfter {
		open, err := d.unfinished(ctx)
		return screen.String(), open, err
	}
	if err != nil {
		d.say(plain.Strip(complaints.String()))
	}
	return "", false, err
}

// unfinished reports whether the kill came before the last write.
func (d *demonstration) unfinished(ctx context.Context) (bool, error) {
	view, err := d.view(ctx)
	if err != nil || len(view.Exchanges) == 0 {
		return false, err
	}
	for _, call := range view.Exchanges[len(view.Exchanges)-1].Calls {
		if call.State == regie.CallProposed {
			return true, nil
		}
	}
	return false, nil
}

// see shows an event of the run, and reports whether it is a write that was done.
func (d *demonstration) see(screen io.Writer, line []byte) bool {
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
		fmt.Fprintln(screen, "  "+event.Data.AI.Text())
	case event.Type == regie.EventToolResult:
		fmt.Fprintln(screen, "  ✓ "+event.Data.Tool)
		return event.Data.Tool == "files.write_file" && event.Data.State == regie.CallSucceeded
	}
	return false
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
		string(view.Round.State), len(last.Calls), states[regie.CallSucceeded],
		states[regie.CallStarted], states[regie.CallProposed]))
	return nil
}

// resume goes on with the killed run, and counts on the disk.
func (d *demonstration) resume(ctx context.Context) error {
	if err := d.tell(ctx,
		d.text.T("The same run goes on where it stood. What was done is not done again, what was started is looked up.")); err != nil {
		return err
	}
	if code, err := d.run(ctx, false, "run", "--resume", d.round.String()); err != nil || code != exitDone {
		return errors.Join(err, regie.Errorf(regie.CodeInternal,
			"the run that was resumed ended with the exit code %d", code))
	}
	return d.count()
}

// count checks on the disk that each write happened once.
func (d *demonstration) count() error {
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
	d.say(d.text.T("Each of the %d notes has one summary and one line: every write happened once.", len(notes)))
	return nil
}

// undo takes the whole run back, and compares every file with what was there before it.
func (d *demonstration) undo(ctx context.Context) error {
	if err := d.tell(ctx,
		d.text.T("All that the run did to files can be taken back at once, over the crash too.")); err != nil {
		return err
	}
	args := []string{"undo"}
	if !d.person {
		args = append(args, "--yes")
	}
	code, err := d.run(ctx, true, args...)
	if err != nil {
		return err
	}
	if code != exitDone && d.person {
		d.say(d.text.T("You left it as it is; regie undo would still do it later."))
		return nil
	}
	if code != exitDone {
		return regie.Errorf(regie.CodeInternal, "the undo ended with the exit code %d", code)
	}
	if err := same(filepath.Join(d.dir, "before"), d.workspace()); err != nil {
		return err
	}
	d.say(d.text.T("Every file is byte for byte what it was before that run."))
	return nil
}

// same compares two directories, in both directions.
func same(a, b string) error {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		left, right := os.DirFS(pair[0]), os.DirFS(pair[1])
		err := fs.WalkDir(left, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				_, err = fs.Stat(right, name)
				return err
			}
			was, err := fs.ReadFile(left, name)
			if err != nil {
				return err
			}
			is, err := fs.ReadFile(right, name)
			if err == nil && !bytes.Equal(was, is) {
				err = regie.Errorf(regie.CodeInternal, "%s is not what it was", name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// audit verifies the log of all that was done.
func (d *demonstration) audit(ctx context.Context) error {
	if err := d.tell(ctx,
		d.text.T("Everything stands in a log that is chained under a key: whoever changes a row of it is found out.")); err != nil {
		return err
	}
	if code, err := d.run(ctx, false, "verify"); err != nil || code != exitDone {
		return errors.Join(err, regie.Errorf(regie.CodeChainBroken,
			"the logs of the demo do not verify (exit code %d)", code))
	}
	d.say("")
	d.say(
		d.text.T("That was real: files, approval, kill, undo, log. Only the model was none. With a model: regie setup"))
	return nil
}

func (d *demonstration) view(ctx context.Context) (view store.RoundView, err error) {
	settings := d.config
	settings.DataDir = d.data()
	conn, err := app.Connect(ctx, app.Options{Config: settings, ReadOnly: true})
	if err != nil {
		return view, err
	}
	view, err = conn.Get(ctx, d.round)
	return view, errors.Join(err, conn.Close())
}
