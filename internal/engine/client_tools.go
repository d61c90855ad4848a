package engine

import (
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// clientKey identifies a registry with a client's tools in addition to the agent's. The client's
// next request mostly brings the same.
type clientKey struct {
	own   *tool.Registry
	tools regie.Hash
}

// withClient adds the tools that a client brought with the request of a round (decision 35). They
// are those of its beginning, also in a process that takes it up.
func (e *Engine) withClient(own *tool.Registry, tools []regie.ClientTool) (*tool.Registry, error) {
	if len(tools) == 0 {
		return own, nil
	}
	data, err := json.Marshal(tools)
	if err != nil {
		return nil, err
	}
	return e.clients.get(clientKey{own, regie.HashOf(data)}, func() (*tool.Registry, error) {
		return own.WithClient(tools)
	})
}

// awaitsClient reports whether nothing is left of a batch but calls of a client's tools.
func awaitsClient(calls []regie.Call) bool {
	return anyCall(calls, isOpen) && !anyCall(calls, func(c *regie.Call) bool {
		return isOpen(c) && c.Origin != regie.OriginClient
	})
}
