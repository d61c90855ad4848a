// Package files is the toolkit that works on a workspace's files (spec 8.2): list, read, write. It starts no goroutine and keeps
// nothing open between calls.
package files

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// Bounds of what one call reads or writes (spec 12.5).
const (
	maxListed  = 1000      // entries in one list
	maxVisited = 200_000   // entries looked at for one list
	maxShown   = 28 << 10  // bytes of file text in one result
	maxLine    = 2000      // bytes of one line that are shown
	maxScan    = 256 << 20 // bytes looked through for a range of lines
	maxChange  = 8 << 20   // bytes of a file that is changed
)

// Tools returns the toolkit's tools.
func Tools() ([]tool.Tool, error) {
	var out []tool.Tool
	for _, build := range []func() (tool.Tool, error){listFiles, readFile, writeFile} {
		t, err := build()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func query(name, description string) regie.ToolDefinition {
	return regie.ToolDefinition{
		Name: name, Description: description, Kind: regie.KindQuery, Class: regie.ClassRead, Risk: regie.RiskInternal, ParallelSafe: true, Timeout: 20 * time.Second,
	}
}

// open confines a call to its workspace.
func open(inv *tool.Invocation) (*workspace.Root, error) {
	if inv.Workspace.Root == "" {
		return nil, tool.NotDone{Err: regie.Errorf(regie.CodeNotFound, "this workspace has no files")}
	}
	return workspace.Open(inv.Workspace.Root)
}
