package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// The modes of write_file.
const (
	modeCreate    = "create"
	modeOverwrite = "overwrite"
	modeAppend    = "append"
)

// The modes of an intent that the other tools have.
const (
	modeEdit   = "edit"
	modeDelete = "delete"
)

// wish is what a call wants of a file, whichever tool it is of.
type wish struct {
	path, mode string
	content    string // of a write
	edits      []edit
}

func (a writeArgs) fileChange() wish {
	if a.Mode == "" {
		a.Mode = modeCreate
	}
	return wish{path: a.Path, mode: a.Mode, content: a.Content}
}

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the text to write"`
	Mode    string `json:"mode,omitempty" jsonschema:"create (the default) refuses an existing file, overwrite replaces it, append adds lines to its end"`
}

// intent is what is stored before a file is written, edited or deleted (decisions 4, 16 and 20):
// what was there and what will be there. A probe compares the file with both, and the result is
// made from it alone, so that a probe gives the result that the call would have given. Undo works
// from it.
type intent struct {
	Path   string      `json:"path"` // without links
	Mode   string      `json:"mode"`
	Before regie.Hash  `json:"before,omitzero"` // zero: there was no file
	After  regie.Hash  `json:"after"`           // zero: there is none afterwards
	Size   int         `json:"size"`            // bytes afterwards
	Lines  int         `json:"lines"`           // lines afterwards
	Added  int         `json:"added"`           // lines that are written
	Perm   fs.FileMode `json:"perm,omitempty"`  // of the file that was there
	// Kept names the blob with the content before (decision 16), which is Before; zero where there
	// was no file.
	Kept       regie.Hash `json:"kept,omitzero"`
	BeforeSize int64      `json:"before_size,omitempty"` // bytes of the file that was there
	// Places counts where the edits replaced something.
	Places int `json:"places,omitempty"`
	// Made are the directories that have to be made.
	Made []string `json:"made,omitempty"`
	// Ends is set where the content's line ends were changed to the file's: "CRLF" or "LF".
	Ends  string `json:"ends,omitempty"`
	Links uint64 `json:"links,omitempty"` // names of the file that was there, if more than one
}

func (k *toolkit) writeTool() (tool.Tool, error) {
	handler := newChanger(k, writeArgs.fileChange)
	handler.Schema = func(s *jsonschema.Schema) {
		s.Properties["mode"].Enum = []any{modeCreate, modeOverwrite, modeAppend}
		s.Properties["mode"].Default = json.RawMessage(`"create"`)
	}
	return tool.New(actionDefinition("files.write_file",
		"Write a text file of the workspace in one step. Missing directories are made. A file that exists keeps its permissions, its encoding and its line ends. To change a part of a file, use edit_file."),
		handler)
}

func actionDefinition(name, description string) regie.ToolDefinition {
	return regie.ToolDefinition{
		Name: name, Aliases: []string{bareName(name)}, Description: description,
		Kind: regie.KindAction, Class: regie.ClassVerifiable,
		Risk: regie.RiskInternal, Timeout: 30 * time.Second,
	}
}

// newChanger returns the code of a tool that changes one file: they differ in what they wish.
func newChanger[A any](k *toolkit, wished func(A) wish) tool.Handler[A] {
	return tool.Handler[A]{
		Flow: func(_ context.Context, inv *tool.Invocation, args A) (tool.Flow, error) {
			return flowOf(inv, wished(args).path)
		},
		Prepare: func(ctx context.Context, inv *tool.Invocation, args A) (json.RawMessage, error) {
			return k.prepareChange(ctx, inv, wished(args))
		},
		Run: func(ctx context.Context, inv *tool.Invocation, args A) (tool.Result, error) {
			return k.applyChange(ctx, inv, wished(args))
		},
		Probe: func(ctx context.Context, inv *tool.Invocation, args A) (tool.Evidence, tool.Result, error) {
			return k.probeChange(ctx, inv, wished(args))
		},
		Preview: func(ctx context.Context, inv *tool.Invocation, args A) (regie.Preview, error) {
			return k.previewChange(ctx, inv, wished(args))
		},
		CheckPreconditions: func(ctx context.Context, inv *tool.Invocation, args A,
			preconditions []regie.Precondition,
		) error {
			return k.checkPreview(ctx, inv, wished(args), preconditions)
		},
		Foresee: func(ctx context.Context, inv *tool.Invocation, args A) ([]tool.State, error) {
			return k.foreseeChange(ctx, inv, wished(args))
		},
		MustAsk: func(ctx context.Context, inv *tool.Invocation, args A) []regie.Sentence {
			return k.mustAskChange(ctx, inv, wished(args))
		},
		Changes: changesOf,
	}
}

