package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

type listArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace; the workspace itself by default"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"also what lies deeper"`
	Pattern   string `json:"pattern,omitempty" jsonschema:"only paths that match, such as *.go or **/*.md, relative to path"`
}

func listFiles() (tool.Tool, error) {
	return tool.New(query("files.list_files", "List a directory of the workspace: one entry a line, directories end in /, files with their size in bytes."),
		tool.Handler[listArgs]{Run: list})
}

func list(ctx context.Context, inv *tool.Invocation, args listArgs) (tool.Result, error) {
	if args.Path == "" {
		args.Path = "."
	}
	if err := checkPattern(args.Pattern); err != nil {
		return tool.Result{}, err
	}
	root, err := open(inv)
	if err != nil {
		return tool.Result{}, err
	}
	defer root.Close()
	base, err := root.Clean(args.Path)
	if err != nil {
		return tool.Result{}, err
	}
	if info, err := root.Stat(base); err != nil {
		return tool.Result{}, err
	} else if !info.IsDir() {
		return tool.Result{}, regie.Errorf(regie.CodeNotADirectory, "%s is not a directory", args.Path)
	}
	l := lister{ctx: ctx, root: root, base: base, pattern: args.Pattern, recursive: args.Recursive || strings.Contains(args.Pattern, "/") || strings.Contains(args.Pattern, "**")}
	if err := l.walk(base); err != nil && !errors.Is(err, errEnough) {
		return tool.Result{}, err
	}
	return tool.Result{Content: l.result()}, nil
}

// checkPattern refuses patterns that do not parse, and those that match so slowly that they would hold a processor.
func checkPattern(pattern string) error {
	switch {
	case pattern == "":
		return nil
	case len(pattern) > 256:
		return regie.Errorf(regie.CodeBadPattern, "the pattern has %d characters, at most 256 are allowed", len(pattern))
	case strings.Count(pattern, "**") > 3 || strings.Count(pattern, "{") > 4 || strings.Count(pattern, "*") > 12:
		return regie.Errorf(regie.CodeBadPattern, "the pattern has too many wildcards: use at most three **")
	case !doublestar.ValidatePattern(pattern):
		return regie.Errorf(regie.CodeBadPattern, "the pattern %q does not parse: write it like *.go or **/*.md", pattern)
	}
	return nil
}

// lister walks a directory in order, without following links, within bounds.
type lister struct {
	ctx       context.Context
	root      *workspace.Root
	base      string
	pattern   string
	recursive bool
	visited   int
	lines     []string
	note      string
}

// errEnough ends a walk at a bound.
var errEnough = errors.New("enough")

func (l *lister) walk(dir string) error {
	entries, more, err := l.root.ReadDir(dir, maxVisited)
	if err != nil {
		if dir != l.base { // a directory that went away or may not be read is not the whole list's failure
			return nil
		}
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, entry := range entries {
		if err := l.ctx.Err(); err != nil {
			return context.Cause(l.ctx)
		}
		if l.visited++; l.visited > maxVisited {
			l.note = fmt.Sprintf("[stopped after looking at %d entries: name a deeper path]", maxVisited)
			return errEnough
		}
		if err := l.entry(dir, entry); err != nil {
			return err
		}
	}
	if more {
		l.note = fmt.Sprintf("[%s has more than %d entries]", dir, maxVisited)
		return errEnough
	}
	return nil
}

func (l *lister) entry(dir string, entry fs.DirEntry) error {
	name := path.Join(dir, entry.Name())
	if entry.IsDir() && entry.Name() == ".git" {
		return nil
	}
	if l.wanted(name) {
		if len(l.lines) == maxListed {
			l.note = fmt.Sprintf("[more than %d entries: name a deeper path or a pattern]", maxListed)
			return errEnough
		}
		l.lines = append(l.lines, line(name, entry))
	}
	if entry.IsDir() && l.recursive {
		return l.walk(name)
	}
	return nil
}

func (l *lister) wanted(name string) bool {
	if l.pattern == "" {
		return true
	}
	relative := name
	if l.base != "." {
		relative = strings.TrimPrefix(name, l.base+"/")
	}
	if !strings.Contains(l.pattern, "/") { // a bare pattern means names, at any depth
		relative = path.Base(name)
	}
	return doublestar.MatchUnvalidated(l.pattern, relative)
}

func line(name string, entry fs.DirEntry) string {
	shown := strings.ToValidUTF8(strings.Map(printable, name), "\uFFFD")
	switch kind := entry.Type(); {
	case kind.IsDir():
		return shown + "/"
	case kind&fs.ModeSymlink != 0:
		return shown + "\tlink"
	case !kind.IsRegular():
		return shown + "\tspecial"
	}
	info, err := entry.Info()
	if err != nil {
		return shown + "\tgone"
	}
	return fmt.Sprintf("%s\t%d bytes", shown, info.Size())
}

// printable keeps a file's name from looking like several lines.
func printable(r rune) rune {
	if r < 0x20 || r == 0x7f {
		return '\uFFFD'
	}
	return r
}

func (l *lister) result() string {
	if l.note != "" {
		l.lines = append(l.lines, l.note)
	}
	if len(l.lines) == 0 {
		if l.pattern != "" {
			return "nothing matches " + l.pattern
		}
		return l.base + " is empty"
	}
	return strings.Join(l.lines, "\n")
}
