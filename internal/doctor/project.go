package doctor

import (
	"strconv"
	"strings"
)

// Project is what a workspace holds for agents, as the wiring finds it.
type Project struct {
	// Broken is why its file of settings does not fit; Unread is why nothing can be trusted.
	Broken, Unread error
	File           string // of settings
	// Trusted says that a person has decided so about exactly this.
	Trusted bool
	// Skills and Settings are how many would count once it is trusted, or do count.
	Skills, Settings int
	// Bad are the skills, the user's too, that are not used.
	Bad []string
}

// checkProject checks the agent files of a workspace, and whether they take effect.
func (x *exam) checkProject(root string, p Project) {
	if p.Broken != nil {
		x.addError("project", p.Broken).setSubject(p.File).addFix("correct %s; no run starts here before that", p.File)
	}
	skills, settings := strconv.Itoa(p.Skills), strconv.Itoa(p.Settings)
	switch {
	case p.Unread != nil:
		x.addError("trust", p.Unread).setSubject(root).addFix("remove from .regie and .agents/skills everything that is not for agents")
	case p.Skills+p.Settings == 0:
	case p.Trusted:
		x.addFine("trust", "the workspace's skills and settings are in force, because you trust them: skills %s, settings %s",
			skills, settings).setSubject(root)
	default:
		x.addWarning("trust", "the workspace's skills and settings are ignored until you trust them: skills %s, settings %s",
			skills, settings).setSubject(root).addCommand("regie trust")
	}
	if len(p.Bad) > 0 {
		x.addWarning("skills", "skills that are not used: %s", strings.Join(p.Bad, ", ")).addCommand("regie skills")
	}
}
