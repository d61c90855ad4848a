//go:build !linux

package sandbox

import (
	"context"
	"io/fs"

	"github.com/regie-run/regie"
)

// Stage does nothing here: only Linux has helpers.
func Stage([]string) (code int, ours bool) { return 0, false }

func (s *Sandbox) tryTier(_ context.Context, tier Tier) Check {
	return Check{Tier: tier, Missing: MissingSystem}
}

func (s *Sandbox) unfitOwner(string, Tier) error { return nil }

// Run runs a command unconfined, with everything that it starts in its process group. It returns
// CodeNoSandbox for any other tier.
func (s *Sandbox) Run(ctx context.Context, c Command) (Result, error) {
	if c.Tier != None {
		return Result{}, regie.Errorf(regie.CodeNoSandbox, "commands cannot be confined on this system")
	}
	g, err := newGuard(findNests(c.Root), identity{})
	if err != nil {
		return Result{}, regie.Errorf(regie.CodeToolError, "the workspace %s cannot be looked at: %v", c.Root, err)
	}
	defer g.closeRoot()
	result, err := runGroup(ctx, c, append(Environment(s.config.Environ, s.config.Env, c.Root), "HOME="+s.config.Home))
	result.Removed = g.settleChanges()
	return result, err
}

// owned reports whether a directory that cannot be read could be opened by its owner; that is not
// known here.
func owned(fs.FileInfo) bool { return true }
