package app

import (
	"context"
	"log/slog"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/mcp"
)

// externals are the MCP servers of an engine.
type externals struct{ servers []*mcp.Server }

// connectMCP reaches the configured servers, side by side. One that does not answer is an error: without its tools, calls that a crash
// interrupted could not be recovered.
func connectMCP(ctx context.Context, c config.Config, log *slog.Logger) (*externals, []tool.Tool, error) {
	names := c.File.MCPNames()
	servers, errs := make([]*mcp.Server, len(names)), make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { servers[i], errs[i] = mcp.Connect(ctx, mcpConfig(name, c.File.MCPServers[name], log)) })
	}
	group.Wait()
	out := &externals{}
	var failed error
	var tools []tool.Tool
	for i, server := range servers {
		if errs[i] != nil {
			failed = errs[i]
			continue
		}
		out.servers = append(out.servers, server)
		tools = append(tools, server.Tools()...)
		for _, warning := range server.Warnings() {
			log.Warn("a tool of an MCP server is left out", "server", names[i], "reason", warning)
		}
	}
	if failed != nil {
		out.close()
		return nil, nil, failed
	}
	return out, tools, nil
}

func mcpConfig(name string, s config.MCPServer, log *slog.Logger) mcp.Config {
	out := mcp.Config{
		Name: name, Env: s.Env, Dir: s.Dir, URL: s.URL, Headers: s.Headers, TrustHints: s.TrustHints, Allow: s.Allow, Deny: s.Deny, Timeout: s.Timeout,
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

func (e *externals) close() {
	if e == nil {
		return
	}
	var group sync.WaitGroup
	for _, server := range e.servers {
		group.Go(server.Close)
	}
	group.Wait()
}

// levels are what the app wants asked about (spec 4.4).
func levels(a config.Approvals) []approval.Level {
	require := a.Require
	if require == "" {
		require = approval.RequireWrites
	}
	return []approval.Level{{Source: regie.SourceApp, Require: require, RequireValidation: a.RequireValidation}}
}
