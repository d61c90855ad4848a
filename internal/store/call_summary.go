package store

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
)

// maxAbout bounds the subject of a call in an event, in bytes.
const maxAbout = 200

// About returns the subject of a call: its query, path, command or url argument, "" where it has
// none. A command with the network says so.
func About(c *regie.Call) string {
	arguments := []byte(c.Arguments)
	if len(c.Executed) > 0 {
		arguments = c.Executed
	}
	var named map[string]any
	_ = json.Unmarshal(arguments, &named) // arguments that are no JSON have no subject
	for _, name := range [...]string{"query", "path", "command", "url"} {
		if text, _ := named[name].(string); text != "" {
			if online, _ := named["network"].(bool); online && c.Tool == commandTool {
				text = "+network " + text
			}
			return strings.ToValidUTF8(text[:min(len(text), maxAbout)], "")
		}
	}
	return ""
}

// commandTool runs commands. Its result begins with the exit code.
const commandTool = "shell.shell_exec"

// ExitCode returns the exit code of a call's failed command; "" for a call without a command, or
// one that succeeded.
func ExitCode(c *regie.Call) string {
	first, _, _ := strings.Cut(c.Result, "\n")
	code, found := strings.CutPrefix(first, regie.CommandExit)
	if !found || code == "0" || c.Tool != commandTool {
		return ""
	}
	return code
}
