package config

import (
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
	Path string   `yaml:"path,omitempty"`
	Argv []string `yaml:"argv,omitempty"`
	// Cwd is where a command that is allowed may run: a directory, with /** behind it also what
	// lies below, ** for any. Left out it is the workspace itself.
	Cwd string `yaml:"cwd,omitempty"`
	// Network has a rule that allows a command allow it with the network too, where a call asks for
	// one.
	Network bool `yaml:"network,omitempty"`
	// URL is an address that web.fetch reads, or with /** behind it what lies below.
	URL string `yaml:"url,omitempty"`
	// Decision is allow, ask or forbid.
	Decision string `yaml:"decision"`

	where string // how people find it
}

// Where is how people find the rule.
func (r Rule) Where() string { return r.where }

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

// Address is the address that the rule is about; one that ends in a slash is about what lies below.
func (r Rule) Address() string { return strings.TrimSuffix(r.URL, "**") }

// checkURL refuses an address that no call is compared with.
func (r Rule) checkURL() error {
	plain, ok := regie.PlainURL(r.Address())
	switch {
	case r.Path != "" || len(r.Argv) > 0 || r.Tool != fetchTool:
		return regie.Errorf(regie.CodeBadRequest, "only a rule about %s has a url, and no path or argv with it", fetchTool)
	case !ok || plain != r.Address() || strings.HasSuffix(r.URL, "/") || strings.Contains(plain, "*"):
		return regie.Errorf(regie.CodeBadRequest,
			"url is %q: write a page as https://example.com/page, or what lies below as https://example.com/docs/**", r.URL)
	}
	return nil
}

// checkValues holds a rule to what its words mean together. One that says less than its author
// meant would be worse than none.
func (r Rule) checkValues() error {
	name, _ := r.Place()
	switch {
	case r.Path != "" && len(r.Argv) > 0:
		return regie.Errorf(regie.CodeBadRequest, "it has both a path and an argv: write two rules")
	case slices.Contains(r.Argv, ""):
		return regie.Errorf(regie.CodeBadRequest, "argv has an empty element")
	case r.Cwd != "" && (r.Path != "" || decisions[r.Decision] != regie.VerdictAllow || !r.aboutCommands()):
		return regie.Errorf(regie.CodeBadRequest, "cwd restricts allowed commands: only a rule that allows %s can have it",
			commandTool)
	case r.Network && (len(r.Argv) == 0 || decisions[r.Decision] != regie.VerdictAllow):
		return regie.Errorf(regie.CodeBadRequest,
			"network goes with a command that is allowed: write its argv, and decision: allow")
	case r.Cwd != "" && r.Cwd != "**" && r.Cwd != "." && !plainPlace(strings.TrimSuffix(r.Cwd, "/**")):
		return regie.Errorf(regie.CodeBadRequest,
			"cwd is %q: write a directory as docs, one with all below as docs/**, or ** for any", r.Cwd)
	case name != "" && !plainPlace(name), r.Path != "" && r.Path != "**" && name == "":
		return regie.Errorf(regie.CodeBadRequest,
			"path is %q: write a file as docs/a.md, or what lies below a directory as docs/**", r.Path)
	}
	if r.URL != "" {
		return r.checkURL()
	}
	return checkPattern(r.Tool)
}

// checkPattern refuses what can be no name of a tool.
func checkPattern(tool string) error {
	if _, err := path.Match(tool, "toolkit.operation"); err != nil || !strings.ContainsAny(tool, ".*") {
		return regie.Errorf(regie.CodeBadRequest, "%q is not a tool name: write it like files.write_file, or use * for any part", tool)
	}
	return nil
}

// commandTool is the tool that runs commands.
const commandTool = "shell.shell_exec"

// fetchTool is the tool that reads addresses.
const fetchTool = "web.fetch"

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
