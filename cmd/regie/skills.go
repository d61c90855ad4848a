package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/sanitize"
)

// newSkillsCommand lists the skills that an agent has in this directory.
func newSkillsCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "skills", Args: checkArgCount(0, 0), Short: env.T("List the skills of an agent in this directory"),
		Long: env.T("List the skills of an agent in this directory: instructions for kinds of tasks, each a directory with a SKILL.md in the open Agent Skills format. The agent sees each name and description, and reads the rest when a task needs it.\n\nSkills are read from .regie/skills and .agents/skills of a trusted workspace (regie trust), from skills beside your regie.yaml, and from ~/.agents/skills. If two have the same name, the first in this order is used."),
		RunE: func(*cobra.Command, []string) error {
			root, err := env.localWorkspace(true)
			if err != nil {
				return err
			}
			set := app.Skills(env.config, root)
			return printLines(env, asJSON, skillsJSON(env, &set), nil, func(p *printer) {
				skillLines(env, root, &set, p.printLine)
			})
		},
	}
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

// skillsJSON returns skills as programs read them.
func skillsJSON(env *environment, set *app.SkillSet) map[string]any {
	notices := []map[string]any{}
	for i := range set.Notices {
		n := &set.Notices[i]
		notices = append(notices, map[string]any{
			"origin": n.Origin, "dir": n.Dir, "refused": n.Refused, "text": noticeText(env, n),
		})
	}
	return map[string]any{"skills": append([]app.Skill{}, set.Skills...), "notices": notices}
}

func noticeText(env *environment, n *app.SkillNotice) string {
	if n.Err != nil {
		return env.text.Error(n.Err)
	}
	return env.text.Sentence(n.Text)
}

// noticeLine describes a problem with a skill.
func noticeLine(env *environment, n *app.SkillNotice) string {
	mark := "!"
	if n.Refused {
		mark = "✗"
	}
	return "  " + mark + " " + env.joinPair(sanitize.Line(n.Dir), sanitize.Line(noticeText(env, n)))
}

// skillLines writes skills for people, and how many of the workspace's do not count yet.
func skillLines(env *environment, root string, set *app.SkillSet, line func(format string, args ...any)) {
	if len(set.Skills) == 0 {
		line("%s", env.T("no skills"))
	}
	for i := range set.Skills {
		s := &set.Skills[i]
		origin := env.T("of the workspace")
		if s.Origin == app.SkillOfUser {
			origin = env.T("yours")
		}
		line("%s  %s", s.Name, sanitize.Line(s.Description))
		line("    %s", env.T("%s, in %s, files besides SKILL.md: %d", origin, sanitize.Line(s.Dir), len(s.Files)))
	}
	for i := range set.Notices {
		line("%s", noticeLine(env, &set.Notices[i]))
	}
	if seen, err := app.LookProject(env.config, root); err != nil {
		line("! %s", env.text.Error(err))
	} else if skills, _, _ := seen.Dormant(); skills > 0 {
		line("! %s",
			env.T("skills of this workspace that do not count until you trust them: %d; regie trust shows them", skills))
	}
}

// skillNotes writes the skills of a workspace into a chat, as they are at that moment.
func skillNotes(env *environment, root string) func(note func(line string)) {
	return func(note func(line string)) {
		set := app.Skills(env.config, root)
		skillLines(env, root, &set, func(format string, args ...any) {
			note(sanitize.Strip(fmt.Sprintf(format, args...)))
		})
	}
}
