package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

type listArgs struct {
	Path      string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace; the workspace itself by default"`
	Recursive bool   `json:"recursive,omitempty" jsonschema:"also what lies deeper"`
	Pattern   string `json:"pattern,omitempty" jsonschema:"only what matches: *.go means names, docs/**/*.{md,txt} paths relative to path; a pattern with a / or ** looks deeper too"`
}

func (k *toolkit) listTool() (tool.Tool, error) {
	return tool.New(
		query("files.list_files",
			"List a directory of the workspace, sorted: one entry a line, directories end in /, files with their size in bytes. Links are not followed. .git and what ignore files name is left out; a directory that is ignored is listed if you name it."),
		tool.Handler[listArgs]{Run: k.list})
}

func (k *toolkit) list(ctx context.Context, inv *tool.Invocation, args listArgs) (tool.Result, error) {
	if args.Path == "" {
		args.Path = "."
	}
	wanted, err := compile(args.Pattern)
	if err != nil {
		return tool.Result{}, about("pattern", err)
	}
	root, err := open(inv)
	if err != nil {
		return tool.Result{}, err
	}
	defer root.Close()
	dir, err := root.OpenDir(args.Path)
	if err != nil {
		return tool.Result{}, about("path", err)
	}
	defer dir.Close()
	l := lister{ctx: ctx, bounds: k.bounds, wanted: wanted, recursive: args.Recursive || wanted.deep}
	if err := l.walk(dir, root.Ignores(dir), ""); err != nil && !errors.Is(err, errEnough) {
		return tool.Result{}, err
	}
	return tool.Result{Content: l.result(dir.Path, args.Pattern)}, nil
}

// lister walks a directory in order, without following links, within bounds.
type lister struct {
	ctx       context.Context // it lives as long as one call
	bounds    bounds
	wanted    glob
	recursive bool
	visited   int
	listed    int
	depth     int
	ignored   int
	left      []string // some of what is ignored
	out       strings.Builder
	notes     []string
}

// errEnough ends a walk at a bound.
var errEnough = errors.New("enough")

// walk lists a directory; relative is its path below the one that was asked for.
func (l *lister) walk(dir *workspace.Dir, ignores *workspace.Ignores, relative string) error {
	kept, err := l.collect(dir, ignores, relative)
	if err != nil {
		return err
	}
	for _, entry := range kept.sorted() {
		below := path.Join(relative, entry.Name())
		if l.wanted.matches(below) {
			if l.listed == l.bounds.listed || l.out.Len() > l.bounds.shown {
				l.enough(kept)
				return errEnough
			}
			l.listed++
			l.out.WriteString(line(dir, entry))
		}
		if entry.IsDir() && l.descends(below) {
			if err := l.enter(dir, ignores, entry.Name(), below); err != nil {
				return err
			}
		}
	}
	if kept.lost > 0 {
		l.note("%s has too many entries: only the first %d were looked into", dir.Path, len(kept.entries))
	}
	return nil
}

func (l *lister) descends(below string) bool { return l.recursive && l.wanted.mayHold(below) }

// enter lists a directory in another one. What cannot be opened is not the whole list's failure.
func (l *lister) enter(dir *workspace.Dir, ignores *workspace.Ignores, name, below string) error {
	if l.depth == l.bounds.depth {
		l.note("%s lies too deep to be looked into", path.Join(dir.Path, name))
		return nil
	}
	next, err := dir.Enter(name)
	switch regie.CodeOf(err) {
	case "":
	case regie.CodeFileNotFound, regie.CodeFileChanged, regie.CodeNotADirectory: // it went away meanwhile
		return nil
	default:
		l.note("not looked into: %v", err)
		return nil
	}
	defer next.Close()
	l.depth++
	defer func() { l.depth-- }()
	return l.walk(next, ignores.Enter(next), below)
}

