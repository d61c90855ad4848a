package undo

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// merged combines a target's changes of one file: the first one's before and the last one's after.
type merged struct {
	path          string
	before, after regie.FileState
	kept          bool
}

// mergeChanges merges ordered changes to one a path, sorted by path, and collects the created
// directories, the topmost first. It leaves out files with their original content.
func mergeChanges(changes []regie.FileChange) (files []merged, made []string) {
	at := map[string]int{}
	for i := range changes {
		c := &changes[i]
		made = append(made, c.Made...)
		n, again := at[c.Path]
		if !again {
			at[c.Path] = len(files)
			files = append(files, merged{
				path: c.Path, before: c.Before, after: c.After, kept: c.Kept || !c.Before.Exists(),
			})
			continue
		}
		files[n].after = c.After
	}
	files = slices.DeleteFunc(files, func(m merged) bool { return m.before.Same(m.after) && !m.changesMode() })
	slices.SortFunc(files, func(a, b merged) int { return strings.Compare(a.path, b.path) })
	slices.Sort(made) // a directory before what is in it
	return files, slices.Compact(made)
}

// changesMode reports whether those of a file were changed.
func (m *merged) changesMode() bool {
	files := m.before.Exists() && m.after.Exists() && !m.before.IsLink() && !m.after.IsLink()
	return files && m.before.Perm != 0 && m.after.Perm != 0 && m.before.Perm != m.after.Perm
}

// remainingFiles returns the changes of paths that no standing undo has taken back.
func remainingFiles(files []merged, undone map[string]regie.ID) []merged {
	return slices.DeleteFunc(slices.Clone(files), func(m merged) bool { _, gone := undone[m.path]; return gone })
}

// found is a file as it is now.
type found struct {
	state  regie.FileState
	really string // where the path leads by now
	err    error  // why it cannot be looked at as a file
}

// step is what becomes of one file.
type step struct {
	file     regie.UndoFile
	conflict *regie.UndoConflict
}

// decideStep decides a file's step, or the conflict that prevents it. lost says why the earlier
// content is missing; nil if it is not.
func decideStep(m merged, now found, lost error) step {
	s := step{file: regie.UndoFile{Path: m.path, From: now.state, To: m.before}}
	s.file.To.Perm = permOf(m, now.state)
	same, asLeft := now.state.Same(m.before), now.state.Same(m.after)
	permissions := m.changesMode() && now.state.Exists() && now.state.Perm == m.after.Perm
	switch {
	case now.err != nil:
		s.conflict = refusalConflict(now.err)
	case now.really != "" && now.really != m.path:
		s.conflict = changedConflict(regie.Say("a link created on the way leads to %s now", now.really), false)
	case now.state.IsLink() && !m.before.IsLink() && !m.after.IsLink():
		s.conflict = refusalConflict(regie.Errorf(regie.CodeNotAFile, "%s is a symbolic link now", m.path))
	case m.isLocked(now.state):
		s.conflict = refusalConflict(regie.Errorf(regie.CodeReadOnly, "%s is read-only by its permissions",
			m.path))
	case same && !permissions: // nothing is to be done, so nothing is in the way
		s.file.To = now.state
	case same:
	case m.before.Same(m.after) && now.state.Exists() && !now.state.IsLink():
		// if others wrote to it since, only the permissions are restored
		s.file.To = now.state
		if permissions {
			s.file.To.Perm = m.before.Perm
		}
	case lost != nil:
		s.conflict = refusalConflict(lost)
	case asLeft:
	case !now.state.Exists():
		s.conflict = changedConflict(regie.Say("it has been deleted since"), true)
	case !m.after.Exists():
		s.conflict = changedConflict(regie.Say("a file of that name exists again"), true)
	default:
		s.conflict = changedConflict(regie.Say("it has been changed since"), true)
	}
	return s
}

// changedConflict returns the conflict of a file that is not as the target left it.
func changedConflict(how regie.Sentence, forceable bool) *regie.UndoConflict {
	return &regie.UndoConflict{Code: regie.CodeFileChanged, Sentence: how, Forceable: forceable}
}

// isLocked reports whether another writer made the file read-only.
func (m *merged) isLocked(now regie.FileState) bool {
	return now.Exists() && !now.IsLink() && now.Perm&0o222 == 0 && now.Perm != m.after.Perm && now.Perm != m.before.Perm
}

// refusalConflict returns a conflict that nothing overrides, in the words of an error.
func refusalConflict(err error) *regie.UndoConflict {
	return &regie.UndoConflict{Code: regie.CodeOf(err), Sentence: regie.SentenceOf(err)}
}

// permOf returns what permissions a file gets that is put back: those that it has, unless the round
// changed them; one that is made anew those that it had.
func permOf(m merged, now regie.FileState) fs.FileMode {
	switch {
	case !m.before.Exists():
		return 0
	case m.before.IsLink():
		return m.before.Perm
	case now.Exists() && !now.IsLink() && !m.changesMode():
		return now.Perm
	default:
		return m.before.Perm
	}
}

// planHash identifies a plan by its actions: a person agrees to exactly those.
func planHash(p *regie.UndoPlan) (regie.Hash, error) {
	type conflict struct {
		Path string
		Code regie.Code
	}
	var conflicts []conflict
	for i := range p.Previews {
		if c := p.Previews[i].Conflict; c != nil {
			conflicts = append(conflicts, conflict{p.Files[i].Path, c.Code})
		}
	}
	data, err := json.Marshal([]any{p.RoundID, p.Undoes, p.Chat, p.Files, p.Makes, p.Removes, p.Effects, conflicts})
	return regie.HashOf(data), err
}
