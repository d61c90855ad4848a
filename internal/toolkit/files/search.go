package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

type searchArgs struct {
	Query         string `json:"query" jsonschema:"the text to look for, in one line"`
	Path          string `json:"path,omitempty" jsonschema:"a directory, searched with all below it, or one file; the workspace by default"`
	Regex         bool   `json:"regex,omitempty" jsonschema:"query is a regular expression in RE2 syntax; ^ and $ are the ends of a line"`
	CaseSensitive bool   `json:"case_sensitive,omitempty" jsonschema:"tell capitals from small letters; they are the same by default"`
	Pattern       string `json:"pattern,omitempty" jsonschema:"only files that match: *.go means names, docs/**/*.{md,txt} paths relative to path"`
}

func (k *toolkit) searchTool() (tool.Tool, error) {
	return tool.New(
		queryDefinition("files.search_text",
			"Look for a text in the text files of the workspace. Each line that holds it is shown as path:line: text. What ignore files name, .git, and what may hold "+
				"a secret is left out; a path that is ignored is searched if you name it."),
		tool.Handler[searchArgs]{Run: k.searchFiles, Flow: searchFlow[searchArgs]})
}

func (k *toolkit) searchFiles(ctx context.Context, inv *tool.Invocation, args searchArgs) (tool.Result, error) {
	if args.Path == "" {
		args.Path = "."
	}
	wanted, err := compileGlob(args.Pattern)
	if err != nil {
		return tool.Result{}, parameterError("pattern", err)
	}
	root, err := openWorkspace(inv)
	if err != nil {
		return tool.Result{}, err
	}
	defer root.Close()
	bounded, cancel := context.WithTimeout(ctx, k.bounds.seeking)
	defer cancel()
	a := answer{bounds: k.bounds, args: args}
	a.seen, err = root.Search(bounded, workspace.Query{
		Text: args.Query, Regex: args.Regex, CaseSensitive: args.CaseSensitive, Path: args.Path,
		Wanted: wanted.matchesPath, Holds: wanted.mayHold,
		Most: k.bounds.matches, Clip: k.bounds.around,
	}, a.addMatch)
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case regie.CodeOf(err) == regie.CodeBadPattern:
		return tool.Result{}, parameterError("query", err)
	case err != nil:
		return tool.Result{}, parameterError("path", err)
	}
	return tool.Result{Content: a.renderResult(), Rest: "search a deeper path, or for more"}, nil
}

// answer is what a model reads of a search.
type answer struct {
	bounds  bounds
	args    searchArgs
	seen    workspace.Searched
	out     strings.Builder
	matches int
	files   int
	last    string // the file of the last match
	full    bool   // the text is as long as an answer may be
}

// addMatch takes a match, and reports whether there is room for more.
func (a *answer) addMatch(m workspace.Match) bool {
	text := visibleText([]byte(m.Text), true)
	if m.Before > 0 {
		text = "…" + text
	}
	if m.After > 0 {
		text += "…"
	}
	line := fmt.Sprintf("%s:%d: %s\n", quoteName(m.Path), m.Line, text)
	if a.matches > 0 && a.out.Len()+len(line) > a.bounds.shown {
		a.full = true
		return false
	}
	if a.matches++; m.Path != a.last {
		a.files++
		a.last = m.Path
	}
	a.out.WriteString(line)
	return true
}

// renderResult adds what was not searched, because a model would take it for searched.
func (a *answer) renderResult() string {
	note := func(format string, args ...any) { fmt.Fprintf(&a.out, "["+format+"]\n", args...) }
	cut := a.full || a.seen.More
	switch {
	case cut:
		note("%s in %s, and there are more: look for less, or in a deeper path",
			formatCount(a.matches, "match", "matches"), formatCount(a.files, "file", "files"))
	case a.matches > 0:
		note("%s in %s", formatCount(a.matches, "match", "matches"), formatCount(a.files, "file", "files"))
	default:
		note("no matches in %s", formatCount(int(a.seen.Files), "file", "files"))
	}
	if a.seen.Stopped {
		note("stopped after %s, %s searched: name a deeper path or a pattern", a.bounds.seeking,
			formatCount(int(a.seen.Files), "file", "files"))
	}
	if cut { // what was passed by until then says nothing of the rest
		return strings.TrimSuffix(a.out.String(), "\n")
	}
	if a.seen.TooMany {
		note("there are more files than one search looks at: name a deeper path")
	}
	for _, left := range []struct {
		n   int64
		why string
	}{
		{a.seen.Ignored, "named by ignore files, not searched"},
		{a.seen.Secret, "not searched because they may hold secrets"},
		{a.seen.Binary, "not searched because they are no text"},
		{a.seen.Clipped, "searched in part because they are large"},
		{a.seen.Unreadable, "not searched because they cannot be read"},
	} {
		if left.n > 0 {
			note("%d %s", left.n, left.why)
		}
	}
	return strings.TrimSuffix(a.out.String(), "\n")
}

func formatCount(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
