package invariant

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/files"
	"github.com/regie-run/regie/internal/toolkit/shell"
)

// Files returns the present hash of a file of the workspace, or the zero hash if there is none.
type Files func(path string) (regie.Hash, error)

// expected is the state of the changed files according to the session's log.
type expected struct {
	left map[string]regie.Hash // by path; the zero hash: no file
	// unsure are the files in an unknown state: a call that changes them has no known outcome, or a
	// change was not applied to them.
	unsure map[string]bool
	// loose says that a command is running, or that its changes are unknown: any file may hold
	// anything.
	loose bool
	// open are further possible states of files, during an undo or a call.
	open map[string][]regie.Hash
}

// checkUndos asserts that each undo is done once, records the earlier state correctly, and told the
// thread. Files hold the result of the last change (invariant 19): an undone file is byte for byte
// the one from before the round.
func (c *check) checkUndos(ctx context.Context) {
	changes := c.changes()
	for i := range c.views {
		view := &c.views[i]
		before, after := ends(view, changes)
		for k := range view.Undos {
			c.checkUndo(ctx, &view.Undos[k], before, after)
		}
	}
	c.checkUndoOrder()
	if c.Files == nil {
		return
	}
	x := c.expect(changes)
	for path, want := range x.left {
		is, err := c.Files(path)
		if err != nil {
			c.Fail("%s cannot be read: %v", path, err)
		} else if is != want && !x.loose && !x.unsure[path] && !slices.Contains(x.open[path], is) {
			c.Fail("%s holds %.8s, the last that touched it left %.8s (invariant 19)", path, is, want)
		}
	}
}

// checkUndo compares an undo with the calls that it reverts, independently of the plan.
func (c *check) checkUndo(ctx context.Context, u *regie.Undo, before,
	after map[string]regie.Hash,
) {
	if u.State != regie.UndoDone {
		c.Fail("undo %s is %s, and nothing goes on with it", u.ID, u.State)
	}
	c.saw("undo")
	if !u.Undoes.IsZero() {
		c.saw("redo")
	}
	if u.Chat {
		c.saw("undo of the chat")
	}
	for i := range u.Files {
		f := &u.Files[i]
		c.saw("file " + string(f.Outcome))
		for _, hash := range []regie.Hash{f.From.Hash, f.To.Hash} {
			if data, err := c.Store.Blob(ctx, hash); !hash.IsZero() && (err != nil || regie.HashOf(data) != hash) {
				c.Fail("what %s held is not kept by undo %s: %v", f.Path, u.ID, err)
			}
		}
		if u.Undoes.IsZero() {
			if f.To.Hash != before[f.Path] {
				c.Fail("undo %s makes of %s what it was not before the round (invariant 19)", u.ID, f.Path)
			}
			if f.From.Hash != after[f.Path] && f.From.Hash != f.To.Hash && !u.Forced {
				c.Fail("undo %s replaced %s, which was not what the round had left (decision 16)", u.ID, f.Path)
			}
		}
	}
}

// changes returns the file changes of the session's calls, by call.
func (c *check) changes() map[regie.ID][]regie.FileChange {
	tools, err := files.Tools(nil)
	if err != nil {
		c.Fail("the tools: %v", err)
	}
	commands, err := shell.Tools(shell.Config{})
	if err != nil {
		c.Fail("the tools: %v", err)
	}
	tools = append(tools, commands...)
	out := map[regie.ID][]regie.FileChange{}
	for i := range c.views {
		for _, x := range c.views[i].Exchanges {
			for k := range x.Calls {
				call := &x.Calls[k]
				for _, t := range tools {
					if changes := tool.SidesOf(t).Changes; t.Definition().Name == call.Tool &&
						changes != nil && !call.StartedAt.IsZero() {
						if call.Tool == shell.Name && len(call.Changed) == 0 {
							continue // it did not run, or its outcome is unknown
						}
						made := c.changesOf(changes, call)
						out[call.ID] = made
						c.sawChanges(call, made)
					}
				}
			}
		}
	}
	return out
}