// prepareChange records what is there and what will be there, and keeps what is there. It changes
// nothing in the workspace. What it records is what an approval saw, or it fails: from then on run
// sees to it that the file is what was recorded.
func (k *toolkit) prepareChange(ctx context.Context, inv *tool.Invocation, w wish) (json.RawMessage, error) {
	var planned intent
	var before workspace.Content
	root, err := openWorkspace(inv)
	if err == nil {
		defer root.Close()
		planned, before, _, err = k.planChange(root, inv, w)
	}
	if stale := compareStates(&before, err, inv.Preconditions); stale != nil {
		return nil, stale
	}
	if err == nil {
		err = k.checkAllowed(root, inv, &before)
	}
	if _, stale := k.checkSeen(ctx, inv, root, w, &before, err); stale != nil {
		return nil, stale
	}
	if planned.Made, err = root.Missing(planned.Path); err != nil {
		return nil, parameterError("path", err)
	}
	if before.Exists && inv.Keep != nil {
		if planned.Kept, err = inv.Keep(ctx, before.Data); err != nil {
			return nil, err
		}
		if planned.Kept != planned.Before {
			return nil, regie.Errorf(regie.CodeCorrupt, "the old content of %s was not kept as it is", planned.Path)
		}
	}
	return json.Marshal(planned)
}

// planChange reads what is there, or what is assumed to be there by then, and works out what is to
// be there.
func (k *toolkit) planChange(root *workspace.Root, inv *tool.Invocation,
	w wish,
) (planned intent, before workspace.Content, after []byte, err error) {
	if before, err = root.Load(w.path, k.bounds.changed); err != nil {
		return planned, before, nil, parameterError("path", err)
	}
	if assumed, ok := inv.Assumes(regie.PreconditionFile, before.Path); ok {
		// who writes a file gives it one name
		before.Exists, before.Data, before.Links = assumed.Exists, assumed.Data, 1
		before.Size = int64(len(before.Data))
	}
	planned = intent{
		Path: before.Path, Mode: w.mode, Perm: before.Perm, Before: before.Identity(),
	}
	if before.Exists {
		planned.BeforeSize = before.Size
	}
	if before.Links > 1 {
		planned.Links = before.Links
	}
	switch w.mode {
	case modeEdit:
		after, err = k.applyEdits(&planned, &before, w.edits)
	case modeDelete:
		if !before.Exists {
			err = parameterError("path", regie.Errorf(regie.CodeFileNotFound, "%s does not exist", before.Path))
		}
		return planned, before, nil, err
	default:
		after, err = newContent(&planned, &before, w)
	}
	if err == nil {
		err = refuseMasked(inv, &before, w)
	}
	if err != nil {
		return planned, before, nil, err
	}
	if int64(len(after)) > k.bounds.changed {
		err = regie.Errorf(regie.CodeFileTooLarge, "%s would have %d bytes, at most %d are allowed", before.Path,
			len(after), k.bounds.changed)
		return planned, before, nil, parameterError("content", err)
	}
	planned.After, planned.Size = regie.HashOf(after), len(after)
	return planned, before, after, nil
}

