package undo

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// maxArguments bounds what is shown of the arguments of an effect, in bytes.
const maxArguments = 200

// builder makes a plan of a source.
type builder struct {
	*Undoer
	in     Request
	source store.UndoSource
	target regie.ID // the undo that is to be undone; zero: the round
	show   bool     // with diffs

	over *overlay        // what earlier undos of a series are assumed to have done
	root *workspace.Root // while a plan is made

	shown int // bytes of diffs so far
	later *store.Later
	goes  map[string]bool // files and directories that were not there before
	made  []string        // those of them that are directories
}

// undone is the undo that is the target; nil where it is the round.
func (b *builder) undone() *regie.Undo {
	for i := range b.source.Undos {
		if u := &b.source.Undos[i]; !b.target.IsZero() && u.ID == b.target {
			return u
		}
	}
	return nil
}

// changes are what the target made of files, in order, and the effects that are no files.
func (b *builder) changes(ctx context.Context) (out []regie.FileChange, effects []regie.Effect) {
	if u := b.undone(); u != nil {
		return regie.ChangesOf(u), nil
	}
	for i := range b.source.Calls {
		c := &b.source.Calls[i]
		done := c.State == regie.CallSucceeded
		var why *regie.Sentence
		// a sub-agent's calls stand for themselves
		if !done && c.State != regie.CallUnknown || c.Class == regie.ClassResumable {
			continue
		}
		// of what nobody knows whether it happened nothing is taken back, unless it was looked at
		// afterwards
		if done || len(c.Changed) > 0 {
			made, err := b.changesOf(ctx, c)
			if out = append(out, made...); err == nil && done {
				continue
			}
			if err != nil && !errors.Is(err, errNotFiles) {
				sentence := whole(err)
				why = &sentence
			}
		}
		effects = append(effects, regie.Effect{
			CallID: c.ID, Tool: c.Tool, State: c.State,
			Arguments: brief(c), Why: why,
		})
	}
	return out, effects
}

var errNotFiles = regie.Errorf(regie.CodeToolError, "the tool changes no files that could be put back")

// changesOf asks the tool of a call what it made of files.
func (b *builder) changesOf(ctx context.Context, c *regie.Call) ([]regie.FileChange, error) {
	target, _, ok := b.Tools(ctx).Lookup(c.Tool)
	if !ok {
		return nil, errNotFiles
	}
	undoer := tool.SidesOf(target).Undoer
	if undoer == nil {
		return nil, errNotFiles
	}
	return undoer.Changes(ctx, &tool.Invocation{
		CallID: c.ID, RoundID: c.RoundID, SessionID: c.SessionID,
		Workspace: b.source.Workspace, Intent: c.Intent, Changed: c.Changed,
	})
}

func brief(c *regie.Call) string {
	arguments := c.Arguments
	if len(c.Executed) > 0 {
		arguments = string(c.Executed)
	}
	return plain.Line(string([]rune(arguments)[:min(len([]rune(arguments)), maxArguments)]))
}

// anything reports whether something of the target can still be undone, whether or not something
// stands in the way.
func (b *builder) anything(ctx context.Context) bool {
	changes, _ := b.changes(ctx)
	files, _ := merge(changes)
	undone, _ := regie.Standing(b.source.Undos, b.target)
	files, _ = b.large(remaining(files, undone))
	return len(files) > 0 || b.chat()
}

// large takes out the deleted files that are too large to be put back: what else was done can be
// undone without them, and they are named with the place where they lie. One that a person has
// moved back is none of them.
func (b *builder) large(all []merged) (files []merged, effects []regie.Effect) {
	for _, m := range all {
		if m.trash == "" || m.before.Size <= maxLooked {
			files = append(files, m)
			continue
		}
		lies := filepath.Join(b.Trash, filepath.FromSlash(m.trash))
		e := regie.Effect{State: regie.CallSucceeded, Arguments: m.path, Trash: lies}
		if _, err := os.Lstat(lies); err != nil {
			if _, err := os.Lstat(filepath.Join(b.source.Workspace.Root, filepath.FromSlash(m.path))); err == nil {
				continue
			}
			e.Trash = "" // somebody has emptied it
		}
		for i := range b.source.Calls {
			if c := &b.source.Calls[i]; path.Base(path.Dir(m.trash)) == c.ID.String() {
				e.CallID, e.Tool = c.ID, c.Tool
			}
		}
		effects = append(effects, e)
	}
	return files, effects
}

