//go:build faults

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// outcomes are what a long run must have seen, else it shows less than it says.
var outcomes = []string{
	"call SUCCEEDED", "call FAILED", "call UNKNOWN", "call NOT_RUN DENIED", "call NOT_RUN EXPIRED", "call NOT_RUN SUPERSEDED", "call NOT_RUN INTERRUPTED",
	"round ANSWERED", "round DENIED", "round INTERRUPTED", "round STOPPED", "round waits",
	"decision acked", "decision refused", "decision repeated", "decision edited", "decision allow_session", "effect under a rule", "answer acked",
	"round COMPLETED", "exchange FORMAT_ERROR_CORRECTION", "exchange NUDGE", "session COMPLETED", "session TIMEOUT", "note admitted", "note withdrawn", "note waits",
	"note repeated", "word PAUSE", "word RESUME", "word INTERRUPT", "word STOP", "fork", "fork before an open batch",
	"summary REPLIED", "summary FAILED", "prompt rebuilt",
	"named SUCCEEDED", "named FAILED",
	"queued",
	"undo", "redo", "undo of the chat", "undo acked", "file UNDONE",
	"command changed files", "command UNKNOWN changed files", "own command SUCCEEDED",
}

func (h *harness) fail(p plan, format string, args ...any) {
	h.world.violate("seed %d (%s): "+format, append([]any{p.seed, p.kind}, args...)...)
}

// forkEach is how many sessions are forked at every event of them: one of as many. The others are
// forked at one.
const forkEach = 5

// check asserts the invariants of spec 12.1 on what is left of a session.
func (h *harness) check(session regie.ID, p plan) {
	s, err := h.open(context.Background())
	if err != nil {
		h.fail(p, "what is left cannot be opened: %v", err)
		return
	}
	defer s.Close()
	h.checkIn(s, session, p, h.acked)
}

// checkIn asserts them in an open store.
func (h *harness) checkIn(s *sqlite.Store, session regie.ID, p plan, acked int64) {
	ctx := context.Background()
	told, err := readJournal(h.journal(p))
	if err != nil {
		h.fail(p, "the journal cannot be read: %v", err)
	}
	of := invariant.Case{
		Store: s, DB: h.world.db, Session: session, Told: told, Acked: acked, MayWait: p.kind == "left",
		Allows: func(string) bool { return len(p.policy.Allow) > 0 }, Unique: true,
		Files: h.files(p.seed), Root: h.root(p.seed), Shared: h.fleet != nil, Notes: []invariant.Note{{ID: "only", Text: firstText(p.seed)}}, Saw: h.saw,
		Fail: func(format string, args ...any) { h.fail(p, format, args...) },
	}
	if p.own() != "" {
		of.Notes = append(of.Notes, invariant.Note{ID: "own", Text: regie.CommandMark + p.own()})
	}
	for _, n := range p.notes {
		of.Notes = append(of.Notes, invariant.Note{ID: n.id, Text: n.text, Follows: true})
	}
	h.world.mu.Lock()
	of.Shown = maps.Clone(h.world.shown)
	for _, e := range h.world.effects {
		if strings.HasPrefix(e.Name, fmt.Sprintf("s%d/", p.seed)) {
			of.Effects = append(of.Effects, e)
		}
	}
	of.Effects = inTime(of.Effects)
	h.world.mu.Unlock()
	views, err := invariant.Check(ctx, of)
	if err != nil {
		h.fail(p, "what is left cannot be read: %v", err)
	}
	for i := range views {
		h.checkOwn(p, &views[i])
		for _, u := range views[i].Undos {
			if u.Left() > 0 {
				h.fail(p, "undo %s left files that nobody else has touched: %+v", u.ID, u.Files)
			}
		}
	}
	if p.undos == 0 { // else the log says what the files hold
		h.checkFiles(p, views)
	}
	h.checkPrompts(p, views)
	if report, err := s.Verify(ctx, session); err == nil {
		from, to := int64(1), report.Events
		if p.seed%forkEach != 0 {
			from = 1 + h.random.Int64N(to)
			to = from
		}
		invariant.Forks(ctx, of, from, to, providertest.Check)
	}
	if err := s.VerifyStats(ctx); err != nil {
		h.fail(p, "%v", err)
	}
	left, err := filepath.Glob(filepath.Join(h.work(p.seed), fmt.Sprintf("s%d", p.seed), ".regie-*"))
	if err != nil || len(left) > 0 {
		h.fail(p, "crashed writes left %v behind", left)
	}
}

