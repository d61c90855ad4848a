package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/spell"
)

// keyRule holds the bounds of a key that its type does not express. The strict decoder, the schema
// and the defaults read it.
type keyRule struct {
	words       []string // all that a text, or a key of a map, may be
	least, most string   // bounds of a number or a duration; most also bounds the entries of a list
	zero        bool     // 0 stands for what holds where it is left out
	fallback    any      // what holds where it is left out
	required    bool
}

// keyRules returns the rules by key. A * matches the keys of a map, [] the entries of a list.
func keyRules() map[string]keyRule {
	kinds, classes := []string{string(regie.KindQuery), string(regie.KindAction)},
		[]string{string(regie.ClassRead), string(regie.ClassKeyed), string(regie.ClassOnce)}
	points := make([]string, 0, len(regie.HookPoints()))
	for _, on := range regie.HookPoints() {
		points = append(points, string(on))
	}
	rules := map[string]keyRule{
		"listen":                       {fallback: DefaultListen},
		"approvals.require":            words("writes", "all", "none"),
		"approvals.require_validation": {fallback: false},
		"approvals.expire":             {fallback: approvalExpiry},
		"approvals.rules":              {most: "500"},
		"approvals.rules[].tool":       {required: true},
		"approvals.rules[].decision":   {words: []string{"allow", "ask", "forbid"}, required: true},
		"automation.network_retry":     {fallback: "30s"},
		"automation.network_give_up":   {fallback: never},
		"automation.watchdog":          {least: "1m"},
		"presence":                     {least: "30s", most: "24h"},
		"budget.context_tokens":        tokenRule,
		"budget.model_window":          tokenRule,
		"budget.max_context_messages":  {least: "4", zero: true, fallback: 0},
		"approvals.question_expire":    {fallback: questionExpiry},
		"mcp.allow_approvals":          {fallback: false},
		"mcp_servers.*.trust_hints":    {fallback: false},
		"mcp_servers.*.timeout":        {fallback: "1m"},
		"mcp_servers.*.start_timeout":  {fallback: "30s"},
		"mcp_servers.*.wait":           {fallback: "5s"},
		"mcp_servers.*.tools.*.kind":   {words: kinds},
		"mcp_servers.*.tools.*.class":  {words: classes},
		"cache.ttl":                    {fallback: "24h"},
		"cache.max_bytes":              {least: "65536", zero: true, fallback: 64 << 20},
		"cache.casefold":               {fallback: false},
		"shell.sandbox":                words(SandboxAuto, "bubblewrap", "landlock", "none"),
		"shell.network":                {fallback: false},
		"shell.max_timeout":            {least: "1s", most: "24h", fallback: "10m"},
		"shell.max_processes":          {least: "16", zero: true, fallback: 512},
		"shell.max_memory_bytes":       {least: "67108864", zero: true, fallback: 4 << 30},
		"web.enabled":                  {fallback: true},
		"web.allow_private":            {most: "500"},
		"approvals.private":            {most: "500"},
		"slots":                        {words: []string{SlotsExclusive}},
		"slots.chat":                   {least: "1", most: "100000", fallback: Slots{}.Capacity().Chat},
		"slots.automation":             {least: "1", most: "100000", fallback: Slots{}.Capacity().Automation},
		"slots.api":                    {least: "1", most: "100000", fallback: Slots{}.Capacity().API},
		"embedder.provider":            {required: true},
		"embedder.model":               {required: true},
		"embedder.dimensions":          {most: "16384"},
		"hooks":                        {most: "100"},
		"hooks[].on":                   {words: points, required: true},
		"hooks[].command":              {required: true},
		"hooks[].timeout":              {least: "100ms", most: "10m", fallback: "30s"},
		"hooks[].on_failure":           words(FailureForbid, FailureAsk, FailureAllow),
		"providers.*.type":             {words: providerTypes},
		"providers.*.vendor":           {words: Vendors("")},
		"providers.*.api":              {words: []string{APIChat, APIResponses}},
		"providers.*.num_ctx":          {least: "1024", zero: true},
		"providers.*.prices.*.input":   {required: true},
		"providers.*.prices.*.output":  {required: true},
	}
	addAgentRules(rules)
	addLimitRules(rules)
	addWidgetRules(rules)
	addChannelRules(rules)
	return rules
}

