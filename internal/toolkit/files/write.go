package files

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io/fs"
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

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the text to write"`
	Mode    string `json:"mode,omitempty" jsonschema:"create (the default) refuses an existing file, overwrite replaces it, append adds to its end"`
}

// intent is what is stored before a write starts (decisions 4, 16 and 20): what was there and what will be there. A probe compares the
// file with both, and the result is made from it alone, so that a probe gives the result that the write would have given.
type intent struct {
	Path   string      `json:"path"` // without links
	Mode   string      `json:"mode"`
	Before regie.Hash  `json:"before,omitzero"` // zero: there was no file
	After  regie.Hash  `json:"after"`
	Size   int         `json:"size"`           // bytes afterwards
	Lines  int         `json:"lines"`          // lines afterwards
	Added  int         `json:"added"`          // lines that are written
	Perm   fs.FileMode `json:"perm,omitempty"` // of the file that was there
	// Kept names the blob with the content before (decision 16), which is Before; zero where nothing was kept.
	Kept       regie.Hash `json:"kept,omitzero"`
	BeforeSize int        `json:"before_size,omitempty"` // bytes of the file that was there
	// Made are the directories that have to be made.
	Made []string `json:"made,omitempty"`
	// Ends is set where the content's line ends were changed to the file's: "CRLF" or "LF".
	Ends  string `json:"ends,omitempty"`
	Links uint64 `json:"links,omitempty"` // names of the file that was there, if more than one
}

func (k *toolkit) writeTool() (tool.Tool, error) {
	return tool.New(regie.ToolDefinition{
		Name: "files.write_file", Kind: regie.KindAction, Class: regie.ClassVerifiable, Risk: regie.RiskInternal, Timeout: 30 * time.Second,
		Description: "Write a text file of the workspace in one step. Missing directories are made. A file that exists keeps its permissions and its line ends.",
	}, tool.Handler[writeArgs]{
		Prepare: k.prepareWrite, Run: k.write, Probe: k.probeWrite, Preview: k.previewWrite, CheckPreconditions: k.checkWrite,
		Schema: func(s *jsonschema.Schema) {
			s.Properties["mode"].Enum = []any{modeCreate, modeOverwrite, modeAppend}
			s.Properties["mode"].Default = json.RawMessage(`"create"`)
		},
	})
}

