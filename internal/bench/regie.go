package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
)

// contestant is Regie as an application embeds it: the whole engine, with its lock, socket, store and audit chain.
type contestant struct {
	engine *app.Engine
	dir    string
}

type noopArgs struct {
	N int `json:"n"`
}

func newRegie(ctx context.Context, url, dir string, noop func()) (*contestant, error) {
	var tools []tool.Tool
	for _, name := range []string{toolA, toolB} {
		t, err := tool.New(regie.ToolDefinition{
			Name: name, Description: "does nothing", Kind: regie.KindQuery, Class: regie.ClassRead, Risk: regie.RiskInternal, ParallelSafe: true,
		}, tool.Handler[noopArgs]{Run: func(context.Context, *tool.Invocation, noopArgs) (tool.Result, error) {
			noop()
			return tool.Result{Content: "ok"}, nil
		}})
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	settings, err := config.Load(func(string) string { return "" }, config.Flags{
		DataDir: filepath.Join(dir, "data"), Provider: config.ProviderOpenAI, BaseURL: url, Model: "set by each run",
	})
	if err != nil {
		return nil, err
	}
	engine, err := app.OpenEngine(ctx, app.Options{
		Config: settings, Tools: tools, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Limits: regie.Limits{Total: 10_000, Queries: 10_000, Retries: 3, FormatErrors: 3, CallsInReply: 10},
	})
	return &contestant{engine: engine, dir: dir}, err
}

func (c *contestant) close() error { return c.engine.Close() }

func (c *contestant) run(ctx context.Context, name string, steps int) error {
	run, err := c.engine.Submit(ctx, dispatch.RunRequest{
		SessionID: regie.NewID(), Root: c.dir, FoundBy: "directory", Text: job(name), Agent: "main", Provider: config.ProviderOpenAI, Model: modelName(steps),
	})
	if err != nil {
		return err
	}
	if err := c.engine.Wait(ctx, run.RoundID); err != nil {
		return err
	}
	round, err := c.engine.Round(ctx, run.RoundID)
	if err == nil && round.End != regie.EndAnswered {
		err = regie.Errorf(regie.CodeInternal, "a run ended %s: %s", string(round.End), round.EndNote)
	}
	return err
}
