package app

import (
	"log/slog"
	"os"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/hook"
	"github.com/regie-run/regie/internal/sandbox"
)

// newHooks returns those of the settings, or nil where there are none. They get the environment
// that commands of agents get: without keys, and without programs of the workspace.
func newHooks(c config.Config, log *slog.Logger) *hook.Set {
	if len(c.File.Hooks) == 0 {
		return nil
	}
	hooks := make([]hook.Hook, 0, len(c.File.Hooks))
	for i := range c.File.Hooks {
		h := &c.File.Hooks[i]
		hooks = append(hooks, hook.Hook{
			On: regie.HookPoint(h.On), Tools: h.Tools, Command: h.Command, Timeout: h.Timeout, OnFailure: h.Verdict(),
			Env: h.Env, Dir: h.Dir(), Where: h.Where(),
		})
	}
	environ := func(named []string, root string) []string {
		return sandbox.Environment(os.Environ(), append([]string{"HOME"}, named...), root)
	}
	return hook.NewSet(hooks, environ, log)
}