// changesOf returns the file changes of a call. An error is a violation.
func (c *check) changesOf(changes func(context.Context, *tool.Invocation) ([]regie.FileChange, error),
	call *regie.Call,
) []regie.FileChange {
	inv := &tool.Invocation{CallID: call.ID, Intent: call.Intent, Changed: call.Changed}
	made, err := changes(context.Background(), inv)
	switch regie.CodeOf(err) {
	case "":
	case regie.CodeToolError:
		c.Fail("call %s leaves what no undo brings back: %v", call.ID, err)
	default:
		c.Fail("the evidence of call %s cannot be read: %v", call.ID, err)
	}
	return made
}

// ends returns each file's state before and after a round.
func ends(view *store.RoundView, changes map[regie.ID][]regie.FileChange) (before, after map[string]regie.Hash) {
	before, after = map[string]regie.Hash{}, map[string]regie.Hash{}
	for _, x := range view.Exchanges {
		for i := range x.Calls {
			if c := &x.Calls[i]; c.State != regie.CallSucceeded &&
				(c.State != regie.CallUnknown || len(c.Changed) == 0) {
				continue
			}
			for _, change := range changes[x.Calls[i].ID] {
				if _, known := before[change.Path]; !known {
					before[change.Path] = change.Before.Hash
				}
				after[change.Path] = change.After.Hash
			}
		}
	}
	return before, after
}

// expect follows the log: each call that succeeded and each undo leaves files in a state.
func (c *check) expect(changes map[regie.ID][]regie.FileChange) expected {
	x := expected{left: map[string]regie.Hash{}, unsure: map[string]bool{}, open: map[string][]regie.Hash{}}
	undos := map[regie.ID]*regie.Undo{}
	for i := range c.views {
		for k := range c.views[i].Undos {
			undos[c.views[i].Undos[k].ID] = &c.views[i].Undos[k]
		}
	}
	commands := c.commands()
	for i := range c.events {
		var body struct {
			ID     regie.ID `json:"id"`
			CallID regie.ID `json:"call_id"`
			State  string   `json:"state"`
		}
		if json.Unmarshal(c.events[i].Body, &body) != nil {
			continue
		}
		switch c.events[i].Type {
		case regie.EventToolCall, regie.EventToolResult:
			state := regie.CallState(body.State)
			if call := commands[body.CallID]; call != nil {
				x.command(call, changes[body.CallID], state)
				continue
			}
			for _, change := range changes[body.CallID] {
				x.call(change, state)
			}
		case regie.EventUndo:
			if u := undos[body.ID]; u != nil {
				x.undo(u, regie.UndoState(body.State))
			}
		}
	}
	return x
}

func (x *expected) call(change regie.FileChange, state regie.CallState) {
	switch state {
	case regie.CallStarted:
		if _, known := x.left[change.Path]; !known {
			x.left[change.Path] = change.Before.Hash
		}
		x.open[change.Path] = append(x.open[change.Path], change.After.Hash)
	case regie.CallSucceeded:
		x.left[change.Path], x.unsure[change.Path], x.open[change.Path] = change.After.Hash, false, nil
	case regie.CallUnknown:
		x.unsure[change.Path] = true
	case regie.CallFailed:
		x.open[change.Path] = nil
	default:
	}
}

// commands are the calls that ran one, by their ids.
func (c *check) commands() map[regie.ID]*regie.Call {
	out := map[regie.ID]*regie.Call{}
	for i := range c.views {
		for _, x := range c.views[i].Exchanges {
			for k := range x.Calls {
				if x.Calls[k].Tool == shell.Name {
					out[x.Calls[k].ID] = &x.Calls[k]
				}
			}
		}
	}
	return out
}

