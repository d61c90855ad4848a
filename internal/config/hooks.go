package config

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
)

// Hook is a command that is told of calls and rounds and can object to them (spec 13). No project's
// file can declare one.
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
	// Env are variables of the environment that it gets beside those that every program needs.
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

const (
	maxHooks       = 100
	maxHookTimeout = 10 * time.Minute
)

// Where is how people find the hook.
func (h *Hook) Where() string { return fmt.Sprintf("%s (hooks[%d])", h.from, h.at) }

// Dir is the directory of the file that declares it, where it runs.
func (h *Hook) Dir() string { return filepath.Dir(h.from) }

// Verdict is what holds where it cannot be heard.
func (h *Hook) Verdict() regie.Verdict {
	return map[string]regie.Verdict{FailureAsk: regie.VerdictMustAsk, FailureAllow: regie.VerdictAllow}[h.OnFailure]
}

// checkHooks holds hooks to their words, and notes where they are from.
func checkHooks(file string, hooks []Hook) error {
	if len(hooks) > maxHooks {
		return regie.Errorf(regie.CodeBadRequest, "hooks in %s has more than %d entries", file, maxHooks)
	}
	whole, err := filepath.Abs(file)
	if err != nil {
		whole = file
	}
	for i := range hooks {
		hooks[i].from, hooks[i].at = whole, i+1
		if err := hooks[i].check(file, fmt.Sprintf("hooks[%d]", i+1)); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hook) check(file, at string) error {
	on := regie.HookPoint(h.On)
	switch {
	case !slices.Contains(regie.HookPoints(), on):
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s: on is %q: use before_round, before_tool, after_tool or after_round", at, file, h.On)
	case len(h.Command) == 0 || h.Command[0] == "":
		return regie.Errorf(regie.CodeBadRequest, "%s in %s has no command: write it as a list, the program first", at,
			file)
	case strings.ContainsRune(strings.Join(h.Command, ""), 0):
		return regie.Errorf(regie.CodeBadRequest, "%s in %s has a NUL in its command", at, file)
	case strings.HasPrefix(h.Command[0], "~"):
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s: %q is not expanded: write the whole path, one below the directory of this file, or the name of a command", at, file, h.Command[0])
	case len(h.Tools) > 0 && (on == regie.HookBeforeRound || on == regie.HookAfterRound):
		return regie.Errorf(regie.CodeBadRequest, "%s in %s: a hook of rounds is about no tools: leave tools out", at,
			file)
	case h.Timeout != 0 && (h.Timeout < 100*time.Millisecond || h.Timeout > maxHookTimeout):
		return regie.Errorf(regie.CodeBadRequest, "%s in %s: timeout must be between 100ms and 10m", at, file)
	case h.OnFailure != "" && !on.Before():
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s: a hook that runs after something can keep nothing from happening: leave on_failure out", at,
			file)
	}
	switch {
	case h.OnFailure == FailureAsk && on == regie.HookBeforeRound:
		return regie.Errorf(regie.CodeBadRequest,
			"%s in %s: on_failure is %q: use forbid or allow, because nobody is asked about rounds", at, file,
			h.OnFailure)
	case h.OnFailure != "" && h.OnFailure != FailureForbid && h.OnFailure != FailureAsk && h.OnFailure != FailureAllow:
		return regie.Errorf(regie.CodeBadRequest, "%s in %s: on_failure is %q: use forbid, ask or allow", at, file,
			h.OnFailure)
	}
	for _, pattern := range h.Tools {
		if _, err := path.Match(pattern, "toolkit.operation"); err != nil || !strings.ContainsAny(pattern, ".*") {
			return regie.Errorf(regie.CodeBadRequest,
				"%s in %s: %q is no pattern for tools: write one as files.write_file, or with * for any part", at, file,
				pattern)
		}
	}
	for _, name := range h.Env {
		if name == "" || strings.ContainsAny(name, "=\x00 ") {
			return regie.Errorf(regie.CodeBadRequest, "%s in %s: %q is no name of a variable", at, file, name)
		}
	}
	return nil
}