// files reads the files of a session's workspace.
func (h *harness) files(seed uint64) invariant.Files {
	return func(path string) (regie.Hash, error) {
		path = filepath.Join(h.work(seed), path)
		if target, err := os.Readlink(path); err == nil {
			return regie.LinkState(target).Hash, nil
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			return regie.Hash{}, nil
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return regie.Hash{}, nil
		}
		return regie.HashOf(data), err
	}
}

// saw counts what a long run must have seen.
func (h *harness) saw(what string) {
	h.world.mu.Lock()
	defer h.world.mu.Unlock()
	h.seen[what]++
}

// between looks at what a death has left, before anything goes on: no file has changed that nobody
// intended to change.
func (h *harness) between(session regie.ID, p plan) {
	ctx := context.Background()
	s, err := h.open(ctx)
	if err != nil {
		h.fail(p, "what a death left cannot be opened: %v", err)
		return
	}
	defer s.Close()
	if n := h.begun(p); n > 1 {
		h.fail(p, "the person's command ran %d times (invariant 1)", n)
	}
	if err := invariant.Between(ctx, invariant.Case{
		Store: s, DB: h.world.db, Session: session, Files: h.files(p.seed), Saw: func(string) {}, Fail: func(format string, args ...any) { h.fail(p, format, args...) },
	}); err != nil {
		h.fail(p, "what a death left cannot be read: %v", err)
	}
}

// begun is how often the person's own command has run, as its file says.
func (h *harness) begun(p plan) int {
	// a missing one holds nothing
	data, _ := os.ReadFile(filepath.Join(h.work(p.seed), fmt.Sprintf("s%d", p.seed), "own.txt"))
	return strings.Count(string(data), "own\n")
}

// checkOwn asserts of a person's own command that it was intended before it ran, ran once at most,
// and that no model was asked for it.
func (h *harness) checkOwn(p plan, view *store.RoundView) {
	for i := range view.Exchanges {
		e := &view.Exchanges[i]
		if e.Reason != regie.ExchangeCommand {
			continue
		}
		if len(view.Exchanges) > 1 || e.Attempts != nil || !e.Request.IsZero() || len(e.Calls) > 1 {
			h.fail(p, "a command became %d exchanges with %d calls, and a model was asked: %v", len(view.Exchanges), len(e.Calls), !e.Request.IsZero())
		}
		for k := range e.Calls {
			c := &e.Calls[k]
			h.saw("own command " + string(c.State))
			if n := h.begun(p); n > 1 || n == 1 && c.StartedAt.IsZero() || c.Attempts > 1 {
				h.fail(p, "the person's command is %s and ran %d times (invariants 1, 2)", c.State, n)
			}
		}
	}
}

// written is one change of a file, as all the calls of a session say it that mean the same one: a
// model repeats a call, and the loop guard refuses the second one beside the effect of the first.
type written struct {
	tool, path, content string
	state               regie.CallState // of the call that came furthest
}

