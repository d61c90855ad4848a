package engine

import (
	"encoding/json"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
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

// clients reports whether a call is one of a client's tool: it is not run here.
func (r *run) clients(call *regie.Call) bool { return call.Origin == regie.OriginClient }

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

// handOut ends the round with the calls of a client's tools, once all else of its batch is settled:
// the client's next request has their results, and starts the next round (decision 35). Their reply
// has no results until then, so nothing is rendered of it.
func (r *run) handOut() error {
	end := r.ended(r.round.Counters, regie.EndClientTools, quietly)
	fault.Point(fault.SettledBefore)
	out, err := r.cfg.Store.CommitCalls(r.commit, r.fence, store.Settle{
		Exchange: r.exchange.Number, Settled: r.pick(r.unsaved), Advance: &end, Plan: r.newPlan(r.unsaved),
	})
	if err != nil {
		return err
	}
	fault.Point(fault.SettledAfter)
	r.unsaved, r.resumed = r.unsaved[:0], false
	return r.moved(out, nil, end)
}
