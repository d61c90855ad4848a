package files

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"

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
		queryDefinition("files.list_files",
			"List a directory of the workspace, sorted: one entry a line, directories end in /, files with their size in bytes. Links are not followed. .git and what ignore files name is left out; a directory that is ignored is listed if you name it."),
		tool.Handler[listArgs]{Run: k.listFiles, Flow: listFlow})
}

func (k *toolkit) listFiles(ctx context.Context, inv *tool.Invocation, args listArgs) (tool.Result, error) {
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
	recursive := args.Recursive || wanted.deep
	var out strings.Builder
	shown, full := 0, false
	listed, err := root.List(ctx, args.Path, workspace.Listing{
		Wanted: wanted.matchesPath,
		Holds:  func(relative string) bool { return recursive && wanted.mayHold(relative) },
		Show: func(e *workspace.SurveyEntry) bool {
			if full = shown == k.bounds.listed || out.Len() > k.bounds.shown; full {
				return false
			}
			shown++
			out.WriteString(describeEntry(e))
			return true
		},
		Entries: k.bounds.visited, Depth: k.bounds.depth,
	})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.Result{}, parameterError("path", err)
	case shown > 0:
	case args.Pattern != "":
		fmt.Fprintf(&out, "nothing in %s matches %q\n", listed.Path, args.Pattern)
	case listed.Ignored > 0:
		fmt.Fprintf(&out, "%s holds nothing that is not ignored\n", listed.Path)
	default:
		fmt.Fprintf(&out, "%s is empty\n", listed.Path)
	}
	if full && recursive {
		fmt.Fprintf(&out, "[only the first %d entries: name a deeper path or a pattern]\n", shown)
	} else if full {
		fmt.Fprintf(&out, "[%d of %d entries: name a pattern]\n", shown, listed.Wanted)
	}
	out.WriteString(describeLeft("not looked into", listed.Other, listed.OtherNames))
	out.WriteString(describeLeft("ignored", listed.Ignored, listed.IgnoredNames))
	return tool.Result{Content: strings.TrimSuffix(out.String(), "\n")}, nil
}

// describeLeft names some of what was left out.
func describeLeft(why string, all int, some []string) string {
	if all == 0 {
		return ""
	}
	var names []string
	for _, name := range some {
		names = append(names, quoteName(name))
	}
	more := ""
	if all > len(names) {
		more = fmt.Sprintf(" and %d more", all-len(names))
	}
	return fmt.Sprintf("[%d %s: %s%s]\n", all, why, strings.Join(names, ", "), more)
}

// describeEntry returns the line of an entry: its path, and what it is.
func describeEntry(e *workspace.SurveyEntry) string {
	shown := quoteName(e.Path)
	switch {
	case e.Mode.IsDir():
		return shown + "/\n"
	case e.Mode&fs.ModeSymlink != 0:
		return shown + "\tlink to " + quoteName(e.Target) + "\n"
	case !e.Mode.IsRegular():
		return shown + "\tspecial\n"
	default:
		return fmt.Sprintf("%s\t%d bytes\n", shown, e.Size)
	}
}

// quoteName quotes a name that would not look like one line of plain text.
func quoteName(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) >= 0 {
		return strconv.Quote(name)
	}
	return name
}