// sawChanges counts commands that changed something.
func (c *check) sawChanges(call *regie.Call, made []regie.FileChange) {
	switch {
	case call.Tool != shell.Name || len(made) == 0:
	case call.State == regie.CallUnknown:
		c.saw("command UNKNOWN changed files")
	default:
		c.saw("command changed files")
	}
}

// command records a command's changes: they are known only when it has ended, or was compared after
// its process died.
func (x *expected) command(call *regie.Call, made []regie.FileChange, state regie.CallState) {
	switch {
	case state == regie.CallStarted:
		x.loose = true
	case state == regie.CallFailed || state == regie.CallNotRun:
		x.loose = false // it was never started
	case !state.Settled():
	case len(call.Changed) == 0: // unknown: the contents saved for it belong to an engine that is gone
		x.loose = false
		for path := range x.left {
			x.unsure[path] = true
		}
	default:
		x.loose = false
		for _, change := range made {
			x.left[change.Path], x.unsure[change.Path] = change.After.Hash, false
		}
	}
}

func (x *expected) undo(u *regie.Undo, state regie.UndoState) {
	for i := range u.Files {
		f := &u.Files[i]
		switch {
		case state == regie.UndoIntended:
			x.open[f.Path] = append(x.open[f.Path], f.To.Hash)
		case f.Outcome == regie.FileUndone:
			x.left[f.Path], x.unsure[f.Path], x.open[f.Path] = f.To.Hash, false, nil
		default: // another writer changed it
			x.unsure[f.Path] = true
		}
	}
}

// checkUndoOrder reads the log in its order: each undo is intended once and done once, with one
// UNDONE message, and no round begins between.
func (c *check) checkUndoOrder() {
	seen, told := map[regie.ID][]regie.UndoState{}, map[regie.ID]int{}
	open := map[regie.ID]bool{}
	for i := range c.events {
		switch e := &c.events[i]; e.Type {
		case regie.EventUndo:
			var u regie.Undo
			if err := json.Unmarshal(e.Body, &u); err != nil {
				c.Fail("row %d of the log cannot be read: %v", i+1, err)
			}
			seen[u.ID] = append(seen[u.ID], u.State)
			open[u.ID] = u.State == regie.UndoIntended
			if !open[u.ID] {
				delete(open, u.ID)
			}
		case regie.EventMessage:
			var m regie.Message
			if json.Unmarshal(e.Body, &m) == nil && m.System != nil && m.System.Undone != nil {
				told[m.System.Undone.UndoID]++
			}
		case regie.EventRound:
			if len(open) > 0 {
				c.Fail("row %d: a round goes on while an undo is under way (decision 16)", i+1)
			}
		default:
		}
	}
	for id, states := range seen {
		if !slices.Equal(states, []regie.UndoState{regie.UndoIntended, regie.UndoDone}) || told[id] != 1 {
			c.Fail("undo %s was %v, and %d messages tell of it (decision 16)", id, states, told[id])
		}
	}
	for _, e := range c.Told {
		if e.Undo != nil {
			c.saw("undo " + e.Stage)
			if e.Stage == Acked && seen[e.Undo.UndoID] == nil {
				c.Fail("%s was acknowledged, and no undo %s is there (invariant 7)", e.Key, e.Undo.UndoID)
			}
		}
	}
}

// Between checks the files of a session against its log while no engine has it open, right after a
// death. No file may have changed without an intent (invariant 2).
func Between(ctx context.Context, of Case) error {
	c := &check{Case: of}
	if _, _, err := c.Store.Session(ctx, c.Session); regie.CodeOf(err) == regie.CodeNotFound {
		return nil // it died before
	}
	if err := c.read(ctx); err != nil {
		return err
	}
	x := c.expect(c.changes())
	for path, want := range x.left {
		is, err := c.Files(path)
		if err == nil && is != want && !x.loose && !x.unsure[path] && !slices.Contains(x.open[path], is) {
			c.Fail("%s holds %.8s in the middle, and nothing was intended that makes that of %.8s (invariant 2)", path,
				is, want)
		}
	}
	return nil
}
