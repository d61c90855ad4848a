package dispatch

import (
	"github.com/regie-run/regie"
)

// UndoRequest says what is to be undone.
type UndoRequest struct {
	// UndoID is the undo's own id: asking again under it adds nothing.
	UndoID regie.ID `json:"undo_id,omitzero"`
	// Target is a run, or an undo, which is taken back then; Short is a part of such an id. Without
	// either it is the newest run of SessionID, or of the workspace at Root, that changed files and
	// is not undone.
	Target    regie.ID `json:"target,omitzero"`
	Short     string   `json:"short,omitempty"`
	Root      string   `json:"root,omitempty"`
	SessionID regie.ID `json:"session_id,omitzero"`
	// Chat removes the run's messages from the conversation too; without file changes, the newest
	// run may be one that only talked.
	Chat bool `json:"chat,omitempty"`
	// Force puts files back that others have changed since. What they hold now is kept, and an undo
	// of the undo brings it again.
	Force bool `json:"force,omitempty"`
	// Plan is that of the plan which was shown: where it is no longer what would be done, nothing
	// is.
	Plan regie.Hash `json:"plan,omitzero"`
	By   string     `json:"by,omitempty"`
}
