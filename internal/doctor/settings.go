package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/config"
)

// settings looks at the files and variables that settings come from.
func (x *exam) settings(context.Context) {
	file, setup := config.Paths(x.Env, x.ConfigFlag)
	switch {
	case x.ConfigError != nil:
		f := x.cause("valid", x.ConfigError)
		switch at := x.culprit(file, setup); {
		case at != "" && at == setup && open(at):
			f.about(at).run("chmod 600 " + quote(at))
		case at != "" && at == setup:
			f.about(at).run("regie setup")
		case special(at) && (x.ConfigFlag != "" || x.Env("REGIE_CONFIG") != ""):
			f.about(at).fix("name a file of settings in its place, with --config or REGIE_CONFIG, or name none")
		case special(at):
			f.about(at).run("mv " + quote(at) + " " + quote(at+".old"))
		case at != "":
			f.about(at).fix("correct %s; the README shows every key", at)
		default:
			f.fix("change or remove what the sentence names: a variable of the environment, or a flag")
		}
	case x.Config.Origin["file"] == file && file != "":
		x.fine("valid", "%s is read and has no unknown key", file).about(file)
	case file != "":
		x.fine("valid", "there is no %s; the defaults hold", file)
	default:
		x.fine("valid", "no configuration file is known; the defaults hold")
	}
	x.guarded(file, setup)
	x.machine()
	x.variables()
	for _, name := range x.Config.ProviderNames() {
		p, _ := x.Config.Named(name)
		switch err := p.Keyless(); {
		case err == nil:
		case p.KeptInKeyring() != "":
			f := x.warn("key-keyring",
				"the key of the provider %s cannot be read: it is kept in the keyring as %s, and %s", name,
				p.KeptInKeyring(), p.Away().Error()).about(name)
			f.fix("unlock the keyring, or start regie in the session that has it; or store the key anew")
			f.run("regie setup")
		case p.ForeignKey() != "":
			x.warn("key-foreign", "the key of the provider %s is one of %s and is not sent to %s", name, p.ForeignKey(),
				p.BaseURL).about(name).run("regie setup")
		default:
			x.warn("key-variable", "the provider %s takes its key from %s, which is not set",
				name, p.APIKeyEnv).about(name).
				fix("put the key into %s, or take api_key_env out", p.APIKeyEnv)
		}
	}
	for _, name := range x.Config.File.MCPNames() {
		x.server(name, x.Config.File.MCPServers[name])
	}
}

// culprit is the file that an error of the settings is about.
func (x *exam) culprit(paths ...string) string {
	for _, path := range paths {
		if path != "" && strings.Contains(x.ConfigError.Error(), path) {
			return path
		}
	}
	return ""
}

// open reports whether others than its owner may read a file.
func open(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0
}

// special reports whether a name is that of a device, a pipe, a directory: nothing that is mended
// by changing it.
func special(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// guarded looks at who else may read the file with the keys, and who may write either.
func (x *exam) guarded(file, setup string) {
	for _, path := range []string{file, setup} {
		info, err := os.Stat(path)
		if path == "" || err != nil || !info.Mode().IsRegular() {
			continue
		}
		mode := info.Mode().Perm()
		switch {
		case path == setup && open(path) && x.ConfigError != nil && x.culprit(file, setup) == setup:
			// that it is not read says so, and how to mend it
		case path == setup && open(path):
			x.fail("secrets", "%s may hold keys and can be read by others",
				path).about(path).run("chmod 600 " + quote(path))
		case mode&0o022 != 0:
			x.fail("secrets", "%s can be written by others, who could have any command run",
				path).about(path).run("chmod go-w " + quote(path))
		case path == setup:
			x.fine("secrets", "%s is readable by you alone", path).about(path)
		}
	}
}

// machine looks at the machine's file of settings.
func (x *exam) machine() {
	for _, layer := range x.Config.Layers {
		if layer.Kind != config.LayerSystem {
			continue
		}
		if info, err := os.Stat(layer.Path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o022 != 0 {
			x.fail("layers", "%s can be written by others, who could have any command run",
				layer.Path).about(layer.Path).run("chmod go-w " + quote(layer.Path))
			continue
		}
		x.fine("layers", "%s is read too; your own file goes before it", layer.Path).about(layer.Path)
	}
}

// ours are variables of our own tests.
var ours = []string{
	"REGIE_CRASH_", "REGIE_TEST_", "REGIE_FAULT", "REGIE_BUG", "REGIE_CI",
	"REGIE_NPM_", "REGIE_WORKSPACE_",
}

// variables names what is misspelt: nobody else would say so.
func (x *exam) variables() {
	known := config.Variables()
	for _, entry := range x.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "REGIE_") || slices.Contains(known, name) ||
			slices.ContainsFunc(ours, func(head string) bool { return strings.HasPrefix(name, head) }) {
			continue
		}
		f := x.warn("variables", "the variable %s means nothing to Regie", name).about(name)
		if near := config.NearestVariable(name); near != "" {
			f.fix("perhaps %s is meant", near)
		} else {
			f.run("unset " + name)
		}
	}
}

// server looks whether an MCP server could be started; it is not started, and not asked.
func (x *exam) server(name string, s config.MCPServer) {
	if s.Command == "" {
		x.fine("mcp", "MCP server %s: %s, asked when a run begins", name, s.URL).about(name)
		return
	}
	command := s.Command
	if s.Dir != "" && strings.Contains(command, "/") && !filepath.IsAbs(command) {
		command = filepath.Join(s.Dir, command)
	}
	path, err := exec.LookPath(command)
	switch {
	case err == nil:
		x.fine("mcp", "MCP server %s: %s, started when a run begins", name, path).about(name)
	case errors.Is(err, fs.ErrPermission):
		x.fail("mcp", "MCP server %s: %s is not executable", name,
			command).about(name).run("chmod +x " + quote(command))
	default:
		x.fail("mcp", "MCP server %s: there is no command %s", name, command).about(name).
			fix("install %s, or write its full path into mcp_servers.%s.command", command, name)
	}
}
