package tool

import (
	"context"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
)

// Handler is a tool's code over typed arguments (spec 4.2). Run is required; the others are the
// tool's sides, of the interfaces with their names.
type Handler[A any] struct {
	Run     func(ctx context.Context, inv *Invocation, args A) (Result, error)
	Prepare func(ctx context.Context, inv *Invocation, args A) (intent json.RawMessage, err error)
	Probe   func(ctx context.Context, inv *Invocation, args A) (Evidence, Result, error)
	Preview func(ctx context.Context, inv *Invocation, args A) (regie.Preview, error)
	// Changes is that of Undoer. It is given no arguments: what the evidence does not say is not
	// known.
	Changes func(ctx context.Context, inv *Invocation) ([]regie.FileChange, error)
	// Track is that of Tracker. It is given no arguments either.
	Track func(ctx context.Context, inv *Invocation) (Tracked, error)
	// CheckPreconditions is that of Preconditioner.
	CheckPreconditions func(ctx context.Context, inv *Invocation, args A, preconditions []regie.Precondition) error
	// Foresee is that of Foreseer.
	Foresee func(ctx context.Context, inv *Invocation, args A) ([]State, error)
	// MustAsk is that of Guarded.
	MustAsk func(ctx context.Context, inv *Invocation, args A) []regie.Sentence
	// Command is that of Commander.
	Command func(inv *Invocation, args A) (regie.Command, bool)
	// Schema may refine the schema that is derived from A: bounds, defaults, enumerations, which Go
	// types do not say.
	Schema func(*jsonschema.Schema)
}

// New makes a tool from a definition and typed handlers (spec 4.2). Where the definition has no
// schema it is derived from A: json tags name the parameters, omitempty makes them optional,
// jsonschema tags describe them; others than these are refused. A query without a class is a read,
// an action without one is never repeated (spec 12.2). The tool has exactly the sides that the
// handler has. New returns CodeBadRequest for a definition that contradicts itself.
func New[A any](definition regie.ToolDefinition, handler Handler[A]) (Tool, error) {
	if handler.Run == nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "tool %s has no code to run", definition.Name)
	}
	if definition.Class == "" {
		definition.Class = regie.ClassOnce
		if definition.Kind == regie.KindQuery {
			definition.Class = regie.ClassRead
		}
	}
	if err := describe[A](&definition, handler.Schema); err != nil {
		return nil, err
	}
	if (definition.Class == regie.ClassVerifiable) != (handler.Probe != nil) {
		return nil, regie.Errorf(regie.CodeBadRequest, "tool %s must have a probe exactly if its class is verifiable",
			definition.Name)
	}
	return &typed[A]{definition, handler}, nil
}

// describe derives the schema of the parameters from A where the definition has none.
func describe[A any](definition *regie.ToolDefinition, refine func(*jsonschema.Schema)) error {
	if len(definition.Parameters) > 0 {
		return nil
	}
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the parameters of tool %s cannot be described: %v", definition.Name,
			err)
	}
	if refine != nil {
		refine(schema)
	}
	if definition.Parameters, err = json.Marshal(schema); err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the parameters of tool %s cannot be described: %v", definition.Name,
			err)
	}
	return nil
}

type typed[A any] struct {
	definition regie.ToolDefinition
	handler    Handler[A]
}

// Definition implements Tool.
func (t *typed[A]) Definition() regie.ToolDefinition { return t.definition }

// Run implements Tool.
func (t *typed[A]) Run(ctx context.Context, inv *Invocation) (Result, error) {
	args, err := decode[A](inv)
	if err != nil {
		return Result{}, err
	}
	return t.handler.Run(ctx, inv, args)
}

