package files

import (
	"context"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

// change is a write as a person is to see it.
type change struct {
	planned intent
	before  workspace.Content
	after   []byte
	text    []byte // what is written: all of after, or what is appended
	fresh   string // of it what was not there before

	huge           bool // too large to be compared
	differs        bool // whether there is a diff by lines, with these counts
	added, removed int
	diff           string
}

// previewChange shows a change before it is approved (spec 4.2). It reads what prepare reads and
// refuses what that refuses.
func (k *toolkit) previewChange(ctx context.Context, inv *tool.Invocation, w wish) (regie.Preview, error) {
	root, err := openWorkspace(inv)
	if err != nil {
		return regie.Preview{}, err
	}
	defer root.Close()
	c := change{}
	c.planned, c.before, c.after, err = k.planChange(root, inv, w)
	unread, err := k.checkSeen(ctx, inv, root, w, &c.before, err)
	if err != nil {
		return regie.Preview{}, err
	}
	if c.planned.Made, err = root.Missing(c.planned.Path); err != nil {
		return regie.Preview{}, parameterError("path", err)
	}
	written, err := root.Clean(w.path)
	if err != nil {
		return regie.Preview{}, parameterError("path", err)
	}
	c.text, c.fresh = c.after, string(c.after)
	switch w.mode {
	case modeAppend:
		c.text = c.after[len(c.before.Data):]
		c.fresh = string(c.text)
	case modeEdit:
		c.fresh = ""
		for _, e := range w.edits {
			c.fresh += e.New
		}
	}
	k.compareLines(&c)
	preview := regie.Preview{
		Sentence: c.describeChange(), Diff: c.diff, Warnings: k.changeWarnings(&c), Once: c.before.Secret ||
			root.Ignored(c.planned.Path) || workspace.IsIgnoreFile(c.planned.Path),
		Preconditions: []regie.Precondition{{
			Kind: regie.PreconditionFile,
			Name: c.planned.Path, Hash: c.planned.Before,
		}},
	}
	if written != c.planned.Path {
		preview.Warnings = append(preview.Warnings, regie.Say("%s leads through a link to %s", written, c.planned.Path))
	} else { // what a scope compares by its letters must be where it leads
		preview.Scopes = writeScopes(c.planned.Path, w.mode)
	}
	if unread {
		preview.Warnings = append(preview.Warnings,
			regie.Say("the agent has not read %s in this session", c.planned.Path))
	}
	return preview, nil
}

// isSame reports whether the file stays as it is.
func (c *change) isSame() bool {
	return c.before.Exists && c.planned.Before == c.planned.After
}

// compareLines makes the diff. A file of bytes and a huge one are not compared: then what is
// written is shown, or its beginning.
func (k *toolkit) compareLines(c *change) {
	before, after, from, to := string(c.before.Data), string(c.after), c.planned.Path, c.planned.Path
	if c.planned.Mode == modeDelete {
		to = "/dev/null"
	}
	switch {
	case c.isSame(), c.planned.Mode == modeDelete && (c.before.Secret || c.isBinary()):
		return
	case len(c.after) > k.bounds.diffed || len(before) > k.bounds.diffed:
		c.huge = true
		c.diff = strings.ToValidUTF8(string(c.text[:min(len(c.text), k.bounds.opening)]), "")
		return
	case !c.before.Exists:
		from = "/dev/null"
	case c.isBinary(), c.before.Secret:
		before, after = "", string(c.text) // only what is written can be shown
	}
	found, err := udiff.ToUnifiedDiff(from, to, before, udiff.Lines(before, after), udiff.DefaultContextLines)
	if err != nil { // the edits do not fit the text that they were made from
		c.diff = string(c.text)
		return
	}
	quiet := allCRLF(before) && allCRLF(after) // alike everywhere, so they would only be noise
	for _, hunk := range found.Hunks {
		for i, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				c.added++
			case udiff.Delete:
				c.removed++
			}
			if text, cut := strings.CutSuffix(line.Content, "\r\n"); cut && quiet {
				hunk.Lines[i].Content = text + "\n"
			}
		}
	}
	c.diff, c.differs = found.String(), !c.isBinary() && !c.before.Secret
}

// isBinary reports whether the file that is there is not text.
func (c *change) isBinary() bool {
	return workspace.NotText(c.before.Data)
}

// describeChange says what the write does.
func (c *change) describeChange() regie.Sentence {
	name, added := c.planned.Path, c.planned.Added
	switch {
	case c.planned.Mode == modeDelete && c.differs && countLines(c.before.Data) == 1:
		return regie.Say("delete %s: 1 line, %s bytes", name, strconv.FormatInt(c.before.Size, 10))
	case c.planned.Mode == modeDelete && c.differs:
		return regie.Say("delete %s: %s lines, %s bytes", name, strconv.Itoa(countLines(c.before.Data)),
			strconv.FormatInt(c.before.Size, 10))
	case c.planned.Mode == modeDelete:
		return regie.Say("delete %s: %s bytes", name, strconv.FormatInt(c.before.Size, 10))
	case c.planned.Mode == modeEdit && c.differs:
		return regie.Say("edit %s: +%s −%s lines", name, strconv.Itoa(c.added), strconv.Itoa(c.removed))
	case !c.before.Exists && len(c.after) == 0:
		return regie.Say("create the empty file %s", name)
	case !c.before.Exists && added == 1:
		return regie.Say("write 1 line to %s (new file)", name)
	case !c.before.Exists:
		return regie.Say("write %s lines to %s (new file)", strconv.Itoa(added), name)
	case c.isSame():
		return regie.Say("write %s again as it is: nothing changes", name)
	case c.planned.Mode == modeAppend && added == 1:
		return regie.Say("append 1 line to %s", name)
	case c.planned.Mode == modeAppend:
		return regie.Say("append %s lines to %s", strconv.Itoa(added), name)
	case c.differs:
		return regie.Say("replace %s: +%s −%s lines", name, strconv.Itoa(c.added), strconv.Itoa(c.removed))
	default:
		return regie.Say("replace %s: %s bytes become %s bytes", name,
			strconv.Itoa(len(c.before.Data)), strconv.Itoa(len(c.after)))
	}
}

