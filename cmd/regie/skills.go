package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/plain"
)

// skillsCommand lists the skills that an agent has in this directory.
func (c *command) skillsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "skills", Args: usage(cobra.NoArgs), Short: c.text.T("The skills that an agent has in this directory"),
		Long: c.text.T("List the skills that an agent has in this directory: instructions for kinds of tasks, each a directory with a SKILL.md, in the open Agent Skills format. An agent is told the name and the description of each, and reads the rest when a task is about it.\n\nThey are read from .regie/skills and .agents/skills of a workspace that you trust (regie trust), and of your own from skills beside your regie.yaml and from ~/.agents/skills. Of two with one name the first in this order is taken."),
		RunE: func(*cobra.Command, []string) error {
			root, err := c.directory(true)
			if err != nil {
				return err
			}
			set, seen, err := c.skillsIn(root)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.stdout, c.skillsJSON(&set))
			}
			p := &printer{w: c.stdout}
			c.skillLines(&set, &seen, p.line)
			return p.err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, c.text.T("print JSON"))
	return cmd
}

func (c *command) skillsIn(root string) (app.SkillSet, app.Project, error) {
	seen, err := app.LookProject(c.config, root)
	return app.Skills(c.config, root), seen, err
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

func (c *command) skillsJSON(set *app.SkillSet) listedSkills {
	out := listedSkills{Skills: set.Skills, Notices: []listedNotices{}}
	if out.Skills == nil {
		out.Skills = []app.Skill{}
	}
	for i := range set.Notices {
		n := &set.Notices[i]
		out.Notices = append(out.Notices, listedNotices{n.Origin, n.Dir, n.Refused, c.noticeText(n)})
	}
	return out
}

func (c *command) noticeText(n *app.SkillNotice) string {
	if n.Err != nil {
		return c.text.Error(n.Err)
	}
	return c.text.Sentence(n.Text)
}

// notice prints what is odd about a skill.
func (c *command) notice(p *printer, n *app.SkillNotice) {
	p.line("%s", c.noticeLine(n))
}

func (c *command) noticeLine(n *app.SkillNotice) string {
	mark := "!"
	if n.Refused {
		mark = "✗"
	}
	return "  " + mark + " " + c.pair(plain.Line(n.Dir), plain.Line(c.noticeText(n)))
}

// skillLines are skills for people.
func (c *command) skillLines(set *app.SkillSet, seen *app.Project, line func(format string, args ...any)) {
	if len(set.Skills) == 0 {
		line("%s", c.text.T("no skills"))
	}
	for i := range set.Skills {
		s := &set.Skills[i]
		line("%s  %s", s.Name, plain.Line(s.Description))
		line("    %s", c.text.T("%s, in %s, files besides SKILL.md: %d", c.skillOrigin(s.Origin),
			plain.Line(s.Dir), len(s.Files)))
	}
	for i := range set.Notices {
		line("%s", c.noticeLine(&set.Notices[i]))
	}
	if skills, _, _ := seen.Dormant(); skills > 0 {
		line("! %s",
			c.text.T("skills of this workspace that do not count until you trust them: %d; regie trust shows them",
				skills))
	}
}

// skillNotes writes the skills of a workspace into a chat, as they are at that moment.
func (c *command) skillNotes(root string) func(note func(line string)) {
	return func(note func(line string)) {
		set, seen, err := c.skillsIn(root)
		if err != nil {
			note(c.text.Error(err))
			return
		}
		c.skillLines(&set, &seen, func(format string, args ...any) { note(plain.Strip(fmt.Sprintf(format, args...))) })
	}
}

func (c *command) skillOrigin(o app.SkillOrigin) string {
	if o == app.SkillOfUser {
		return c.text.T("yours")
	}
	return c.text.T("of the workspace")
}
