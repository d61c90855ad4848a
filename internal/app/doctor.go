package app

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/doctor"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/skill"
	"github.com/regie-run/regie/internal/store/postgres"
	"github.com/regie-run/regie/internal/trust"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	// doctorServers bounds how long the model servers are waited for.
	doctorServers = 5 * time.Second
	// doctorEngine bounds how long the engine is waited for.
	doctorEngine = 2 * time.Second
	// doctorTime bounds an examination that a person waits for in a browser.
	doctorTime = 20 * time.Second
)

// Examine has the doctor look at everything (spec 10.1): it adds to the subject what only the
// wiring can find out, the model servers and the engine. Nothing is changed.
func Examine(ctx context.Context, s doctor.Subject) doctor.Report {
	if s.ConfigError == nil {
		Settle(ctx, &s.Config, s.Env)
	}
	s.Server = func(ctx context.Context) *doctor.Server { return examineServer(ctx, &s.Config) }
	s.Engine = func(ctx context.Context) doctor.EngineState { return engineState(ctx, s.Config) }
	s.Shared = func(ctx context.Context) postgres.Inspection {
		return postgres.Inspect(ctx, postgres.Config{URL: s.Config.Database, Dir: s.Config.DataDir})
	}
	s.Project = func(root string) doctor.Project { return examinedProject(s.Config, root) }
	s.Commands = func(ctx context.Context) sandbox.Found {
		box := newSandbox(s.Config)
		if root, _, err := workspace.Detect(s.Dir, s.Env("HOME"), true); err == nil {
			return box.For(ctx, root)
		}
		return box.Find(ctx)
	}
	return doctor.Examine(ctx, s)
}

// examine has the doctor look at this engine's machine.
func (e *Engine) examine(ctx context.Context) (out []dispatch.Check) {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	dir, _ := os.Getwd() // empty where it cannot be read
	settings := e.config
	settings.Origin = maps.Clone(settings.Origin)
	subject := doctor.Subject{Config: settings, Env: os.Getenv, Dir: dir, CheckTime: doctorTime / 2}
	for _, f := range Examine(ctx, subject) {
		check := dispatch.Check{Group: f.Group, Status: string(f.Status), Cause: f.Cause, Text: f.Text}
		for _, fix := range f.Fixes {
			check.Fixes = append(check.Fixes, dispatch.CheckFix(fix))
		}
		out = append(out, check)
	}
	return out
}

// examinedProject looks at what a workspace holds for agents.
func examinedProject(c config.Config, root string) doctor.Project {
	seen, err := LookProject(c, root)
	if err != nil { // who looks at the workspace itself says so
		return doctor.Project{}
	}
	out := doctor.Project{
		Broken: seen.Broken, Unread: seen.Unread, File: filepath.Join(root, trust.ConfigFile), Trusted: seen.Trusted(),
		Skills: len(seen.Skills),
	}
	if seen.Apart {
		out.Broken = nil
	}
	for _, k := range seen.Keys {
		if !seen.Apart && k.Use == config.UseTrusted {
			out.Settings++
		}
	}
	for _, n := range append(seen.Notices, skill.Load(newProjects(c).ofUser()).Notices...) {
		if n.Refused {
			out.Bad = append(out.Bad, sanitize.Line(n.Dir))
		}
	}
	return out
}

// examineServer calls the chosen server; it returns nil without one.
func examineServer(ctx context.Context, c *config.Config) *doctor.Server {
	name := c.Provider
	p, _ := c.Named(name)
	if p.Type == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, doctorServers)
	defer cancel()
	start := time.Now()
	info := inspectProvider(ctx, c, name, doctorServers)
	s := &doctor.Server{
		Name: name, Type: p.Type, BaseURL: info.BaseURL, Local: info.Local,
		Asked: isUsable(p),
		Code:  info.Code, Error: info.Error, Said: info.Said, Took: time.Since(start),
	}
	for i := range info.Models {
		s.Models = append(s.Models, info.Models[i].Name)
		if info.Models[i].Tools {
			s.ToolModels = append(s.ToolModels, info.Models[i].Name)
		}
	}
	return s
}

// engineState looks for the engine of a data directory without becoming it or creating anything: it
// holds the lock for an instant, during which an engine that starts only waits.
func engineState(ctx context.Context, c config.Config) (state doctor.EngineState) {
	state.Socket, _ = socketPlace(c.DataDir)
	held, err := heldLock(filepath.Join(c.DataDir, lockName))
	switch {
	case err != nil:
		state.Unknown = err
		return state
	case !held:
		return state
	}
	state.Running = true
	state.PID, _ = readLock(c.DataDir)
	client := client.Local(dialSocket(c.DataDir), i18n.New(c.Language).Language())
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, doctorEngine)
	defer cancel()
	start := time.Now()
	state.Err = client.Alive(ctx)
	state.Took = time.Since(start)
	return state
}

// heldLock reports whether a process holds an engine lock.
func heldLock(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // which gives the lock back
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}
