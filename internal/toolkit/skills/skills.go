// Package skills is the toolkit by which a model reads agent skills: the list of them, what one
// says, and the further files of its directory. It only reads, and only what is active: skills of a
// workspace are once a person has trusted them.
//
// The package keeps nothing and starts nothing of its own: it has no goroutine.
package skills

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/skill"
	"github.com/regie-run/regie/internal/tool"
)

// The names of the toolkit and of its tool.
const (
	Toolkit   = "skills"
	ReadSkill = Toolkit + ".read_skill"
)

// shown bounds what one result holds, in bytes; the rest is read on with session.read_result.
const shown = 30 << 10

type readArgs struct {
	Name string `json:"name,omitempty" jsonschema:"the skill; leave out to list all of them"`
	File string `json:"file,omitempty" jsonschema:"a further file of the skill, as the skill names it, such as references/forms.md; leave out for the skill itself"`
}

type reader struct {
	skills func(root string) skill.Set
}

// Tools returns skills.read_skill. skills returns those that are active in a workspace, as they are
// now.
func Tools(skills func(root string) skill.Set) ([]tool.Tool, error) {
	t, err := tool.New(
		regie.ToolDefinition{
			Name: ReadSkill, Kind: regie.KindQuery, Class: regie.ClassRead, Risk: regie.RiskInternal,
			ParallelSafe: true, Local: true, MaxResult: shown,
			Description: "Read a skill: instructions that people have written for a kind of task, with the files that belong to it. " +
				"Read the one that a task is about before you begin.",
		},
		tool.Handler[readArgs]{Run: reader{skills}.run})
	if err != nil {
		return nil, err
	}
	return []tool.Tool{t}, nil
}

func (r reader) run(_ context.Context, inv *tool.Invocation, args readArgs) (tool.Result, error) {
	set := r.skills(inv.Workspace.Root)
	if args.Name == "" {
		if args.File != "" {
			return tool.Result{}, bad("name", "", regie.Errorf(regie.CodeBadArguments,
				"a file is read of a skill: name the skill"))
		}
		return tool.Result{Content: list(&set)}, nil
	}
	s, ok := set.Find(args.Name)
	if !ok {
		return tool.Result{}, bad("name", "without a name all skills are listed",
			regie.Errorf(regie.CodeNotFound, "there is no skill %q", sanitize.Line(sanitize.Clip(args.Name, 100))))
	}
	if args.File == "" {
		return tool.Result{Content: whole(s)}, nil
	}
	data, err := s.Read(args.File)
	if err != nil {
		return tool.Result{}, bad("file", files(s), err)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return tool.Result{Content: fmt.Sprintf("%s of the skill %s is not text: %d bytes",
			args.File, s.Name, len(data))}, nil
	}
	return tool.Result{Content: sanitize.Visible(string(data))}, nil
}

func bad(param, hint string, err error) error {
	return tool.Advice{Err: err, Param: param, Hint: hint}
}

// list names all skills.
func list(set *skill.Set) string {
	if len(set.Skills) == 0 {
		return "there are no skills here"
	}
	var b strings.Builder
	for i := range set.Skills {
		fmt.Fprintf(&b, "- %s: %s\n", set.Skills[i].Name, set.Skills[i].Description)
	}
	return b.String()
}

// whole is what a model reads of a skill: where it is from and which files it has stand in front,
// because a long text is cut at its end.
func whole(s *skill.Skill) string {
	var b strings.Builder
	if s.Origin == skill.OfWorkspace {
		fmt.Fprintf(&b, "[skill %s; its files lie in %s of the workspace]\n", s.Name, s.Dir)
	} else {
		fmt.Fprintf(&b, "[skill %s; its files lie outside the workspace: this tool alone reads them]\n", s.Name)
	}
	if s.Compatibility != "" {
		fmt.Fprintf(&b, "[it needs: %s]\n", s.Compatibility)
	}
	if names := files(s); names != "" {
		fmt.Fprintf(&b, "[%s]\n", names)
	}
	if s.Body == "" {
		return b.String() + "[it says nothing more than its description: " + s.Description + "]"
	}
	return b.String() + "\n" + sanitize.Visible(s.Body) + "\n"
}

// files names the further files of a skill.
func files(s *skill.Skill) string {
	const most = 50
	if len(s.Files) == 0 {
		return ""
	}
	var names []string
	for _, f := range s.Files[:min(len(s.Files), most)] {
		names = append(names, fmt.Sprintf("%s (%d bytes)", sanitize.Line(f.Path), f.Size))
	}
	if more := len(s.Files) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return "further files: " + strings.Join(names, ", ")
}
