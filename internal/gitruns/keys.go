package gitruns

import (
	"slices"
	"strings"
)

// meaning is what git does with the value of a variable.
type meaning int

const (
	harmless meaning = iota
	includes         // a file of more configuration
	hooks            // a directory of programs
	runs             // a command
	tree             // the work tree
)

const include = "include.path"

// single are the variables without a subsection that hold a command.
var single = []string{
	"core.fsmonitor", "core.pager", "core.editor", "core.sshcommand", "core.askpass", "core.gitproxy",
	"core.alternaterefscommand", "sequence.editor", "diff.external", "interactive.difffilter",
	"uploadpack.packobjectshook", "credential.helper", "gpg.program", "gpg.defaultkeycommand", "sendemail.sendmailcmd",
	"sendemail.tocmd", "sendemail.cccmd", "sendemail.headercmd", "sendemail.smtpserver",
}

// below are those with one, by the section and the key.
var below = map[string][]string{
	"diff": {"command", "textconv"}, "filter": {"clean", "smudge", "process"}, "merge": {"driver"},
	"difftool": {"cmd", "path"}, "mergetool": {"cmd", "path"}, "guitool": {"cmd"}, "trailer": {"cmd", "command"},
	"remote": {"uploadpack", "receivepack", "vcs"}, "man": {"cmd", "path"}, "browser": {"cmd", "path"},
	"tar": {"command"}, "hook": {"command"}, "credential": {"helper"}, "gpg": {"program", "defaultkeycommand"},
	"submodule": {"update"}, "sendemail": {"sendmailcmd", "tocmd", "cccmd", "headercmd", "smtpserver"},
}

// meaningOf says what a variable is for.
func meaningOf(key, value string) meaning {
	section, rest, _ := strings.Cut(key, ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	switch {
	case key == include, section == "includeif" && name == "path":
		return includes
	case key == "core.hookspath":
		return hooks
	case key == "core.worktree":
		return tree
	case section == "alias" && !strings.HasPrefix(value, "!"), section == "submodule" && !strings.HasPrefix(value, "!"):
		// names a command of git's own
		return harmless
	case slices.Contains(single, key), section == "pager", section == "alias", strings.Contains(rest, ".") &&
		slices.Contains(below[section], name):
		return runs
	default:
		return harmless
	}
}