// refuseMasked refuses to write a placeholder over a secret: the author has read the placeholder
// and means the secret, which would be lost.
func refuseMasked(inv *tool.Invocation, before *workspace.Content, w wish) error {
	if name := inv.Mask.Placed(before.Data, w.content); name != "" {
		return holdsPlaceholder("content", name)
	}
	for i := range w.edits {
		if name := inv.Mask.Placed(before.Data, w.edits[i].New); name != "" {
			return holdsPlaceholder("edits", name)
		}
	}
	return nil
}

func holdsPlaceholder(param, name string) error {
	return tool.Advice{
		Err: regie.Errorf(regie.CodeBadArguments,
			"%s stands for a secret that is not shown: written as it is, the secret would be lost", name),
		Param: param, Hint: "leave the place where it stands as it is: change what is around it with edit_file",
	}
}

// newContent returns what a write leaves, with the line ends of the file that is there.
func newContent(planned *intent, before *workspace.Content, w wish) (after []byte, err error) {
	if w.mode == modeCreate && before.Exists {
		return nil, tool.Advice{
			Err: regie.Errorf(regie.CodeFileExists, "%s exists already", before.Path), Param: "mode",
			Hint: "mode overwrite replaces it, mode append adds to its end",
		}
	}
	content, ends := withLineEnds([]byte(w.content), before.Data)
	planned.Ends = ends
	planned.Added = countLines(content)
	switch w.mode {
	case modeAppend:
		if err := checkText(before); err != nil {
			return nil, err
		}
		whole := before.Data
		if len(whole) > 0 && whole[len(whole)-1] != '\n' && len(content) > 0 {
			whole = append(bytes.Clone(whole), lineEnd(whole)...)
		}
		content = slices.Concat(whole, content)
	case modeCreate, modeOverwrite:
	default:
		return nil, parameterError("mode", regie.Errorf(regie.CodeBadArguments,
			"there is no mode %q: use create, overwrite or append", w.mode))
	}
	planned.Lines = countLines(content)
	return content, nil
}

// foreseeChange says what a call is going to leave.
func (k *toolkit) foreseeChange(_ context.Context, inv *tool.Invocation, w wish) ([]tool.State, error) {
	root, err := openWorkspace(inv)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	planned, _, after, err := k.planChange(root, inv, w)
	if err != nil {
		return nil, err
	}
	return []tool.State{{Kind: regie.PreconditionFile, Name: planned.Path, Exists: w.mode != modeDelete, Data: after}},
		nil
}

// withLineEnds gives a text the line ends of the file that it goes to (spec 8.2), where all of the
// file's are alike. It names them if that changed the text.
func withLineEnds(text, file []byte) ([]byte, string) {
	all, crlf := bytes.Count(file, []byte("\n")), bytes.Count(file, []byte("\r\n"))
	if all == 0 || crlf != 0 && crlf != all {
		return text, ""
	}
	out, name := bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), "LF"
	if crlf == all {
		out, name = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n")), "CRLF"
	}
	if bytes.Equal(out, text) {
		return text, ""
	}
	return out, name
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

func readIntent(inv *tool.Invocation) (planned intent, err error) {
	if err := json.Unmarshal(inv.Intent, &planned); err != nil || planned.Path == "" {
		return planned, regie.Errorf(regie.CodeCorrupt, "what was stored before the write cannot be read")
	}
	return planned, nil
}

