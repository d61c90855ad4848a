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

// project looks at what the files of a workspace say to agents, and whether that counts.
func (x *exam) project(root string, p Project) {
	if p.Broken != nil {
		x.cause("project", p.Broken).about(p.File).fix("correct %s; no run begins here before that", p.File)
	}
	skills, settings := strconv.Itoa(p.Skills), strconv.Itoa(p.Settings)
	switch {
	case p.Unread != nil:
		x.cause("trust", p.Unread).about(root).fix("take out of .regie and .agents/skills what is not for agents")
	case p.Skills+p.Settings == 0:
	case p.Trusted:
		x.fine("trust", "what the workspace says to agents counts, because you trust it: skills %s, settings %s",
			skills, settings).about(root)
	default:
		x.warn("trust", "what the workspace says to agents does not count until you trust it: skills %s, settings %s",
			skills, settings).about(root).run("regie trust")
	}
	if len(p.Bad) > 0 {
		x.warn("skills", "skills that are not used: %s", strings.Join(p.Bad, ", ")).run("regie skills")
	}
}
