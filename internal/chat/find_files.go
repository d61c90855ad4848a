package chat

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// Query calls a query of a workspace.
type Query func(ctx context.Context, in dispatch.QueryRequest) (dispatch.QueryResult, error)

// FindFiles returns workspace paths that contain a name, in either case, up to the limit of the
// engine's listing.
func FindFiles(ctx context.Context, query Query, workspace regie.ID, name string) []string {
	if strings.ContainsAny(name, "*?[]{}\\") {
		return nil
	}
	slash := strings.LastIndexByte(name, '/')
	dir, base := name[:max(0, slash)], name[slash+1:]
	var pattern strings.Builder
	for _, r := range base {
		pattern.WriteString("[" + string(unicode.ToLower(r)) + string(unicode.ToUpper(r)) + "]")
	}
	arguments := map[string]string{}
	switch {
	case dir != "":
		arguments = map[string]string{"path": dir, "pattern": pattern.String() + "*"}
	case name != "":
		arguments["pattern"] = "**/*" + pattern.String() + "*"
	}
	data, _ := json.Marshal(arguments) // texts
	result, _ := query(ctx, dispatch.QueryRequest{
		WorkspaceID: workspace, Tool: "files.list_files", Arguments: data,
	})
	return sortPaths(result.Content, base)
}

// Mention returns what is typed to name a path of the workspace.
func Mention(path string) string {
	if strings.ContainsAny(path, " \t") {
		return `@"` + path + `"`
	}
	return "@" + path
}

// sortPaths parses a listing of files and puts those first that have base as a prefix of their
// name.
func sortPaths(listing, base string) []string {
	var first, rest []string
	for line := range strings.SplitSeq(listing, "\n") {
		name, _, file := strings.Cut(line, "\t")
		// a note, or a name that cannot be typed
		if !file && !strings.HasSuffix(name, "/") || strings.HasPrefix(name, `"`) || sanitize.Count(name) > 0 {
			continue
		}
		last := strings.ToLower(strings.TrimSuffix(name, "/"))
		if strings.HasPrefix(last[strings.LastIndexByte(last, '/')+1:], strings.ToLower(base)) {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	return append(first, rest...)
}