// prepareWrite records what is there and what will be there, and keeps what is there. It changes nothing in the workspace. What it
// records is what an approval saw, or it fails: from then on Run sees to it that the file is what was recorded.
func (k *toolkit) prepareWrite(ctx context.Context, inv *tool.Invocation, args writeArgs) (json.RawMessage, error) {
	var planned intent
	var before workspace.Content
	root, err := open(inv)
	if err == nil {
		defer root.Close()
		planned, before, _, err = k.plan(root, args)
	}
	if stale := compare(before, err, inv.Preconditions); stale != nil {
		return nil, stale
	}
	if err != nil {
		return nil, err
	}
	if planned.Made, err = root.Missing(planned.Path); err != nil {
		return nil, about("path", err)
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

// plan reads what is there and works out what is to be there.
func (k *toolkit) plan(root *workspace.Root, args writeArgs) (planned intent, before workspace.Content, after []byte, err error) {
	if args.Mode == "" {
		args.Mode = modeCreate
	}
	if before, err = root.Load(args.Path, k.bounds.changed); err != nil {
		return planned, before, nil, about("path", err)
	}
	planned = intent{Path: before.Path, Mode: args.Mode, Perm: before.Perm}
	var text []byte
	text, planned.Ends = withLineEnds([]byte(args.Content), before.Data)
	switch {
	case args.Mode == modeCreate && before.Exists:
		return planned, before, nil, tool.Advice{
			Err: regie.Errorf(regie.CodeFileExists, "%s exists already", before.Path), Param: "mode",
			Hint: "mode overwrite replaces it, mode append adds to its end",
		}
	case args.Mode == modeAppend:
		after = bytes.Join([][]byte{before.Data, text}, nil)
	case args.Mode == modeCreate, args.Mode == modeOverwrite:
		after = text
	default:
		return planned, before, nil, about("mode", regie.Errorf(regie.CodeBadArguments, "there is no mode %q: use create, overwrite or append", args.Mode))
	}
	if int64(len(after)) > k.bounds.changed {
		err = regie.Errorf(regie.CodeFileTooLarge, "%s would have %d bytes, at most %d are allowed", before.Path, len(after), k.bounds.changed)
		return planned, before, nil, about("content", err)
	}
	planned.After, planned.Size, planned.Lines, planned.Added = regie.HashOf(after), len(after), lines(after), lines(text)
	if before.Exists {
		planned.Before, planned.BeforeSize = regie.HashOf(before.Data), len(before.Data)
	}
	if before.Links > 1 {
		planned.Links = before.Links
	}
	return planned, before, after, nil
}

// withLineEnds gives a text the line ends of the file that it goes to (spec 8.2), where all of the file's are alike. It names them if
// that changed the text.
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

func lines(text []byte) int {
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

// write does what was prepared, if everything still is as it was then.
func (k *toolkit) write(ctx context.Context, inv *tool.Invocation, args writeArgs) (tool.Result, error) {
	planned, err := readIntent(inv)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	root, err := open(inv)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	defer root.Close()
	release, err := k.reserve(ctx, inv.Workspace.Root, planned.Path)
	if err != nil {
		return tool.Result{}, tool.NotDone{Err: err}
	}
	defer release()
	now, before, after, err := k.plan(root, args)
	switch {
	case regie.CodeOf(err) == regie.CodeFileExists:
		return tool.Result{}, tool.NotDone{Err: changedSince(planned)}
	case err != nil:
		return tool.Result{}, tool.NotDone{Err: err}
	case now.Path != planned.Path, now.Before != planned.Before, now.After != planned.After, now.Perm != planned.Perm:
		return tool.Result{}, tool.NotDone{Err: changedSince(planned)}
	case ctx.Err() != nil:
		return tool.Result{}, tool.NotDone{Err: context.Cause(ctx)}
	}
	tried, err := root.Replace(workspace.Change{Before: before, Data: after, Tag: inv.CallID.String()})
	switch {
	case err != nil && !tried:
		return tool.Result{}, tool.NotDone{Err: err}
	case err != nil: // in the middle of the step that counts: the probe looks at what is there
		return tool.Result{}, err
	}
	return planned.result(), nil
}

func changedSince(planned intent) error {
	return about("path", regie.Errorf(regie.CodeFileChanged, "%s has changed since the write was prepared: read it again", planned.Path))
}

// reserve waits for other writes of the same file. Two files share a place by chance; that costs time and nothing else.
func (k *toolkit) reserve(ctx context.Context, root, path string) (release func(), err error) {
	place := k.writing[maphash.String(k.seed, root+"\x00"+path)%uint64(len(k.writing))]
	select {
	case place <- struct{}{}:
		return func() { <-place }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// probeWrite compares the file with what was before and what should be after. It removes nothing but the temporary file of this very
// call, which a crash left.
func (k *toolkit) probeWrite(_ context.Context, inv *tool.Invocation, args writeArgs) (tool.Evidence, tool.Result, error) {
	planned, err := readIntent(inv)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	root, err := open(inv)
	if err != nil {
		return tool.Unsure, tool.Result{}, err
	}
	defer root.Close()
	now, err := root.Load(args.Path, k.bounds.changed)
	if err != nil || now.Path != planned.Path {
		return tool.Unsure, tool.Result{}, err
	}
	// What cannot be tidied up does not change the finding.
	_ = root.Clear(now.Path, inv.CallID.String())
	switch {
	case now.Exists && regie.HashOf(now.Data) == planned.After:
		return tool.Happened, planned.result(), nil // also if the file was like this before: then nothing had to happen
	case !now.Exists && planned.Before.IsZero(), now.Exists && regie.HashOf(now.Data) == planned.Before:
		return tool.NotHappened, tool.Result{}, nil
	default:
		return tool.Unsure, tool.Result{}, nil
	}
}

// result says what was done.
func (i intent) result() tool.Result {
	var b strings.Builder
	switch {
	case i.Before.IsZero():
		fmt.Fprintf(&b, "created %s, %s, %d bytes", i.Path, count(i.Lines), i.Size)
	case i.Mode == modeAppend:
		fmt.Fprintf(&b, "appended %s to %s, now %s, %d bytes", count(i.Added), i.Path, count(i.Lines), i.Size)
	default:
		fmt.Fprintf(&b, "replaced %s, %s, %d bytes", i.Path, count(i.Lines), i.Size)
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

func count(lines int) string {
	if lines == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", lines)
}
