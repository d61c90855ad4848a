package regie_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

// TestEnrichmentBlock: what a block is called and which query it makes follow from what it refers
// to.
func TestEnrichmentBlock(t *testing.T) {
	for want, block := range map[string]regie.EnrichmentBlock{
		`@a.md {"path":"a.md"} files.read_file`:                 {Target: regie.TargetFile, Path: "a.md"},
		`@"a b.md" {"path":"a b.md"} files.read_file`:           {Target: regie.TargetFile, Path: "a b.md"},
		`@"say "x".md" {"path":"say \"x\".md"} files.read_file`: {Target: regie.TargetFile, Path: `say "x".md`},
		`@src/ {"path":"src"} files.list_files`:                 {Target: regie.TargetDirectory, Path: "src"},
		`@./ {"path":"."} files.list_files`:                     {Target: regie.TargetDirectory, Path: "."},
	} {
		block.Type = regie.EnrichmentPointer
		if err := block.Validate(); err != nil {
			t.Error(err)
		}
		command := block.Command()
		if got := block.Label() + " " + string(command.Params) + " " + command.Type; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestLinearText: the text of a message is computed from its segments, whatever a client sends
// beside them.
func TestLinearText(t *testing.T) {
	var m regie.Message
	if err := json.Unmarshal([]byte(`{"sender":"USER","linear_text":"forged","data_commands":[{"type":"files.delete_file"}],
		"rich_content":[{"text":"see "},{"enrichment":{"type":"POINTER","target":"file","path":"a.md","label":"forged"}},{"text":"."}]}`), &m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("see @a.md.", m.LinearText()); diff != "" {
		t.Error(diff)
	}
	if blocks := m.Enrichments(); len(blocks) != 1 || blocks[0].Path != "a.md" {
		t.Errorf("%+v", blocks)
	}
	if (&regie.Message{Text: "typed"}).LinearText() != "typed" {
		t.Error("a typed text is not what it says")
	}
}

// TestAttachmentLabel: an attachment has a label in the text of its message.
func TestAttachmentLabel(t *testing.T) {
	image := regie.Attachment{MediaType: "image/png", Name: "a.png", Size: 12345}
	file := regie.Attachment{MediaType: "text/csv", Name: "b.csv", Size: 7}
	m := regie.Message{Sender: regie.SenderUser, Rich: []regie.Segment{{Text: "Compare "}, {Attachment: &image}, {Text: " with "}, {Attachment: &file}}}
	if got := m.LinearText(); got != "Compare [image a.png, image/png, 12345 bytes] with [file b.csv, text/csv, 7 bytes]" {
		t.Errorf("got %q", got)
	}
	if got := m.Attachments(); len(got) != 2 || got[0].Name != "a.png" || got[1].Name != "b.csv" {
		t.Errorf("%+v", got)
	}
}
