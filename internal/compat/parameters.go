package compat

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// unsupported are the parameters that are refused: they would have another effect than their
// clients mean.
var unsupported = []string{
	"n", "logprobs", "top_logprobs", "logit_bias", "audio", "modalities", "stop", "stop_sequences", "functions",
	"function_call", "web_search_options", "container", "mcp_servers", "format", "output_format",
	"response_format", "conversation", "background", "prompt", "inference_geo",
}

// keys are those of a request that nothing reads.
type keys = map[string]jsontext.Value

// ignoredKeys returns the parameters that have no effect on an agent: its own settings decide, or
// only their vendor knows something to do with them. It refuses those that would have another
// effect than their clients mean.
func ignoredKeys(rest keys, within string) (out []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		if rest[name].Kind() == 'n' {
			continue
		}
		known := slices.Contains(unsupported, name)
		if known && !saysNothing(name, rest[name]) {
			return nil, badParameter(within+name, "%s is not supported: leave it out", within+name)
		}
		if !known && len(out) < maxIgnored {
			out = append(out, truncate(within+name))
		}
	}
	return out, nil
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
	case strings.HasSuffix(name, "format") && text == `{"type":"text"}`:
		return true
	default:
		return slices.Contains([]string{"{}", "[]", "false", "0", `""`}, text)
	}
}

// checkName refuses a name that no tool may have, and one of those seen, to which it adds the
// name.
func checkName(name, param string, seen map[string]bool) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
	if name == "" || len(name) > 64 || strings.Trim(name, letters) != "" {
		return badParameter(param, "%q is not a valid tool name: use up to 64 letters, digits, _ and -", truncate(name))
	}
	if seen[name] {
		return badParameter(param, "there are two tools named %s", name)
	}
	seen[name] = true
	return nil
}

// checkCalls checks the names of calls in a history against the rules for tool names.
func checkCalls(calls []regie.ImportedCall, param string) error {
	for _, c := range calls {
		if err := checkName(c.Name, param, map[string]bool{}); err != nil {
			return err
		}
		if len(c.ID) > 256 {
			return badParameter(param, "the id of a call has more than %d characters", 256)
		}
	}
	return nil
}

// chooseTools returns the tools for the model. A client cannot force one: the agent chooses.
func chooseTools(tools []regie.ClientTool, choice, param string) ([]regie.ClientTool, error) {
	switch choice {
	case "", "null", `"auto"`:
		return tools, nil
	case `"none"`:
		return nil, nil
	}
	return nil, badParameter(param, "an agent chooses its tools itself: use auto, or none to withhold yours")
}

// checkRequest refuses a request without a model or messages.
func checkRequest(model string, messages int) error {
	switch {
	case model == "":
		return badParameter("model", "the request names no model")
	case messages == 0:
		return badParameter("messages", "there is no message")
	case messages > maxMessages:
		return badParameter("messages", "there are %d messages, at most %d are allowed", messages, maxMessages)
	}
	return nil
}

// indexName names an element of an array.
func indexName(param string, i int) string { return param + "[" + strconv.Itoa(i) + "]" }