// words is the rule of a text that has one of these words, the first where it is left out.
func words(words ...string) keyRule { return keyRule{words: words, fallback: words[0]} }

// tokenRule is the rule of a number of tokens.
var tokenRule = keyRule{least: "1000", zero: true}

// addAgentRules adds the rules of agents' keys.
func addAgentRules(rules map[string]keyRule) {
	maps.Copy(rules, map[string]keyRule{
		"agents.*.dialect":                      words(DialectAuto, "native", "json"),
		"agents.*.relaunch":                     words("chain", "answer"),
		"agents.*.prompt_degree":                {most: "4", fallback: 2},
		"agents.*.language":                     {words: []string{"en", "fr"}},
		"agents.*.restitution":                  {words: []string{"guided", "strict", "off"}},
		"agents.*.on_deny":                      words("explain", "end"),
		"agents.*.cache":                        words(CacheAuto, CacheOn, CacheOff),
		"agents.*.reasoning_effort":             {words: regie.Efforts()},
		"agents.*.parallel_tool_calls":          {fallback: true},
		"agents.*.budget.context_tokens":        tokenRule,
		"agents.*.temperature":                  {most: "2"},
		"agents.*.top_p":                        {most: "1"},
		"agents.*.max_output_tokens":            {least: "16", zero: true, most: "1000000"},
		"agents.*.summaries":                    {fallback: true},
		"agents.*.tools":                        {most: "200"},
		"agents.*.approvals.require":            {words: []string{"all"}},
		"agents.*.approvals.require_validation": {fallback: false},
		"agents.*.approvals.rules":              {most: "100"},
		"agents.*.approvals.rules[].tool":       {required: true},
		"agents.*.approvals.rules[].decision":   {words: []string{"ask", "forbid"}, required: true},
	})
}

// addWidgetRules adds the rules of widgets' keys.
func addWidgetRules(rules map[string]keyRule) {
	for _, key := range []string{"agent", "workspace", "origins", "usd_per_day"} {
		rules["widgets.*."+key] = keyRule{required: true}
	}
	rules["widgets.*.origins"] = keyRule{required: true, most: "50"}
	rules["widgets.*.messages_per_visitor"] = keyRule{least: "1", most: "100000", fallback: visitorMessages}
	rules["widgets.*.messages_per_widget"] = keyRule{least: "1", most: "100000", fallback: widgetMessages}
}

// addLimitRules adds the rules of limits, which have one name at several places.
func addLimitRules(rules map[string]keyRule) {
	limit := strconv.Itoa(MaxLimit)
	for _, key := range fieldsOf(reflect.TypeFor[regie.Limits]()) {
		for _, at := range []string{"limits.chat.", "limits.automation.", "agents.*.limits."} {
			if key.name != "max_context_messages" { // 0 does not bound them
				rules[at+key.name] = keyRule{least: "1", most: limit}
			}
		}
	}
	for _, key := range fieldsOf(reflect.TypeFor[TokenLimits]()) {
		rules["token_limits."+key.name] = keyRule{most: "1000000"}
	}
}

// parseFile reads a configuration file strictly and returns its mapping too. It refuses an unknown
// key, a duplicate key, a second document and a value out of bounds, each with its line.
func parseFile(path string, data []byte) (f File, root *yaml.Node, err error) {
	var doc yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err = decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return f, nil, nil
	}
	if err == nil && !errors.Is(decoder.Decode(new(yaml.Node)), io.EOF) {
		return f, nil, regie.Errorf(regie.CodeBadRequest, "the configuration %s contains more than one document", path)
	}
	if err == nil {
		root = doc.Content[0]
		err = keyCheck(keyRules()).checkNode(root, reflect.TypeFor[File](), "", "")
	}
	if err == nil {
		err = root.Decode(&f)
	}
	if err != nil {
		return f, root, regie.Errorf(regie.CodeBadRequest, "the configuration %s is not valid: %v", path, err)
	}
	markRules(f.Approvals.Rules, path, "approvals")
	for name, agent := range f.Agents {
		if err := CheckAgentName(name); err != nil {
			return f, root, regie.Errorf(regie.CodeBadRequest, "the configuration %s is not valid: %v", path, err)
		}
		markRules(agent.Approvals.Rules, path, "agents."+name+".approvals")
	}
	whole, _ := filepath.Abs(path) // empty without a working directory
	for i := range f.Hooks {
		f.Hooks[i].from, f.Hooks[i].at = cmp.Or(whole, path), i+1
	}
	for name := range f.Providers {
		if name == ProviderDemo || name == ProviderReplay || !providerName.MatchString(name) {
			return f, root, regie.Errorf(regie.CodeBadRequest,
				"%q in %s is not a valid provider name: use small letters, digits, - and _, but not demo or replay", name, path)
		}
	}
	for name := range f.Notifications {
		if !providerName.MatchString(name) {
			return f, root, regie.Errorf(regie.CodeBadRequest,
				"%q in %s is not a valid name of a channel: use small letters, digits, - and _", name, path)
		}
	}
	return f, root, nil
}

