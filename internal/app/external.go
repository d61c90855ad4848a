package app

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/sandbox"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/automations"
	"github.com/regie-run/regie/internal/toolkit/files"
	"github.com/regie-run/regie/internal/toolkit/mcp"
	"github.com/regie-run/regie/internal/toolkit/session"
	"github.com/regie-run/regie/internal/toolkit/shell"
	"github.com/regie-run/regie/internal/toolkit/web"
)

// newHouse returns the registry of the tools that are built in. readResult is as session.Tools has
// it, service as automations.Tools; both are nil where the tools are only described.
func newHouse(o Options, box *sandbox.Sandbox, indexes files.Indexes, snapshots *snapshot.Store,
	readResult func(ctx context.Context, session, call regie.ID) (string, error), service func() automations.Service,
) (*tool.Registry, error) {
	builtin, err := files.Tools(indexes)
	if err != nil {
		return nil, err
	}
	own, err := session.Tools(readResult)
	if err != nil {
		return nil, err
	}
	commands, err := shell.Tools(shell.Config{
		Sandbox:    box,
		MaxTimeout: o.Config.File.Shell.MaxTimeout, Snapshots: snapshots,
	})
	if err != nil {
		return nil, err
	}
	proposals, err := automations.Tools(service)
	if err != nil {
		return nil, err
	}
	var pages []tool.Tool
	if settings := o.Config.File.Web; settings.On() {
		hosts, ranges := settings.Private()
		if pages, err = web.Tools(web.Config{Hosts: hosts, Ranges: ranges}); err != nil {
			return nil, err
		}
	}
	return tool.NewRegistry(slices.Concat(builtin, own, commands, proposals, pages, o.Tools)...)
}

func newSnapshots(c config.Config) *snapshot.Store {
	return snapshot.New(filepath.Join(c.DataDir, "snapshots"), c.DataDir, snapshot.DefaultBounds())
}

// HouseTools describes the tools that are built in, as an engine with these settings has them, for
// those who ask before anything is stored.
func HouseTools(c config.Config) ([]regie.ToolDefinition, error) {
	house, err := newHouse(Options{Config: c}, newSandbox(c), newIndexes(c), newSnapshots(c), nil, nil)
	if err != nil {
		return nil, err
	}
	return house.Definitions(), nil
}

// connectTools returns the source of the rounds' tools: the built-in ones and those of the
// configured MCP servers. An engine that runs nothing starts no server and answers calls to one
// with the reason.
func (e *Engine) connectTools(house *tool.Registry, c config.Config) (func(context.Context) *tool.Registry, error) {
	if e.readOnly {
		for _, name := range c.File.MCPNames() {
			var err error
			if house, err = withUnstarted(house, name); err != nil {
				return nil, err
			}
		}
		return func(context.Context) *tool.Registry { return house }, nil
	}
	var servers []mcp.Config
	for _, name := range c.File.MCPNames() {
		servers = append(servers, mcpConfig(name, c.File.MCPServers[name], e.log))
	}
	fleet, err := mcp.NewFleet(house, e.log, servers...)
	if err != nil {
		return nil, err
	}
	e.fleet = fleet
	fleet.Start()
	return fleet.Tools, nil
}

// withUnstarted adds a server whose tools answer with the reason for its absence.
func withUnstarted(base *tool.Registry, server string) (*tool.Registry, error) {
	return base.With(server, nil, regie.Errorf(regie.CodeServerDown,
		"the MCP server %s is not started, because this command runs no agent", server))
}

func mcpConfig(name string, s config.MCPServer, log *slog.Logger) mcp.Config {
	out := mcp.Config{
		Name: name, Env: s.Env, Dir: s.Dir, URL: s.URL, Headers: s.Headers, TrustHints: s.TrustHints, Allow: s.Allow,
		Deny: s.Deny, Timeout: s.Timeout,
		StartTimeout: s.StartTimeout, Wait: s.Wait,
		AllowPrivate: true, // the operator wrote the address
		Log:          log, Tools: map[string]mcp.Setting{},
	}
	if s.Command != "" || len(s.Args) > 0 {
		out.Command = append([]string{s.Command}, s.Args...)
	}
	for tool, setting := range s.Tools {
		out.Tools[tool] = mcp.Setting{Kind: regie.CallKind(setting.Kind), Class: regie.EffectClass(setting.Class)}
	}
	return out
}

// approvalLevels returns what the app wants asked about (spec 4.4).
func approvalLevels(a config.Approvals) []approval.Level {
	return []approval.Level{{
		Source: regie.SourceApp, Require: cmp.Or(a.Require, approval.RequireWrites),
		RequireValidation: a.RequireValidation,
	}}
}

// CheckServers returns CodeBadRequest where an MCP server of the settings cannot be used as it is
// configured. None is started, and none asked.
func CheckServers(c config.Config) error {
	for _, name := range c.File.MCPNames() {
		if err := mcpConfig(name, c.File.MCPServers[name], nil).Validate(); err != nil {
			return err
		}
	}
	return nil
}
