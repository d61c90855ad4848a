package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// listedModel is what servers say of a model, beyond OpenAI's own id.
type listedModel struct {
	ID string `json:"id"`
	// The window: vLLM; OpenRouter; Mistral and LM Studio; Groq; LM Studio of a model in memory.
	MaxModelLen         int `json:"max_model_len"`
	ContextLength       int `json:"context_length"`
	MaxContextLength    int `json:"max_context_length"`
	ContextWindow       int `json:"context_window"`
	LoadedContextLength int `json:"loaded_context_length"`
	// llama.cpp: what the model was trained with, and what it was loaded with.
	Meta struct {
		Trained int `json:"n_ctx_train"`
		Loaded  int `json:"n_ctx"`
	} `json:"meta"`
	// The output: Groq; OpenRouter.
	MaxCompletionTokens int `json:"max_completion_tokens"`
	TopProvider         struct {
		MaxCompletionTokens int `json:"max_completion_tokens"`
	} `json:"top_provider"`
	// SupportedParameters is OpenRouter's list of what a model takes.
	SupportedParameters []string `json:"supported_parameters"`
	Type                string   `json:"type"` // LM Studio: llm, vlm, embeddings
	// Capabilities is Mistral's object, and LM Studio's list.
	Capabilities json.RawMessage `json:"capabilities"`
}

// capabilities are what the server says, over what is known of its vendor.
func (m *listedModel) capabilities(known provider.Capabilities) provider.Capabilities {
	known.ContextTokens = max(m.MaxModelLen, m.ContextLength, m.MaxContextLength, m.ContextWindow, m.Meta.Trained)
	for _, loaded := range []int{m.LoadedContextLength, m.Meta.Loaded} {
		if loaded > 0 {
			known.ContextTokens = loaded
		}
	}
	known.MaxOutput = max(m.MaxCompletionTokens, m.TopProvider.MaxCompletionTokens)
	if m.SupportedParameters != nil {
		known.NativeTools = slices.Contains(m.SupportedParameters, "tools")
		known.Thinking = slices.Contains(m.SupportedParameters, "reasoning")
	}
	var can struct {
		FunctionCalling *bool `json:"function_calling"`
		Reasoning       bool  `json:"reasoning"`
	}
	if json.Unmarshal(m.Capabilities, &can) == nil && can.FunctionCalling != nil {
		known.NativeTools, known.Thinking = *can.FunctionCalling, can.Reasoning
	}
	if m.Type == "embeddings" {
		known.NativeTools, known.Embeds = false, true
	}
	return known
}

// Models implements provider.Lister.
func (p *Provider) Models(ctx context.Context) ([]provider.Model, error) {
	var answer struct {
		Data []listedModel `json:"data"`
	}
	err := p.server.Get(ctx, "/models", &answer)
	// it has no list: that it answers is all that can be said
	if failed := notThere(err); failed && p.quirks.models != nil {
		answer.Data, err = nil, nil
		for _, name := range p.quirks.models {
			answer.Data = append(answer.Data, listedModel{ID: name})
		}
	}
	if err != nil {
		return nil, err
	}
	known := p.vendorCapabilities()
	models := make([]provider.Model, 0, len(answer.Data))
	for i := range answer.Data {
		models = append(models, provider.Model{
			Name:         wire.Safe(answer.Data[i].ID),
			Capabilities: answer.Data[i].capabilities(known),
		})
	}
	if p.quirks.sizes != nil {
		p.quirks.sizes(ctx, p, models)
	}
	return models, nil
}

// notThere reports whether a server answered that it has no such thing.
func notThere(err error) bool {
	failed, ok := errors.AsType[*provider.Error](err)
	return ok && (failed.Status == http.StatusNotFound || failed.Status == http.StatusMethodNotAllowed)
}

// vendorCapabilities are those of every model of the server, as far as its vendor tells.
func (p *Provider) vendorCapabilities() provider.Capabilities {
	return provider.Capabilities{NativeTools: !p.quirks.noTools, Free: p.quirks.free, LeastOutput: p.quirks.minOutput}
}

// sizes fills in the windows of models that the list does not tell. What cannot be had stays as it
// is: it is the answer to another question.
type sizes func(ctx context.Context, p *Provider, models []provider.Model)

// listed is for a server whose list says it all.
func listed(context.Context, *Provider, []provider.Model) {}

func lmStudioSizes(ctx context.Context, p *Provider, models []provider.Model) {
	var answer struct {
		Data []listedModel `json:"data"`
	}
	if p.root.Get(ctx, "/api/v0/models", &answer) != nil {
		return
	}
	for i := range models {
		for j := range answer.Data {
			if answer.Data[j].ID == models[i].Name {
				models[i].Capabilities = answer.Data[j].capabilities(models[i].Capabilities)
			}
		}
	}
}

func llamaSizes(ctx context.Context, p *Provider, models []provider.Model) {
	if len(models) != 1 {
		return // a router: what it has not loaded has no window yet
	}
	var answer struct {
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	if p.root.Get(ctx, "/props", &answer) == nil && answer.Settings.Context > 0 {
		models[0].ContextTokens = answer.Settings.Context
	}
}

// lookTime bounds how long a server is asked for its windows before a conversation begins.
const lookTime = 2 * time.Second

// window is what a model holds, in tokens: what the settings say, else what the server does where
// its vendor has servers that say it. The server is asked once; where it does not answer, again the
// next time.
func (p *Provider) window(model string) int {
	if p.cfg.ContextTokens > 0 || p.quirks.sizes == nil {
		return p.cfg.ContextTokens
	}
	p.mu.Lock()
	window, ok := p.windows[model]
	p.mu.Unlock()
	if ok {
		return window
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	models, err := p.Models(ctx)
	if err != nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range models {
		p.windows[models[i].Name] = models[i].ContextTokens
	}
	if _, ok := p.windows[model]; !ok && len(models) == 1 { // llama.cpp serves its one model under any name
		p.windows[model] = models[0].ContextTokens
	}
	return p.windows[model]
}
