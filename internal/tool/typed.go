package tool

import (
	"context"
	"encoding/json"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
)

// Handler is a tool's code over typed arguments. Run is required; Prepare and Probe are those of Preparer and Prober.
type Handler[A any] struct {
	Run     func(ctx context.Context, inv *Invocation, args A) (Result, error)
	Prepare func(ctx context.Context, inv *Invocation, args A) (intent json.RawMessage, err error)
	Probe   func(ctx context.Context, inv *Invocation, args A) (Evidence, Result, error)
}

// New makes a tool from a definition and typed handlers. Where the definition has no schema it is derived from A: json tags name
// the parameters, omitempty makes them optional, jsonschema tags describe them. It returns CodeBadRequest for a definition that
// contradicts itself.
func New[A any](definition regie.ToolDefinition, handler Handler[A]) (Tool, error) {
	if len(definition.Parameters) == 0 {
		schema, err := jsonschema.For[A](nil)
		if err != nil {
			return nil, regie.Errorf(regie.CodeBadRequest, "the parameters of tool %s cannot be described: %v", definition.Name, err)
		}
		if definition.Parameters, err = json.Marshal(schema); err != nil {
			return nil, regie.Errorf(regie.CodeBadRequest, "the parameters of tool %s cannot be described: %v", definition.Name, err)
		}
	}
	if (definition.Class == regie.ClassVerifiable) != (handler.Probe != nil) {
		return nil, regie.Errorf(regie.CodeBadRequest, "tool %s must have a probe exactly if its class is verifiable", definition.Name)
	}
	base := typed[A]{definition, handler}
	switch {
	case handler.Probe != nil:
		return probing[A]{preparing[A]{base}}, nil
	case handler.Prepare != nil:
		return preparing[A]{base}, nil
	default:
		return base, nil
	}
}

type typed[A any] struct {
	definition regie.ToolDefinition
	handler    Handler[A]
}

// Definition implements Tool.
func (t typed[A]) Definition() regie.ToolDefinition { return t.definition }

// Run implements Tool.
func (t typed[A]) Run(ctx context.Context, inv *Invocation) (Result, error) {
	args, err := decode[A](inv)
	if err != nil {
		return Result{}, err
	}
	return t.handler.Run(ctx, inv, args)
}

type preparing[A any] struct{ typed[A] }

// Prepare implements Preparer.
func (t preparing[A]) Prepare(ctx context.Context, inv *Invocation) (json.RawMessage, error) {
	args, err := decode[A](inv)
	if err != nil || t.handler.Prepare == nil {
		return nil, err
	}
	return t.handler.Prepare(ctx, inv, args)
}

type probing[A any] struct{ preparing[A] }

// Probe implements Prober.
func (t probing[A]) Probe(ctx context.Context, inv *Invocation) (Evidence, Result, error) {
	args, err := decode[A](inv)
	if err != nil {
		return Unsure, Result{}, err
	}
	return t.handler.Probe(ctx, inv, args)
}

// decode reads arguments that Check has validated; a failure has changed nothing.
func decode[A any](inv *Invocation) (A, error) {
	var args A
	if err := jsonv2.Unmarshal(inv.Arguments, &args, jsonv2.RejectUnknownMembers(true)); err != nil {
		return args, NotDone{regie.Errorf(regie.CodeBadArguments, "the arguments do not fit: %v", err)}
	}
	return args, nil
}