// Sides implements Sided.
func (t *typed[A]) Sides() Sides {
	var s Sides
	all := (*sides[A])(t)
	if t.handler.Changes != nil {
		s.Undoer = all
	}
	if t.handler.Track != nil {
		s.Tracker = all
	}
	if t.handler.Prepare != nil {
		s.Preparer = all
	}
	if t.handler.Probe != nil {
		s.Prober = all
	}
	if t.handler.Preview != nil {
		s.Previewer = all
	}
	if t.handler.CheckPreconditions != nil {
		s.Preconditioner = all
	}
	if t.handler.Foresee != nil {
		s.Foreseer = all
	}
	if t.handler.MustAsk != nil {
		s.Guarded = all
	}
	if t.handler.Command != nil {
		s.Commander = all
	}
	return s
}

// sides is a typed tool with every side, whether its handler has it or not: typed hands out those
// that it has.
type sides[A any] typed[A]

// Changes implements Undoer.
func (t *sides[A]) Changes(ctx context.Context, inv *Invocation) ([]regie.FileChange, error) {
	return t.handler.Changes(ctx, inv)
}

// Track implements Tracker.
func (t *sides[A]) Track(ctx context.Context, inv *Invocation) (Tracked, error) {
	return t.handler.Track(ctx, inv)
}

// Prepare implements Preparer.
func (t *sides[A]) Prepare(ctx context.Context, inv *Invocation) (json.RawMessage, error) {
	args, err := decode[A](inv)
	if err != nil {
		return nil, err
	}
	return t.handler.Prepare(ctx, inv, args)
}

// Probe implements Prober.
func (t *sides[A]) Probe(ctx context.Context, inv *Invocation) (Evidence, Result, error) {
	args, err := decode[A](inv)
	if err != nil {
		return Unsure, Result{}, err
	}
	return t.handler.Probe(ctx, inv, args)
}

// Preview implements Previewer.
func (t *sides[A]) Preview(ctx context.Context, inv *Invocation) (regie.Preview, error) {
	args, err := decode[A](inv)
	if err != nil {
		return regie.Preview{}, err
	}
	return t.handler.Preview(ctx, inv, args)
}

// CheckPreconditions implements Preconditioner.
func (t *sides[A]) CheckPreconditions(ctx context.Context, inv *Invocation, preconditions []regie.Precondition) error {
	args, err := decode[A](inv)
	if err != nil {
		return err
	}
	return t.handler.CheckPreconditions(ctx, inv, args, preconditions)
}

// Foresee implements Foreseer.
func (t *sides[A]) Foresee(ctx context.Context, inv *Invocation) ([]State, error) {
	args, err := decode[A](inv)
	if err != nil {
		return nil, err
	}
	return t.handler.Foresee(ctx, inv, args)
}

// MustAsk implements Guarded.
func (t *sides[A]) MustAsk(ctx context.Context, inv *Invocation) []regie.Sentence {
	args, err := decode[A](inv)
	if err != nil {
		return nil
	}
	return t.handler.MustAsk(ctx, inv, args)
}

// Command implements Commander.
func (t *sides[A]) Command(inv *Invocation) (regie.Command, bool) {
	args, err := decode[A](inv)
	if err != nil {
		return regie.Command{}, false
	}
	return t.handler.Command(inv, args)
}

// decode reads arguments that Check has validated; a failure has changed nothing. Numbers that mean
// an integer without looking like one (2.0, 2e0) fit an integer's schema but not a Go integer
// before they are in canonical form.
func decode[A any](inv *Invocation) (A, error) {
	arguments := jsontext.Value(inv.Arguments)
	if len(arguments) == 0 {
		arguments = jsontext.Value("{}")
	}
	var args A
	err := jsonv2.Unmarshal(arguments, &args, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return args, nil
	}
	if canonical := arguments.Clone(); canonical.Canonicalize() == nil {
		args = *new(A)
		if jsonv2.Unmarshal(canonical, &args, jsonv2.RejectUnknownMembers(true)) == nil {
			return args, nil
		}
	}
	return args, NotDone{regie.Errorf(regie.CodeBadArguments, "the arguments do not fit: %v", err)}
}
