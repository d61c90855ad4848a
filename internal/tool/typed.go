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
// fields of Sides with their names.
type Handler[A any] struct {
	Run     func(ctx context.Context, inv *Invocation, args A) (Result, error)
	Prepare func(ctx context.Context, inv *Invocation, args A) (intent json.RawMessage, err error)
	Probe   func(ctx context.Context, inv *Invocation, args A) (Evidence, Result, error)
	Preview func(ctx context.Context, inv *Invocation, args A) (regie.Preview, error)
	// Changes and Track are given no arguments: what the evidence does not say is not known.
	Changes            func(ctx context.Context, inv *Invocation) ([]regie.FileChange, error)
	Track              func(ctx context.Context, inv *Invocation) (Tracked, error)
	CheckPreconditions func(ctx context.Context, inv *Invocation, args A, preconditions []regie.Precondition) error
	Foresee            func(ctx context.Context, inv *Invocation, args A) ([]State, error)
	MustAsk            func(ctx context.Context, inv *Invocation, args A) []regie.Sentence
	Command            func(ctx context.Context, inv *Invocation, args A) CommandLine
	Flow               func(ctx context.Context, inv *Invocation, args A) (Flow, error)
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
	if err := describeArguments[A](&definition, handler.Schema); err != nil {
		return nil, err
	}
	if (definition.Class == regie.ClassVerifiable) != (handler.Probe != nil) {
		return nil, regie.Errorf(regie.CodeBadRequest, "tool %s must have a probe exactly if its class is verifiable",
			definition.Name)
	}
	return &typed[A]{definition, handler}, nil
}

// describeArguments derives the schema of the parameters from A where the definition has none.
func describeArguments[A any](definition *regie.ToolDefinition, refine func(*jsonschema.Schema)) error {
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
	args, err := decodeArguments[A](inv)
	if err != nil {
		return Result{}, err
	}
	return t.handler.Run(ctx, inv, args)
}

// Sides implements Sided.
func (t *typed[A]) Sides() Sides {
	h := &t.handler
	s := Sides{
		Prepare: withArguments(h.Prepare), Preview: withArguments(h.Preview), Foresee: withArguments(h.Foresee),
		Flow: withArguments(h.Flow), Changes: h.Changes, Track: h.Track,
	}
	if h.Probe != nil {
		s.Probe = func(ctx context.Context, inv *Invocation) (Evidence, Result, error) {
			args, err := decodeArguments[A](inv)
			if err != nil {
				return Unsure, Result{}, err
			}
			return h.Probe(ctx, inv, args)
		}
	}
	if h.CheckPreconditions != nil {
		s.CheckPreconditions = func(ctx context.Context, inv *Invocation, preconditions []regie.Precondition) error {
			args, err := decodeArguments[A](inv)
			if err != nil {
				return err
			}
			return h.CheckPreconditions(ctx, inv, args, preconditions)
		}
	}
	if h.MustAsk != nil {
		s.MustAsk = func(ctx context.Context, inv *Invocation) []regie.Sentence {
			args, err := decodeArguments[A](inv)
			if err != nil {
				return nil
			}
			return h.MustAsk(ctx, inv, args)
		}
	}
	if h.Command != nil {
		s.Command = func(ctx context.Context, inv *Invocation) CommandLine {
			args, err := decodeArguments[A](inv)
			if err != nil {
				return CommandLine{}
			}
			return h.Command(ctx, inv, args)
		}
	}
	return s
}

// withArguments returns a side that decodes the arguments for fn, nil for none.
func withArguments[A, T any](fn func(context.Context, *Invocation, A) (T, error)) func(context.Context,
	*Invocation) (T, error) {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context, inv *Invocation) (T, error) {
		args, err := decodeArguments[A](inv)
		if err != nil {
			return *new(T), err
		}
		return fn(ctx, inv, args)
	}
}

// decodeArguments reads arguments that Check has validated; a failure has changed nothing. Numbers
// that mean an integer without looking like one (2.0, 2e0) fit an integer's schema but not a Go
// integer before they are in canonical form.
func decodeArguments[A any](inv *Invocation) (A, error) {
	arguments := jsontext.Value(inv.Arguments).Clone()
	if len(arguments) == 0 {
		arguments = jsontext.Value("{}")
	}
	var args A
	err := arguments.Canonicalize()
	if err == nil {
		err = jsonv2.Unmarshal(arguments, &args, jsonv2.RejectUnknownMembers(true))
	}
	if err != nil {
		return args, NotDone{regie.Errorf(regie.CodeBadArguments, "the arguments do not fit: %v", err)}
	}
	return args, nil
}
