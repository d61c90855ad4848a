// Package skill reads agent skills: directories with a SKILL.md, whose front matter says what a
// skill is called and what it is for, and whose body says how a task is done (the open Agent Skills
// format).
//
// Parse is pure: one file's bytes become a Skill or a reason why not. Load makes a Set of several
// places, the first of which wins where two skills have one name. A bad skill is a notice, never an
// error: what other people put into a directory must not keep anybody from working. Nothing of a
// skill is run here, and nothing in it allows anything: allowed-tools grants nothing.
package skill
