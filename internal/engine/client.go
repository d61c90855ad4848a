package engine

import (
	"encoding/json"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// maxClientTools is how many registries with tools of clients are kept: a client's next request
// mostly brings the same.
const maxClientTools = 16

// clientTools keeps registries that have tools of clients beside an agent's own.
type clientTools struct {
	mu   sync.Mutex
	made map[clientKey]*tool.Registry
}

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
	key := clientKey{own, regie.HashOf(data)}
	c := &e.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.made[key]; made != nil {
		return made, nil
	}
	made, err := own.WithClient(tools)
	if err != nil {
		return nil, err
	}
	if c.made == nil || len(c.made) >= maxClientTools {
		c.made = map[clientKey]*tool.Registry{}
	}
	c.made[key] = made
	return made, nil
}

// awaitsClient reports whether nothing is left of a batch but calls of a client's tools.
func awaitsClient(calls []regie.Call) bool {
	open := false
	for i := range calls {
		if calls[i].State.Settled() {
			continue
		}
		if calls[i].Origin != regie.OriginClient {
			return false
		}
		open = true
	}
	return open
}
