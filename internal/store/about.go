package store

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
)

// maxAbout bounds what an event says of a call's arguments, in bytes.
const maxAbout = 200

// About is what a call is about, "" where no argument says that: a path, what is looked for, or a
// command.
func About(c *regie.Call) string {
	arguments := []byte(c.Arguments)
	if len(c.Executed) > 0 {
		arguments = c.Executed
	}
	var named map[string]any
	_ = json.Unmarshal(arguments, &named) // what is none says nothing
	for _, name := range [...]string{"query", "path", "command"} {
		if text, _ := named[name].(string); text != "" {
			return strings.ToValidUTF8(text[:min(len(text), maxAbout)], "")
		}
	}
	return ""
}

// commandTool runs commands; their results begin with an exit code.
const commandTool = "shell.shell_exec"

// ExitCode is that of a call's command which failed, "" for a call that ran none, or one that
// succeeded.
func ExitCode(c *regie.Call) string {
	first, _, _ := strings.Cut(c.Result, "\n")
	code, found := strings.CutPrefix(first, regie.CommandExit)
	if !found || code == "0" || c.Tool != commandTool {
		return ""
	}
	return code
}
