package files

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// changesOf says what a call made of its file, for an undo: every tool of this kit that changes
// files stores the same evidence. A file that is gone afterwards has no hash then.
func changesOf(_ context.Context, inv *tool.Invocation) ([]regie.FileChange, error) {
	planned, err := readIntent(inv)
	if err != nil {
		return nil, err
	}
	change := regie.FileChange{
		Path: planned.Path, Kept: planned.Before.IsZero() || planned.Kept == planned.Before,
		Made:   planned.Made,
		Before: regie.FileState{Hash: planned.Before, Size: planned.BeforeSize},
		After:  regie.FileState{Hash: planned.After, Size: int64(planned.Size)},
	}
	if change.Before.Exists() {
		change.Before.Perm = planned.Perm
		if change.After.Exists() { // a file that is changed keeps its permissions
			change.After.Perm = planned.Perm
		}
	}
	return []regie.FileChange{change}, nil
}
