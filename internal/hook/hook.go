package hook

import (
	"context"
	"encoding/json"
	"log/slog"
	"path"
	"slices"
	"time"

	"github.com/regie-run/regie"
)

// DefaultTimeout is the default time limit of a hook.
const DefaultTimeout = 30 * time.Second

// Hook is a command and when it runs. Its settings are taken as checked.
type Hook struct {
	On regie.HookPoint
	// Tools are patterns of canonical names, "*" for any part; none is every tool. Only hooks of
	// calls have them.
	Tools []string
	// Command is the program and its arguments, started without a shell. A relative program with a
	// slash in it is one below Dir.
	Command []string
	// Timeout bounds it; zero means DefaultTimeout.
	Timeout time.Duration
	// OnFailure is what holds where it could not be heard: FORBID (also where it is empty),
	// MUST_ASK or ALLOW. Hooks that run after something have nothing to object to.
	OnFailure regie.Verdict
	// Env are environment variables that the hook gets in addition to the basic ones.
	Env []string
	// Dir is the working directory: never a workspace, because a model may have written the files
	// that a program loads from there.
	Dir string
	// Where is how people find it.
	Where string
}

// concerns reports whether a hook is about a tool.
func (h *Hook) concerns(on regie.HookPoint, tool string) bool {
	if h.On != on {
		return false
	}
	return len(h.Tools) == 0 || slices.ContainsFunc(h.Tools, func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok || err != nil // what cannot be read was meant to match something
	})
}

// Set are the hooks of an engine. Its methods may be called from any goroutine.
type Set struct {
	hooks   []Hook
	environ func(named []string, root string) []string
	log     *slog.Logger
}

// NewSet returns hooks in running order. environ gives the environment of a command: it has the
// variables that a hook names, and its PATH finds no program of the workspace.
func NewSet(hooks []Hook, environ func(named []string, root string) []string, log *slog.Logger) *Set {
	return &Set{hooks: hooks, environ: environ, log: log}
}

// Matches reports whether any hook of a point is about a tool; of a round the tool is empty.
func (s *Set) Matches(on regie.HookPoint, tool string) bool {
	return slices.ContainsFunc(s.hooks, func(h Hook) bool { return h.concerns(on, tool) })
}

// Bound is how long the hooks of a point may take together for a tool.
func (s *Set) Bound(on regie.HookPoint, tool string) (sum time.Duration) {
	for i := range s.hooks {
		if h := &s.hooks[i]; h.concerns(on, tool) {
			sum += h.timeout() + drainTime
		}
	}
	return sum
}

// Run runs the hooks that are about the input, in their order. One that forbids is the last: the
// others have nothing left to say. Where ctx ends the rest is not run, and what was cut is not
// among the results.
func (s *Set) Run(ctx context.Context, in regie.HookInput) []regie.HookRun {
	tool := ""
	if in.Call != nil {
		tool = in.Call.Tool
	}
	told, err := json.Marshal(in) // its arguments were parsed
	var out []regie.HookRun
	for i := range s.hooks {
		h := &s.hooks[i]
		if !h.concerns(in.On, tool) {
			continue
		}
		began := time.Now()
		var ran regie.HookRun
		if err != nil {
			ran = h.failed(regie.Say("its input cannot be written: %s", err.Error()))
		} else {
			ran = h.run(ctx, told, in.Workspace, s.environ(h.Env, in.Workspace))
		}
		if ctx.Err() != nil {
			return out
		}
		ran.On, ran.Hook, ran.Tool, ran.DurationUS = in.On, h.Where, tool, time.Since(began).Microseconds()
		if in.Call != nil {
			ran.CallID = in.Call.ID
		}
		if !ran.Failure.IsZero() && in.On == regie.HookAfterRound { // which nobody stores: the round is over
			s.log.Warn("a hook could not be heard", "hook", h.Where, "event",
				string(in.On), "why", ran.Failure.String())
		}
		out = append(out, ran)
		if ran.Verdict == regie.VerdictForbid {
			break
		}
	}
	return out
}

// timeout is how long the hook may take.
func (h *Hook) timeout() time.Duration {
	if h.Timeout == 0 {
		return DefaultTimeout
	}
	return h.Timeout
}

// failed is what came of a hook that could not be heard.
func (h *Hook) failed(why regie.Sentence) regie.HookRun {
	ran := regie.HookRun{Failure: why}
	switch {
	case !h.On.Before() || h.OnFailure == regie.VerdictAllow:
	case h.OnFailure == regie.VerdictMustAsk && h.On == regie.HookBeforeTool:
		ran.Verdict = regie.VerdictMustAsk
	default:
		ran.Verdict = regie.VerdictForbid
	}
	return ran
}