// markRules tells rules how people find them.
func markRules(rules []Rule, path, key string) {
	for i := range rules {
		rules[i].where = fmt.Sprintf("%s (%s.rules[%d])", path, key, i+1)
	}
}

// keyCheck holds the nodes of a file to the types and rules of their keys.
type keyCheck map[string]keyRule

// invalidNode is what does not fit, with its line.
func invalidNode(n *yaml.Node, format string, args ...any) error {
	what := regie.Errorf(regie.CodeBadRequest, format, args...)
	return regie.Errorf(regie.CodeBadRequest, "line %d: %v", n.Line, what)
}

// checkNode compares a node with its type, and with the rule of its key.
func (c keyCheck) checkNode(n *yaml.Node, of reflect.Type, key, rule string) (err error) {
	if of.Kind() == reflect.Pointer {
		return c.checkNode(n, of.Elem(), key, rule)
	}
	null, scalar := n.Tag == "!!null", n.Kind == yaml.ScalarNode
	switch kind := of.Kind(); {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return invalidNode(n, "YAML anchors and aliases are not supported: write the value out")
	case of == reflect.TypeFor[Slots]() && scalar && !null:
		err = c.checkScalar(n, reflect.TypeFor[string](), key, c[rule])
	case kind == reflect.Slice && (null || n.Kind == yaml.SequenceNode):
		if most, _ := strconv.Atoi(c[rule].most); most > 0 && len(n.Content) > most {
			return invalidNode(n, "%s has more than %d entries", key, most)
		}
		for i, item := range n.Content {
			err = cmp.Or(err, c.checkNode(item, of.Elem(), fmt.Sprintf("%s[%d]", key, i+1), rule+"[]"))
		}
	case (kind == reflect.Map || kind == reflect.Struct) && (null || n.Kind == yaml.MappingNode):
		err = c.checkObject(n, of, key, rule)
	case kind == reflect.Slice, kind == reflect.Map, kind == reflect.Struct, !scalar:
		return invalidNode(n, "%s was found where %s belongs", describeShape(n), expectedType(of))
	case !null:
		err = c.checkScalar(n, of, key, c[rule])
	}
	if held, is := reflect.TypeAssert[interface{ checkValues() error }](reflect.New(of)); is && err == nil {
		if err = n.Decode(held); err == nil {
			err = held.checkValues()
		}
		if err != nil {
			return invalidNode(n, "%s: %v", key, err)
		}
	}
	return err
}

// checkObject checks the keys of a mapping.
func (c keyCheck) checkObject(n *yaml.Node, of reflect.Type, key, rule string) error {
	types, known := map[string]reflect.Type{}, c[rule].words // those of a map with keys of its own
	for _, f := range fieldsOf(of) {
		types[f.name], known = f.of, append(known, f.name)
	}
	var said []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, part := n.Content[i].Value, n.Content[i].Value
		below := types[name]
		if of.Kind() == reflect.Map {
			below = of.Elem()
		}
		switch {
		case known == nil:
			part = "*"
		case slices.Contains(known, name):
		case nearestKey(name, known) == "":
			return invalidNode(n.Content[i], "unknown key %s", name)
		default:
			return invalidNode(n.Content[i], "unknown key %s, did you mean %s?", name, nearestKey(name, known))
		}
		said = append(said, name)
		if err := c.checkNode(n.Content[i+1], below, joinKey(key, name), joinKey(rule, part)); err != nil {
			return err
		}
	}
	for _, name := range known {
		if c[joinKey(rule, name)].required && !slices.Contains(said, name) {
			return invalidNode(n, "%s is missing", joinKey(key, name))
		}
	}
	return nil
}

