package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// promptHead makes what every request of a round begins with, before its thread.
type promptHead struct{ *run }

// frozenHead is all of a request but its thread, as stored with the model call (decision 14).
type frozenHead struct {
	Level1    regie.Hash      `json:"level1,omitzero"`
	Level2    regie.Hash      `json:"level2,omitzero"`
	MaxOutput int             `json:"max_output"`
	Tools     []provider.Tool `json:"tools,omitempty"` // as they are declared
	// Parameters of the model call; each is empty where the vendor decides, as before these
	// settings existed.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	ServiceTier     string `json:"service_tier,omitempty"`
	OneCall         bool   `json:"one_call,omitempty"`
	// Temperature is the agent's, nil where the model's server decides.
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	// Images says that the model took images when the request was made.
	Images bool `json:"images,omitempty"`
	// Instructions and Definitions are those of the JSON dialect, which declares nothing.
	Instructions string                 `json:"instructions,omitempty"`
	Definitions  []regie.ToolDefinition `json:"definitions,omitempty"`
}

// headKey identifies a frozen head by its inputs; the policy holds the parameters of the model
// call.
type headKey struct {
	tools            *tool.Registry
	policy           string
	level1, level2   regie.Hash
	maxOutput, calls int
	json, automation bool
	images           bool
}

func (h *promptHead) headKey(maxOutput int, images bool) headKey {
	return headKey{
		h.tools, string(h.round.Policy), h.round.Level1, h.round.Level2, maxOutput, h.round.Limits.CallsInReply,
		h.json != nil, h.isAutomation(), images,
	}
}

// head is the round's, and the blob that names it. The blob is made once for all rounds that have
// the same.
func (h *promptHead) freezeHead(ctx context.Context, maxOutput int) (provider.Head, regie.Hash, error) {
	head, err := h.freshHead(ctx, maxOutput)
	if err != nil {
		return head, regie.Hash{}, err
	}
	images := h.budget.thread.images
	hash, err := h.heads.get(h.headKey(maxOutput, images), func() (regie.Hash, error) {
		frozen := frozenHead{
			Level1: h.round.Level1, Level2: h.round.Level2, MaxOutput: maxOutput, Tools: head.Tools,
			ReasoningEffort: head.ReasoningEffort, ServiceTier: head.ServiceTier, OneCall: !head.ParallelCalls,
			Temperature: head.Temperature, TopP: head.TopP, Images: images,
		}
		if h.json != nil {
			frozen.Instructions, frozen.Definitions = h.json.Instructions(), h.tools.Definitions()
		}
		data, err := json.Marshal(frozen)
		if err != nil {
			return regie.Hash{}, err
		}
		return h.cfg.Store.PutBlob(ctx, data)
	})
	return head, hash, err
}

// freshHead returns the head of a round with the tools of now.
func (h *promptHead) freshHead(ctx context.Context, maxOutput int) (provider.Head, error) {
	level1, err := h.loadLevel(ctx, h.round.Level1)
	if err != nil {
		return provider.Head{}, err
	}
	if h.json != nil {
		level1 += "\n" + h.json.Instructions()
	}
	level2, err := h.loadLevel(ctx, h.round.Level2)
	if err != nil {
		return provider.Head{}, err
	}
	tools, err := h.declaredTools()
	return provider.Head{
		Model: h.round.Model, Dialect: h.round.Dialect, Level1: level1, Level2: level2, Tools: tools.tools,
		Encoded: tools.encoded, MaxOutput: maxOutput,
		ParallelCalls: !h.policy.OneCall, ReasoningEffort: h.policy.ReasoningEffort, ServiceTier: h.policy.ServiceTier,
		Temperature: h.policy.Temperature, TopP: h.policy.TopP,
	}, err
}

// loadLevel returns a frozen prompt level by its hash. What has a hash never changes, so it is
// kept.
func (h *promptHead) loadLevel(ctx context.Context, hash regie.Hash) (string, error) {
	if hash.IsZero() {
		return "", nil
	}
	return h.levels.get(hash, func() (string, error) {
		data, err := h.cfg.Store.Blob(ctx, hash)
		return string(data), err
	})
}

// promptView returns how the round's thread is shown to its model.
func (h *promptHead) promptView() prompt.View {
	v := prompt.View{Names: h.tools.WireName, JSON: h.json, French: h.policy.French}
	if h.budget.thread.images {
		v.Media = h.readMedia
	}
	return v
}