// chat reports whether the undo is about the messages too.
func (b *builder) chat() bool {
	_, gone := regie.Standing(b.source.Undos, b.target)
	if !gone.IsZero() || b.source.Messages == 0 {
		return false
	}
	if u := b.undone(); u != nil {
		return u.Chat
	}
	return b.in.Chat
}

// plan looks at each file and says what becomes of it.
func (b *builder) plan(ctx context.Context) (regie.UndoPlan, error) {
	s := &b.source
	p := regie.UndoPlan{
		Undo: regie.Undo{
			SessionID: s.Session.ID, RoundID: s.Round.ID, Undoes: b.target, State: regie.UndoPlanned,
			By: b.in.By, Chat: b.chat(), Files: []regie.UndoFile{},
		},
		Root: s.Workspace.Root, SessionName: s.Session.Name, Text: s.Text, Previews: []regie.FilePreview{},
	}
	if s.Round.State != regie.RoundEnded || s.Session.State != regie.SessionIdle &&
		s.Session.State != regie.SessionClosed {
		return p, store.RunIsOpen(s.Session.State)
	}
	changes, effects := b.changes(ctx)
	all, made := merge(changes)
	undone, gone := regie.Standing(s.Undos, b.target)
	files, large := b.large(remaining(all, undone))
	p.Effects = slices.Concat(effects, large)
	if p.Chat {
		p.Messages = s.Messages
	}
	if len(files) == 0 && !p.Chat {
		if len(large) > 0 {
			return p, regie.Errorf(regie.CodeConflict,
				"what is left to undo is too large to be put back by itself: %s, which a person can move back from %s",
				large[0].Arguments,
				cmp.Or(large[0].Trash, "nowhere: the trash was emptied"))
		}
		return p, b.nothing(len(all) > 0, undone, gone)
	}
	root, err := workspace.Open(s.Workspace.Root)
	if err != nil {
		return p, regie.Errorf(regie.CodeOf(err), "the workspace is not where it was: %v", err)
	}
	defer root.Close()
	b.root = root
	b.goes, b.made = map[string]bool{}, made
	for _, m := range files {
		b.goes[m.path] = !m.before.Exists()
	}
	for _, dir := range made {
		b.goes[dir] = true
	}
	for i := range files {
		if err := b.file(ctx, root, files[i], &p); err != nil {
			return p, err
		}
	}
	if p.Makes, err = b.makes(root, &p); err != nil {
		return p, err
	}
	p.Removes = b.there(root, made)
	p.Plan, err = fingerprint(&p)
	return p, err
}

// nothing says why there is nothing to do.
func (b *builder) nothing(was bool, undone map[string]regie.ID, chat regie.ID) error {
	for _, id := range undone {
		chat = id
	}
	switch {
	case was && !chat.IsZero(), !chat.IsZero():
		return regie.Errorf(regie.CodeConflict, "it is undone already; to take that back: regie undo %s", chat.String())
	case !b.target.IsZero():
		return regie.Errorf(regie.CodeConflict, "this undo changed no files, so there is nothing to take back")
	default:
		return regie.Errorf(regie.CodeConflict, "this run changed no files that can be put back")
	}
}

