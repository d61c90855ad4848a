package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// Hook is a command that receives calls and rounds and can object to them (spec 13). A project's
// file cannot declare one.
type Hook struct {
	// On is when it runs: before_round, before_tool, after_tool or after_round.
	On string `yaml:"on"`
	// Tools are patterns of the tools that it is about, "*" for any part; left out it is about all.
	Tools []string `yaml:"tools"`
	// Command is the program and its arguments; no shell reads them.
	Command []string `yaml:"command"`
	// Timeout is how long it may take; zero means 30 s.
	Timeout time.Duration `yaml:"timeout"`
	// OnFailure is what holds where it cannot be heard: forbid (also where it is empty), ask or
	// allow.
	OnFailure string `yaml:"on_failure"`
	// Env are environment variables that the hook gets in addition to the basic ones.
	Env []string `yaml:"env"`

	from string // the file
	at   int    // from 1, in that file
}

// The words of a hook's on_failure.
const (
	FailureForbid = "forbid"
	FailureAsk    = "ask"
	FailureAllow  = "allow"
)

// Where is how people find the hook.
func (h *Hook) Where() string { return fmt.Sprintf("%s (hooks[%d])", h.from, h.at) }

// Dir is the directory of the file that declares it, where it runs.
func (h *Hook) Dir() string { return filepath.Dir(h.from) }

// Verdict is what holds where it cannot be heard.
func (h *Hook) Verdict() regie.Verdict {
	return map[string]regie.Verdict{FailureAsk: regie.VerdictMustAsk, FailureAllow: regie.VerdictAllow}[h.OnFailure]
}

// checkValues holds a hook to what its words mean together.
func (h *Hook) checkValues() error {
	on, command := regie.HookPoint(h.On), ""
	if len(h.Command) > 0 {
		command = h.Command[0]
	}
	switch {
	case command == "" || strings.ContainsRune(strings.Join(h.Command, ""), 0):
		return regie.Errorf(regie.CodeBadRequest, "it has no command: write it as a list, the program first")
	case strings.HasPrefix(command, "~"):
		return regie.Errorf(regie.CodeBadRequest,
			"%q is not expanded: write the full path, a path below the directory of this file, or the name of a command", command)
	case len(h.Tools) > 0 && (on == regie.HookBeforeRound || on == regie.HookAfterRound):
		return regie.Errorf(regie.CodeBadRequest, "a hook on rounds does not apply to tools: leave tools out")
	case h.OnFailure != "" && !on.Before():
		return regie.Errorf(regie.CodeBadRequest,
			"a hook that runs afterwards cannot block anything: leave on_failure out")
	case h.OnFailure == FailureAsk && on == regie.HookBeforeRound:
		return regie.Errorf(regie.CodeBadRequest, "on_failure is %q: use forbid or allow, because nobody is asked about rounds",
			h.OnFailure)
	}
	for _, pattern := range h.Tools {
		if err := checkPattern(pattern); err != nil {
			return err
		}
	}
	return checkVariables(h.Env)
}

// checkVariables refuses names that no variable of the environment can have.
func checkVariables(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "=\x00 ") {
			return regie.Errorf(regie.CodeBadRequest, "%q is not a variable name", name)
		}
	}
	return nil
}
