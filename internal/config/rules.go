package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// Rule is an entry of approvals.rules (spec 13): what becomes of the calls of a tool.
type Rule struct {
	// Tool is a canonical name, "*" for any part.
	Tool string `yaml:"tool"`
	// Path is a file, or with /** behind it what lies below a directory; Argv is a command. Without
	// either it is about every call.
	Path string   `yaml:"path"`
	Argv []string `yaml:"argv"`
	// Cwd is where a command that is allowed may run: a directory, with /** behind it also what
	// lies below, ** for any. Left out it is the workspace itself.
	Cwd string `yaml:"cwd"`
	// Decision is allow, ask or forbid.
	Decision string `yaml:"decision"`

	where string // how people find it
}

// Where is how people find the rule.
func (r Rule) Where() string { return r.where }

// maxRules bounds the rules of one file.
const maxRules = 500

// decisions are the words of a rule's decision.
var decisions = map[string]regie.Verdict{
	"allow": regie.VerdictAllow, "ask": regie.VerdictMustAsk,
	"forbid": regie.VerdictForbid,
}

// Verdict is what the rule says of the calls that it is about.
func (r Rule) Verdict() regie.Verdict { return decisions[r.Decision] }

// Place is the path that the rule is about, and whether it is about what lies below it; empty is
// every path.
func (r Rule) Place() (name string, below bool) {
	if dir, ok := strings.CutSuffix(r.Path, "/**"); ok {
		return dir, true
	}
	if r.Path == "**" {
		return "", false
	}
	return r.Path, false
}

// check holds a rule to its words. One that says less than its author meant would be worse than
// none.
func (r Rule) check(file, at string) error {
	_, pattern := path.Match(r.Tool, "toolkit.operation")
	switch {
	case r.Tool == "" || pattern != nil || !strings.ContainsAny(r.Tool, ".*"):
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s: tool is %q: name one as files.write_file, or with * for any part", at, file, r.Tool)
	case decisions[r.Decision] == "":
		return regie.Errorf(regie.CodeBadRequest, "%s in %s: decision is %q: use allow, ask or forbid", at, file,
			r.Decision)
	case r.Path != "" && len(r.Argv) > 0:
		return regie.Errorf(regie.CodeBadRequest, "%s in %s has a path and an argv: make two rules of it", at, file)
	case slices.Contains(r.Argv, ""):
		return regie.Errorf(regie.CodeBadRequest, "%s in %s: argv has an empty word", at, file)
	case r.Cwd != "" && r.Path != "":
		return regie.Errorf(regie.CodeBadRequest, "%s in %s has a path and a cwd: a cwd is about commands alone", at,
			file)
	case r.Cwd != "" && decisions[r.Decision] != regie.VerdictAllow:
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s has a cwd: it narrows what is allowed, and a rule that asks or forbids holds in every directory",
			at, file)
	case r.Cwd != "" && !r.aboutCommands():
		return regie.Errorf(regie.CodeBadRequest, "%s in %s has a cwd, and %s runs no command: only %s takes one",
			at, file, r.Tool, commandTool)
	case r.Cwd != "" && r.Cwd != "**" && r.Cwd != "." && !plainPlace(strings.TrimSuffix(r.Cwd, "/**")):
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s: cwd is %q: write a directory as docs, one with all below as docs/**, or ** for any", at, file,
			r.Cwd)
	case r.Path == "" || r.Path == "**":
		return nil
	}
	if name, _ := r.Place(); !plainPlace(name) {
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s: path is %q: write a file as docs/a.md, or what lies below a directory as docs/**", at, file,
			r.Path)
	}
	return nil
}

// commandTool is the tool whose calls run commands.
const commandTool = "shell.shell_exec"

// aboutCommands reports whether the rule's pattern can name a tool that runs commands.
func (r Rule) aboutCommands() bool {
	ok, err := path.Match(r.Tool, commandTool)
	return ok && err == nil
}

// plainPlace reports whether a path means one place below the workspace, letter by letter.
func plainPlace(name string) bool {
	return name != "" && !path.IsAbs(name) && path.Clean(name) == name && name != "." &&
		!strings.HasPrefix(name, "~") && !strings.ContainsAny(name, "*?[\\\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

func checkRules(file string, rules []Rule) error {
	if len(rules) > maxRules {
		return regie.Errorf(regie.CodeBadRequest, "approvals.rules in %s has more than %d entries", file, maxRules)
	}
	for i := range rules {
		if err := rules[i].check(file, ruleAt(i)); err != nil {
			return err
		}
		rules[i].where = file + " (" + ruleAt(i) + ")"
	}
	return nil
}

// ruleAt is how people find a rule in its file.
func ruleAt(i int) string { return fmt.Sprintf("approvals.rules[%d]", i+1) }
