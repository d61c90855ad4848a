package dialect

import (
	"encoding/json"
	"strings"

	"github.com/regie-run/regie"
)

// The bounds of a reply. A provider's reply has at most 16 MiB (spec 11.3); writing it anew may
// lengthen it.
const (
	maxReply   = 32 << 20 // bytes
	maxDepth   = 68       // objects and lists inside each other: 64 for the params of a command (spec 11.3)
	maxObjects = 100_000  // brackets that open one, also inside texts
	maxType    = 500      // bytes of a command's name
	maxSummary = 4000     // characters of what completes a run, as its tool takes them
)

// Options are the inputs of a JSON dialect apart from its tools.
type Options struct {
	// Questions says that a person can answer (decision 37). Without it the field
	// communication_module is not offered; a reply that uses it is still read, so that the engine
	// can refuse the call with its note (spec 4.5).
	Questions bool
	// Automation says that a round goes on after its actions succeeded, regardless of keep_control
	// (spec 3.1).
	Automation bool
	// CallsInReply is the limit of spec 3.2 that the instructions give; 0 omits it.
	CallsInReply int
	// French has the instructions in French, as level 1 around them is; tools describe themselves
	// in their own words.
	French bool
	// Module reads a communication module out of the arguments of the tool that asks (tool.Asker),
	// so that an invalid one is a format error (spec 4.5); nil checks no more than the form.
	Module func(arguments json.RawMessage) (regie.Module, error)
}

// JSON is the JSON dialect over a set of tools. It never changes and may be used from many
// goroutines.
type JSON struct {
	options     Options
	definitions []regie.ToolDefinition
	byName      map[string]*regie.ToolDefinition // canonical names and aliases
	byRole      map[regie.ToolRole]*regie.ToolDefinition
}

// New returns the dialect for an agent's tools, in the order of the instructions: a registry's
// Definitions always have the same. Tools with a role are the native form of fields (spec 3.3):
// without the tool there is no field.
func New(definitions []regie.ToolDefinition, options Options) *JSON {
	j := &JSON{
		options: options, definitions: definitions,
		byName: make(map[string]*regie.ToolDefinition, len(definitions)),
		byRole: map[regie.ToolRole]*regie.ToolDefinition{},
	}
	for i := range definitions {
		d := &definitions[i]
		j.byName[d.Name] = d
		for _, alias := range d.Aliases {
			if j.byName[alias] == nil {
				j.byName[alias] = d
			}
		}
		if d.Role == regie.RoleClient { // before another tool's alias
			j.byName[regie.ToolNameOf(d.Name)] = d
		}
		if d.Role != "" && d.Role != regie.RoleClient {
			j.byRole[d.Role] = d
		}
	}
	return j
}

// find returns what a command's type means: a canonical name, an alias, a wire name of a native
// thread (decision 27), or a client's own name of its tool.
func (j *JSON) find(name string) *regie.ToolDefinition {
	if d := j.byName[name]; d != nil {
		return d
	}
	return j.byName[strings.Replace(name, "__", ".", 1)]
}

// Find returns the definition that a name means here, for package prompt.
func (j *JSON) Find(name string) (regie.ToolDefinition, bool) {
	if d := j.find(name); d != nil {
		return *d, true
	}
	return regie.ToolDefinition{}, false
}

// Call is a command of a reply, or a field that is a call in the native dialect (decision 27).
type Call struct {
	// Tool is the canonical name, or what the model wrote where there is no such tool: the pipeline
	// answers that with the nearest names.
	Tool string
	// Kind is the list of the command: queries in data_commands, actions in action_commands.
	Kind regie.CallKind
	// Role is set for calls that are fields: communication_module, completed, plan.
	Role      regie.ToolRole
	Arguments string // a JSON object
}

// Reply is what a valid reply says, in canonical form: the calls in the order plan, commands,
// module, completed.
type Reply struct {
	PreText string
	Calls   []Call
	// ValidationRequest asks for a person's check of every action of the reply (decision 40).
	ValidationRequest bool
	PostText          string
	KeepControl       bool
}

// Answer reports whether the reply is the answer (spec 3.1): nothing but text, and perhaps the
// final plan.
func (r *Reply) Answer() bool {
	for i := range r.Calls {
		if r.Calls[i].Role != regie.RolePlan {
			return false
		}
	}
	return true
}
