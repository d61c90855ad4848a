package gitruns

import "slices"

// Parts are the names that git gives to what lies in a repository, in small letters: those that make it run something among them.
func Parts() []string {
	return slices.Concat(Runs(), []string{
		"head", "objects", "refs", "reftable", "gitdir", "logs", "packed-refs", "index", "branches", "description", "shallow", "orig_head", "fetch_head",
	})
}

// Runs are the parts of a repository that make git run programs, or take another place's parts for this one's; nobody else may write them. A rebase that
// was interrupted is among them: what stands in its list of steps is run when it goes on.
func Runs() []string {
	return append([]string{"hooks", "config", "info", "modules", "worktrees"}, Traps()...)
}

// Traps are those of Runs that git needs not have, and believes as soon as they are there.
func Traps() []string {
	return []string{"commondir", "config.worktree", "rebase-merge", "rebase-apply", "sequencer"}
}
