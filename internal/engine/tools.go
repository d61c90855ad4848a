package engine

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// tellMissing tells people, when a round begins and when it goes on after a crash, which tools it
// does without, and, when it begins, what of the workspace's document it was not given.
func (r *run) tellMissing() error {
	missing := r.tools.Missing()
	begins := r.round.Phase == regie.PhaseModel && r.exchange.Number == 1 && r.exchange.Attempt == 1
	notice := regie.ToolNotice{Missing: missing}
	if begins {
		notice.Document = r.policy.Document
	}
	if len(missing) == 0 && notice.Document.IsZero() || !begins && !r.resumed {
		return nil
	}
	_, err := r.cfg.Store.Note(r.commit, r.fence, store.Note{Message: r.toolNotice(notice)})
	return err
}

// toolNotice is a message for the audit about tools that are away. It is no part of a prompt: what
// a model calls all the same gets its own answer.
func (r *run) toolNotice(notice regie.ToolNotice) *regie.Message {
	whys := make([]string, 0, len(notice.Missing)+1)
	for _, m := range notice.Missing {
		whys = append(whys, m.Why)
	}
	if !notice.Document.IsZero() {
		whys = append(whys, notice.Document.String())
	}
	for i := range notice.Hooks {
		if h := &notice.Hooks[i]; h.Verdict != "" {
			whys = append(whys, h.Objection().String())
		} else {
			whys = append(whys, "the hook "+h.Hook+" has run")
		}
	}
	message := r.system(regie.SystemNetworkError, strings.Join(whys, "; "))
	message.Author.ID, message.ExcludeFromPrompt = regie.ComponentTools, true
	message.ExecutionMetadata, _ = json.Marshal(notice) // of strings and an id
	return message
}

// gone settles a call that has not started and whose tool is not the one that was judged: what
// serves it is away, or describes it in other words now (decision 20), or nothing of that name is
// there any more. Nothing was done, and each has its own code.
func (r *run) gone(call *regie.Call) {
	_, definition, there := r.tools.Lookup(call.Tool)
	away := r.tools.Away(call.Tool)
	switch {
	case away != nil:
		settle(call, regie.CallFailed, "", tool.NotThere(away))
	case there && definition != call.Definition:
		settle(call, regie.CallFailed, "", &regie.CallError{
			Code: regie.CodeToolChanged, Message: "the definition of the tool has changed since the call was proposed: nothing was run", Retryable: true,
			Hint: "look at the tool as it is now, and propose the call again",
		})
	default:
		notRun(call, regie.NotRunOutOfScope, regie.CallError{
			Code:    regie.CodeUnknownTool,
			Message: "the tool is no longer there",
		})
	}
}

// awaitTool has the round wait, without a holder, with a call that a dead process had started, that
// may be run again or looked up, and whose tool is away (decisions 5, 12 and 42): it is neither
// failed nor unknown for that. Each time it is tried again, at first every 30 s.
func (r *run) awaitTool(call *regie.Call, away error) error {
	if err := r.save(); err != nil {
		return err
	}
	toolkit, _, _ := strings.Cut(call.Tool, ".")
	fault.Point(fault.AskBefore)
	out, err := r.cfg.Store.Note(r.commit, r.fence, store.Note{
		Message: r.toolNotice(regie.ToolNotice{
			Missing: []regie.Missing{{Toolkit: toolkit, Why: away.Error()}},
			CallID:  call.ID,
		}),
		Waits: call.ID, Until: time.Now().Add(networkBackoff(r.cfg.NetworkRetry, call.Attempts)),
	})
	if err != nil {
		return err
	}
	fault.Point(fault.AskAfter)
	call.Recovered, r.parked = true, out.Parked
	return nil
}
