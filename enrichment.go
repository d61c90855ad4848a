package regie

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// EnrichmentType is what a block brings into a message (spec 7.3).
type EnrichmentType string

// EnrichmentPointer refers to something: the model is given what it holds. It is the only type so
// far; USE, CREATE and MODIFY_CONFIG come with the record store.
const EnrichmentPointer EnrichmentType = "POINTER"

// PointerTarget is what a pointer refers to (spec 7.3).
type PointerTarget string

// The targets of pointers so far.
const (
	TargetFile      PointerTarget = "file"
	TargetDirectory PointerTarget = "directory"
)

// MaxEnrichments is how many blocks one message may carry. Each is a query, and every later prompt
// of the session contains its result.
const MaxEnrichments = 20

// EnrichmentBlock is a piece of a person's message that brings data with it (spec 2.2, 7.3). A
// client says what it refers to; what it is called and which query it makes are computed.
type EnrichmentBlock struct {
	Type   EnrichmentType `json:"type"`
	Target PointerTarget  `json:"target"`
	// Path is that of a file or directory, relative to the workspace, with slashes and without "."
	// and ".."; "." is the workspace itself.
	Path string `json:"path"`
}

// DataCommand is a query that a block makes (spec 4.1).
type DataCommand struct {
	Type   string          `json:"type"` // the canonical name of its tool (decision 27)
	Params json.RawMessage `json:"params"`
}

// Validate returns CodeBadRequest for an unknown type or target, and CodePathInvalid for an invalid
// path.
func (b *EnrichmentBlock) Validate() error {
	switch {
	case b.Type != EnrichmentPointer:
		return Errorf(CodeBadRequest, "enrichments of type %q are not supported here: use %s",
			string(b.Type), string(EnrichmentPointer))
	case b.Target != TargetFile && b.Target != TargetDirectory:
		return Errorf(CodeBadRequest, "a %s refers to a %s or a %s, not to %q", string(b.Type), string(TargetFile),
			string(TargetDirectory), string(b.Target))
	case !fs.ValidPath(b.Path) || strings.ContainsFunc(b.Path, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return Errorf(CodePathInvalid,
			"%q is not a path in the workspace: write it relative to the workspace, without ..", b.Path)
	case b.Path == "." && b.Target == TargetFile:
		return Errorf(CodePathInvalid, "the workspace itself is not a file")
	}
	return nil
}

// Label represents the block in the text of its message (the seed's generateSummary):
// @docs/plan.md, @"a file.txt", @src/.
func (b *EnrichmentBlock) Label() string {
	path := b.Path
	if b.Target == TargetDirectory {
		path += "/"
	}
	if strings.ContainsFunc(path, func(r rune) bool { return !mentionable(r) }) {
		return `@"` + path + `"`
	}
	return "@" + path
}

// mentionable reports whether a mention may hold a character without quotes around it: all but
// white space, control characters and what would end it.
func mentionable(r rune) bool { return r > ' ' && r != 0x7f && r != '"' && r != 0xa0 }

// Command is the query that the block makes (the seed's generateCommands).
func (b *EnrichmentBlock) Command() DataCommand {
	name := "files.read_file"
	if b.Target == TargetDirectory {
		name = "files.list_files"
	}
	params, _ := json.Marshal(map[string]string{"path": b.Path}) // a string always encodes
	return DataCommand{Type: name, Params: params}
}

// Label represents the attachment in the text of its message, such as
// [image a.png, image/png, 12345 bytes].
func (a *Attachment) Label() string {
	kind := "file"
	if strings.HasPrefix(a.MediaType, "image/") {
		kind = "image"
	}
	return fmt.Sprintf("[%s %s, %s, %d bytes]", kind, a.Name, a.MediaType, a.Size)
}

// LinearText is what a person's message says, as one text, with the label of each block and
// attachment at its place (spec 2.2). Of any other message it is the typed text alone.
func (m *Message) LinearText() string {
	if len(m.Rich) == 0 {
		return m.Text
	}
	return LinearText(m.Rich)
}

// LinearText is what segments say as one text.
func LinearText(segments []Segment) string {
	var text strings.Builder
	for i := range segments {
		text.WriteString(segments[i].Text)
		if block := segments[i].Enrichment; block != nil {
			text.WriteString(block.Label())
		}
		if a := segments[i].Attachment; a != nil {
			text.WriteString(a.Label())
		}
	}
	return text.String()
}

// Enrichments are the blocks of a person's message, in their order.
func (m *Message) Enrichments() []*EnrichmentBlock {
	var blocks []*EnrichmentBlock
	for i := range m.Rich {
		if block := m.Rich[i].Enrichment; block != nil {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// Attachments are those of a person's message, in their order.
func (m *Message) Attachments() []*Attachment {
	var out []*Attachment
	for i := range m.Rich {
		if a := m.Rich[i].Attachment; a != nil {
			out = append(out, a)
		}
	}
	return out
}

// Enriching reports whether the message brings what a person's message names: a DATA_ADDED that
// owns its calls (decision 46).
func (m *Message) Enriching() bool { return m.System != nil && !m.System.Enriches.IsZero() }

// NamesImage reports whether the block names a file that can be sent as an image, by its name.
func (b *EnrichmentBlock) NamesImage() bool {
	switch strings.ToLower(filepath.Ext(b.Path)) {
	case ".png", ".jpg", ".jpeg":
		return b.Target == TargetFile
	default:
		return false
	}
}

// ValidateSegments returns CodeBadRequest for segments that a client may not send: one that holds
// nothing or more than one thing, more than MaxEnrichments blocks; and the errors of
// EnrichmentBlock.Validate.
func ValidateSegments(segments []Segment) error {
	blocks := 0
	for i := range segments {
		s := &segments[i]
		switch {
		case countTrue(s.Text != "", s.Attachment != nil, s.Enrichment != nil) != 1:
			return Errorf(CodeBadRequest,
				"segment %d of the message must have either a text, an attachment or an enrichment", i+1)
		case s.Enrichment == nil:
			continue
		}
		if err := s.Enrichment.Validate(); err != nil {
			return err
		}
		if blocks++; blocks > MaxEnrichments {
			return Errorf(CodeBadRequest,
				"the message names more than %d files and directories with @: leave some out, or write \\@ where no file is meant", MaxEnrichments)
		}
	}
	return nil
}

func countTrue(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}
