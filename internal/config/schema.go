package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
)

// keyRule is what the schema says of a key beside its type, as the strict decoder holds it.
type keyRule struct {
	words    []string // all that it may be
	least    float64  // the smallest number
	most     float64  // the largest, 0 for any
	zero     bool     // 0 stands for what holds where it is left out
	fallback any      // what holds where it is left out
	required bool
}

// keyRules are those of the keys that have any. A * stands for the keys of a map, [] for the
// entries of a list.
func keyRules() map[string]keyRule {
	words := func(words ...string) keyRule { return keyRule{words: words, fallback: words[0]} }
	dialects := []string{DialectAuto, string(regie.DialectNative), string(regie.DialectJSON)}
	kinds, classes := []string{string(regie.KindQuery), string(regie.KindAction)},
		[]string{string(regie.ClassRead), string(regie.ClassKeyed), string(regie.ClassOnce)}
	points := make([]string, 0, len(regie.HookPoints()))
	for _, on := range regie.HookPoints() {
		points = append(points, string(on))
	}
	rules := map[string]keyRule{
		"listen":                            {fallback: DefaultListen},
		"approvals.require":                 words("writes", "all", "none"),
		"approvals.require_validation":      {fallback: false},
		"approvals.expire":                  {fallback: "24h"},
		"approvals.rules[].tool":            {required: true},
		"approvals.rules[].decision":        {words: []string{"allow", "ask", "forbid"}, required: true},
		"automation.network_retry":          {fallback: "30s"},
		"automation.network_give_up":        {fallback: "never"},
		"budget.context_tokens":             {least: 1000, zero: true},
		"budget.model_window":               {least: 1000, zero: true},
		"budget.max_context_messages":       {least: 4, zero: true, fallback: 0},
		"agents.main.dialect":               words(dialects...),
		"agents.main.relaunch":              words("chain", "answer"),
		"agents.main.prompt_degree":         {most: 4, fallback: 2},
		"agents.main.language":              {words: []string{"en", "fr"}},
		"agents.main.answer_check":          {fallback: false},
		"agents.main.cache":                 words(CacheAuto, CacheOn, CacheOff),
		"agents.main.reasoning_effort":      {words: regie.Efforts()},
		"agents.main.parallel_tool_calls":   {fallback: true},
		"agents.main.budget.context_tokens": {least: 1000, zero: true},
		"mcp.allow_approvals":               {fallback: false},
		"mcp_servers.*.trust_hints":         {fallback: false},
		"mcp_servers.*.timeout":             {fallback: "1m"},
		"mcp_servers.*.start_timeout":       {fallback: "30s"},
		"mcp_servers.*.wait":                {fallback: "5s"},
		"mcp_servers.*.tools.*.kind":        {words: kinds},
		"mcp_servers.*.tools.*.class":       {words: classes},
		"cache.ttl":                         {fallback: "24h"},
		"cache.max_bytes":                   {least: leastCache, zero: true, fallback: 64 << 20},
		"cache.memory_bytes":                {least: leastCache, zero: true, fallback: 8 << 20},
		"cache.casefold":                    {fallback: false},
		"shell.sandbox":                     words(SandboxAuto, "bubblewrap", "landlock", "none"),
		"shell.network":                     {fallback: false},
		"shell.max_timeout":                 {fallback: "10m"},
		"shell.max_processes":               {least: leastProcesses, zero: true, fallback: 512},
		"shell.max_memory_bytes":            {least: leastMemory, zero: true, fallback: 4 << 30},
		"agents.main.temperature":           {most: 2},
		"slots.chat":                        {least: 1, fallback: Slots{}.Capacity().Chat},
		"slots.automation":                  {least: 1, fallback: Slots{}.Capacity().Automation},
		"slots.api":                         {least: 1, fallback: Slots{}.Capacity().API},
		"embedder.provider":                 {required: true},
		"embedder.model":                    {required: true},
		"hooks[].on":                        {words: points, required: true},
		"hooks[].command":                   {required: true},
		"hooks[].timeout":                   {fallback: "30s"},
		"hooks[].on_failure":                words(FailureForbid, FailureAsk, FailureAllow),
		"providers.*.type":                  {words: TypeNames(false)},
		"providers.*.vendor":                {words: Vendors("")},
		"providers.*.api":                   {words: []string{APIChat, APIResponses}},
		"providers.*.num_ctx":               {least: 1024, zero: true},
		"providers.*.prices.*.input":        {required: true},
		"providers.*.prices.*.output":       {required: true},
	}
	for _, at := range []string{"limits.chat.", "limits.automation.", "agents.main.limits."} {
		for _, key := range []string{
			"max_autonomous_roundtrips", "max_data_query_iterations", "max_action_retries", "max_format_error_retries",
			"max_tool_calls", "max_tokens",
			"max_seconds", "context_tokens",
		} {
			rules[at+key] = keyRule{least: 1}
		}
	}
	return rules
}

