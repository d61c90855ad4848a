package compat

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// The parameters of requests that an agent's own settings decide, or that only their vendor knows
// something to do with: an answer is no other one for them. The first ones are common to OpenAI's
// formats; with what servers of open models and gateways take beside them, which many clients send
// to all.
var (
	ignoredByAgents = []string{
		"temperature", "top_p", "frequency_penalty", "presence_penalty", "max_tokens", "max_completion_tokens",
		"max_output_tokens", "seed", "user", "store",
		"service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
		"prompt_cache_options", "prediction", "verbosity",
		"top_k", "min_p", "top_a", "typical_p", "repetition_penalty", "repeat_penalty", "keep_alive", "options",
		"chat_template_kwargs", "enable_thinking", "thinking",
		"thinking_budget", "reasoning", "include_reasoning", "reasoning_format", "usage", "provider", "transforms",
		"cache_control", "client_metadata",
	}
	// ignoredInResponses are those of Responses beside ignoredByAgents.
	ignoredInResponses = []string{
		"include", "truncation", "max_tool_calls", "stream_options",
		"context_management", "access_programs", "image",
	}
	ignoredInMessages = []string{
		"max_tokens", "temperature", "top_p", "top_k", "thinking", "service_tier", "speed", "cache_control",
		"context_management", "diagnostics", "betas", "fallbacks",
		"fallback_credit_token", "user_profile_id", "workspace_id",
	}
)

// unsupported are the errors of parameters that would have another effect than their clients mean.
var unsupported = map[string]error{
	"moderation":     refused("moderation", "an agent's answers are not moderated here"),
	"compaction":     refused("compaction", "a session is summarised by itself: its summary cannot be asked for"),
	"billing_policy": refused("billing_policy", "who pays is decided by the settings of the agent's provider"),
	"models":         refused("models", "the models of an agent are decided by its own settings"),
	"plugins":        refused("plugins", "an agent has its own tools"),
	"mcp_servers":    refused("mcp_servers", "an agent has its own tools"),
	"guided_json":    refused("guided_json", "an agent answers in text: a format cannot be promised here"),
	"guided_regex":   refused("guided_regex", "an agent answers in text: a format cannot be promised here"),
	"guided_choice":  refused("guided_choice", "an agent answers in text: a format cannot be promised here"),
	"guided_grammar": refused("guided_grammar", "an agent answers in text: a format cannot be promised here"),
	"grammar":        refused("grammar", "an agent answers in text: a format cannot be promised here"),
	"json_schema":    refused("json_schema", "an agent answers in text: a format cannot be promised here"),
	"best_of":        refused("best_of", "an agent gives one answer: leave best_of out"),
	"suffix":         refused("suffix", "an agent answers: it does not fill in"),
	"echo":           refused("echo", "an agent answers, and does not repeat what it was told"),
}

// What parts of requests have beside what is read of them: what is echoed of a former answer, of
// ours or of another server's, and what only vendors know something to do with.
var (
	besideMessage = []string{
		"name", "annotations", "audio", "function_call", "id", "reasoning", "reasoning_content", "reasoning_details",
		"thinking", "thinking_blocks", "provider_specific_fields",
		"cache_control", "metadata", "images", "refusal", "parsed", "prefix", "created_at", "model",
	}
	besideCall = []string{"index", "extra_content", "provider_specific_fields", "parsed_arguments"}
	besideTool = []string{
		"strict", "cache_control", "allowed_callers", "async", "defer_loading",
		"output_schema", "eager_input_streaming", "input_examples",
	}
	besideItem = []string{
		"id", "status", "phase", "created_by", "caller", "namespace", "agent",
		"parsed_arguments", "summary", "encrypted_content", "async", "metadata",
	}
	besideOptions      = []string{"include_obfuscation"}
	besideReasoning    = []string{"summary", "generate_summary", "context", "mode", "max_tokens", "enabled", "exclude"}
	besideOutputConfig = []string{"task_budget"}
)

// bounds are those of numbers that have no effect on an agent: what no server would take is refused
// all the same, or a mistake would go unseen.
var bounds = map[string]struct {
	least, most float64
	whole       bool
}{
	"temperature": {0, 2, false}, "top_p": {0, 1, false}, "frequency_penalty": {-2, 2, false},
	"presence_penalty": {-2, 2, false},
	"max_tokens":       {1, 1 << 30, true}, "max_completion_tokens": {1, 1 << 30, true},
	"max_output_tokens": {1, 1 << 30, true}, "max_tool_calls": {0, 1 << 30, true},
	"top_k": {0, 1 << 30, true},
	"seed":  {-1 << 63, 1 << 63, true},
}

// ignored are the parameters of a request that have no effect on an agent, of those with these
// names; with another one it is refused.
func ignored(rest map[string]jsontext.Value, names []string) (out []string, err error) {
	for _, name := range names {
		value := rest[name]
		if len(value) == 0 || value.Kind() == 'n' {
			continue
		}
		if b, bounded := bounds[name]; bounded {
			n, err := strconv.ParseFloat(string(value), 64)
			if value.Kind() != '0' || err != nil || n < b.least || n > b.most || b.whole && n != math.Trunc(n) {
				return nil, refused(name, "%s is no number that can be asked for", clip(string(value)))
			}
		}
		out = append(out, name)
	}
	return out, strays(rest, "", names)
}

// strays refuses the first key that is none of the names: a parameter that is misspelt would else
// be lost without a word (spec 11.3). What says nothing changes nothing, and may have any name that
// a vendor knows.
func strays(rest map[string]jsontext.Value, within string, names []string) error {
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		param := name
		if within != "" {
			param = within + "." + name
		}
		why, known := unsupported[name]
		switch {
		case slices.Contains(names, name) || known && within == "" && !given(rest[name]):
		case known && within == "":
			return why
		default:
			return refused(clip(param),
				"%s is no parameter that is known here: leave it out, or see whether it is misspelt", clip(param))
		}
	}
	return nil
}
