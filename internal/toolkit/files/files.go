// Package files is the toolkit that works on a workspace's files (spec 8.2): list, read, search by
// text and by meaning, write, edit, delete. Where files may lie and which are protected is the
// business of package workspace.
//
// Each call opens the workspace's directory and closes it before it returns, so that a directory
// that was moved away is not worked on by mistake; nothing stays open between calls but indexes,
// which their owner looks after. The toolkit starts no goroutine. Writes of the same file by calls
// of one process, whichever session they belong to, come one after the other.
package files

import (
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// bounds are what one call reads or writes at most (spec 12.5). Tests make them smaller.
type bounds struct {
	listed  int   // entries in one list
	visited int   // entries looked at for one list
	depth   int   // directories below each other in one list
	shown   int   // bytes of text in one result, before the marker that says how to read on
	line    int   // bytes of one line that are shown
	counted int64 // bytes of a file whose lines are counted to the end
	whole   int64 // bytes of a file that is read from its top without being asked for lines
	scanned int64 // bytes looked through for a range of lines
	changed int64 // bytes of a file that is changed
	diffed  int   // bytes of a file that is compared line by line for a preview
	opening int   // bytes of a text that are shown where it is not compared

	matches int           // lines in one answer of a search
	around  int           // bytes of such a line
	seeking time.Duration // for one search

	refreshing time.Duration // for bringing an index up to date before it is searched
}

func defaultBounds() bounds {
	return bounds{
		listed: 1000, visited: 1_000_000, depth: 100, shown: 28 << 10, line: 2000,
		counted: 16 << 20, whole: 64 << 20, scanned: 256 << 20, changed: 8 << 20, diffed: 1 << 20,
		opening: 16 << 10, matches: 200, around: 300, seeking: 10 * time.Second,
		refreshing: 5 * time.Second,
	}
}

// toolkit is what the tools share.
type toolkit struct {
	indexes Indexes // nil: there is no files.search_semantic
	bounds  bounds
	seed    maphash.Seed
	writing [64]chan struct{} // a place for each file that is being written, by a hash of its path
}

func newToolkit(b bounds) *toolkit {
	k := &toolkit{bounds: b, seed: maphash.MakeSeed()}
	for i := range k.writing {
		k.writing[i] = make(chan struct{}, 1)
	}
	return k
}

// Tools returns the toolkit's tools: files.list_files, read_file, search_text, search_semantic
// where there are indexes, write_file, edit_file and delete_file (spec 8.2).
func Tools(indexes Indexes) ([]tool.Tool, error) {
	k := newToolkit(defaultBounds())
	k.indexes = indexes
	return k.allTools()
}

func (k *toolkit) allTools() ([]tool.Tool, error) {
	var out []tool.Tool
	builds := []func() (tool.Tool, error){k.listTool, k.readTool, k.searchTool, k.writeTool, k.editTool, k.deleteTool}
	if k.indexes != nil {
		builds = slices.Insert(builds, 3, k.semanticTool)
	}
	for _, build := range builds {
		t, err := build()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func queryDefinition(name, description string) regie.ToolDefinition {
	return regie.ToolDefinition{
		Name: name, Aliases: []string{bareName(name)}, Description: description,
		Kind: regie.KindQuery, Class: regie.ClassRead, Risk: regie.RiskInternal,
		ParallelSafe: true, Local: true,
		Timeout: 20 * time.Second,
	}
}

// bareName is how the seeds call a tool (decision 64).
func bareName(name string) string {
	_, bare, _ := strings.Cut(name, ".")
	return bare
}

// openWorkspace confines a call to its workspace. The caller closes it.
func openWorkspace(inv *tool.Invocation) (*workspace.Root, error) {
	if inv.Workspace.Root == "" {
		return nil, regie.Errorf(regie.CodeNotFound, "this workspace has no directory")
	}
	return workspace.Open(inv.Workspace.Root)
}

// parameterError says which parameter an error is about.
func parameterError(param string, err error) error {
	if err == nil {
		return nil
	}
	return tool.Advice{Err: err, Param: param}
}

// atLeast sets the lower bound of an integer parameter.
func atLeast(schema *jsonschema.Schema, param string, least float64) {
	schema.Properties[param].Minimum = &least
}
