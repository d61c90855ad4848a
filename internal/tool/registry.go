package tool

import (
	"encoding/json"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
)

// Registry is an unchanging set of tools (spec 4.2). Its methods may be called from many goroutines.
type Registry struct {
	byName map[string]*entry
	byWire map[string]*entry
	sorted []*entry // by name
}

// entry is a tool with everything that is worked out once.
type entry struct {
	tool       Tool
	definition regie.ToolDefinition
	hash       regie.Hash
	wire       string
	schema     *jsonschema.Resolved
	source     *jsonschema.Schema // what schema was resolved from, for the sentences about what does not fit
	properties []string
	closed     bool // no other properties are allowed
}

// NewRegistry returns a registry of the tools (spec 4.2). It returns CodeBadRequest for a name that stands twice or is not one, for
// a kind and class that contradict each other, and for a schema that cannot be used.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{byName: map[string]*entry{}, byWire: map[string]*entry{}}
	for _, t := range tools {
		e, err := newEntry(t)
		if err != nil {
			return nil, err
		}
		if r.byName[e.definition.Name] != nil || r.byWire[e.wire] != nil {
			return nil, regie.Errorf(regie.CodeBadRequest, "there are two tools named %s", e.definition.Name)
		}
		r.add(e)
	}
	slices.SortFunc(r.sorted, func(a, b *entry) int { return strings.Compare(a.definition.Name, b.definition.Name) })
	return r, nil
}

func newEntry(t Tool) (*entry, error) {
	e := &entry{tool: t, definition: t.Definition()}
	d := &e.definition
	if len(d.Name) > maxCanonicalName || !canonicalName.MatchString(d.Name) {
		return nil, regie.Errorf(regie.CodeBadRequest, "%q is not a tool name: write toolkit.operation with letters, digits, _ and -", clip(d.Name, maxCanonicalName))
	}
	e.wire = WireName(d.Name)
	if err := consistent(t, d); err != nil {
		return nil, err
	}
	if err := e.resolve(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the definition of tool %s cannot be written as JSON: %v", d.Name, err)
	}
	canonical := jsontext.Value(data)
	if err := canonical.Canonicalize(); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the definition of tool %s is not strict JSON: %v", d.Name, err)
	}
	e.hash = regie.HashOf(canonical)
	return e, nil
}

// consistent checks what recovery relies on: only what reads is repeated freely, only what can be probed is probed (spec 12.2).
func consistent(t Tool, d *regie.ToolDefinition) error {
	probes := SidesOf(t).Prober != nil
	switch d.Class {
	case regie.ClassRead, regie.ClassKeyed, regie.ClassVerifiable, regie.ClassOnce, regie.ClassResumable:
	default:
		return regie.Errorf(regie.CodeBadRequest, "tool %s has the unknown effect class %q", d.Name, d.Class)
	}
	switch {
	case d.Kind != regie.KindQuery && d.Kind != regie.KindAction:
		return regie.Errorf(regie.CodeBadRequest, "tool %s is neither a query nor an action", d.Name)
	case (d.Kind == regie.KindQuery) != (d.Class == regie.ClassRead):
		return regie.Errorf(regie.CodeBadRequest, "tool %s must have the class read exactly if it is a query", d.Name)
	case (d.Class == regie.ClassVerifiable) != probes:
		return regie.Errorf(regie.CodeBadRequest, "tool %s must have a probe exactly if its class is verifiable", d.Name)
	case d.Risk != regie.RiskInternal && d.Risk != regie.RiskExternal:
		return regie.Errorf(regie.CodeBadRequest, "tool %s must have the risk internal or external", d.Name)
	}
	return nil
}

// resolve reads the schema of the parameters, once.
func (e *entry) resolve() error {
	e.source = &jsonschema.Schema{}
	if err := json.Unmarshal(e.definition.Parameters, e.source); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the schema of tool %s cannot be read: %v", e.definition.Name, err)
	}
	for name := range e.source.Properties {
		e.properties = append(e.properties, name)
	}
	sort.Strings(e.properties)
	if extra := e.source.AdditionalProperties; extra != nil && extra.Not != nil && len(e.source.PatternProperties) == 0 {
		e.closed = true // jsonschema reads false as {"not": {}}
	}
	var err error
	if e.schema, err = e.source.Resolve(nil); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the schema of tool %s cannot be used: %v", e.definition.Name, err)
	}
	return nil
}

func (r *Registry) add(e *entry) {
	r.byName[e.definition.Name], r.byWire[e.wire] = e, e
	r.sorted = append(r.sorted, e)
}

// Narrow returns the tools whose names match one of the patterns ("files.*", "notes.get_note"): gating can only take away
// (spec 4.2). A pattern that does not parse matches nothing.
func (r *Registry) Narrow(patterns []string) *Registry {
	out := &Registry{byName: map[string]*entry{}, byWire: map[string]*entry{}}
	for _, e := range r.sorted {
		for _, pattern := range patterns {
			if ok, err := path.Match(pattern, e.definition.Name); ok && err == nil {
				out.add(e)
				break
			}
		}
	}
	return out
}

// Definitions returns the tools' definitions, by name: always in the same order, so that requests begin with the same bytes.
func (r *Registry) Definitions() []regie.ToolDefinition {
	out := make([]regie.ToolDefinition, len(r.sorted))
	for i, e := range r.sorted {
		out[i] = e.definition
	}
	return out
}

// Lookup returns a tool by its canonical name with the hash of its definition, which an approval binds to (decision 20).
func (r *Registry) Lookup(name string) (Tool, regie.Hash, bool) {
	if e := r.byName[name]; e != nil {
		return e.tool, e.hash, true
	}
	return nil, regie.Hash{}, false
}

// ByWireName returns the canonical name of the tool that a model calls by its wire name (decision 27).
func (r *Registry) ByWireName(wire string) (canonical string, ok bool) {
	if e := r.byWire[wire]; e != nil {
		return e.definition.Name, true
	}
	return "", false
}