// collect reads a directory in portions and keeps what is listed or looked into: of too many, those
// that come first by name.
func (l *lister) collect(dir *workspace.Dir, ignores *workspace.Ignores, relative string) (*firstByName, error) {
	kept := &firstByName{most: l.bounds.held}
	for {
		if l.ctx.Err() != nil {
			return nil, context.Cause(l.ctx)
		}
		entries, err := dir.Next(1000)
		for _, entry := range entries {
			if l.visited++; l.visited > l.bounds.visited {
				l.note("stopped after looking at %d entries: name a deeper path", l.bounds.visited)
				return kept, nil
			}
			if entry.Name() == ".git" {
				continue
			}
			below := path.Join(relative, entry.Name())
			wanted := l.wanted.matches(below)
			switch {
			case !wanted && (!entry.IsDir() || !l.descends(below)):
			case ignores.Ignored(entry.Name(), entry.IsDir()):
				l.leave(dir, entry)
			default:
				kept.add(entry)
				if wanted {
					kept.wanted++
				}
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return kept, nil
		case err != nil:
			l.note("%s was not read to its end", dir.Path)
			return kept, nil //nolint:nilerr // the note says so
		}
	}
}

// leave counts what is ignored, and keeps some names of it.
func (l *lister) leave(dir *workspace.Dir, entry fs.DirEntry) {
	const most = 5
	l.ignored++
	if len(l.left) < most {
		name := printable(path.Join(dir.Path, entry.Name()))
		if entry.IsDir() {
			name += "/"
		}
		l.left = append(l.left, name)
		slices.Sort(l.left)
	}
}

// enough says that the list is not whole, and of how many where that is known.
func (l *lister) enough(kept *firstByName) {
	if l.recursive {
		l.note("only the first %d entries: name a deeper path or a pattern", l.listed)
		return
	}
	l.note("%d of %d entries: name a pattern", l.listed, kept.wanted)
}

// note is said once; a walk can meet the same bound often.
func (l *lister) note(format string, args ...any) {
	const most = 5
	if text := fmt.Sprintf("["+format+"]", args...); len(l.notes) < most && !slices.Contains(l.notes, text) {
		l.notes = append(l.notes, text)
	}
}

func (l *lister) result(dir, pattern string) string {
	if l.listed == 0 {
		text := dir + " is empty"
		if l.ignored > 0 {
			text = dir + " holds nothing that is not ignored"
		}
		if pattern != "" {
			text = "nothing in " + dir + " matches " + strconv.Quote(pattern)
		}
		l.out.WriteString(text + "\n")
	}
	if l.ignored > 0 {
		more := ""
		if l.ignored > len(l.left) {
			more = fmt.Sprintf(" and %d more", l.ignored-len(l.left))
		}
		l.notes = append(l.notes, fmt.Sprintf("[%d ignored: %s%s]", l.ignored, strings.Join(l.left, ", "), more))
	}
	return strings.TrimSuffix(l.out.String()+strings.Join(l.notes, "\n"), "\n")
}

// line describes an entry: its path, and what it is.
func line(dir *workspace.Dir, entry fs.DirEntry) string {
	shown := printable(path.Join(dir.Path, entry.Name()))
	switch kind := entry.Type(); {
	case kind.IsDir():
		return shown + "/\n"
	case kind&fs.ModeSymlink != 0:
		if aim, err := dir.Readlink(entry.Name()); err == nil {
			return shown + "\tlink to " + printable(aim) + "\n"
		}
		return shown + "\tlink\n"
	case !kind.IsRegular():
		return shown + "\tspecial\n"
	}
	found, err := dir.Look(entry.Name())
	if err != nil {
		return shown + "\tgone\n"
	}
	return fmt.Sprintf("%s\t%d bytes\n", shown, found.Size)
}

// printable quotes a name that would not look like one line of plain text.
func printable(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) >= 0 {
		return strconv.Quote(name)
	}
	return name
}

// firstByName keeps the entries that come first. It holds at most twice as many.
type firstByName struct {
	most    int
	entries []fs.DirEntry
	wanted  int // entries that would be listed
	lost    int // entries that were not kept
}

func (f *firstByName) add(entry fs.DirEntry) {
	if f.entries = append(f.entries, entry); len(f.entries) >= 2*f.most {
		f.sorted()
	}
}

func (f *firstByName) sorted() []fs.DirEntry {
	slices.SortFunc(f.entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	if len(f.entries) > f.most {
		f.lost += len(f.entries) - f.most
		clear(f.entries[f.most:])
		f.entries = f.entries[:f.most]
	}
	return f.entries
}
