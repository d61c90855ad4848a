package regie_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

// TestStanding follows chains of undos: an undo of an undo takes that back, and only undos that
// stand themselves count.
func TestStanding(t *testing.T) {
	ids := map[string]regie.ID{}
	id := func(name string) regie.ID {
		if _, ok := ids[name]; !ok && name != "" {
			ids[name] = regie.NewID()
		}
		return ids[name]
	}
	undo := func(name, of string, chat bool, paths ...string) regie.Undo {
		u := regie.Undo{ID: id(name), Undoes: id(of), State: regie.UndoDone, Chat: chat}
		for _, path := range paths {
			outcome := regie.FileUndone
			if path[0] == '!' {
				path, outcome = path[1:], regie.FileNotUndone
			}
			u.Files = append(u.Files, regie.UndoFile{Path: path, Outcome: outcome})
		}
		return u
	}
	intended := undo("i", "", true, "a")
	intended.State = regie.UndoIntended
	for name, c := range map[string]struct {
		undos []regie.Undo
		of    string
		paths map[string]string
		chat  string
	}{
		"nothing":             {nil, "", map[string]string{}, ""},
		"undone":              {[]regie.Undo{undo("u", "", true, "a", "b")}, "", map[string]string{"a": "u", "b": "u"}, "u"},
		"only intended":       {[]regie.Undo{intended}, "", map[string]string{}, ""},
		"a file was left":     {[]regie.Undo{undo("u", "", false, "a", "!b")}, "", map[string]string{"a": "u"}, ""},
		"the rest afterwards": {[]regie.Undo{undo("u", "", false, "a", "!b"), undo("v", "", false, "b")}, "", map[string]string{"a": "u", "b": "v"}, ""},
		"redone":              {[]regie.Undo{undo("u", "", true, "a"), undo("r", "u", true, "a")}, "", map[string]string{}, ""},
		"redone in part":      {[]regie.Undo{undo("u", "", true, "a", "b"), undo("r", "u", false, "a", "!b")}, "", map[string]string{"b": "u"}, "u"},
		"the redo is undone":  {[]regie.Undo{undo("u", "", true, "a"), undo("r", "u", true, "a"), undo("v", "r", true, "a")}, "", map[string]string{"a": "u"}, "u"},
		"undone once more":    {[]regie.Undo{undo("u", "", true, "a"), undo("r", "u", true, "a"), undo("v", "", true, "a")}, "", map[string]string{"a": "v"}, "v"},
		"of an undo":          {[]regie.Undo{undo("u", "", true, "a"), undo("r", "u", true, "a")}, "u", map[string]string{"a": "r"}, "r"},
	} {
		t.Run(name, func(t *testing.T) {
			paths, chat := regie.Standing(c.undos, id(c.of))
			want := map[string]regie.ID{}
			for path, by := range c.paths {
				want[path] = id(by)
			}
			if diff := cmp.Diff(want, paths); diff != "" || chat != id(c.chat) {
				t.Errorf("chat by %s, paths (-want +got):\n%s", chat, diff)
			}
		})
	}
}

// TestSupersede counts messages as the log tells it.
func TestSupersede(t *testing.T) {
	text := regie.Message{Sender: regie.SenderUser, Text: "x"}
	undone := func(gone, back *regie.Places) regie.Message {
		return regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemUndone, Undone: &regie.Undone{Superseded: gone, Restored: back}}}
	}
	summary := regie.Message{Sender: regie.SenderSystem, System: &regie.SystemContent{Type: regie.SystemContextSummary, Compaction: &regie.Compaction{}}}
	two := &regie.Places{From: 2, To: 3}
	for name, c := range map[string]struct {
		thread []regie.Message
		want   []int // places that are hidden
	}{
		"nothing":          {[]regie.Message{text, text}, nil},
		"two":              {[]regie.Message{text, text, text, undone(two, nil), text}, []int{2, 3}},
		"and again":        {[]regie.Message{text, text, text, undone(two, nil), undone(nil, two)}, nil},
		"twice":            {[]regie.Message{text, text, text, undone(two, nil), undone(nil, two), undone(two, nil)}, []int{2, 3}},
		"not a summary":    {[]regie.Message{text, text, summary, undone(two, nil)}, []int{2}},
		"of files alone":   {[]regie.Message{text, text, undone(nil, nil)}, nil},
		"two separate":     {[]regie.Message{text, text, text, undone(two, nil), text, undone(&regie.Places{From: 5, To: 5}, nil)}, []int{2, 3, 5}},
		"one of them back": {[]regie.Message{text, text, text, undone(two, nil), text, undone(&regie.Places{From: 5, To: 5}, nil), undone(nil, two)}, []int{5}},
	} {
		t.Run(name, func(t *testing.T) {
			var gone regie.Supersede
			for i := range c.thread {
				gone.See(&c.thread[i])
			}
			var got []int
			for i := range c.thread {
				if gone.Hides(i+1, &c.thread[i]) {
					got = append(got, i+1)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
