package shell

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/tool"
)

// secure takes a snapshot of the workspace before a command runs, because its changes are not known
// beforehand (decision 16). It returns the snapshot's name.
func (k *toolkit) secure(ctx context.Context, inv *tool.Invocation) (regie.Hash, error) {
	if k.snapshots == nil {
		return regie.Hash{}, nil
	}
	fault.Point(fault.SecureBefore)
	said, err := k.snapshots.Take(ctx, inv.Workspace, inv.CallID)
	if err == nil {
		fault.Point(fault.SecureAfter)
	}
	return said.Tree, err
}

// track finds out what a command has changed, whether it came to its end or not.
func (k *toolkit) track(ctx context.Context, inv *tool.Invocation) (tool.Tracked, error) {
	var intended intent
	if err := json.Unmarshal(inv.Intent, &intended); err != nil {
		return tool.Tracked{}, regie.Errorf(regie.CodeCorrupt, "what was stored before the command cannot be read")
	}
	if intended.Tree.IsZero() || k.snapshots == nil {
		return tool.Tracked{}, nil
	}
	fault.Point(fault.TrackBefore)
	var others []regie.FileChange
	if inv.Beside != nil {
		var err error
		if others, err = inv.Beside(ctx); err != nil {
			return tool.Tracked{}, err
		}
	}
	changes, err := k.snapshots.Compare(ctx, inv.Workspace, snapshot.Comparison{
		Call: inv.CallID, Tree: intended.Tree,
		Others: others, Keep: inv.Keep,
	})
	if err != nil {
		return tool.Tracked{}, err
	}
	out := tool.Tracked{Told: changes.Told()}
	if out.Changed, err = json.Marshal(changes); err != nil {
		return tool.Tracked{}, err
	}
	if inv.Say != nil {
		for _, said := range changes.Said() {
			inv.Say(said)
		}
	}
	fault.Point(fault.TrackAfter)
	return out, nil
}

// changes are what a command made of files. What it may have done besides is an error: where it was
// not confined to the workspace, where files were changed that are not covered, and where the
// history of the repository is another one.
func (k *toolkit) changes(_ context.Context, inv *tool.Invocation) ([]regie.FileChange, error) {
	var intended intent
	var changed snapshot.Changes
	if len(inv.Changed) == 0 {
		return nil, regie.Errorf(regie.CodeToolError, "what the command changed in files is not known")
	}
	if json.Unmarshal(inv.Intent, &intended) != nil || json.Unmarshal(inv.Changed, &changed) != nil {
		return nil, regie.Errorf(regie.CodeCorrupt, "what was stored of the command cannot be read")
	}
	confined := intended.Sandbox == string(sandbox.Bubblewrap) || intended.Sandbox == string(sandbox.Landlock)
	var left regie.Sentence
	say := func(said bool, sentence regie.Sentence) {
		switch {
		case !said:
		case left.IsZero():
			left = sentence
		default:
			left = regie.SayOf("%s; %s", left, sentence)
		}
	}
	say(changed.Uncovered > 0, regie.Say("it changed or created files that undo cannot restore: %s",
		names(changed.Names, changed.Uncovered)))
	say(changed.Aside, regie.Say("it changed ignored or special files, which undo cannot restore"))
	say(changed.Git, regie.Say("it changed the history of the repository, its branches, tags or stashes"))
	online := strings.HasSuffix(intended.Sandbox, networkMark)
	say(online, regie.Say("it had the network: what it did there is unknown"))
	say(!confined && !online, regie.Say("it was not confined to the workspace: its other effects are unknown"))
	if left.IsZero() {
		return changed.Files, nil
	}
	return changed.Files, regie.ErrorOf(regie.CodeToolError, left)
}

// names are the first of so many names.
func names(some []string, all int) string { return snapshot.Names(some[:min(12, len(some))], all) }
