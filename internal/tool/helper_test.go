package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// scripted is a tool whose code a test writes.
type scripted struct {
	definition regie.ToolDefinition
	run        func(ctx context.Context, inv *tool.Invocation) (tool.Result, error)
}

func (s *scripted) Definition() regie.ToolDefinition { return s.definition }

func (s *scripted) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	return s.run(ctx, inv)
}

// probed is a scripted tool with a probe and a preparation.
type probed struct {
	scripted
	prepare func(ctx context.Context, inv *tool.Invocation) (json.RawMessage, error)
	probe   func(ctx context.Context, inv *tool.Invocation) (tool.Evidence, tool.Result, error)
}

func (p *probed) Sides() tool.Sides { return tool.Sides{Prepare: p.prepare, Probe: p.probe} }

// definition describes a tool of a class.
func definition(name string, class regie.EffectClass) regie.ToolDefinition {
	kind := regie.KindAction
	if class == regie.ClassRead {
		kind = regie.KindQuery
	}
	return regie.ToolDefinition{Name: name, Parameters: json.RawMessage(`{"type":"object"}`), Kind: kind, Class: class, Risk: regie.RiskInternal}
}

// idle is a tool of a class that does nothing.
func idle(name string, class regie.EffectClass) tool.Tool {
	s := scripted{definition: definition(name, class), run: func(context.Context, *tool.Invocation) (tool.Result, error) {
		return tool.Result{Content: name}, nil
	}}
	if class != regie.ClassVerifiable {
		return &s
	}
	return &probed{
		scripted: s,
		prepare:  func(context.Context, *tool.Invocation) (json.RawMessage, error) { return nil, nil },
		probe: func(context.Context, *tool.Invocation) (tool.Evidence, tool.Result, error) {
			return tool.Unsure, tool.Result{}, nil
		},
	}
}

func registry(tb testing.TB, tools ...tool.Tool) *tool.Registry {
	tb.Helper()
	r, err := tool.NewRegistry(tools...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

type pageArgs struct {
	Path  string   `json:"path" jsonschema:"which file"`
	Start int      `json:"start_line,omitempty"`
	Deep  bool     `json:"deep,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

// reader is a typed tool that answers with what its code was given.
func reader(tb testing.TB) tool.Tool {
	tb.Helper()
	made, err := tool.New(regie.ToolDefinition{Name: "files.read_file", Kind: regie.KindQuery, Risk: regie.RiskInternal}, tool.Handler[pageArgs]{
		Run: func(_ context.Context, _ *tool.Invocation, args pageArgs) (tool.Result, error) {
			data, err := json.Marshal(args)
			return tool.Result{Content: string(data)}, err
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return made
}
