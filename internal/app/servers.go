package app

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/mcp"
	"github.com/regie-run/regie/internal/trust"
)

// servers are the MCP servers that workspaces name in their .mcp.json, once a person has trusted
// exactly that (spec 10.1). One that the settings name goes before it. They are started when a
// round begins in their workspace, and live as long as the engine, or as the file is trusted as it
// was.
type servers struct {
	projects *projects
	log      *slog.Logger

	mu     sync.Mutex // guards what is below; no server is waited for under it
	closed bool
	places map[string]*placed // by workspace
}

// placed are the servers of one workspace.
type placed struct {
	hash  regie.Hash // of the file
	fleet *mcp.Fleet
	names []string
	away  map[string]error // those that cannot be used as they are written

	mu           sync.Mutex // guards the last registry that was given, with what it was made of
	base, theirs *tool.Registry
	with         *tool.Registry
}

func newServers(p *projects, log *slog.Logger) *servers {
	return &servers{projects: p, log: log, places: map[string]*placed{}}
}

// namedServers returns the servers of a workspace's file, and its hash, where it is trusted.
func (p *projects) namedServers(root string) ([]config.MCPFileServer, regie.Hash) {
	content, ok := p.trustedContent(root)
	data, there := content.Data(trust.ServersFile)
	if !ok || !there || p.config.Apart {
		return nil, regie.Hash{}
	}
	found, err := config.ParseMCPFile(data)
	if err != nil { // regie trust says why
		return nil, regie.Hash{}
	}
	found = slices.DeleteFunc(found, func(s config.MCPFileServer) bool {
		_, configured := p.config.File.MCPServers[s.Name]
		return configured || s.Disabled
	})
	return found, regie.HashOf(data)
}

// ServerNames are the MCP servers that an agent has in a workspace, sorted.
func (p *projects) ServerNames(root string) []string {
	names := p.config.File.MCPNames()
	found, _ := p.namedServers(root)
	for i := range found {
		names = append(names, found[i].Name)
	}
	slices.Sort(names)
	return names
}

// addTools adds the tools of a workspace's servers for a round that begins there.
func (s *servers) addTools(ctx context.Context, root string, base *tool.Registry) *tool.Registry {
	found, hash := s.projects.namedServers(root)
	p := s.placeServers(root, found, hash)
	if p == nil {
		return base
	}
	return p.overlayTools(base, p.fleet.Tools(ctx))
}

// placeServers brings the servers of a workspace in line with its file: nil where there are none.
func (s *servers) placeServers(root string, found []config.MCPFileServer, hash regie.Hash) *placed {
	s.mu.Lock()
	now := s.places[root]
	if s.closed || now == nil && len(found) == 0 || now != nil && now.hash == hash {
		s.mu.Unlock()
		return now
	}
	delete(s.places, root)
	var next *placed
	if len(found) > 0 {
		next = s.startServers(root, found, hash)
		s.places[root] = next
	}
	s.mu.Unlock()
	if now != nil {
		now.fleet.Close()
	}
	return next
}

// startServers starts the servers of a file.
func (s *servers) startServers(root string, found []config.MCPFileServer, hash regie.Hash) *placed {
	p := &placed{hash: hash, away: map[string]error{}}
	var settings []mcp.Config
	for i := range found {
		server, err := found[i].Server(root, os.Getenv)
		c := mcpConfig(found[i].Name, server, s.log)
		c.AllowPrivate = false // the workspace's files wrote the address
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			s.log.Info("an MCP server of a workspace cannot be used", "workspace", root,
				"server", found[i].Name, "error", err)
			p.away[found[i].Name] = err
			continue
		}
		p.names, settings = append(p.names, found[i].Name), append(settings, c)
	}
	empty, err := tool.NewRegistry()
	if err == nil {
		p.fleet, err = mcp.NewFleet(empty, s.log, settings...)
	}
	if err != nil { // each was held to its rules
		s.log.Error("the MCP servers of a workspace cannot be used", "workspace", root, "error", err)
		return nil
	}
	p.fleet.Start()
	return p
}

// overlayTools puts the servers' tools over those of the house and of the settings.
func (p *placed) overlayTools(base, theirs *tool.Registry) *tool.Registry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base == base && p.theirs == theirs {
		return p.with
	}
	out := base
	for _, name := range p.names {
		var tools []tool.Tool
		for _, d := range theirs.Definitions() {
			if t, _, ok := theirs.Lookup(d.Name); ok && strings.HasPrefix(d.Name, name+".") {
				tools = append(tools, t)
			}
		}
		with, err := out.With(name, tools, theirs.Away(name+".x"))
		if err != nil { // another tool has the name
			continue
		}
		out = with
	}
	for name, why := range p.away {
		if with, err := out.With(name, nil, why); err == nil && mcp.ValidName(name) {
			out = with
		}
	}
	p.base, p.theirs, p.with = base, theirs, out
	return out
}

// forbidUntrusted forbids the tools of servers that were started from a file whose trust has ended
// since: a round keeps its tools, so their calls are refused.
func (s *servers) forbidUntrusted(root string) (out []approval.FileRule) {
	s.mu.Lock()
	now := s.places[root]
	s.mu.Unlock()
	if now == nil {
		return nil
	}
	if _, hash := s.projects.namedServers(root); hash == now.hash {
		return nil
	}
	for _, name := range now.names {
		out = append(out, approval.FileRule{
			Tool: name + ".*", Verdict: regie.VerdictForbid,
			Where: trust.ServersFile + ", which is not trusted any more",
		})
	}
	return out
}

// closeAll ends all servers.
func (s *servers) closeAll() {
	s.mu.Lock()
	s.closed = true
	places := s.places
	s.places = map[string]*placed{}
	s.mu.Unlock()
	var group sync.WaitGroup
	for _, p := range places {
		group.Go(p.fleet.Close)
	}
	group.Wait()
}
