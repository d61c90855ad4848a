package shell

import (
	"context"

	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/tool"
)

// flow says what a command carries (decision 34): it may show any file that it can read, and with
// the network it brings and sends what it likes.
func (k *toolkit) flow(ctx context.Context, inv *tool.Invocation, a args) (tool.Flow, error) {
	found := k.box(a).For(ctx, inv.Workspace.Root)
	reaches := k.box(a).Network() || found.Tier == sandbox.None
	return tool.Flow{
		Files: true, Secrets: true, Outside: reaches, Egress: reaches,
		Private: found.Tier == sandbox.None, // it reads what the person can
	}, nil
}
