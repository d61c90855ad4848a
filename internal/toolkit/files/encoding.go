package files

import (
	"bytes"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// checkText refuses to edit what would not come out as it went in, or would mix encodings.
func checkText(before *workspace.Content) error {
	if workspace.NotText(before.Data) || !utf8.Valid(before.Data) {
		return parameterError("path", regie.Errorf(regie.CodeBadArguments,
			"%s is not text in UTF-8: it can only be replaced as a whole", before.Path))
	}
	return nil
}

// kindOf names what a file's first bytes are of, where they are no text.
func kindOf(head []byte) string {
	kind := http.DetectContentType(head)
	if strings.HasPrefix(kind, "text/") { // it was taken for none
		return "bytes of no known kind"
	}
	return kind
}

// lineEnd returns how the lines of a text end.
func lineEnd(text []byte) string {
	if bytes.Contains(text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
