package store

import "github.com/regie-run/regie"

// UndoFilter selects rounds for an undo, newest first: those with actions, and undos by their id.
type UndoFilter struct {
	Root      string   // of the workspace; empty for all
	SessionID regie.ID // zero for all of the workspace
	ID        regie.ID // of a round or an undo; zero for the newest rounds
	// Short is the end of such an id, or its beginning from eight digits on, as InboxFilter.Short.
	Short string
	// Talk also selects rounds without actions: their messages can be superseded.
	Talk  bool
	Limit int // zero means 100
}

// UndoCandidate is a round, or an undo of it, that may be undone.
type UndoCandidate struct {
	RoundID regie.ID `json:"round_id"`
	UndoID  regie.ID `json:"undo_id,omitzero"`
}

// UndoSource is the data for planning an undo of a round, in one snapshot.
type UndoSource struct {
	Workspace regie.Workspace
	Session   regie.Session
	Round     regie.Round
	Text      string // of the message that started it
	// Calls are the started actions of the round and of its sub-agents' rounds, in the order of
	// their start.
	Calls []regie.Call
	// Undos are all of the round's, in their order.
	Undos []regie.Undo
	// Messages counts the messages of the round that an undo of the chat supersedes.
	Messages int
}

// Later is the later changes to files of a workspace.
type Later struct {
	Calls []regie.Call // in the order of their start; one that is STARTED may have done it
	Undos []regie.Undo
}

// FinishUndo is the transition that stores the outcome of an intended undo.
type FinishUndo struct {
	UndoID regie.ID
	Epoch  int64            // the session's epoch while it was carried out
	Files  []regie.UndoFile // all of it, with their outcomes
	// Message is UNDONE; its Undone is filled in by the store.
	Message regie.Message
}

// OpenUndo is an undo that is intended and not done, with the directory of its files.
type OpenUndo struct {
	regie.Undo
	Workspace regie.Workspace
}

// HeldUndo is an undo that its holder carries out: it holds the session, as the holder of a round
// does (invariant 8). Epoch is zero where the undo is not held: it is done, or another process's to
// claim.
type HeldUndo struct {
	regie.Undo
	Epoch int64
}

// RunIsOpen returns the error of an undo while a round of the session is open (decision 16): the
// round relies on its files, also while it waits.
func RunIsOpen(state regie.SessionState) error {
	return regie.Errorf(regie.CodeRoundInProgress,
		"a run of this session is open (%s): answer what it asks, let it end or stop it, then undo", string(state))
}

// ErrUndoing says that an undo of the workspace is intended and not done: rounds of its session,
// and other undos, wait for it.
var ErrUndoing = regie.Errorf(regie.CodeConflict, "another undo is in progress in this workspace: try again when it has finished")
