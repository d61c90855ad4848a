package workspace

import "io"

// Document reads what people have written for agents at the top of the workspace: up to most bytes of a plain file, and whether there is
// more. Where there is none, or a link or anything else has its name, it is nothing: a link could bring a secret into every prompt.
func (r *Root) Document(name string, most int64) (text []byte, more bool) {
	seen, err := r.root.Lstat(name)
	if err != nil || !seen.Mode().IsRegular() {
		return nil, false
	}
	f, _, err := openSeen(r.root, name, seen)
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }() // it was only read
	if text, err = io.ReadAll(io.LimitReader(f, most+1)); err != nil {
		return nil, false
	}
	if int64(len(text)) > most {
		return text[:most], true
	}
	return text, false
}
