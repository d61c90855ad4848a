package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/regie-run/regie/internal/provider"
)

// listedModel is an entry of a server's model list; servers use different members.
type listedModel struct {
	ID   string `json:"id"`
	Name string `json:"name"` // Gemini and Ollama have it instead of an id
	// The window: vLLM; OpenRouter; Mistral and LM Studio; Groq; Anthropic; Gemini; LM Studio of a
	// model in memory.
	MaxModelLen         int `json:"max_model_len"`
	ContextLength       int `json:"context_length"`
	MaxContextLength    int `json:"max_context_length"`
	ContextWindow       int `json:"context_window"`
	MaxInputTokens      int `json:"max_input_tokens"`
	InputTokenLimit     int `json:"inputTokenLimit"`
	LoadedContextLength int `json:"loaded_context_length"`
	// llama.cpp: the context of the training, and of the loaded model.
	Meta struct {
		Trained int `json:"n_ctx_train"`
		Loaded  int `json:"n_ctx"`
	} `json:"meta"`
	// The output: Groq; OpenRouter; Anthropic; Gemini.
	MaxCompletionTokens int `json:"max_completion_tokens"`
	TopProvider         struct {
		MaxCompletionTokens int `json:"max_completion_tokens"`
	} `json:"top_provider"`
	MaxTokens        int `json:"max_tokens"`
	OutputTokenLimit int `json:"outputTokenLimit"`
	// SupportedParameters is OpenRouter's list of a model's parameters, Methods is Gemini's.
	SupportedParameters []string        `json:"supported_parameters"`
	Methods             []string        `json:"supportedGenerationMethods"`
	Thinking            json.RawMessage `json:"thinking"` // Gemini: true
	Type                string          `json:"type"`     // LM Studio: llm, vlm, embeddings
	Architecture        struct {
		InputModalities []string `json:"input_modalities"` // OpenRouter
	} `json:"architecture"`
	// Capabilities is Mistral's and Anthropic's object, and LM Studio's list.
	Capabilities json.RawMessage `json:"capabilities"`
}

// capabilities returns the known capabilities, overridden by those that the server reports.
func (m *listedModel) capabilities(known provider.Capabilities) provider.Capabilities {
	known.ContextTokens = cmp.Or(m.Meta.Loaded, m.LoadedContextLength, max(m.MaxModelLen, m.ContextLength,
		m.MaxContextLength, m.ContextWindow, m.MaxInputTokens, m.InputTokenLimit, m.Meta.Trained), known.ContextTokens)
	known.MaxOutput = cmp.Or(max(m.MaxCompletionTokens, m.TopProvider.MaxCompletionTokens, m.MaxTokens,
		m.OutputTokenLimit), known.MaxOutput)
	if m.SupportedParameters != nil {
		known.NativeTools = slices.Contains(m.SupportedParameters, "tools")
		known.Thinking = slices.Contains(m.SupportedParameters, "reasoning")
	}
	known.Images = known.Images || m.Type == "vlm" || slices.Contains(m.Architecture.InputModalities, "image")
	var can struct {
		FunctionCalling *bool `json:"function_calling"`
		Reasoning       bool  `json:"reasoning"`
		Thinking        *struct {
			Supported bool `json:"supported"`
		} `json:"thinking"`
	}
	switch readable := json.Unmarshal(m.Capabilities, &can) == nil; {
	case readable && can.FunctionCalling != nil:
		known.NativeTools, known.Thinking = *can.FunctionCalling, can.Reasoning
	case readable && can.Thinking != nil:
		known.Thinking = can.Thinking.Supported
	case string(m.Thinking) == "true":
		known.Thinking = true
	}
	if m.Type == "embeddings" {
		known.NativeTools, known.Embeds = false, true
	}
	return known
}

// Models requests the list of models at path. known returns a model's capabilities by its name.
// Models that the server marks as not generating are left out.
func (s *Server) Models(ctx context.Context, path string,
	known func(name string) provider.Capabilities,
) ([]provider.Model, error) {
	var answer struct {
		Data   []listedModel `json:"data"`
		Models []listedModel `json:"models"`
	}
	if err := s.Ask(ctx, path, nil, &answer); err != nil {
		return nil, err
	}
	models, listed := []provider.Model{}, answer.Data
	if listed == nil { // llama.cpp has both
		listed = answer.Models
	}
	for _, m := range listed {
		if m.Methods != nil && !slices.Contains(m.Methods, "generateContent") {
			continue // it embeds, or makes pictures
		}
		name := Safe(cmp.Or(m.ID, strings.TrimPrefix(m.Name, "models/")))
		models = append(models, provider.Model{Name: name, Capabilities: m.capabilities(known(name))})
	}
	return models, nil
}
