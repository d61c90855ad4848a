package prompt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
)

func attachment(name, mediaType string) *regie.Attachment {
	return &regie.Attachment{Blob: regie.HashOf([]byte(name)), MediaType: mediaType, Name: name, Size: 5}
}

// TestImages renders a message with attachments in both dialects: one turn, with its opening first,
// its text, and one part for each image that the model sees. The text names them all, and says of
// those that it does not see that it does not.
func TestImages(t *testing.T) {
	opening := (&regie.Opening{Zone: "UTC", User: "kim"}).Beginning(time.Date(2026, time.March, 1, 23, 30, 0, 0, time.UTC))
	m := regie.Message{Sender: regie.SenderUser, Opening: opening, Rich: []regie.Segment{
		{Text: "Compare "},
		{Attachment: attachment("a.png", "image/png")},
		{Text: ", "},
		{Attachment: attachment("b.svg", "image/svg+xml")},
		{Text: " and "},
		{Attachment: attachment("c.jpg", "image/jpeg")},
	}}
	const a, b, c, blind = "[image a.png, image/png, 5 bytes]", "[image b.svg, image/svg+xml, 5 bytes]", "[image c.jpg, image/jpeg, 5 bytes]", " (you cannot see its content)"
	stored := func(at *regie.Attachment) []byte { return []byte(at.Name) }
	for name, how := range map[string]struct {
		media  func(*regie.Attachment) []byte
		french bool
		text   string
		images string
	}{
		"all": {stored, false, "Compare " + a + ", " + b + blind + " and " + c, "a.png c.jpg"},
		"one erased": {func(at *regie.Attachment) []byte {
			if at.Name == "a.png" {
				return nil
			}
			return stored(at)
		}, false, "Compare " + a + blind + ", " + b + blind + " and " + c, "c.jpg"},
		"no images": {nil, false, "Compare " + a + blind + ", " + b + blind + " and " + c + blind, ""},
		"french":    {nil, true, "Compare " + strings.ReplaceAll(a+blind+", "+b+blind+" and "+c+blind, blind, " (dont tu ne peux pas voir le contenu)"), ""},
	} {
		for dialect, v := range views() {
			v.Media, v.French = how.media, how.french
			turns := v.Turns(&m, nil)
			if len(turns) != 1 || turns[0].Role != provider.RoleUser {
				t.Fatalf("%s, %s: %+v", name, dialect, turns)
			}
			parts := turns[0].Parts
			if !parts[0].Opening || parts[1].Type != regie.PartText || parts[1].Text != how.text {
				t.Errorf("%s, %s: %q", name, dialect, parts[1].Text)
			}
			var images []string
			for _, part := range parts[2:] {
				if part.Type != regie.PartMedia || part.Media.Blob != regie.HashOf(part.Media.Data) {
					t.Fatalf("%s, %s: %+v", name, dialect, part)
				}
				images = append(images, string(part.Media.Data))
			}
			if got := strings.Join(images, " "); got != how.images {
				t.Errorf("%s, %s: shows %q", name, dialect, got)
			}
			if err := check(v, turns); err != nil {
				t.Errorf("%s, %s: %v", name, dialect, err)
			}
			without := turns
			without[0].Parts = without[0].Parts[:2]
			if weight := prompt.Size(v.Turns(&m, nil)) - prompt.Size(without); weight != len(images)*provider.ImageWeight {
				t.Errorf("%s, %s: the images weigh %d", name, dialect, weight)
			}
		}
	}
	if m.Rich[1].Attachment == nil {
		t.Error("rendering changed the message")
	}
}

// TestGauge_Images: a provider counts few or many tokens for an image, and is believed; what it
// counted says nothing about the text that comes after.
func TestGauge_Images(t *testing.T) {
	const text, images = 8000, 4
	size := text + images*provider.ImageWeight
	for name, c := range map[string]struct {
		counted  int64
		believed bool
	}{
		"small images":   {2000 + images*14, true},
		"usual ones":     {2000 + images*1600, true},
		"dear ones":      {2000 + images*36_000, true},
		"less than text": {400, false},
		"beyond any":     {1_000_000, false},
	} {
		g := prompt.Gauge{Images: images}
		usage := regie.Usage{Input: c.counted, Output: 10}
		if got := g.Counted(usage, size, 40, 1000, 1000); (got == usage) != c.believed {
			t.Errorf("%s: counts %+v", name, got)
		}
		g.Learn(usage, size)
		want := int(c.counted)
		if !c.believed {
			want = size / 4
		}
		if got := g.Tokens(size); got != want {
			t.Errorf("%s: %d tokens, want %d", name, got, want)
		}
		if got := g.Tokens(size + 4000); got != want+1000 {
			t.Errorf("%s: %d tokens with 4,000 bytes more, want %d", name, got, want+1000)
		}
	}
	plain := prompt.Gauge{}
	if usage := (regie.Usage{Input: 400, Output: 10}); plain.Counted(usage, size, 40, 1000, 1000) == usage {
		t.Error("without images so few tokens are believed")
	}
}

// TestCompact_Images: requests that stay word for word behind a summary are weighed with their
// images.
func TestCompact_Images(t *testing.T) {
	round := regie.NewID()
	message := func(rich ...regie.Segment) prompt.Entry {
		return prompt.Entry{Message: &regie.Message{ID: regie.NewID(), RoundID: round, Sender: regie.SenderUser, Rich: rich}}
	}
	for name, c := range map[string]struct {
		first regie.Segment
		want  int
	}{
		"text":  {regie.Segment{Text: "look"}, 1},
		"image": {regie.Segment{Attachment: attachment("a.png", "image/png")}, 0},
	} {
		pieces := []prompt.Piece{{Entry: message(c.first), Place: 0, Tokens: 2000}, {Entry: message(regie.Segment{Text: "go on"}), Place: 1, Tokens: 2000}}
		got := prompt.Compact(pieces, 1, prompt.Window{}, round, prompt.Room{Budget: 4000})
		if len(got.Requests) != c.want {
			t.Errorf("%s: keeps %v", name, got.Requests)
		}
	}
}