// readMedia returns the bytes of an attachment, nil where they were erased. No request is sent
// after another failure.
func (h *promptHead) readMedia(a *regie.Attachment) []byte {
	data, err := h.cfg.Store.Blob(h.commit, a.Blob)
	if err != nil && regie.CodeOf(err) != regie.CodeNotFound {
		h.budget.thread.unread = fmt.Errorf("the attachment %s: %w", a.Name, err)
	}
	return data
}

// refreshLevel2 has a round that waited go on with what its workspace says now (decision 53). What
// is kept from the round's beginning, level 1 among it, stays so (decision 36).
func (h *promptHead) refreshLevel2(woken bool) error {
	if !woken || h.cfg.UserData == nil || h.round.Stop != "" {
		return nil
	}
	said, known := h.cfg.UserData(h.workspace.Root, h.round.Limits, h.policy.French)
	if !known {
		return nil
	}
	var hash regie.Hash
	if said != "" {
		if hash = regie.HashOf([]byte(said)); hash != h.round.Level2 {
			if _, err := h.cfg.Store.PutBlob(h.commit, []byte(said)); err != nil {
				return err
			}
		}
	}
	if hash == h.round.Level2 {
		return nil
	}
	switch err := h.cfg.Store.SetLevel2(h.commit, h.fence, hash); {
	case regie.CodeOf(err) == regie.CodeStopRequested: // nothing more is asked
		return h.readStop()
	case err != nil:
		return err
	}
	h.round.Level2 = hash
	return nil
}

// jsonDialect returns the JSON dialect over the round's tools (spec 3.3). Whether a model may say
// that the run is completed is a matter of automations (spec 2.2).
func (h *promptHead) jsonDialect() *dialect.JSON { return h.dialectOf(h.tools.Definitions()) }

// dialectOf returns that dialect over the tools of these definitions, which may be those of another
// time.
func (h *promptHead) dialectOf(definitions []regie.ToolDefinition) *dialect.JSON {
	if !h.isAutomation() {
		definitions = slices.DeleteFunc(definitions, func(d regie.ToolDefinition) bool {
			return d.Role == regie.RoleComplete
		})
	}
	options := dialect.Options{
		Questions: h.policy.Questions, Automation: h.isAutomation(),
		CallsInReply: h.round.Limits.CallsInReply, French: h.policy.French,
	}
	for i := range definitions {
		if definitions[i].Role != regie.RoleQuestion {
			continue
		}
		if target, _, ok := h.tools.Lookup(definitions[i].Name); ok {
			if asker, ok := target.(tool.Asker); ok {
				options.Module = asker.Module
			}
		}
	}
	return dialect.New(definitions, options)
}

// declarationKey identifies the declarations of one registry, which are built once for all its
// rounds.
type declarationKey struct {
	registry *tool.Registry
	role     regie.ToolRole
}

// toolList is a list of tools with what the providers' codecs have made of it.
type toolList struct {
	tools   []provider.Tool
	encoded *provider.Encoded
}

// declaredTools returns the declarations of the round's tools, always in the same order. Without a
// person to answer it offers no question (decision 37).
func (h *promptHead) declaredTools() (toolList, error) {
	if h.json != nil { // level 1 says what there is
		return toolList{}, nil
	}
	key := declarationKey{registry: h.tools}
	switch {
	case h.isAutomation():
		key.role = regie.RoleComplete
	case h.policy.Questions:
		key.role = regie.RoleQuestion
	}
	return h.declarations.get(key, func() (toolList, error) { return declareTools(key.registry, key.role), nil })
}

// declareTools declares a registry's tools. Of the tools that ask a person, and of those that end
// an unattended run, it includes only the one with the given role (spec 2.2, decision 37).
func declareTools(registry *tool.Registry, role regie.ToolRole) toolList {
	out := toolList{encoded: &provider.Encoded{}}
	for _, d := range registry.Declared() {
		if d.Role == role || d.Role != regie.RoleQuestion && d.Role != regie.RoleComplete {
			out.tools = append(out.tools, provider.Tool{
				Name:        d.Name,
				Description: d.Description, Parameters: d.Parameters,
			})
		}
	}
	return out
}

// noteMissingTools tells people, when a round begins and when it goes on after a crash, which tools
// it does without, and, when it begins, what of the workspace's document it was not given.
func (r *run) noteMissingTools() error {
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