// file adds what becomes of one file.
func (b *builder) file(ctx context.Context, root *workspace.Root, m merged, p *regie.UndoPlan) error {
	content, known, err := b.assumed(ctx, m.path)
	if !known {
		content, err = look(root, m.path)
	}
	now := found{state: stateOf(content), really: content.Path, err: err}
	if err != nil {
		now.state = regie.FileState{}
	}
	// somebody has put it there: why it is not written through is said
	if content.Link && !m.before.IsLink() && !m.after.IsLink() {
		_, now.err = root.Load(m.path, maxLooked)
	}
	if !known && !m.after.Exists() && b.linked(root, m.path) { // what lies behind the link is not what was there
		content, now = workspace.Content{}, found{}
	}
	switch code := regie.CodeOf(err); { // names that are taken now, and will be free by then
	case code == regie.CodeNotAFile && b.frees(root, m), code == regie.CodeNotADirectory && b.blocker(m.path) != "":
		now.err = nil
	}
	var then []byte
	var lost error
	switch {
	case m.trash != "":
		if then, lost = b.trashed(m.trash); lost == nil {
			m.before.Hash, m.before.Size = regie.HashOf(then), int64(len(then))
			lost = b.adopt(ctx, then)
		}
	case m.before.Exists() && !now.state.Same(m.before):
		then, lost = b.content(ctx, m)
	}
	if regie.CodeOf(lost) == regie.CodeEngineGone || ctx.Err() != nil {
		return lost
	}
	s := decide(m, now, lost)
	if s.conflict != nil && s.conflict.Forceable {
		if err := b.who(ctx, m, &s, p); err != nil {
			return err
		}
	}
	p.Files = append(p.Files, s.file)
	if !b.show {
		p.Previews = append(p.Previews, regie.FilePreview{Conflict: s.conflict})
		return nil
	}
	preview := preview(&s, m, content.Data, then)
	preview.Warnings = append(preview.Warnings, bequest(root, &s, m, content)...)
	if b.shown += len(preview.Diff); b.shown > maxShown {
		preview.Diff = ""
		preview.Warnings = append(preview.Warnings, regie.Say("too much to be shown here"))
	}
	p.Previews = append(p.Previews, preview)
	return nil
}

// look reads a file as an undo sees it.
func look(root *workspace.Root, name string) (workspace.Content, error) {
	return root.LoadEntry(name, maxLooked)
}

// frees reports whether a directory that stands where a file was deleted is one that the target
// made, with nothing in it but what goes too.
func (b *builder) frees(root *workspace.Root, m merged) bool {
	if m.after.Exists() || !slices.Contains(b.made, m.path) {
		return false
	}
	dir, err := root.OpenDir(m.path)
	if err != nil {
		return false
	}
	defer dir.Close()
	return dir.Path == m.path && b.onlyGoes(dir, maxDepth)
}

// maxDepth bounds how deep a directory is looked through.
const maxDepth = 100

// onlyGoes reports whether all that a directory holds goes with the undo.
func (b *builder) onlyGoes(dir *workspace.Dir, depth int) bool {
	for depth > 0 {
		entries, err := dir.Next(100)
		for _, e := range entries {
			name := dir.Path + "/" + e.Name()
			if !b.goes[name] {
				return false
			}
			if !e.IsDir() {
				continue
			}
			below, err := dir.Enter(e.Name())
			if err != nil {
				return false
			}
			only := b.onlyGoes(below, depth-1)
			if err := below.Close(); err != nil || !only {
				return false
			}
		}
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return false
		}
	}
	return false
}

// content is what a file held before.
func (b *builder) content(ctx context.Context, m merged) ([]byte, error) {
	if !m.kept {
		return nil, regie.Errorf(regie.CodeNotFound, "what it held before was not kept")
	}
	return b.blob(ctx, m.before.Hash)
}

// trashed reads a file that lies in the trash.
func (u *Undoer) trashed(name string) ([]byte, error) {
	root, err := os.OpenRoot(u.Trash)
	if err != nil {
		return nil, regie.Errorf(regie.CodeNotFound, "what it held before is no longer in the trash")
	}
	defer root.Close()
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, regie.Errorf(regie.CodeNotFound, "what it held before is no longer in the trash")
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLooked+1))
	switch {
	case err != nil:
		return nil, regie.Errorf(regie.CodeCorrupt, "what lies of it in the trash cannot be read: %v", err)
	case len(data) > maxLooked:
		return nil, regie.Errorf(regie.CodeFileTooLarge, "it is too large to be put back by itself; it lies in %s",
			filepath.Join(u.Trash, filepath.FromSlash(name)))
	}
	return data, nil
}

// adopt makes a blob of what lay in the trash, where the undo is about to be stored: from there on
// it is like any other.
func (b *builder) adopt(ctx context.Context, data []byte) error {
	if b.show {
		return nil
	}
	_, err := b.Store.PutBlob(ctx, data)
	return err
}

func (u *Undoer) blob(ctx context.Context, hash regie.Hash) ([]byte, error) {
	data, err := u.Store.Blob(ctx, hash)
	switch {
	case regie.CodeOf(err) == regie.CodeNotFound:
		return nil, regie.Errorf(regie.CodeNotFound, "what it held before is no longer kept: it was erased")
	case err != nil:
		return nil, err
	case regie.HashOf(data) != hash:
		return nil, regie.Errorf(regie.CodeCorrupt, "what was kept of it is damaged")
	}
	return data, nil
}