// joinEqual returns each change of a session once.
func joinEqual(views []store.RoundView) (all []written, err error) {
	at := map[written]int{}
	for _, view := range views {
		for _, exchange := range view.Exchanges {
			for _, call := range exchange.Calls {
				if !slices.Contains([]string{"files.write_file", "files.edit_file", "files.delete_file"}, call.Tool) {
					continue
				}
				arguments := []byte(call.Arguments)
				if len(call.Executed) > 0 {
					arguments = call.Executed
				}
				var args struct {
					Path, Content string
					Edits         []struct{ New string }
				}
				if err := json.Unmarshal(arguments, &args); err != nil {
					return nil, fmt.Errorf("the arguments %s cannot be read: %w", arguments, err)
				}
				change := written{tool: call.Tool, path: args.Path, content: args.Content}
				if len(args.Edits) > 0 {
					change.content = args.Edits[0].New
				}
				i, known := at[change]
				if !known {
					i, at[change] = len(all), len(all)
					all = append(all, change)
				}
				if all[i].state != regie.CallSucceeded && (!known || call.State == regie.CallSucceeded || call.State == regie.CallUnknown) {
					all[i].state = call.State
				}
			}
		}
	}
	return all, nil
}

// holds reports whether a file may hold a change so many times.
func (w *written) holds(count int) bool {
	switch w.state {
	case regie.CallSucceeded:
		return count == 1
	case regie.CallUnknown:
		return count <= 1
	default:
		return count == 0
	}
}

// checkFiles compares the files with the calls of a session that changed them.
func (h *harness) checkFiles(p plan, views []store.RoundView) {
	changes, err := joinEqual(views)
	if err != nil {
		h.fail(p, "%v", err)
	}
	for i := range changes {
		change := &changes[i]
		file, err := os.ReadFile(filepath.Join(h.work(p.seed), change.path)) // a missing one holds nothing
		if change.tool == "files.write_file" {
			if count := strings.Count("\n"+string(file), "\n"+change.content); !change.holds(count) {
				h.fail(p, "the write of %q is %s and stands %d times in the file (invariant 1)", change.content, change.state, count)
			}
			continue
		}
		// either the file is as it was, or all is done
		after := os.IsNotExist(err)
		if change.tool == "files.edit_file" {
			after = err == nil && string(file) == change.content
		}
		count := 0
		if after {
			count = 1
		}
		if before := err == nil && string(file) == untouched; before == after || !change.holds(count) {
			h.fail(p, "%s of %s is %s, and the file holds %q, %v (invariant 1)", change.tool, change.path, change.state, file, err)
		}
	}
}

// TestJoinEqual: a refused repetition is judged by what it repeats; a second effect still fails.
func TestJoinEqual(t *testing.T) {
	write := func(state regie.CallState, content string) store.RoundView {
		return store.RoundView{Exchanges: []store.ExchangeView{{Calls: []regie.Call{{Tool: "files.write_file", State: state, Arguments: fmt.Sprintf(`{"path":"a.md","content":%q}`, content)}}}}}
	}
	for _, c := range []struct {
		states []regie.CallState
		counts []bool // whether the file may hold it 0, 1, 2 times
	}{
		{[]regie.CallState{regie.CallSucceeded}, []bool{false, true, false}},
		{[]regie.CallState{regie.CallNotRun}, []bool{true, false, false}},
		{[]regie.CallState{regie.CallUnknown}, []bool{true, true, false}},
		{[]regie.CallState{regie.CallSucceeded, regie.CallNotRun}, []bool{false, true, false}},
		{[]regie.CallState{regie.CallNotRun, regie.CallSucceeded}, []bool{false, true, false}},
		{[]regie.CallState{regie.CallUnknown, regie.CallNotRun}, []bool{true, true, false}},
		{[]regie.CallState{regie.CallUnknown, regie.CallSucceeded}, []bool{false, true, false}},
		{[]regie.CallState{regie.CallFailed, regie.CallNotRun}, []bool{true, false, false}},
	} {
		views := []store.RoundView{write(regie.CallNotRun, "other")}
		for _, state := range c.states {
			views = append(views, write(state, "same"))
		}
		changes, err := joinEqual(views)
		if err != nil || len(changes) != 2 {
			t.Fatalf("%v: %+v, %v", c.states, changes, err)
		}
		for count, want := range c.counts {
			if got := changes[1].holds(count); got != want {
				t.Errorf("%v and %d times in the file: %t", c.states, count, got)
			}
		}
	}
}