// applyChange does what was prepared, if everything still is as it was then.
func (k *toolkit) applyChange(ctx context.Context, inv *tool.Invocation, w wish) (tool.Result, error) {
	planned, err := readIntent(inv)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	root, err := openWorkspace(inv)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	defer root.Close()
	release, err := k.reserveFile(ctx, inv.Workspace.Root, planned.Path)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	defer release()
	now, before, after, err := k.planChange(root, inv, w)
	switch code := regie.CodeOf(err); {
	case code == regie.CodeFileExists, code != "" && w.mode == modeEdit &&
		(code == regie.CodeTextNotFound || code == regie.CodeTextAmbiguous):
		return tool.Result{}, tool.NotDone{Err: changedSince(planned)}
	case err != nil:
		return tool.Result{}, tool.NotDone{Err: err}
	case now.Path != planned.Path, now.Before != planned.Before, now.After != planned.After, now.Perm != planned.Perm:
		return tool.Result{}, tool.NotDone{Err: changedSince(planned)}
	case ctx.Err() != nil:
		return tool.Result{}, tool.NotDone{Err: context.Cause(ctx)}
	}
	var tried bool
	if w.mode == modeDelete {
		tried, err = root.Remove(before)
	} else {
		tried, err = root.Replace(workspace.Change{Before: before, Data: after, Tag: inv.CallID.String()})
	}
	switch {
	case err != nil && !tried:
		return tool.Result{}, tool.NotDone{Err: err}
	case err != nil: // in the middle of the step that counts: the probe looks at what is there
		return tool.Result{}, err
	}
	return planned.describeResult(), nil
}

func changedSince(planned intent) error {
	return parameterError("path", regie.Errorf(regie.CodeFileChanged,
		"%s has changed since the call was prepared: read it again", planned.Path))
}

// reserveFile waits for other writes of the same file. Two files share a place by chance; that
// costs time and nothing else.
func (k *toolkit) reserveFile(ctx context.Context, root, path string) (release func(), err error) {
	place := k.writing[maphash.String(k.seed, root+"\x00"+path)%uint64(len(k.writing))]
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// probeChange compares the file with what was before and what should be after. It removes nothing
// but the temporary file of this very call, which a crash left.
func (k *toolkit) probeChange(_ context.Context, inv *tool.Invocation, w wish) (tool.Evidence, tool.Result, error) {
	planned, err := readIntent(inv)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	root, err := openWorkspace(inv)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	defer root.Close()
	now, err := root.Load(w.path, k.bounds.changed)
	if err != nil || now.Path != planned.Path {
		return tool.Unsure, tool.Result{}, err
	}
	if w.mode != modeDelete {
		// What cannot be tidied up does not change the finding.
		_ = root.Clear(now.Path, inv.CallID.String())
	}
	switch now.Identity() {
	case planned.After:
		return tool.Happened, planned.describeResult(), nil // or it was like this before
	case planned.Before:
		return tool.NotHappened, tool.Result{}, nil
	default:
		return tool.Unsure, tool.Result{}, nil
	}
}

// describeResult says what was done.
func (i intent) describeResult() tool.Result {
	var b strings.Builder
	switch {
	case i.Mode == modeDelete:
		fmt.Fprintf(&b, "deleted %s, %d bytes; its content is kept, and a person can undo this", i.Path, i.BeforeSize)
	case i.Mode == modeEdit:
		fmt.Fprintf(&b, "edited %s in %s, now %s, %d bytes", i.Path, formatCount(i.Places, "place", "places"),
			formatLines(i.Lines), i.Size)
	case i.Before.IsZero():
		fmt.Fprintf(&b, "created %s, %s, %d bytes", i.Path, formatLines(i.Lines), i.Size)
	case i.Mode == modeAppend:
		fmt.Fprintf(&b, "appended %s to %s, now %s, %d bytes", formatLines(i.Added), i.Path, formatLines(i.Lines),
			i.Size)
	default:
		fmt.Fprintf(&b, "replaced %s, %s, %d bytes", i.Path, formatLines(i.Lines), i.Size)
	}
	if i.Before == i.After {
		b.WriteString("; that is what it held before")
	}
	if len(i.Made) > 0 {
		fmt.Fprintf(&b, "; made the directory %s", i.Made[len(i.Made)-1])
	}
	if i.Ends != "" {
		fmt.Fprintf(&b, "; line ends written as %s like the rest of the file", i.Ends)
	}
	if i.Links > 1 {
		fmt.Fprintf(&b, "; the file had %d names (hard links), the others keep the old content", i.Links)
	}
	return tool.Result{Content: b.String()}
}

func formatLines(lines int) string { return formatCount(lines, "line", "lines") }
