package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/automation"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	// maxChangedPaths is how many changed paths a run reads.
	maxChangedPaths = 200
	// filesAtOnce is how many times in a row changed files fire one automation; then once a minute.
	filesAtOnce = 20
	// longestCall is how long before a look at the files a call may have begun that changed them.
	longestCall = time.Hour
)

// FileWatches are the workspaces with files that fire automations.
func (a *Automations) FileWatches(ctx context.Context) (out []dispatch.FileWatch, err error) {
	if _, err := a.authorizeAll(ctx, "run_scheduler"); err != nil {
		return nil, err
	}
	all, err := a.Store.RunnableAutomations(ctx)
	if err != nil {
		return nil, err
	}
	places, err := a.Store.Workspaces(ctx)
	for i := range all {
		if one := &all[i]; one.Enabled && len(one.Definition.Files) > 0 {
			at := slices.IndexFunc(out, func(w dispatch.FileWatch) bool { return w.Workspace.ID == one.WorkspaceID })
			if at < 0 {
				place := slices.IndexFunc(places, func(w regie.Workspace) bool { return w.ID == one.WorkspaceID })
				if place < 0 || places[place].Root == "" {
					continue
				}
				at = len(out)
				out = append(out, dispatch.FileWatch{Workspace: places[place], Automations: map[regie.ID][]string{}})
			}
			out[at].Automations[one.ID] = one.Definition.Files
		}
	}
	return out, err
}

// FilesChanged fires the automations with patterns that match changed paths. Files as calls and
// undos left them fire nothing. busy reports a running call, which may have made the changes, or
// too many events: nothing was done.
func (a *Automations) FilesChanged(ctx context.Context, in dispatch.FileChanges) (busy bool, err error) {
	if _, err := a.authorizeAll(ctx, "run_scheduler"); err != nil {
		return false, err
	}
	written, busy, err := a.Undoer.Written(ctx, in.Workspace, in.Since.Add(-longestCall))
	if err != nil || busy {
		return busy, err
	}
	root, err := workspace.Open(in.Workspace.Root)
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(in.Paths)), func(path string) bool {
		left, own := written[path]
		return own && isLeft(root, path, left)
	})
	fired := map[regie.ID][]string{}
	for id, patterns := range in.Automations {
		changed := slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
			return !automation.Matches(patterns, path)
		})
		if len(changed) > 0 {
			fired[id] = changed
		}
	}
	for id := range fired { // all or none: what fires one now must not fire it again at the next look
		if a.fileLimit(id).Tokens() < 1 {
			return true, nil
		}
	}
	var errs []error
	for id, changed := range fired {
		key := sha256.New()
		for _, path := range changed {
			_, _ = fmt.Fprintf(key, "%q %s\n", path, in.Paths[path]) // a hash takes everything
		}
		body, _ := json.Marshal(map[string]any{ // texts always encode
			"changed_files": changed[:min(len(changed), maxChangedPaths)], "count": len(changed),
		})
		_, err := a.addEvent(ctx, id, hex.EncodeToString(key.Sum(nil)), body)
		switch regie.CodeOf(err) {
		case "":
			a.fileLimit(id).Allow()
		case regie.CodeConflict, regie.CodeNotFound: // it was disabled or removed
		default:
			errs = append(errs, err)
		}
	}
	return false, errors.Join(errs...)
}

// fileLimit bounds how often changed files fire an automation: a run that writes the files that
// fire it, by a tool with unknown changes, would go on without end.
func (a *Automations) fileLimit(id regie.ID) *rate.Limiter {
	return a.limitOf(&a.starts.files, id, rate.Every(time.Minute), filesAtOnce)
}

// isLeft reports whether a file is still as Regie left it.
func isLeft(root *workspace.Root, path string, left regie.FileState) bool {
	f, _, err := root.OpenFile(path)
	if err != nil {
		return !left.Exists() && (regie.CodeOf(err) == regie.CodeFileNotFound || errors.Is(err, fs.ErrNotExist))
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return false
	}
	return regie.Hash(hash.Sum(nil)) == left.Hash
}
