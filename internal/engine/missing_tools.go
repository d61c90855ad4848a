package engine

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// noteMissingTools tells people, when a round begins and when it goes on after a crash, which tools
// it does without, and, when it begins, what of the workspace's document it was not given.
func (r *run) noteMissingTools() error {
	missing := r.tools.Missing()
	begins := r.round.Phase == regie.PhaseModel && r.exchange.Number == 1 && r.exchange.Attempt == 1
	notice := regie.ToolNotice{Missing: missing}
	if begins {
		notice.Document = r.policy.Document
	}
	if len(missing) == 0 && notice.Document.IsZero() || !begins && !r.resumed {
		return nil
	}
	_, err := r.cfg.Store.Note(r.commit, r.fence, store.Note{Message: r.toolNotice(notice)})
	return err
}