// touch is something that has left a file in a state.
type touch struct {
	round, undo regie.ID
	left        regie.FileState
	at          time.Time
}

// who names the later run, or the undo, that has changed a file, where it was one.
func (b *builder) who(ctx context.Context, m merged, s *step, p *regie.UndoPlan) error {
	if b.later == nil {
		later, err := b.Store.Later(ctx, b.source.Workspace.ID, b.since())
		if err != nil {
			return err
		}
		b.later = &later
	}
	var last touch
	for i := range b.later.Calls {
		c := &b.later.Calls[i]
		changes, err := b.changesOf(ctx, c)
		for k := range changes {
			if err == nil && c.State != regie.CallStarted && changes[k].Path == m.path && !c.StartedAt.Before(last.at) {
				last = touch{round: c.RoundID, left: changes[k].After, at: c.StartedAt}
			}
		}
	}
	for i := range b.later.Undos {
		u := &b.later.Undos[i]
		for k := range u.Files {
			if f := &u.Files[k]; f.Path == m.path && f.Outcome == regie.FileUndone && !u.DoneAt.Before(last.at) {
				last = touch{round: u.RoundID, undo: u.ID, left: f.To, at: u.DoneAt}
			}
		}
	}
	own, asLeft := last.round.IsZero() || last.round == p.RoundID, last.left.Hash == s.file.From.Hash
	switch {
	case own && !asLeft, last.round.IsZero():
		return nil // somebody else: that is what the conflict says already
	case asLeft && !last.undo.IsZero():
		s.conflict.Sentence = regie.Say("the undo %s has changed it since", short(last.undo))
	case asLeft:
		s.conflict.Sentence = regie.Say("run %s has changed it since: undo that one first", short(last.round))
	default:
		s.conflict.Sentence = regie.Say("run %s and somebody else have changed it since", short(last.round))
	}
	s.conflict.RoundID = last.round
	return nil
}

// since is when the target was done with its files.
func (b *builder) since() time.Time {
	if u := b.undone(); u != nil {
		return u.DoneAt
	}
	return b.source.Round.StartedAt
}

// short is an id as people see it.
func short(id regie.ID) string {
	text := id.String()
	return text[len(text)-8:]
}

func stateOf(c workspace.Content) regie.FileState {
	if !c.Exists {
		return regie.FileState{}
	}
	out := regie.FileState{Hash: regie.HashOf(c.Data), Size: c.Size, Perm: c.Perm}
	if !c.Link {
		out.Perm = regie.PermOf(c.Perm)
	}
	return out
}

// blocker is the file on the way to a path that goes with the undo; "" where there is none.
func (b *builder) blocker(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if b.goes[dir] && !slices.Contains(b.made, dir) {
			return dir
		}
	}
	return ""
}

// makes are the directories that have to be made for files that come back.
func (b *builder) makes(root *workspace.Root, p *regie.UndoPlan) ([]string, error) {
	var out []string
	for i := range p.Files {
		f := &p.Files[i]
		if c := p.Previews[i].Conflict; c != nil && !c.Forceable { // it does not come back
			continue
		}
		if !f.To.Exists() || f.From.Exists() {
			continue
		}
		if blocker := b.blocker(f.Path); blocker != "" { // from there on there is nothing
			for dir := path.Dir(f.Path); dir != path.Dir(blocker); dir = path.Dir(dir) {
				out = append(out, dir)
			}
			continue
		}
		missing, err := root.Missing(f.Path)
		if b.over != nil {
			missing = slices.DeleteFunc(missing, func(dir string) bool { return b.over.dirs[dir] })
		}
		if err != nil && regie.CodeOf(err) != regie.CodeNotADirectory { // that is a conflict already
			return nil, err
		}
		out = append(out, missing...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// there are those of some directories that are there.
func (b *builder) there(root *workspace.Root, dirs []string) []string {
	var out []string
	for _, name := range dirs {
		if b.over != nil && b.over.dirs[name] {
			out = append(out, name)
			continue
		}
		dir, err := root.OpenDir(name)
		if err == nil && dir.Path == name {
			out = append(out, name)
		}
		if err == nil {
			_ = dir.Close() // nothing was read
		}
	}
	return out
}
