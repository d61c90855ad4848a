package app

import (
	"os"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// Look returns the block for a path of the workspace at root that a person mentions with @ (spec
// 7.3), or false where there is nothing to read. It opens no file.
func Look(root string) func(path string) (regie.EnrichmentBlock, bool) {
	return func(path string) (regie.EnrichmentBlock, bool) {
		image := regie.EnrichmentBlock{Type: regie.EnrichmentPointer, Target: regie.TargetFile, Path: path}
		if filepath.IsAbs(path) && image.NamesImage() { // a picture may lie anywhere: the client sends it
			info, err := os.Stat(path)
			return image, err == nil && info.Mode().IsRegular()
		}
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

// ReadImage returns what reads an image that Look found from the workspace at root, for sending it.
func ReadImage(root string) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if filepath.IsAbs(path) {
			root, path = filepath.Split(path)
		}
		r, err := workspace.Open(root)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return r.ReadPlain(path, regie.MaxImageBytes)
	}
}
