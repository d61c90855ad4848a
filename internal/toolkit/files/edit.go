package files

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/workspace"
)

const maxEdits = 100

// edit replaces one text in a file.
type edit struct {
	Old string `json:"old" jsonschema:"the text to replace, letter by letter as it stands in the file, without the line numbers of read_file, with enough around it to stand there once"`
	New string `json:"new" jsonschema:"what takes its place; empty to remove it"`
	All bool   `json:"all,omitempty" jsonschema:"replace each place, however many there are"`
}

type editArgs struct {
	Path  string `json:"path" jsonschema:"the file, relative to the workspace"`
	Edits []edit `json:"edits" jsonschema:"the replacements, one after the other: each sees what those before it left"`
}

func (a editArgs) fileChange() wish { return wish{path: a.Path, mode: modeEdit, edits: a.Edits} }

func (k *toolkit) editTool() (tool.Tool, error) {
	handler := newChanger(k, editArgs.fileChange)
	handler.Schema = func(s *jsonschema.Schema) {
		most, least := maxEdits, 1
		edits := s.Properties["edits"]
		edits.Types, edits.Type = nil, "array"
		edits.MinItems, edits.MaxItems = &least, &most
	}
	return tool.New(actionDefinition("files.edit_file",
		"Change parts of a text file of the workspace: replace texts by others, all of them or none. Read the file first: what has changed since you read it is not edited. "+
			"Line ends, encoding and permissions stay. For a new file, or to replace all of one, use write_file."),
		handler)
}

// applyEdits returns what the edits leave of a file.
func (k *toolkit) applyEdits(planned *intent, before *workspace.Content, edits []edit) ([]byte, error) {
	switch {
	case before.Secret:
		// Whether a text is found would reveal content before a person has allowed that.
		return nil, parameterError("path", regie.Errorf(regie.CodePathProtected,
			"%s may hold a secret: it is not edited in parts; a person can allow it to be written as a whole",
			before.Path))
	case !before.Exists:
		return nil, tool.Advice{
			Err:   regie.Errorf(regie.CodeFileNotFound, "%s does not exist", before.Path),
			Param: "path", Hint: "write_file makes new files",
		}
	}
	if err := checkText(before); err != nil {
		return nil, err
	}
	text := before.Data
	for i, e := range edits {
		var err error
		if text, err = k.applyEdit(planned, text, e); err != nil {
			return nil, inEdit(err, i, len(edits))
		}
	}
	if bytes.Equal(text, before.Data) {
		return nil, parameterError("edits", regie.Errorf(regie.CodeBadArguments, "the edits leave %s as it is",
			before.Path))
	}
	planned.Lines = countLines(text)
	return text, nil
}

// inEdit names the failing one of several edits.
func inEdit(err error, i, all int) error {
	advice, ok := err.(tool.Advice) //nolint:errorlint // it was made a moment ago
	if !ok || all == 1 {
		return err
	}
	return tool.Advice{
		Err:   regie.Errorf(regie.CodeOf(err), "edit %d of %d: %v; none of them was made", i+1, all, err),
		Param: advice.Param, Hint: advice.Hint,
	}
}

// applyEdit makes one edit. Where all line ends of the file are alike, it treats both kinds as
// equal: a model writes LF for any file.
func (k *toolkit) applyEdit(planned *intent, text []byte, e edit) ([]byte, error) {
	wrong := func(code regie.Code, hint, format string, args ...any) ([]byte, error) {
		return nil, tool.Advice{Err: regie.Errorf(code, format, args...), Param: "edits", Hint: hint}
	}
	switch e.Old {
	case "":
		return wrong(regie.CodeBadArguments, "name the text to replace; write_file with mode append adds to the end",
			"there is no text to replace")
	case e.New:
		return wrong(regie.CodeBadArguments, "", "old and new are the same: nothing would change")
	}
	old, _ := withLineEnds([]byte(e.Old), text)
	fresh, ends := withLineEnds([]byte(e.New), text)
	found := findOccurrences(text, old)
	switch {
	case len(found) == 0:
		return wrong(regie.CodeTextNotFound, "read the file again and copy the text from there, without the line numbers",
			"the text to replace does not stand in %s", planned.Path)
	case !e.All && len(found) > 1:
		return wrong(regie.CodeTextAmbiguous,
			"take more of the text around the place that you mean, or give all to replace each of them",
			"the text to replace stands in %s %d times, at %s", planned.Path, len(found),
			lineList(linesOf(text, found)))
	}
	planned.Places += len(found)
	if ends != "" {
		planned.Ends = ends
	}
	return bytes.ReplaceAll(text, old, fresh), nil
}

// findOccurrences returns the offsets of a text, without overlaps.
func findOccurrences(text, old []byte) (out []int) {
	for at := 0; ; {
		i := bytes.Index(text[at:], old)
		if i < 0 {
			return out
		}
		out = append(out, at+i)
		at += i + len(old)
	}
}

func linesOf(text []byte, places []int) []int {
	var out []int
	line, at := 1, 0
	for _, p := range places {
		line += bytes.Count(text[at:p], []byte("\n"))
		at = p
		if len(out) == 0 || out[len(out)-1] != line {
			out = append(out, line)
		}
	}
	return out
}

// lineList names a readable number of lines.
func lineList(numbers []int) string {
	const most = 20
	var b strings.Builder
	for i, n := range numbers {
		switch {
		case i == most:
			fmt.Fprintf(&b, " and %d more", len(numbers)-most)
			return "lines " + b.String()
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(n))
	}
	if len(numbers) == 1 {
		return "line " + b.String()
	}
	return "lines " + b.String()
}
