package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// checkSettings looks at the files and variables that settings come from.
func (x *exam) checkSettings(context.Context) {
	file, setup := config.Paths(x.Env, x.ConfigFlag)
	switch {
	case x.ConfigError != nil:
		f := x.addError("valid", x.ConfigError)
		switch at := x.faultyFile(file, setup); {
		case at != "" && at == setup:
			if info, err := os.Stat(at); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
				f.addCommand("chmod 600 " + Quote(at))
			}
			f.setSubject(at).addCommand("regie setup")
		case at != "":
			f.setSubject(at).addFix("correct %s; docs/configuration.md lists every key", at)
		default:
			f.addFix("change or remove the setting named above: an environment variable or a flag")
		}
	case x.Config.Origin["file"] == file && file != "":
		x.addFine("valid", "%s is valid and has no unknown key", file).setSubject(file)
	default:
		x.addFine("valid", "there is no %s; the defaults apply", file)
	}
	x.checkPrivacy(file, setup)
	for _, name := range x.Config.ProviderNames() {
		p, _ := x.Config.Named(name)
		if err := p.Keyless(); err != nil {
			x.addWarning("key", "the provider %s has no usable key: %s", name, err.Error()).
				quoteSentence(regie.SentenceOf(err)).setSubject(name).addCommand("regie setup")
		}
	}
	for _, name := range x.Config.File.MCPNames() {
		x.checkMCPServer(name, x.Config.File.MCPServers[name])
	}
}

// faultyFile returns the file that an error of the settings is about.
func (x *exam) faultyFile(paths ...string) string {
	for _, path := range paths {
		if path != "" && strings.Contains(x.ConfigError.Error(), path) {
			return path
		}
	}
	return ""
}

// checkPrivacy looks at who else may read the file with the keys, and who may write either, or the
// machine's.
func (x *exam) checkPrivacy(file, setup string) {
	for _, path := range []string{file, setup, config.SystemFile} {
		info, err := os.Stat(path)
		if path == "" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		mode := info.Mode().Perm()
		switch {
		case mode&0o022 != 0 && path != setup:
			x.addFailure("secrets", "%s can be written by others, who could make it run any command",
				path).setSubject(path).addCommand("chmod go-w " + Quote(path))
		case path == setup && mode&0o077 == 0: // else the error of the settings says so
			x.addFine("secrets", "%s is readable by you alone", path).setSubject(path)
		}
	}
}

// checkMCPServer looks whether an MCP server could be started; it is not started, and not asked.
func (x *exam) checkMCPServer(name string, s config.MCPServer) {
	if s.Command == "" {
		x.addFine("mcp", "MCP server %s: %s, asked when a run begins", name, s.URL).setSubject(name)
		return
	}
	command := s.Command
	if s.Dir != "" && strings.Contains(command, "/") && !filepath.IsAbs(command) {
		command = filepath.Join(s.Dir, command)
	}
	if path, err := exec.LookPath(command); err == nil {
		x.addFine("mcp", "MCP server %s: %s, started when a run begins", name, path).setSubject(name)
	} else {
		x.addFailure("mcp", "MCP server %s: there is no command %s that can be run", name, command).setSubject(name).
			addFix("install %s, or write its full path into mcp_servers.%s.command", command, name)
	}
}
