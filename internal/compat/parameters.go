package compat

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
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

// unsupported says why parameters are refused that would have another effect than their clients
// mean.
var unsupported = map[string]regie.Sentence{
	"n":                  regie.Say("an agent gives one answer: leave n out"),
	"logprobs":           noLogprobs,
	"top_logprobs":       noLogprobs,
	"logit_bias":         regie.Say("an agent takes no logit_bias"),
	"audio":              textAlone,
	"modalities":         textAlone,
	"stop":               noStops,
	"stop_sequences":     noStops,
	"functions":          asTools,
	"function_call":      asTools,
	"web_search_options": ownTools,
	"container":          ownTools,
	"mcp_servers":        ownTools,
	"format":             noFormat,
	"output_format":      noFormat,
	"response_format":    noFormat,
	"conversation":       regie.Say("a session is continued with previous_response_id, or with metadata.session_id"),
	"background": regie.Say(
		"a response is not made in the background here: a client that goes away does not stop it, and GET /v1/responses/{id} has it"),
	"prompt":         regie.Say("there are no stored prompts here"),
	"inference_geo":  regie.Say("where an agent's model runs is decided by its own settings"),
	"moderation":     regie.Say("an agent's answers are not moderated here"),
	"compaction":     regie.Say("a session is summarised by itself: its summary cannot be asked for"),
	"billing_policy": regie.Say("who pays is decided by the settings of the agent's provider"),
}

var (
	noLogprobs = regie.Say("an agent gives no log probabilities")
	textAlone  = regie.Say("an agent answers in text alone")
	noStops    = regie.Say("an agent takes no stop sequences")
	asTools    = regie.Say("functions are given as tools here")
	ownTools   = regie.Say("an agent has its own tools")
	noFormat   = regie.Say("an agent answers in text: a format cannot be promised here")
)

// Keys that parts of requests have beside what is read of them: what is echoed of a former answer,
// of ours or of another server's, and what only vendors know something to do with.
var (
	messageKeys = []string{
		"name", "annotations", "audio", "function_call", "id", "reasoning", "reasoning_content", "reasoning_details",
		"thinking", "thinking_blocks", "provider_specific_fields",
		"cache_control", "metadata", "images", "refusal", "parsed", "prefix", "created_at", "model",
	}
	callKeys = []string{"index", "extra_content", "provider_specific_fields", "parsed_arguments"}
	toolKeys = []string{
		"strict", "cache_control", "allowed_callers", "async", "defer_loading",
		"output_schema", "eager_input_streaming", "input_examples",
	}
	itemKeys = []string{
		"id", "status", "phase", "created_by", "caller", "namespace", "agent",
		"parsed_arguments", "summary", "encrypted_content", "async", "metadata",
	}
	reasoningKeys = []string{"summary", "generate_summary", "context", "mode", "max_tokens", "enabled", "exclude"}
)

// ignoredKeys returns the parameters of a request that have no effect on an agent, of those with
// these names. It refuses any other.
func ignoredKeys(rest keys, names ...string) (out []string, err error) {
	for _, name := range names {
		if value := rest[name]; len(value) > 0 && value.Kind() != 'n' {
			out = append(out, name)
		}
	}
	return out, checkKeys(rest, "", names...)
}

// keys are those of a JSON object that nothing reads.
type keys = map[string]jsontext.Value

// checkKeys refuses the first key that is none of the names: a misspelt parameter would else be
// lost without a word (spec 11.3). One that is known and unsupported may say nothing.
func checkKeys(rest keys, within string, names ...string) error {
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		param := name
		if within != "" {
			param = within + "." + name
		}
		why, known := unsupported[name]
		switch {
		case slices.Contains(names, name) || known && saysNothing(name, rest[name]):
		case known:
			return &problem{param: param, err: regie.ErrorOf(regie.CodeBadRequest, why)}
		default:
			return refused(truncate(param),
				"%s is no parameter that is known here: leave it out, or see whether it is misspelt", truncate(param))
		}
	}
	return nil
}

// saysNothing reports whether a value of an unsupported parameter asks for what an agent does
// anyway.
func saysNothing(name string, value jsontext.Value) bool {
	value = value.Clone()
	_ = value.Compact() // it is valid
	switch text := string(value); {
	case text == "null":
		return true
	case name == "web_search_options": // {} switches the search on
		return false
	case name == "n":
		return text == "1"
	case name == "modalities":
		return text == "[]" || text == `["text"]`
	case strings.HasSuffix(name, "format") && string(member(value, "type")) == `"text"`:
		return true
	default:
		return slices.Contains([]string{"{}", "[]", "false", "0", `""`}, text)
	}
}

// checkNames refuses names that no tool may have, and those that stand twice; at is where the name
// stands in a tool.
func checkNames(tools []regie.ClientTool, at string) error {
	seen := map[string]bool{}
	for i, t := range tools {
		if err := checkName(t.Name, index("tools", i)+at, seen); err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses a name that no tool may have, and one of those seen, to which it adds the
// name.
func checkName(name, param string, seen map[string]bool) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name == "" || len(name) > 64 || strings.Trim(name, letters) != "" {
		return refused(param, "%q is not a name of a tool: write up to 64 letters, digits, _ and -", truncate(name))
	}
	if seen[name] {
		return refused(param, "there are two tools named %s", name)
	}
	seen[name] = true
	return nil
}

// checkCalls compares names of calls in a history with what a tool may be called.
func checkCalls(calls []regie.ImportedCall, param string) error {
	for _, c := range calls {
		if err := checkName(c.Name, param, map[string]bool{}); err != nil {
			return err
		}
		if len(c.ID) > 256 {
			return refused(param, "the id of a call has more than %d characters", 256)
		}
	}
	return nil
}

// chooseTools returns the tools that the model is told of. To force one is not possible: an agent
// decides by itself.
func chooseTools(tools []regie.ClientTool, choice, param string) ([]regie.ClientTool, error) {
	switch choice {
	case "", "null", `"auto"`:
		return tools, nil
	case `"none"`:
		return nil, nil
	}
	return nil, refused(param, "an agent chooses its tools by itself: use auto, or none to keep yours from it")
}

// checkRequest refuses a request without a model or messages.
func checkRequest(model string, messages int) error {
	switch {
	case model == "":
		return refused("model", "the request names no model")
	case messages == 0:
		return refused("messages", "there is no message")
	case messages > maxMessages:
		return refused("messages", "there are %d messages, at most %d are allowed", messages, maxMessages)
	}
	return nil
}

// index names an element of an array.
func index(param string, i int) string { return param + "[" + strconv.Itoa(i) + "]" }
