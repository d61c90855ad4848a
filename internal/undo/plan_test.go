package undo

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

// held is a file with a content; "" is none.
func held(content string) regie.FileState {
	if content == "" {
		return regie.FileState{}
	}
	return regie.FileState{Hash: regie.HashOf([]byte(content)), Size: int64(len(content)), Perm: 0o644}
}

func change(path, before, after string, made ...string) regie.FileChange {
	return regie.FileChange{Path: path, Before: held(before), After: held(after), Kept: true, Made: made}
}

// TestMerge makes one change a file of what calls did in their order.
func TestMerge(t *testing.T) {
	file := func(path, before, after string) merged {
		return merged{path: path, before: held(before), after: held(after), kept: true}
	}
	for name, c := range map[string]struct {
		changes []regie.FileChange
		files   []merged
		made    []string
	}{
		"nothing":                    {},
		"one write":                  {changes: []regie.FileChange{change("a", "0", "1")}, files: []merged{file("a", "0", "1")}},
		"three of one file":          {changes: []regie.FileChange{change("a", "0", "1"), change("a", "1", "2"), change("a", "2", "3")}, files: []merged{file("a", "0", "3")}},
		"created, then written":      {changes: []regie.FileChange{change("a", "", "1"), change("a", "1", "2")}, files: []merged{file("a", "", "2")}},
		"written, then deleted":      {changes: []regie.FileChange{change("a", "0", "1"), change("a", "1", "")}, files: []merged{file("a", "0", "")}},
		"deleted, then made anew":    {changes: []regie.FileChange{change("a", "0", ""), change("a", "", "1")}, files: []merged{file("a", "0", "1")}},
		"created, then deleted":      {changes: []regie.FileChange{change("d/a", "", "1", "d"), change("d/a", "1", "")}, files: nil, made: []string{"d"}},
		"and back to where it was":   {changes: []regie.FileChange{change("a", "0", "1"), change("a", "1", "0")}},
		"two files, sorted":          {changes: []regie.FileChange{change("b", "0", "1"), change("a", "0", "1")}, files: []merged{file("a", "0", "1"), file("b", "0", "1")}},
		"somebody else between them": {changes: []regie.FileChange{change("a", "0", "1"), change("a", "2", "3")}, files: []merged{file("a", "0", "3")}},
		"directories once, from above": {
			changes: []regie.FileChange{change("x/y/b", "", "1", "x", "x/y"), change("x/a", "", "1", "x")},
			files:   []merged{file("x/a", "", "1"), file("x/y/b", "", "1")}, made: []string{"x", "x/y"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files, made := mergeChanges(c.changes)
			if len(files) == 0 {
				files = nil
			}
			if diff := cmp.Diff(c.files, files, cmp.AllowUnexported(merged{})); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.made, made); diff != "" && len(c.made)+len(made) > 0 {
				t.Errorf("made (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecide says what becomes of a file, in every combination of what the round made of it and
// what is there now.
func TestDecide(t *testing.T) {
	lost := regie.Errorf(regie.CodeNotFound, "gone")
	for _, c := range []struct {
		name, before, after, now string
		err, lost                error
		really                   string
		to                       string
		code                     regie.Code
		forceable                bool
	}{
		{name: "as it was left", before: "0", after: "1", now: "1", to: "0"},
		{name: "created, as it was left", after: "1", now: "1"},
		{name: "deleted, still gone", before: "0", to: "0"},
		{name: "as it was before already", before: "0", after: "1", now: "0", to: "0"},
		{name: "as it was before, and nothing kept", before: "0", after: "1", now: "0", to: "0", lost: lost},
		{name: "created, gone already", after: "1"},
		{name: "deleted, there again as before", before: "0", now: "0", to: "0"},
		{name: "changed since", before: "0", after: "1", now: "2", to: "0", code: regie.CodeFileChanged, forceable: true},
		{name: "created, changed since", after: "1", now: "2", code: regie.CodeFileChanged, forceable: true},
		{name: "written, deleted since", before: "0", after: "1", to: "0", code: regie.CodeFileChanged, forceable: true},
		{name: "deleted, another one is there", before: "0", now: "2", to: "0", code: regie.CodeFileChanged, forceable: true},
		{name: "no file any more", before: "0", after: "1", to: "0", err: regie.Errorf(regie.CodeNotAFile, "a directory"), code: regie.CodeNotAFile},
		{name: "a link on the way", before: "0", after: "1", now: "1", to: "0", really: "elsewhere/a", code: regie.CodeFileChanged},
		{name: "not kept", before: "0", after: "1", now: "1", to: "0", lost: lost, code: regie.CodeNotFound},
		{name: "changed since, and not kept", before: "0", after: "1", now: "2", to: "0", lost: lost, code: regie.CodeNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := merged{path: "a", before: held(c.before), after: held(c.after), kept: true}
			s := decideStep(m, found{state: held(c.now), really: c.really, err: c.err}, c.lost)
			var code regie.Code
			if s.conflict != nil {
				code = s.conflict.Code
				if s.conflict.Forceable != c.forceable {
					t.Errorf("forceable: %v", s.conflict.Forceable)
				}
			}
			if code != c.code || s.file.To.Hash != held(c.to).Hash || s.file.From.Hash != held(c.now).Hash {
				t.Errorf("got %q, from %.8s to %.8s", code, s.file.From.Hash, s.file.To.Hash)
			}
		})
	}
}

// TestPermissions keeps the permissions that a file has, gives one that comes back those that it
// had, and takes a change of them back.
func TestPermissions(t *testing.T) {
	with := func(content string, perm fs.FileMode) regie.FileState {
		s := held(content)
		s.Perm = perm
		return s
	}
	for name, c := range map[string]struct {
		before, after, now regie.FileState
		want               fs.FileMode
	}{
		"written":                          {with("0", 0o640), with("1", 0o640), with("1", 0o640), 0o640},
		"written, its mode changed since":  {with("0", 0o640), with("1", 0o640), with("1", 0o600), 0o600},
		"the round changed its mode":       {with("0", 0o640), with("1", 0o755), with("1", 0o755), 0o640},
		"deleted":                          {with("0", 0o750), regie.FileState{}, regie.FileState{}, 0o750},
		"created: it goes":                 {regie.FileState{}, with("1", 0), with("1", 0o644), 0},
		"nobody knew the mode of after it": {with("0", 0o600), with("1", 0), with("1", 0o644), 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			if got := permOf(merged{before: c.before, after: c.after}, c.now); got != c.want {
				t.Errorf("got %o, want %o", got, c.want)
			}
		})
	}
}

// TestRemaining leaves out what was undone.
func TestRemaining(t *testing.T) {
	files, _ := mergeChanges([]regie.FileChange{change("a", "0", "1"), change("b", "0", "1")})
	left := remainingFiles(files, map[string]regie.ID{"a": regie.NewID()})
	if len(left) != 1 || left[0].path != "b" || len(files) != 2 {
		t.Errorf("left %+v of %+v", left, files)
	}
}

// TestFingerprint names what would be done: anything else has another name.
func TestFingerprint(t *testing.T) {
	plan := func(change func(*regie.UndoPlan)) regie.Hash {
		p := regie.UndoPlan{Undo: regie.Undo{Files: []regie.UndoFile{{Path: "a", From: held("1"), To: held("0")}}}, Previews: []regie.FilePreview{{}}}
		change(&p)
		hash, err := planHash(&p)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	seen := map[regie.Hash]string{}
	for name, fn := range map[string]func(*regie.UndoPlan){
		"itself": func(*regie.UndoPlan) {}, "another file": func(p *regie.UndoPlan) { p.Files[0].Path = "b" },
		"another content now": func(p *regie.UndoPlan) { p.Files[0].From = held("2") }, "another one then": func(p *regie.UndoPlan) { p.Files[0].To = held("2") },
		"a conflict": func(p *regie.UndoPlan) { p.Previews[0].Conflict = &regie.UndoConflict{Code: regie.CodeFileChanged} },
		"the chat":   func(p *regie.UndoPlan) { p.Chat = true }, "directories": func(p *regie.UndoPlan) { p.Removes = []string{"d"} },
		"an effect": func(p *regie.UndoPlan) { p.Effects = []regie.Effect{{Tool: "x.y"}} },
	} {
		hash := plan(fn)
		if other, again := seen[hash]; again {
			t.Errorf("%s and %s have one name", name, other)
		}
		seen[hash] = name
	}
	if plan(func(*regie.UndoPlan) {}) != plan(func(p *regie.UndoPlan) { p.By, p.Text = "eve", "x" }) {
		t.Error("who asks changes what is done")
	}
}
