package regie

import (
	"io/fs"
	"slices"
	"strings"
	"time"
)

// FileState is a file as it was, is or is to be. The zero FileState is no file.
type FileState struct {
	Hash Hash  `json:"sha256,omitzero"` // of its content; zero: there is no file
	Size int64 `json:"size,omitempty"`  // bytes
	// Perm are the permission bits, as PermOf returns them; fs.ModeSymlink for a link; zero where
	// they are unknown.
	Perm fs.FileMode `json:"perm,omitempty"`
	// DirPerm are those of the directory that it lay in, where that has gone with it; zero else.
	DirPerm fs.FileMode `json:"dir_perm,omitempty"`
}

// Exists reports whether there is a file.
func (s FileState) Exists() bool { return !s.Hash.IsZero() }

// IsLink reports whether it is a symbolic link: its content is what LinkData gives.
func (s FileState) IsLink() bool { return s.Perm.Type() == fs.ModeSymlink }

// Same reports whether two states have the same content and type, regardless of permissions.
func (s FileState) Same(other FileState) bool {
	return s.Hash == other.Hash && s.IsLink() == other.IsLink()
}

// PermOf is what a state has as the permissions of a file: those bits, and fs.ModeIrregular where
// it has none at all.
func PermOf(mode fs.FileMode) fs.FileMode {
	if mode.Perm() == 0 {
		return fs.ModeIrregular
	}
	return mode.Perm()
}

// linkMark begins the stored content of a symbolic link.
const linkMark = "symbolic link\x00"

// LinkData is the stored content of a symbolic link: the link itself, not its target's content.
func LinkData(target string) []byte { return []byte(linkMark + target) }

// LinkState is the state of a symbolic link.
func LinkState(target string) FileState {
	return FileState{Hash: HashOf(LinkData(target)), Size: int64(len(target)), Perm: fs.ModeSymlink}
}

// LinkTarget returns the target from the stored content of a link. It returns CodeCorrupt for other
// data.
func LinkTarget(data []byte) (string, error) {
	target, ok := strings.CutPrefix(string(data), linkMark)
	if !ok || target == "" || strings.IndexByte(target, 0) >= 0 {
		return "", Errorf(CodeCorrupt, "the saved copy of the link is damaged")
	}
	return target, nil
}

// FileChange is what a call, or an undo, made of one file. The content before is a blob of the
// store under its hash (decision 16).
type FileChange struct {
	Path   string    `json:"path"` // of the workspace, without links
	Before FileState `json:"before,omitzero"`
	After  FileState `json:"after,omitzero"`
	// Kept says that the content before was kept; without it the change cannot be taken back.
	Kept bool `json:"kept,omitempty"`
	// Made are the directories that had to be made, the topmost first.
	Made []string `json:"made,omitempty"`
}

// UndoState is how far an undo is. It is intended before any file changes, and done when what
// became of each file is known.
type UndoState string

// The undo states. What is only planned is not stored.
const (
	UndoPlanned  UndoState = "PLANNED"
	UndoIntended UndoState = "INTENDED"
	UndoDone     UndoState = "DONE"
)

// UndoOutcome is what became of a file of an undo.
type UndoOutcome string

// The outcomes of a file.
const (
	FileUndone    UndoOutcome = "UNDONE"
	FileNotUndone UndoOutcome = "NOT_UNDONE" // it is as it was found; Why says why
)

// UndoFile is what an undo does to one file.
type UndoFile struct {
	Path string    `json:"path"`
	From FileState `json:"from,omitzero"` // as it was found; its content is kept before anything changes
	To   FileState `json:"to,omitzero"`   // as it was before what is taken back
	// Outcome is empty until the undo is done.
	Outcome UndoOutcome `json:"outcome,omitempty"`
	Code    Code        `json:"code,omitempty"` // of what kept it from being undone
	Why     *Sentence   `json:"why,omitempty"`
}

// Effect is an effect of a run that no undo reverts: a call of a tool without undo, or one with an
// unknown outcome.
type Effect struct {
	CallID    ID        `json:"call_id"`
	Tool      string    `json:"tool"`
	State     CallState `json:"state"` // SUCCEEDED or UNKNOWN
	Arguments string    `json:"arguments,omitempty"`
	// Why is what of it is not taken back, where its files are; nil where the tool's effects are
	// none that could be.
	Why *Sentence `json:"why,omitempty"`
}

// Undo takes back what a round made of the files of its workspace (decision 16). It is an operation
// of its own: nothing is deleted, and it can be undone itself.
type Undo struct {
	ID        ID `json:"id,omitzero"` // zero in a plan
	SessionID ID `json:"session_id"`
	RoundID   ID `json:"round_id"` // whose changes are meant
	// Undoes is the undo that this one takes back, which brings the round's changes again; zero: it
	// takes back the round's own.
	Undoes ID        `json:"undoes,omitzero"`
	State  UndoState `json:"state"`
	// Forced says that files which others had changed were put back too.
	Forced bool `json:"forced,omitempty"`
	// Chat says that the round's messages are superseded by it, or, where it takes an undo back,
	// that they count again.
	Chat  bool       `json:"chat,omitempty"`
	Files []UndoFile `json:"files"`
	// Makes are the directories that have to be made for it, the topmost first; Removes those that
	// go where nothing is left in them.
	Makes   []string `json:"makes,omitempty"`
	Removes []string `json:"removes,omitempty"`
	// Effects are what it does not take back.
	Effects []Effect `json:"cannot_be_undone,omitempty"`
	By      string   `json:"by"`
	// Seq is its place in the session's log; MessageID the UNDONE message.
	Seq       int64     `json:"seq,omitempty"`
	MessageID ID        `json:"message_id,omitzero"`
	CreatedAt time.Time `json:"created_at,omitzero"`
	DoneAt    time.Time `json:"done_at,omitzero"`
}