// checkScalar checks a text, a number, a duration or a truth.
func (c keyCheck) checkScalar(n *yaml.Node, of reflect.Type, key string, r keyRule) error {
	v := reflect.New(of)
	if err := n.Decode(v.Interface()); err != nil {
		if told, is := errors.AsType[*regie.Error](err); is {
			return invalidNode(n, "%s: %v", key, told)
		}
		return invalidNode(n, "%s was found where %s belongs", describeShape(n), expectedType(of))
	}
	switch {
	case r.required && strings.TrimSpace(n.Value) == "":
		return invalidNode(n, "%s is missing", key)
	case r.words != nil && !slices.Contains(r.words, n.Value):
		return invalidNode(n, "%s is %q: use %s", key, n.Value, strings.Join(r.words, ", "))
	}
	var number float64
	switch v = v.Elem(); {
	case v.CanInt():
		number = float64(v.Int())
	case v.CanFloat():
		number = v.Float()
	default:
		return nil
	}
	least, most := cmp.Or(r.least, "0"), r.most
	if of == reflect.TypeFor[time.Duration]() || of == reflect.TypeFor[Span]() {
		least = cmp.Or(r.least, "1ms")
	}
	switch {
	case n.Value == never, r.zero && number == 0:
	case most != "" && !(number >= parseBound(least) && number <= parseBound(most)): // which refuses what is no number
		return invalidNode(n, "%s must be between %s and %s", key, least, most)
	case !(number >= parseBound(least)):
		return invalidNode(n, "%s must be at least %s", key, least)
	}
	return nil
}

// parseBound returns a bound of a number, or of a duration in nanoseconds.
func parseBound(text string) float64 {
	if d, err := time.ParseDuration(text); err == nil {
		return float64(d)
	}
	n, _ := strconv.ParseFloat(text, 64) // of the table
	return n
}

func joinKey(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

// describeShape returns a value as its writer sees it.
func describeShape(n *yaml.Node) any {
	switch n.Kind {
	case yaml.SequenceNode:
		return regie.ErrorOf(regie.CodeBadRequest, regie.Say("a list"))
	case yaml.MappingNode:
		return regie.ErrorOf(regie.CodeBadRequest, regie.Say("keys with values"))
	}
	return n.Value
}

// expectedType says what belongs where a value of a type does.
func expectedType(of reflect.Type) error {
	said := regie.Say("a whole number")
	switch {
	case of == reflect.TypeFor[Dollars](), of == reflect.TypeFor[Cap]():
		said = regie.Say("an amount in US dollars")
	case of == reflect.TypeFor[time.Duration](), of == reflect.TypeFor[Span]():
		said = regie.Say("a duration such as 5m")
	case of.Kind() == reflect.Struct, of.Kind() == reflect.Map:
		said = regie.Say("keys with values, such as approvals: {require: writes}")
	case of.Kind() == reflect.Slice:
		said = regie.Say("a list")
	case of.Kind() == reflect.String:
		said = regie.Say("a text")
	case of.Kind() == reflect.Bool:
		said = regie.Say("true or false")
	case of.Kind() == reflect.Float64:
		said = regie.Say("a number")
	}
	return regie.ErrorOf(regie.CodeBadRequest, said)
}

// keyField is a key of a struct.
type keyField struct {
	name string
	of   reflect.Type
}

// fieldsOf returns the keys of a struct in their order, none of any other type.
func fieldsOf(of reflect.Type) (out []keyField) {
	if of.Kind() != reflect.Struct {
		return nil
	}
	for field := range of.Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); key != "" && key != "-" {
			out = append(out, keyField{key, field.Type})
		}
	}
	return out
}

// nearestKey returns the known key that differs in the fewest letters, "" where none is near.
func nearestKey(key string, known []string) (best string) {
	least := len(key)/3 + 2
	for _, candidate := range known {
		if d := spell.Distance(key, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}
