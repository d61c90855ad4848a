package gitconfig

import (
	"regexp"
	"slices"
	"strings"
)

// Parts are git's names of a repository's entries, in small letters, including those that make git
// run something.
func Parts() []string {
	return slices.Concat(Runs(), States(), []string{
		"head", "objects", "refs", "reftable", "logs", "packed-refs", "index", "description",
		"shallow", "orig_head", "fetch_head",
	})
}

// Runs are the parts of a repository that name programs, or take another place's parts for this
// one's.
func Runs() []string {
	return []string{
		"hooks", "config", "info", "modules", "worktrees", "commondir", "config.worktree",
		"gitdir", "branches", "remotes",
	}
}

// States are the directories of a rebase or a sequence of picks under way. git runs their "exec"
// lines when it continues.
func States() []string { return []string{"rebase-merge", "rebase-apply", "sequencer"} }

// StateFiles are the files in States that make git run something: lists of steps, and names of
// merge strategies.
func StateFiles() []string {
	return []string{
		"rebase-merge/git-rebase-todo", "rebase-merge/strategy", "rebase-merge/strategy_opts",
		"sequencer/todo", "sequencer/opts",
	}
}

// RunsProgram reports whether a line of such a file makes git run a program. A strategy with a
// slash in its name is a program's path.
func RunsProgram(file, line string) bool {
	if !strings.HasSuffix(file, "todo") {
		return strings.Contains(line, "/")
	}
	line = strings.TrimLeft(line, " \t\r\v\f")
	end := strings.IndexFunc(line, func(r rune) bool { return r < 'a' || r > 'z' })
	if end >= 0 {
		line = line[:end]
	}
	return line == "exec" || line == "x"
}

// written are the parts of a repository that ordinary work with git writes, and the data of its
// extensions. None of them names a program.
var written = regexp.MustCompile(
	`^(objects|refs|reftable|logs|rr-cache|lfs|annex|svn)$` +
		`|^(HEAD|[A-Z]+_[A-Z_]+|index|packed-refs|shallow)(\.lock|\.new)?$` +
		`|^(next-index-|index\.stash\.|sharedindex|shallow_|gc\.(pid|log))` +
		`|^\..*\.sw[a-z]$|^\.#|~$`) // backups that editors leave next to a message

// Written reports whether ordinary work with git writes a part of a repository. Every other part is
// a person's to change.
func Written(part string) bool { return written.MatchString(part) || slices.Contains(States(), part) }

// plainKeys are the variables that git itself writes into the configuration of a new repository,
// and that name no program.
var plainKeys = regexp.MustCompile(
	`^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)` +
		`|user\.(name|email)|init\.defaultbranch|extensions\.objectformat|remote\..*\.(url|fetch)|branch\..*\.(remote|merge))$`)

// Plain reports whether a configuration holds nothing but such variables.
func Plain(config []byte) bool {
	plain := true
	parse(config, func(key, _ string) { plain = plain && plainKeys.MatchString(key) })
	return plain
}
