// Package skill reads agent skills: directories with a SKILL.md, whose front matter has the skill's
// name and purpose, and whose body explains a task (the open Agent Skills format).
//
// Parse is pure: it turns one file's bytes into a Skill or an error. Load makes a Set of several
// places; the first skill of a name wins. A bad skill is a notice, never an error: the content of a
// shared directory must not keep its users from working. This package runs nothing of a skill, and
// nothing in a skill allows anything: allowed-tools grants nothing.
package skill
