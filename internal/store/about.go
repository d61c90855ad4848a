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
	arguments := c.Arguments
	if len(c.Executed) > 0 {
		arguments = string(c.Executed)
	}
	for _, name := range [...]string{`"query"`, `"path"`, `"command"`} {
		_, rest, _ := strings.Cut(arguments, name) // inside of a string the quotes would be escaped
		rest, found := strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), ":")
		if !found {
			continue
		}
		if text := quoted(strings.TrimLeft(rest, " \t\r\n")); text != "" {
			return strings.ToValidUTF8(text[:min(len(text), maxAbout)], "")
		}
	}
	return ""
}

// commandTool runs commands, whose result begins with an exit code.
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

// quoted is the string with which a piece of JSON begins, "" where it begins with none.
func quoted(text string) string {
	if text == "" || text[0] != '"' {
		return ""
	}
	end := 1
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(text) {
		return ""
	}
	if !strings.Contains(text[:end], `\`) {
		return text[1:end]
	}
	var out string
	if json.Unmarshal([]byte(text[:end+1]), &out) != nil {
		return ""
	}
	return out
}
