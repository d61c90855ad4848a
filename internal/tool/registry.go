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

// Registry is an unchanging set of tools.
type Registry struct {
	byName map[string]*entry
	byWire map[string]*entry
	sorted []*entry // by name
}

type entry struct {
	tool       Tool
	definition regie.ToolDefinition
	hash       regie.Hash
	wire       string
	schema     *jsonschema.Resolved
	properties []string
}

// NewRegistry returns a registry of the tools. It returns CodeBadRequest for a name or wire name that stands twice, and for a
// schema that cannot be used.
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
	r.sort()
	return r, nil
}

func newEntry(t Tool) (*entry, error) {
	e := &entry{tool: t, definition: t.Definition()}
	d := &e.definition
	e.wire = WireName(d.Name)
	if toolkit, operation, ok := strings.Cut(d.Name, "."); !ok || toolkit == "" || operation == "" || wireUnsafe.MatchString(strings.Replace(d.Name, ".", "", 1)) {
		return nil, regie.Errorf(regie.CodeBadRequest, "%q is not a tool name: write toolkit.operation with letters, digits, _ and -", d.Name)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(d.Parameters, &schema); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the schema of tool %s cannot be read: %v", d.Name, err)
	}
	for name := range schema.Properties {
		e.properties = append(e.properties, name)
	}
	sort.Strings(e.properties)
	var err error
	if e.schema, err = schema.Resolve(nil); err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the schema of tool %s cannot be used: %v", d.Name, err)
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	canonical := jsontext.Value(data)
	if err := canonical.Canonicalize(); err != nil {
		return nil, err
	}
	e.hash = regie.HashOf(canonical)
	return e, nil
}

func (r *Registry) add(e *entry) {
	r.byName[e.definition.Name], r.byWire[e.wire] = e, e
	r.sorted = append(r.sorted, e)
}

func (r *Registry) sort() {
	slices.SortFunc(r.sorted, func(a, b *entry) int { return strings.Compare(a.definition.Name, b.definition.Name) })
}

// Narrow returns the tools whose names match one of the patterns ("files.*", "notes.get_note"): gating can only take away
// (spec 4.2).
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
