package approval

import (
	"encoding/json"
	"path"
	"slices"

	"github.com/regie-run/regie"
)

// FileRule is a rule that stands in a file of settings (spec 13). It is about every tool that its pattern matches, and holds as long as it stands
// there.
type FileRule struct {
	Tool string // a canonical name, "*" for any part
	// Path is the path that it is about, or, where Below is set, what lies below it. Argv is the command that it is about, in whatever directory.
	// Where neither is set it is about every call.
	Path    string
	Below   bool
	Argv    []string
	Verdict regie.Verdict
	Where   string // the file and the place in it, for people
}

// FileRules are what the rules of files say of a call, as standing rules of its workspace. Those of a file that may only narrow have nothing that
// allows: who reads the file sees to it (decision 19).
func FileRules(rules []FileRule, workspace regie.ID, tool string, arguments map[string]any) []regie.Rule {
	var out []regie.Rule
	for i := range rules {
		r := &rules[i]
		if ok, err := path.Match(r.Tool, tool); err != nil || !ok || tool == "" {
			continue
		}
		out = append(out, regie.Rule{WorkspaceID: workspace, Verdict: r.Verdict, Author: r.Where, Scope: r.scope(tool, arguments)})
	}
	return out
}

// scope is that of a rule for one call.
func (r *FileRule) scope(tool string, arguments map[string]any) regie.Scope {
	s := regie.Scope{Tool: tool}
	switch {
	case len(r.Argv) > 0:
		s.Kind, s.Field, s.Value = regie.ScopeArgv, regie.FieldCommand, regie.Command{Argv: r.Argv, Dir: "."}.String()
		var command regie.Command
		text, literal := arguments[regie.FieldCommand].(string)
		if literal && json.Unmarshal([]byte(text), &command) == nil && slices.Equal(command.Argv, r.Argv) {
			s.Value = text // in its directory
		}
	case r.Path != "" && r.Below:
		s.Kind, s.Field, s.Value = regie.ScopeUnder, "path", r.Path
	case r.Path != "":
		s.Kind, s.Field, s.Value = regie.ScopeExact, "path", r.Path
	default:
		s.Kind = regie.ScopeAny
	}
	return s
}
