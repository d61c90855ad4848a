package files

import (
	"bytes"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// checkText refuses to edit what would not come out as it went in. bytesOnly says that it is text,
// and not UTF-8: Latin-1 perhaps, nobody can tell.
func checkText(before *workspace.Content) (bytesOnly bool, err error) {
	if workspace.NotText(before.Data) {
		return false, about("path", regie.Errorf(regie.CodeBadArguments,
			"%s is not text: it cannot be edited", before.Path))
	}
	return !utf8.Valid(before.Data), nil
}

// mark is the byte order mark of UTF-8.
var mark = []byte("\uFEFF")

// unended reports whether the last line of a text has no end.
func unended(text []byte) bool { return len(text) > 0 && text[len(text)-1] != '\n' }

// lineEnd is how the lines of a text end.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
