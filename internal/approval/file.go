package approval

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// FileRule is a rule in a file of settings (spec 13). It applies to every tool that its pattern
// matches, as long as the file has it.
type FileRule struct {
	Tool string // a canonical name, "*" for any part
	// Path is the path that it is about, or, where Below is set, what lies below it. Argv is the
	// command that it is about. Where neither is set it is about every call.
	Path  string
	Below bool
	Argv  []string
	// URL is the address that it is about; one that ends in a slash is about what lies below it.
	URL string
	// Cwd is the directory of a command that a rule allows: empty is the workspace itself, with /**
	// behind it also what lies below, ** is any. What runs is decided by the files that lie there
	// (a Makefile), so elsewhere it is another command. A rule with one allows nothing but
	// commands. A rule that asks or forbids holds in any.
	Cwd string
	// Network has a rule that allows a command allow it with the network too.
	Network bool
	Verdict regie.Verdict
	Where   string // the file and the place in it, for people
}

// FileCall is a call that rules of files are held against.
type FileCall struct {
	Tool string
	// Arguments have the literal command that it runs under regie.FieldCommand. Runs says that its
	// tool runs commands: without such a command it is one that a shell runs.
	Arguments map[string]any
	Runs      bool
}

// FileRules are what the rules of files say of a call, as standing rules of its workspace. Those of
// a file that may only narrow have nothing that allows: who reads the file sees to it (decision
// 19).
func FileRules(rules []FileRule, workspace regie.ID, call FileCall) []regie.Rule {
	var out []regie.Rule
	for i := range rules {
		r := &rules[i]
		if ok, err := path.Match(r.Tool, call.Tool); err != nil || !ok || call.Tool == "" || !r.covers(&call) {
			continue
		}
		out = append(out, regie.Rule{
			WorkspaceID: workspace, Verdict: r.Verdict,
			Author: r.Where, Scope: r.scope(&call),
		})
	}
	return out
}

// command is the literal command of a call.
func (c *FileCall) command() (command regie.Command, literal bool) {
	text, is := c.Arguments[regie.FieldCommand].(string)
	return command, is && json.Unmarshal([]byte(text), &command) == nil
}

// covers reports whether a rule can be about a call at all. What it allows of commands are literal
// ones in their directory: spec 4.4 has rules match parsed commands, so one that a shell runs asks
// each time, also under a rule about every call.
func (r *FileRule) covers(call *FileCall) bool {
	command, literal := call.command()
	switch {
	case r.Verdict != regie.VerdictAllow:
		return true
	case !call.Runs && !literal:
		return r.Cwd == "" // a directory narrows to the commands in it
	case !literal, command.Network && !r.Network:
		return false
	}
	above, below := strings.CutSuffix(r.Cwd, "/**")
	switch {
	case r.Cwd == "**":
		return true
	case below:
		return command.Dir == above || strings.HasPrefix(command.Dir, above+"/")
	default:
		return command.Dir == cmp.Or(r.Cwd, ".")
	}
}

// scope is that of a rule for one call.
func (r *FileRule) scope(call *FileCall) regie.Scope {
	s := regie.Scope{Tool: call.Tool}
	switch {
	case len(r.Argv) > 0:
		s.Kind, s.Field, s.Value = regie.ScopeArgv, regie.FieldCommand, regie.Command{Argv: r.Argv, Dir: "."}.String()
		if command, literal := call.command(); literal && slices.Equal(command.Argv, r.Argv) {
			s.Value, _ = call.Arguments[regie.FieldCommand].(string) // in its directory
		}
	case r.URL != "":
		s.Kind, s.Field, s.Value = regie.ScopeURL, "url", r.URL
	case r.Path != "" && r.Below:
		s.Kind, s.Field, s.Value = regie.ScopeUnder, "path", r.Path
	case r.Path != "":
		s.Kind, s.Field, s.Value = regie.ScopeExact, "path", r.Path
	default:
		s.Kind = regie.ScopeAny
	}
	return s
}
