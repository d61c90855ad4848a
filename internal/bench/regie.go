package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
)

// contestant is Regie as an application embeds it: the whole engine, with its lock, socket, store
// and audit chain.
type contestant struct {
	engine *app.Engine
	dir    string
	chat   regie.ID // the one session of all runs; zero where each has its own

	mu     sync.Mutex
	rounds []regie.ID // that were waited for
}

type noopArgs struct {
	N int `json:"n"`
}

func newRegie(ctx context.Context, of trial, dir string, noop func()) (*contestant, error) {
	var tools []tool.Tool
	for _, name := range []string{toolA, toolB} {
		t, err := tool.New(regie.ToolDefinition{
			Name: name, Description: "does nothing", Kind: regie.KindQuery, Class: regie.ClassRead,
			Risk: regie.RiskInternal, ParallelSafe: true, Local: true,
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
		DataDir: filepath.Join(dir, "data"), Provider: config.ProviderOpenAI, BaseURL: of.URL,
		Model: "set by each run", Database: of.Database,
	})
	if err == nil && len(of.Key) > 0 {
		err = errors.Join(os.MkdirAll(settings.DataDir, 0o700),
			os.WriteFile(filepath.Join(settings.DataDir, "audit.key"), of.Key, 0o600))
	}
	if err != nil {
		return nil, err
	}
	// what is measured is the engine, not how many rounds it lets run
	settings.File.Slots.Chat = 1 << 20
	settings.File.Limits.Chat = regie.Limits{
		Total: 10_000, Queries: 10_000, Retries: 3, FormatErrors: 3, CallsInReply: 10, ContextTokens: of.Chat,
	}
	quiet := &slog.HandlerOptions{Level: slog.LevelWarn} // without a line for each run
	engine, err := app.OpenEngine(ctx, app.Options{
		Config: settings, Tools: tools, Log: slog.New(slog.NewTextHandler(os.Stderr, quiet)),
	})
	c := &contestant{engine: engine, dir: dir}
	if of.Chat > 0 {
		c.chat = regie.NewID()
	}
	return c, err
}

// close looks whether every round came to its answer, which nobody measures, and ends the engine.
func (c *contestant) close() error {
	for _, id := range c.rounds {
		round, err := c.engine.Round(context.Background(), id)
		if err == nil && round.End != regie.EndAnswered {
			err = regie.Errorf(regie.CodeInternal, "a run ended %s: %s", string(round.End), round.EndNote)
		}
		if err != nil {
			return errors.Join(err, c.engine.Close())
		}
	}
	return c.engine.Close()
}

func (c *contestant) run(ctx context.Context, name string, steps int) error {
	session := c.chat
	if session.IsZero() {
		session = regie.NewID()
	}
	run, err := c.engine.Service().Rounds.Submit(access.AsOwner(ctx), dispatch.RunRequest{
		SessionID: session, Root: c.dir, FoundBy: "directory", Text: job(name), Agent: "main",
		Provider: config.ProviderOpenAI, Model: modelName(steps),
	})
	if err != nil {
		return err
	}
	if err := c.engine.Wait(ctx, run.RoundID); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rounds = append(c.rounds, run.RoundID)
	return nil
}
