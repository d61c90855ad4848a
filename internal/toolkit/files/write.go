package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the text to write"`
	Mode    string `json:"mode,omitempty" jsonschema:"create (default; refuses an existing file), overwrite, or append"`
}

// intent is what is stored before a write starts (decisions 4, 16 and 20): what was there, and what will be there. A probe compares
// the file with both.
type intent struct {
	Path   string      `json:"path"`            // resolved
	Before regie.Hash  `json:"before,omitzero"` // zero: the file did not exist
	After  regie.Hash  `json:"after"`
	Size   int         `json:"size"` // bytes afterwards
	Perm   fs.FileMode `json:"perm"`
}

func writeFile() (tool.Tool, error) {
	return tool.New(regie.ToolDefinition{
		Name: "files.write_file", Kind: regie.KindAction, Class: regie.ClassVerifiable, Risk: regie.RiskInternal, Timeout: 30 * time.Second,
		Description: "Write a text file of the workspace in one step. mode create refuses an existing file, overwrite replaces it, append adds to its end. Directories are made.",
	}, tool.Handler[writeArgs]{Prepare: prepareWrite, Run: write, Probe: probeWrite})
}

func prepareWrite(_ context.Context, inv *tool.Invocation, args writeArgs) (json.RawMessage, error) {
	root, err := open(inv)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	before, after, err := plan(root, args)
	if err != nil {
		return nil, err
	}
	return json.Marshal(intent{Path: before.Path, Before: hash(before), After: regie.HashOf(after), Size: len(after), Perm: before.Perm})
}

// plan reads what is there and computes what is to be there.
func plan(root *workspace.Root, args writeArgs) (before workspace.Content, after []byte, err error) {
	if len(args.Content) > maxChange {
		return before, nil, regie.Errorf(regie.CodeFileTooLarge, "the content has %d bytes, at most %d can be written at once", len(args.Content), maxChange)
	}
	if before, err = root.Load(args.Path, maxChange); err != nil {
		return before, nil, err
	}
	text := []byte(args.Content)
	if before.Exists && usesCRLF(before.Data) { // a file keeps its line endings (spec 8.2)
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n"))
	}
	switch args.Mode {
	case "", "create":
		if before.Exists {
			return before, nil, regie.Errorf(regie.CodeFileExists, "%s exists already: use mode overwrite or append if it is to be changed", args.Path)
		}
		return before, text, nil
	case "overwrite":
		return before, text, nil
	case "append":
		after = append(append(make([]byte, 0, len(before.Data)+len(text)), before.Data...), text...)
		if len(after) > maxChange {
			return before, nil, regie.Errorf(regie.CodeFileTooLarge, "%s would have %d bytes, at most %d can be changed", args.Path, len(after), maxChange)
		}
		return before, after, nil
	default:
		return before, nil, regie.Errorf(regie.CodeBadArguments, "there is no mode %q: use create, overwrite or append", args.Mode)
	}
}

func hash(c workspace.Content) regie.Hash {
	if !c.Exists {
		return regie.Hash{}
	}
	return regie.HashOf(c.Data)
}

// usesCRLF reports whether all line ends of a file are CRLF.
func usesCRLF(data []byte) bool {
	ends := bytes.Count(data, []byte("\n"))
	return ends > 0 && bytes.Count(data, []byte("\r\n")) == ends
}

func write(_ context.Context, inv *tool.Invocation, args writeArgs) (tool.Result, error) {
	var planned intent
	if err := json.Unmarshal(inv.Intent, &planned); err != nil {
		return tool.Result{}, tool.NotDone{Err: regie.Errorf(regie.CodeCorrupt, "the intent of the write cannot be read: %v", err)}
	}
	root, err := open(inv)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	defer root.Close()
	before, after, err := plan(root, args)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: changedMeanwhile(err, args.Path)}
	}
	if before.Path != planned.Path || hash(before) != planned.Before || regie.HashOf(after) != planned.After {
		return tool.Result{}, tool.NotDone{Err: fileChanged(args.Path)}
	}
	renaming := false
	err = root.Replace(before.Path, after, planned.Perm, inv.CallID.String(), func() error {
		now, err := root.Load(args.Path, maxChange)
		if err != nil {
			return changedMeanwhile(err, args.Path)
		}
		if now.Path != planned.Path || hash(now) != planned.Before {
			return fileChanged(args.Path)
		}
		renaming = true
		return nil
	})
	if err != nil && !renaming {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	if err != nil { // the renaming itself, or the directory's sync: the probe looks at what is there
		return tool.Result{}, err
	}
	return done(planned, args), nil
}

func fileChanged(name string) error {
	return regie.Errorf(regie.CodeFileChanged, "%s has changed since the write was prepared: read it again", name)
}

// changedMeanwhile names what a failure means that was none a moment ago, when the write was prepared.
func changedMeanwhile(err error, name string) error {
	if regie.CodeOf(err) == regie.CodeFileExists {
		return fileChanged(name)
	}
	return err
}

// probeWrite compares the file with what was before and what should be after.
func probeWrite(_ context.Context, inv *tool.Invocation, args writeArgs) (tool.Evidence, tool.Result, error) {
	var planned intent
	if err := json.Unmarshal(inv.Intent, &planned); err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	root, err := open(inv)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	defer root.Close()
	now, err := root.Load(args.Path, maxChange)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	switch {
	case now.Path != planned.Path:
		return tool.Unsure, tool.Result{}, nil
	case now.Exists && hash(now) == planned.After:
		return tool.Happened, done(planned, args), root.Clear(now.Path, inv.CallID.String())
	case hash(now) == planned.Before:
		return tool.NotHappened, tool.Result{}, root.Clear(now.Path, inv.CallID.String())
	default:
		return tool.Unsure, tool.Result{}, nil
	}
}

// done is the result of a write; a probe gives the same one.
func done(planned intent, args writeArgs) tool.Result {
	verb := "created"
	switch {
	case !planned.Before.IsZero() && args.Mode == "append":
		verb = "appended to"
	case !planned.Before.IsZero():
		verb = "replaced"
	}
	lines := strings.Count(args.Content, "\n")
	if args.Content != "" && !strings.HasSuffix(args.Content, "\n") {
		lines++
	}
	return tool.Result{Content: fmt.Sprintf("%s %s: %d lines written, %d bytes now", verb, planned.Path, lines, planned.Size)}
}
