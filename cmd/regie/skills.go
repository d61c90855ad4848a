package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/plain"
)

// newSkillsCommand lists the skills that an agent has in this directory.
func newSkillsCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "skills", Args: arguments(0, 0), Short: env.T("The skills that an agent has in this directory"),
		Long: env.T("List the skills that an agent has in this directory: instructions for kinds of tasks, each a directory with a SKILL.md, in the open Agent Skills format. An agent is told the name and the description of each, and reads the rest when a task is about it.\n\nThey are read from .regie/skills and .agents/skills of a workspace that you trust (regie trust), and of your own from skills beside your regie.yaml and from ~/.agents/skills. Of two with one name the first in this order is taken."),
		RunE: func(*cobra.Command, []string) error {
			root, err := env.localWorkspace(true)
			if err != nil {
				return err
			}
			set, seen, err := loadSkills(env, root)
			if err != nil || asJSON {
				return orJSON(env, skillsJSON(env, &set), err)
			}
			p := env.printer()
			skillLines(env, &set, &seen, p.line)
			return p.err
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

func loadSkills(env *environment, root string) (app.SkillSet, app.Project, error) {
	seen, err := app.LookProject(env.config, root)
	return app.Skills(env.config, root), seen, err
}

// listedSkills are skills as programs read them.
type listedSkills struct {
	Skills  []app.Skill     `json:"skills"`
	Notices []listedNotices `json:"notices"`
}

type listedNotices struct {
	Origin  app.SkillOrigin `json:"origin"`
	Dir     string          `json:"dir"`
	Refused bool            `json:"refused"`
	Text    string          `json:"text"`
}

func skillsJSON(env *environment, set *app.SkillSet) listedSkills {
	out := listedSkills{Skills: set.Skills, Notices: []listedNotices{}}
	if out.Skills == nil {
		out.Skills = []app.Skill{}
	}
	for i := range set.Notices {
		n := &set.Notices[i]
		out.Notices = append(out.Notices, listedNotices{n.Origin, n.Dir, n.Refused, noticeText(env, n)})
	}
	return out
}

func noticeText(env *environment, n *app.SkillNotice) string {
	if n.Err != nil {
		return env.text.Error(n.Err)
	}
	return env.text.Sentence(n.Text)
}

// noticeLine describes what is odd about a skill.
func noticeLine(env *environment, n *app.SkillNotice) string {
	mark := "!"
	if n.Refused {
		mark = "✗"
	}
	return "  " + mark + " " + env.pair(plain.Line(n.Dir), plain.Line(noticeText(env, n)))
}

// skillLines are skills for people.
func skillLines(env *environment, set *app.SkillSet, seen *app.Project, line func(format string, args ...any)) {
	if len(set.Skills) == 0 {
		line("%s", env.T("no skills"))
	}
	for i := range set.Skills {
		s := &set.Skills[i]
		line("%s  %s", s.Name, plain.Line(s.Description))
		line("    %s", env.T("%s, in %s, files besides SKILL.md: %d", skillOrigin(env, s.Origin),
			plain.Line(s.Dir), len(s.Files)))
	}
	for i := range set.Notices {
		line("%s", noticeLine(env, &set.Notices[i]))
	}
	if skills, _, _ := seen.Dormant(); skills > 0 {
		line("! %s",
			env.T("skills of this workspace that do not count until you trust them: %d; regie trust shows them",
				skills))
	}
}

// skillNotes writes the skills of a workspace into a chat, as they are at that moment.
func skillNotes(env *environment, root string) func(note func(line string)) {
	return func(note func(line string)) {
		set, seen, err := loadSkills(env, root)
		if err != nil {
			note(env.text.Error(err))
			return
		}
		skillLines(env, &set, &seen, func(format string, args ...any) {
			note(plain.Strip(fmt.Sprintf(format, args...)))
		})
	}
}

func skillOrigin(env *environment, o app.SkillOrigin) string {
	if o == app.SkillOfUser {
		return env.T("yours")
	}
	return env.T("of the workspace")
}
