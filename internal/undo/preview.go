package undo

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	maxCompared = 1 << 20       // bytes of a file that is compared line by line
	maxShown    = 1 << 20       // bytes of all diffs of a plan together
	sniffed     = 8 << 10       // bytes that say whether a file is text
	maxLooked   = 64 << 20      // bytes of a file that an undo looks at: what tools change is smaller
	maxDiff     = regie.MaxDiff // bytes of one diff
)

// previewFile describes the effect on a file.
func previewFile(s *step, m merged, now, then []byte) regie.FilePreview {
	p := regie.FilePreview{Conflict: s.conflict}
	from, to, name := s.file.From, s.file.To, m.path
	added, removed := 0, 0
	now, then = asText(now), asText(then)
	text, secret := isText(now) && isText(then), workspace.Protected(name) == workspace.Secret
	known := s.conflict == nil || s.conflict.Forceable
	if known && text && !secret && from.Hash != to.Hash && len(now) <= maxCompared && len(then) <= maxCompared {
		p.Diff, added, removed = diffStates(name, from, to, now, then)
	}
	switch {
	case from.Same(to) && from.Perm != to.Perm && from.Exists() && s.conflict == nil:
		p.Sentence = regie.Say("put the permissions of %s back", name)
	case from.Hash == to.Hash && s.conflict == nil:
		p.Sentence = regie.Say("%s is as it was before: nothing to do", name)
	case !m.before.Exists():
		p.Sentence = regie.Say("remove %s, which did not exist before", name)
	case !m.after.Exists():
		p.Sentence = regie.Say("restore %s, which was deleted", name)
	case p.Diff != "":
		p.Sentence = regie.Say("put %s back: +%s −%s lines", name, strconv.Itoa(added), strconv.Itoa(removed))
	default:
		p.Sentence = regie.Say("put %s back: %s bytes become %s bytes", name, strconv.FormatInt(from.Size, 10),
			strconv.FormatInt(to.Size, 10))
	}
	if known && secret {
		p.Warnings = append(p.Warnings, regie.Say("it may contain a secret, so no lines are shown"))
	} else if known && !text {
		p.Warnings = append(p.Warnings, regie.Say("it is not text, so no lines are shown"))
	}
	if from.Exists() && to.Exists() && !from.IsLink() && !to.IsLink() && from.Perm != to.Perm {
		p.Warnings = append(p.Warnings, regie.Say("its permissions become %s", to.Perm.String()))
	}
	return p
}

// diffStates compares a file's present and target states.
func diffStates(name string, from, to regie.FileState, now, then []byte) (out string, added, removed int) {
	a, b := name, name
	if !from.Exists() {
		a = "/dev/null"
	}
	if !to.Exists() {
		b = "/dev/null"
	}
	found, err := udiff.ToUnifiedDiff(a, b, string(now), udiff.Lines(string(now), string(then)),
		udiff.DefaultContextLines)
	if err != nil { // the edits do not fit the text that they were made from
		return "", 0, 0
	}
	for _, hunk := range found.Hunks {
		for _, line := range hunk.Lines {
			switch line.Kind {
			case udiff.Insert:
				added++
			case udiff.Delete:
				removed++
			}
		}
	}
	out = sanitize.Visible(found.String())
	if len(out) > maxDiff {
		end := maxDiff
		for end > 0 && !utf8.RuneStart(out[end]) {
			end--
		}
		out = out[:end] + "\n[…]\n"
	}
	return out, added, removed
}

// asText describes a link in words and returns other contents unchanged.
func asText(data []byte) []byte {
	if target, err := regie.LinkTarget(data); err == nil {
		return []byte("link to " + target + "\n")
	}
	return data
}

// isText reports whether content can be shown line by line.
func isText(data []byte) bool {
	head := data[:min(len(data), sniffed)]
	return bytes.IndexByte(head, 0) < 0
}
