package undo

import (
	"io/fs"

	"github.com/regie-run/regie"
)

// leaveStuck intends nothing for what cannot be put back, by force neither.
func leaveStuck(plan *regie.UndoPlan) {
	for i := range plan.Previews {
		if c := plan.Previews[i].Conflict; c != nil && !c.Forceable {
			plan.Files[i] = regie.UndoFile{Path: plan.Files[i].Path, To: stuck}
		}
	}
}

// stuck is what a file is to be that is left as it is: no file, with permissions that none has.
var stuck = regie.FileState{Perm: fs.ModeIrregular}

// sayStuck says of what is left why. A process that takes the undo over does not know.
func sayStuck(plan *regie.UndoPlan, files []regie.UndoFile) {
	for i := range files {
		if files[i].To == stuck && i < len(plan.Previews) {
			c := plan.Previews[i].Conflict
			files[i].Outcome, files[i].Code, files[i].Why = regie.FileNotUndone, c.Code, &c.Sentence
		}
	}
}