// Left counts the files that were not undone.
func (u *Undo) Left() (n int) {
	for i := range u.Files {
		if u.Files[i].Outcome == FileNotUndone {
			n++
		}
	}
	return n
}

// UndoPlan is an undo as a person is shown it before anything is stored.
type UndoPlan struct {
	Undo
	// Plan identifies this plan: an undo that names it does exactly this, or nothing.
	Plan Hash `json:"plan"`
	// Previews say what becomes of each of Files, in their order.
	Previews []FilePreview `json:"previews"`
	// Root and SessionName say where; Text is the message that started the run, Messages how many
	// Chat is about.
	Root        string `json:"root"`
	SessionName string `json:"session_name"`
	Text        string `json:"text,omitempty"`
	Messages    int    `json:"messages,omitempty"`
}

// FilePreview is what becomes of one file, for a person.
type FilePreview struct {
	Sentence Sentence   `json:"sentence"`
	Diff     string     `json:"diff,omitempty"`
	Warnings []Sentence `json:"warnings,omitempty"`
	// Conflict says why the file cannot be put back as things are.
	Conflict *UndoConflict `json:"conflict,omitempty"`
}

// UndoConflict says why a file cannot be put back.
type UndoConflict struct {
	Code     Code     `json:"code"`
	Sentence Sentence `json:"sentence"`
	// Forceable says that the file can be put back all the same: what is there now is kept first.
	Forceable bool `json:"forceable,omitempty"`
}

// Conflicts returns the plan's conflicts that stand in the way: all of them, or, where it is to be
// forced, those of files that cannot be put back.
func (p *UndoPlan) Conflicts(force bool) []UndoConflict {
	var out []UndoConflict
	for i := range p.Previews {
		if c := p.Previews[i].Conflict; c != nil && (!force || !c.Forceable) {
			out = append(out, *c)
		}
	}
	return out
}

// Places are messages of a thread, counted from 1, both ends included.
type Places struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Undone is the content of an UNDONE message apart from its summary. Places count all messages from
// the beginning of the thread, so that they mean the same in a fork, as those of a Compaction do.
type Undone struct {
	UndoID  ID `json:"undo_id"`
	RoundID ID `json:"round_id"`
	// Superseded are the messages that later prompts omit, Restored those that they show again. A
	// superseded CONTEXT_SUMMARY still replaces the messages before it.
	Superseded *Places `json:"superseded,omitempty"`
	Restored   *Places `json:"restored,omitempty"`
}

// Supersede tracks the superseded messages of a thread as it receives the messages in order
// (decision 16).
type Supersede struct{ spans []Places }

// See takes the next message of the thread.
func (s *Supersede) See(m *Message) {
	if m.System == nil || m.System.Undone == nil {
		return
	}
	u := m.System.Undone
	if u.Superseded != nil {
		s.spans = append(slices.Clip(s.spans), *u.Superseded)
	}
	if u.Restored == nil {
		return
	}
	var kept []Places
	for _, span := range s.spans {
		if span != *u.Restored {
			kept = append(kept, span)
		}
	}
	s.spans = kept
}

// Hides reports whether the message at a place, counted from 1, is superseded.
func (s *Supersede) Hides(place int, m *Message) bool {
	if m.System != nil && m.System.Compaction != nil {
		return false
	}
	for _, span := range s.spans {
		if span.From <= place && place <= span.To {
			return true
		}
	}
	return false
}

// ChangesOf returns what an undo made of files, as changes that can be taken back in turn.
func ChangesOf(u *Undo) []FileChange {
	var out []FileChange
	for i := range u.Files {
		if f := &u.Files[i]; f.Outcome == FileUndone {
			out = append(out, FileChange{Path: f.Path, Before: f.From, After: f.To, Kept: true})
		}
	}
	if len(out) > 0 {
		out[0].Made = u.Makes
	}
	return out
}

// Standing returns the paths of a round's changes that effective undos have reverted, and whether
// its messages are: an undo of an undo cancels that. With a non-zero target it does so for an undo.
// undos are all of the round's.
func Standing(undos []Undo, target ID) (paths map[string]ID, chat ID) {
	paths = map[string]ID{}
	for i := range undos {
		u := &undos[i]
		if u.State != UndoDone || u.Undoes != target {
			continue
		}
		back, chatBack := Standing(undos, u.ID)
		for k := range u.Files {
			f := &u.Files[k]
			if _, again := back[f.Path]; f.Outcome == FileUndone && !again {
				paths[f.Path] = u.ID
			}
		}
		if u.Chat && chatBack.IsZero() {
			chat = u.ID
		}
	}
	return paths, chat
}
