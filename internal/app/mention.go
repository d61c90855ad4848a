package app

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// Look returns the block for a path of the workspace at root that a person mentions with @ (spec
// 7.3), or false where there is nothing to read. It opens no file.
func Look(root string) func(path string) (regie.EnrichmentBlock, bool) {
	return func(path string) (regie.EnrichmentBlock, bool) {
		r, err := workspace.Open(root)
		if err != nil {
			return regie.EnrichmentBlock{}, false
		}
		defer r.Close()
		clean, dir, err := r.Look(path)
		block := regie.EnrichmentBlock{Type: regie.EnrichmentPointer, Target: regie.TargetFile, Path: clean}
		if dir {
			block.Target = regie.TargetDirectory
		}
		return block, err == nil
	}
}
