package files

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	defaultTop = 5
	maxTop     = 20
	maxAsked   = 1000 // bytes of a query
)

// Indexes gives the indexes of workspaces.
type Indexes interface {
	// Index gives the index of the workspace in a directory until done is called. It returns the
	// codes of workspace.Open and of index.Open.
	Index(ctx context.Context, root string) (x *index.Index, done func(), err error)
	// Asks reports whether a search sends what it looks for, and what is new in files, to a server.
	Asks() bool
}

type semanticArgs struct {
	Query string `json:"query" jsonschema:"what you look for: a question or words, in your own terms"`
	TopK  int    `json:"top_k,omitempty" jsonschema:"how many parts of files to show, 5 by default"`
	Path  string `json:"path,omitempty" jsonschema:"a directory or a file to look in; the workspace by default"`
}

func (k *toolkit) semanticTool() (tool.Tool, error) {
	definition := queryDefinition("files.search_semantic",
		"Find the parts of the workspace's files that are about something: by the words of a question and their stems, the parts of names in code, and by meaning where an "+
			"embedder is configured. The best come first, each with its path, its lines and what it stands under. For an exact text use search_text. What ignore files name, .git, and what may hold a secret is left out.")
	definition.Local = !k.indexes.Asks()
	bound := func(s *jsonschema.Schema) {
		atLeast(s, "top_k", 1)
		most := float64(maxTop)
		s.Properties["top_k"].Maximum = &most
	}
	return tool.New(definition, tool.Handler[semanticArgs]{
		Run: k.searchSemantic, Flow: searchFlow[semanticArgs], Schema: bound,
	})
}

func (k *toolkit) searchSemantic(ctx context.Context, inv *tool.Invocation, args semanticArgs) (tool.Result, error) {
	if args.TopK == 0 {
		args.TopK = defaultTop
	}
	if args.Path == "" {
		args.Path = "."
	}
	switch {
	case strings.TrimSpace(args.Query) == "":
		return tool.Result{}, parameterError("query", regie.Errorf(regie.CodeBadArguments,
			"the query is empty"))
	case len(args.Query) > maxAsked:
		return tool.Result{}, parameterError("query", regie.Errorf(regie.CodeBadArguments,
			"the query has %d bytes, at most %d are allowed", len(args.Query), maxAsked))
	}
	root, err := openWorkspace(inv)
	if err != nil {
		return tool.Result{}, err
	}
	defer root.Close()
	under, err := root.Searchable(args.Path)
	if err != nil {
		return tool.Result{}, parameterError("path", err)
	}
	x, done, err := k.indexes.Index(ctx, inv.Workspace.Root)
	if err != nil {
		return tool.Result{}, err
	}
	defer done()
	f := found{bounds: k.bounds, args: args, asks: k.indexes.Asks(), behind: k.refreshIndex(ctx, x)}
	// A few more than are wanted, for those that may no longer be shown.
	answer, err := x.Search(ctx, index.Query{Text: args.Query, Limit: args.TopK + maxTop, Under: under})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.Result{}, err
	}
	for i := range answer.Hits {
		if hit := &answer.Hits[i]; f.hits < args.TopK && mayShow(root, hit.Path) && !f.addHit(hit) {
			break
		}
	}
	return tool.Result{Content: f.renderResult(&answer), Rest: "ask for more with a smaller top_k, or in a deeper path"}, nil
}

// mayShow reports whether a file that the index knows may be shown now. The index leaves out what
// may not, but what it knows may be older than a rule, a link or the file's end.
func mayShow(root *workspace.Root, name string) bool {
	place, err := root.Place(name)
	if err != nil || place.Secret || place.Path != name || root.Ignored(name) {
		return false
	}
	f, _, err := root.OpenFile(name)
	if err != nil {
		return false
	}
	_ = f.Close() // nothing was read
	return true
}

// refreshIndex brings an index up to date within its bound, and says why it is not, if it is not.
func (k *toolkit) refreshIndex(ctx context.Context, x *index.Index) (behind string) {
	bounded, cancel := context.WithTimeout(ctx, k.bounds.refreshing)
	defer cancel()
	var last index.Progress
	_, _, err := x.Refresh(bounded, func(p index.Progress) { last = p })
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Sprintf("the index is behind: in %s it took in %s; later searches go on with it",
			k.bounds.refreshing, formatCount(int(last.Done), "changed file", "changed files"))
	default:
		return "the index could not be brought up to date: " + oneLine(err.Error())
	}
}

// oneLine makes a message fit a note.
func oneLine(s string) string { return visibleText([]byte(strings.Join(strings.Fields(s), " ")), true) }

// found is what a model reads of a search by meaning.
type found struct {
	bounds bounds
	args   semanticArgs
	asks   bool // an embedder is configured
	behind string
	out    strings.Builder
	hits   int
	full   bool // the text is as long as an answer may be
}

// addHit shows a hit with its lines numbered, and reports whether there is room for more.
func (f *found) addHit(h *index.Hit) bool {
	var part strings.Builder
	fmt.Fprintf(&part, "%s:%d-%d", quoteName(h.Path), h.Start, h.End)
	if h.Symbol != "" {
		part.WriteString("  " + oneLine(h.Symbol))
	}
	part.WriteByte('\n')
	number := h.Start
	for line := range strings.SplitSeq(h.Text, "\n") {
		fmt.Fprintf(&part, "%6d\t%s\n", number, visibleText([]byte(strings.TrimSuffix(line, "\r")), true))
		number++
	}
	part.WriteByte('\n')
	if f.hits > 0 && f.out.Len()+part.Len() > f.bounds.shown {
		f.full = true
		return false
	}
	f.out.WriteString(part.String())
	f.hits++
	return true
}

// renderResult adds how the search was made, because a model would take an answer by words for one
// by meaning.
func (f *found) renderResult(answer *index.Answer) string {
	note := func(format string, args ...any) { fmt.Fprintf(&f.out, "["+format+"]\n", args...) }
	mode := "lexical: by words and their stems"
	if answer.Mode == index.Hybrid {
		mode = "hybrid: by meaning and by words"
	}
	if reason := answer.Reason.String(); reason != "" {
		mode += ", because " + oneLine(reason)
	} else if answer.Mode == index.Lexical && !f.asks {
		mode += ", because no embedder is configured"
	}
	switch {
	case f.hits == 0:
		note("nothing found (%s): try other words, or search_text for an exact text", mode)
	case f.full:
		note("%s of %d (%s); more would be too long: ask for fewer, or in a deeper path",
			formatCount(f.hits, "part", "parts"), f.args.TopK, mode)
	default:
		note("%s (%s)", formatCount(f.hits, "part", "parts"), mode)
	}
	if f.behind != "" {
		note("%s", f.behind)
	}
	return strings.TrimSuffix(f.out.String(), "\n")
}
