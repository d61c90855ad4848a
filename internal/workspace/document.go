package workspace

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"unicode/utf8"

	"github.com/regie-run/regie"
)

// Document is what people have written for agents at the top of a workspace.
type Document struct {
	Text []byte // UTF-8
	More bool   // there is more of it
	// Repaired says that the document has bytes that are not UTF-8, each shown as U+FFFD. Its
	// encoding is unknown.
	Repaired bool
}

// Document reads at most most bytes of a document, as read_file shows it. It follows a link that
// stays inside and leads to no secret. A missing document is empty. It returns the codes of
// OpenFile, and CodeNotText for a binary file.
func (r *Root) Document(name string, most int64) (Document, error) {
	if _, err := r.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return Document{}, nil
	}
	f, _, err := r.OpenFile(name)
	if err != nil {
		return Document{}, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, most+utf8.UTFMax))
	if err != nil {
		return Document{}, regie.Errorf(regie.CodeToolError, "%s cannot be read completely: %v", name, err)
	}
	if NotText(data) {
		return Document{}, regie.Errorf(regie.CodeNotText, "%s is not text", name)
	}
	d := Document{Text: bytes.TrimPrefix(data, []byte("\uFEFF"))}
	if int64(len(d.Text)) > most {
		end := most
		for end > most-utf8.UTFMax && end > 0 && !utf8.RuneStart(d.Text[end]) {
			end--
		}
		d.Text, d.More = d.Text[:end], true
	}
	if d.Repaired = !utf8.Valid(d.Text); d.Repaired {
		d.Text = bytes.ToValidUTF8(d.Text, []byte("\uFFFD"))
	}
	return d, nil
}
