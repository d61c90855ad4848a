//go:build faults

package crash

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// neighbourText is what the chats say that share the slot of a session of kind "queued".
const neighbourText = "a neighbour of it"

const neighbours = 3

func (p *person) neighbour(i int) regie.ID {
	return regie.NamedID("neighbour", p.session.String(), fmt.Sprint(i))
}

func (p *person) isNeighbour(session regie.ID) bool {
	for i := range neighbours {
		if p.plan.kind == "queued" && session == p.neighbour(i) {
			return true
		}
	}
	return false
}

// bringNeighbours starts the chats that share the session's slot, a moment apart, so that each
// finds one that runs.
func (p *person) bringNeighbours(ctx context.Context) error {
	if p.plan.kind != "queued" {
		return nil
	}
	dice := p.plan.dice("neighbours")
	for i := range neighbours {
		time.Sleep(time.Duration(dice.IntN(8)) * time.Millisecond)
		_, err := p.conn.Submit(ctx, dispatch.RunRequest{
			ClientID: "only", SessionID: p.neighbour(i), Root: p.root, FoundBy: "directory", Text: neighbourText, Agent: "main", Provider: p.settings.Provider,
			Model: p.settings.Model, Policy: p.plan.policy,
		})
		if err != nil && regie.CodeOf(err) != regie.CodeConflict {
			return err
		}
	}
	return nil
}

// answerNeighbour looks twice, and answers.
func answerNeighbour(rw http.ResponseWriter, replies int) {
	rw.Header().Set("Content-Type", "text/event-stream")
	if replies >= 2 {
		writeChunks(rw, `{"content":"All done."}`)
		finish(rw, "stop")
		return
	}
	writeChunks(rw, fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"n%d","type":"function","function":{"name":"files__list_files","arguments":"{\"path\":\"%s\"}"}}]}`,
		replies, []string{"", "."}[replies]))
	finish(rw, "tool_calls")
}