// Schema is the JSON Schema of regie.yaml: every key that the strict decoder knows, and no other
// (spec 13).
func Schema() *jsonschema.Schema {
	s := schemaOf(reflect.TypeFor[File](), "", keyRules())
	s.Schema, s.Title = "https://json-schema.org/draft/2020-12/schema", "regie.yaml"
	return s
}

// durations are those that time.ParseDuration reads, none below zero.
const durations = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// schemaOf is the schema of a type of the file, at a key.
func schemaOf(of reflect.Type, at string, rules map[string]keyRule) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	switch {
	case of == reflect.TypeFor[time.Duration](), of == reflect.TypeFor[Presence]():
		s.Type, s.Pattern = "string", durations
	case of == reflect.TypeFor[Patience](), of == reflect.TypeFor[Watchdog]():
		s.Type, s.Pattern = "string", "^never$|"+durations
	case of == reflect.TypeFor[Dollars](), of == reflect.TypeFor[Cap]():
		s.Type, s.Minimum = "number", new(float64)
	case of == reflect.TypeFor[Slots]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
			{Type: "string", Enum: []any{SlotsExclusive}},
			object(of, at, rules),
		}}
	case at == "agents":
		s.Type, s.AdditionalProperties = "object", nothing()
		s.Properties = map[string]*jsonschema.Schema{mainAgent: schemaOf(of.Elem(), "agents."+mainAgent, rules)}
	case of.Kind() == reflect.Pointer:
		return schemaOf(of.Elem(), at, rules)
	case of.Kind() == reflect.Struct:
		return object(of, at, rules)
	case of.Kind() == reflect.Map:
		s.Type, s.AdditionalProperties = "object", schemaOf(of.Elem(), at+".*", rules)
	case of.Kind() == reflect.Slice:
		s.Type, s.Items = "array", schemaOf(of.Elem(), at+"[]", rules)
	case of.Kind() == reflect.Bool:
		s.Type = "boolean"
	case of.Kind() == reflect.String:
		s.Type = "string"
	case of.Kind() == reflect.Float64:
		s.Type = "number"
	default:
		s.Type, s.Minimum = "integer", new(float64)
	}
	r := rules[at]
	for _, word := range r.words {
		s.Enum = append(s.Enum, word)
	}
	switch {
	case r.least > 0 && r.zero:
		s.Minimum, s.AnyOf = nil, []*jsonschema.Schema{{Enum: []any{0}}, {Minimum: &r.least}}
	case r.least > 0:
		s.Minimum = &r.least
	}
	if r.most > 0 {
		s.Minimum, s.Maximum = new(float64), &r.most
	}
	if r.fallback != nil {
		s.Default, _ = json.Marshal(r.fallback) // of words and numbers
	}
	return s
}

// object is the schema of a struct: no other keys than its own.
func object(of reflect.Type, at string, rules map[string]keyRule) *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{},
		AdditionalProperties: nothing(),
	}
	for field := range of.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		below := key
		if at != "" {
			below = at + "." + key
		}
		s.Properties[key] = schemaOf(field.Type, below, rules)
		s.PropertyOrder = append(s.PropertyOrder, key)
		if rules[below].required {
			s.Required = append(s.Required, key)
		}
	}
	slices.Sort(s.Required)
	return s
}

func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }
