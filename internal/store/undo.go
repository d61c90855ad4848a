package store

import "github.com/regie-run/regie"

// UndoFilter selects what may be undone: rounds that did something, newest first, and, where an id
// is named, undos.
type UndoFilter struct {
	Root      string   // of the workspace; empty for all
	SessionID regie.ID // zero for all of the workspace
	ID        regie.ID // of a round or an undo; zero for the newest rounds
	// Short is the end of such an id, or its beginning from eight digits on, as InboxFilter.Short.
	Short string
	// Talk also selects rounds that did nothing but talk: there are messages to supersede.
	Talk  bool
	Limit int // zero means 100
}

// UndoCandidate is a round, or an undo of it, that may be undone.
type UndoCandidate struct {
	RoundID regie.ID `json:"round_id"`
	UndoID  regie.ID `json:"undo_id,omitzero"`
}

// UndoSource is all that an undo of a round is planned from, in one snapshot.
type UndoSource struct {
	Workspace regie.Workspace
	Session   regie.Session
	Round     regie.Round
	Text      string // of the message that started it
	// Calls are the actions of the round and of its sub-agents' rounds that were started, in the
	// order of their start.
	Calls []regie.Call
	// Undos are all of the round's, in their order.
	Undos []regie.Undo
	// Messages is how many messages of the round an undo of the chat is about.
	Messages int
}

// Later is what has changed files of a workspace since.
type Later struct {
	Calls []regie.Call // in the order of their start; one that is STARTED may have done it
	Undos []regie.Undo
}

// FinishUndo is the transition that tells what became of an intended undo.
type FinishUndo struct {
	UndoID regie.ID
	Epoch  int64            // under which whoever carried it out held the session
	Files  []regie.UndoFile // all of it, with their outcomes
	// Message is UNDONE; its Undone is filled in by the store.
	Message regie.Message
}

// OpenUndo is an undo that is intended and not done, with the directory that it is about.
type OpenUndo struct {
	regie.Undo
	Workspace regie.Workspace
}

// HeldUndo is an undo that its holder carries out: it holds the session, as the holder of a round
// does (invariant 8). Epoch is zero where there is nothing to hold, because the undo is done, or is
// another's to claim.
type HeldUndo struct {
	regie.Undo
	Epoch int64
}

// RunIsOpen says why nothing of a session is undone while a run of it is open (decision 16): the
// run counts on its files as they are, also while it waits.
func RunIsOpen(state regie.SessionState) error {
	return regie.Errorf(regie.CodeRoundInProgress,
		"a run of this session is open (%s): answer what it asks, let it end or stop it, then undo", string(state))
}

// ErrUndoing says that an undo of the workspace is intended and not done: rounds of its session,
// and other undos, wait for it.
var ErrUndoing = regie.Errorf(regie.CodeConflict, "an undo in this workspace is under way: try again when it is done")
