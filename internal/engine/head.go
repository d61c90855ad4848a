package engine

import (
	"context"
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/tool"
)

// frozenHead is all of a request that is not its thread, as it is stored beside the model call
// (decision 14).
type frozenHead struct {
	Level1    regie.Hash      `json:"level1,omitzero"`
	Level2    regie.Hash      `json:"level2,omitzero"`
	MaxOutput int             `json:"max_output"`
	Tools     []provider.Tool `json:"tools,omitempty"` // as they are declared
	// How the model is asked; each is empty where that is left to the vendor, as it always was
	// before there were settings for it.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	ServiceTier     string `json:"service_tier,omitempty"`
	OneCall         bool   `json:"one_call,omitempty"`
	// Temperature is the agent's, nil where the model's server decides.
	Temperature *float64 `json:"temperature,omitempty"`
	// Instructions and Definitions are those of the JSON dialect, which declares nothing.
	Instructions string                 `json:"instructions,omitempty"`
	Definitions  []regie.ToolDefinition `json:"definitions,omitempty"`
}

// headKey names a frozen head by what it is made of.
type headKey struct {
	tools          *tool.Registry
	questions      bool
	level1, level2 regie.Hash
	maxOutput      int
	effort, tier   string
	oneCall        bool
	// What the JSON dialect says depends on these too.
	json, automation, french bool
	calls                    int
	temperature              float64 // -1 for none
}

func (r *run) headKey(maxOutput int) headKey {
	temperature := -1.0
	if r.policy.Temperature != nil {
		temperature = *r.policy.Temperature
	}
	return headKey{
		r.tools, r.policy.Questions, r.round.Level1, r.round.Level2, maxOutput, r.policy.ReasoningEffort,
		r.policy.ServiceTier, r.policy.OneCall,
		r.json != nil, r.automation(), r.policy.French, r.round.Limits.CallsInReply, temperature,
	}
}

// head is the round's, and the blob that names it. The blob is made once for all rounds that have
// the same.
func (r *run) head(ctx context.Context, maxOutput int) (provider.Head, regie.Hash, error) {
	head, err := r.freshHead(ctx, maxOutput)
	if err != nil {
		return head, regie.Hash{}, err
	}
	key := r.headKey(maxOutput)
	r.levelsMu.Lock()
	hash, ok := r.heads[key]
	r.levelsMu.Unlock()
	if ok {
		return head, hash, nil
	}
	frozen := frozenHead{
		Level1: r.round.Level1, Level2: r.round.Level2, MaxOutput: maxOutput, Tools: head.Tools,
		ReasoningEffort: head.ReasoningEffort, ServiceTier: head.ServiceTier, OneCall: !head.ParallelCalls,
		Temperature: head.Temperature,
	}
	if r.json != nil {
		frozen.Instructions, frozen.Definitions = r.json.Instructions(), r.tools.Definitions()
	}
	data, err := json.Marshal(frozen)
	if err != nil {
		return head, hash, err
	}
	if hash, err = r.cfg.Store.PutBlob(ctx, data); err != nil {
		return head, hash, err
	}
	r.levelsMu.Lock()
	defer r.levelsMu.Unlock()
	if len(r.heads) >= maxLevels {
		clear(r.heads)
	}
	r.heads[key] = hash
	return head, hash, nil
}

// freshHead is the head of a round with the tools of now.
func (r *run) freshHead(ctx context.Context, maxOutput int) (provider.Head, error) {
	level1, err := r.level(ctx, r.round.Level1)
	if err != nil {
		return provider.Head{}, err
	}
	if r.json != nil {
		level1 += "\n" + r.json.Instructions()
	}
	level2, err := r.level(ctx, r.round.Level2)
	tools := r.declared()
	return provider.Head{
		Model: r.round.Model, Dialect: r.round.Dialect, Level1: level1, Level2: level2, Tools: tools.tools,
		Encoded: tools.encoded, MaxOutput: maxOutput,
		ParallelCalls: !r.policy.OneCall, ReasoningEffort: r.policy.ReasoningEffort, ServiceTier: r.policy.ServiceTier,
		Temperature: r.policy.Temperature,
	}, err
}

// relevel has a round that waited go on with what its workspace says now (decision 53). What is
// kept from the round's beginning, level 1 among it, stays so (decision 36).
func (r *run) relevel(woken bool) error {
	if !woken || r.cfg.UserData == nil || r.round.Stop != "" {
		return nil
	}
	said, known := r.cfg.UserData(r.workspace.Root, r.round.Limits, r.policy.French)
	if !known {
		return nil
	}
	var hash regie.Hash
	if said != "" {
		if hash = regie.HashOf([]byte(said)); hash != r.round.Level2 {
			if _, err := r.cfg.Store.PutBlob(r.commit, []byte(said)); err != nil {
				return err
			}
		}
	}
	if hash == r.round.Level2 {
		return nil
	}
	switch err := r.cfg.Store.SetLevel2(r.commit, r.fence, hash); {
	case regie.CodeOf(err) == regie.CodeStopRequested: // nothing more is asked
		return r.readStop()
	case err != nil:
		return err
	}
	r.round.Level2 = hash
	return nil
}

// view is how the round's thread is shown to its model.
func (r *run) view() prompt.View {
	return prompt.View{Names: r.tools.WireName, JSON: r.json, French: r.policy.French}
}

// describe says what was sent (decision 14).
func (r *run) describe(e *regie.Exchange) {
	var head regie.Hash
	e.FirstSeq, e.LastSeq, e.Request, head = r.sending()
	if head != r.thread.told {
		e.Head = head
	}
}

// describeAttempt says what was sent in a call that failed, with its head: the next one may have
// another.
func (r *run) describeAttempt(a *regie.Attempt) {
	a.FirstSeq, a.LastSeq, a.Request, a.Head = r.sending()
}

// sending is the request that was made last.
func (r *run) sending() (first, last int64, request, head regie.Hash) {
	if s := r.summary; s != nil {
		first, last = s.span()
		return first, last, s.request, s.head
	}
	return r.thread.firstSeq, r.thread.lastSeq, r.thread.request, r.thread.head
}