// changeWarnings returns what the diff does not show.
func (k *toolkit) changeWarnings(c *change) []regie.Sentence {
	var out []regie.Sentence
	say := func(s regie.Sentence) { out = append(out, s) }
	if n := sanitize.Count(strings.ReplaceAll(c.fresh, "\r\n", "\n")); n > 0 {
		say(regie.Say(
			"the new text contains invisible or control characters: %s of them, shown here as ␛ or <U+202E>", strconv.Itoa(n)))
	}
	if s := configWarning(c.planned.Path); !s.IsZero() {
		say(s)
	}
	switch {
	case c.before.Secret && c.before.Exists:
		say(regie.Say("the content of the file is not shown, because it may be secret"))
	case c.isBinary():
		say(regie.Say("it is not text (%s)", kindOf(c.before.Data)))
	case !utf8.Valid(c.before.Data):
		say(regie.Say("the present file contains bytes that are not UTF-8; they are shown as �"))
	}
	if c.huge {
		say(regie.Say("too large to be compared: %s bytes before, %s bytes afterwards",
			strconv.Itoa(len(c.before.Data)), strconv.Itoa(len(c.after))))
	}
	if c.huge && len(c.text) > k.bounds.opening {
		say(regie.Say("only the beginning of what is written is shown"))
	}
	if c.before.Perm&0o111 != 0 {
		say(regie.Say("%s is executable", c.planned.Path))
	}
	if c.planned.Ends != "" {
		say(regie.Say("the line ends are written as %s, like those of the file", c.planned.Ends))
	}
	if len(c.planned.Made) > 0 {
		say(regie.Say("the directory %s is made", c.planned.Made[len(c.planned.Made)-1]))
	}
	if c.planned.Links > 1 {
		say(regie.Say("the file has %s names (hard links): the others keep the old content",
			strconv.FormatUint(c.planned.Links, 10)))
	}
	return out
}

// configWarning says of a file that instructs or configures agents what a change of it does (spec
// 4.4); zero for any other file.
func configWarning(name string) regie.Sentence {
	switch {
	case name == "AGENTS.md":
		return regie.Say("it changes what every agent here is told: %s is part of each prompt", name)
	case name == ".mcp.json", strings.HasPrefix(name, ".agents/"):
		return regie.Say("it changes the configuration of agents here: %s has to be trusted anew", name)
	}
	return regie.Sentence{}
}

// allCRLF reports whether each line of a text ends in CRLF, or none ends at all.
func allCRLF(text string) bool { return strings.Count(text, "\n") == strings.Count(text, "\r\n") }

// writeScopes returns what an answer about a write may cover besides this very call (decision 20),
// the narrowest first: this file, the files below its directory, those below the topmost one, all.
func writeScopes(name, mode string) []regie.Scope {
	scope := func(kind regie.ScopeKind, value string, words regie.Sentence) regie.Scope {
		return regie.Scope{Field: "path", Kind: kind, Value: value, Sentence: words}
	}
	words := regie.Say("any text to %s", name)
	switch mode {
	case modeEdit:
		words = regie.Say("any edit of %s", name)
	case modeDelete:
		words = regie.Say("the file %s", name)
	}
	out := []regie.Scope{scope(regie.ScopeExact, name, words)}
	if dir := path.Dir(name); dir != "." {
		out = append(out, scope(regie.ScopeUnder, dir, regie.Say("any file below %s/", dir)))
		if top, _, deep := strings.Cut(dir, "/"); deep {
			out = append(out, scope(regie.ScopeUnder, top, regie.Say("any file below %s/", top)))
		}
	}
	return append(out, regie.Scope{Kind: regie.ScopeAny, Sentence: regie.Say("any file of this workspace")})
}

// checkPreview compares the file with what a preview showed (decision 20).
func (k *toolkit) checkPreview(_ context.Context, inv *tool.Invocation, w wish,
	preconditions []regie.Precondition,
) error {
	var now workspace.Content
	root, err := openWorkspace(inv)
	if err == nil {
		defer root.Close()
		now, err = root.Load(w.path, k.bounds.changed)
	}
	if stale := compareStates(&now, err, preconditions); stale != nil {
		return stale
	}
	return parameterError("path", err)
}

// compareStates returns CodeStalePreview where a file, or the failure to load it, is not what was
// approved. It returns nil where nothing was asked to be compared, and where the failure does not
// tell: its caller fails with that.
func compareStates(now *workspace.Content, failure error, preconditions []regie.Precondition) error {
	if len(preconditions) == 0 {
		return nil
	}
	switch regie.CodeOf(failure) {
	// It was loaded, or would have been; that it exists, and what is in it, is compared below.
	case "", regie.CodeFileExists, regie.CodeTextNotFound, regie.CodeTextAmbiguous:
	case regie.CodeNoPermission, regie.CodeToolError, regie.CodeInternal:
		return nil
	default:
		return parameterError("path", regie.Errorf(regie.CodeStalePreview,
			"the file is no longer what the preview showed: %v", failure))
	}
	hash := now.Identity()
	for _, p := range preconditions {
		if p.Kind != regie.PreconditionFile || p.Name != now.Path || p.Hash != hash {
			return parameterError("path", regie.Errorf(regie.CodeStalePreview,
				"%s is no longer what the preview showed: it has to be approved anew", now.Path))
		}
	}
	return nil
}
