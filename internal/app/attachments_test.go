package app_test

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// drawPNG returns an image that compresses badly.
func drawPNG(width, height int) []byte {
	drawn, random := image.NewGray(image.Rect(0, 0, width, height)), rand.NewChaCha8([32]byte{})
	_, _ = random.Read(drawn.Pix) // never fails
	var out bytes.Buffer
	if err := png.Encode(&out, drawn); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// TestAttachments sends images over the interface: who uploaded one can send it, nobody else, and a
// session takes no more than models do.
func TestAttachments(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, slices.Repeat([]http.HandlerFunc{replyWith("A picture.")}, 8)...))
	h := b.serve("127.0.0.1:0")
	session := h.session()
	upload := func(name string, data []byte, changes ...func(*http.Request)) (out regie.Attachment) {
		t.Helper()
		body, _ := json.Marshal(map[string]any{"name": name, "data": data})
		h.json("POST", "/api/v1/attachments", string(body), 201, &out, changes...)
		return out
	}
	small := upload("../shots/a.png", drawPNG(16, 16))
	if small.MediaType != "image/png" || small.Name != "a.png" || small.Size != int64(len(drawPNG(16, 16))) {
		t.Errorf("%+v", small)
	}
	for body, want := range map[string]string{
		`{"name":"a.png"}`:                     "needs data",
		`{"name":"a.png","data":"aGVsbG8="}`:   "PNG and JPEG can",
		`{"name":"a.png","data":"not base64"}`: "data",
	} {
		if status, said := h.said("POST", "/api/v1/attachments", body); status != 400 || !strings.Contains(said, want) {
			t.Errorf("%s: %d %s", body, status, said)
		}
	}
	large := `{"data":"` + strings.Repeat("A", 40<<20) + `"}`
	if status, said := h.said("POST", "/api/v1/attachments", large); status != 413 || !strings.Contains(said, "16,777,216") {
		t.Errorf("40 MB: %d %s", status, said)
	}

	say := func(a regie.Attachment) string {
		body, _ := json.Marshal(map[string]any{"segments": []regie.Segment{{Text: "what is it? "}, {Attachment: &a}}})
		return string(body)
	}
	send := "/api/v1/sessions/" + session + "/messages"
	_, other := h.with("other", regie.ScopeChat)
	if status, said := h.said("POST", send, say(small), other); status != 404 || !strings.Contains(said, "upload it again") {
		t.Errorf("another token's image: %d %s", status, said)
	}
	never := small
	never.Blob = regie.HashOf([]byte("never uploaded"))
	if status, said := h.said("POST", send, say(never)); status != 404 {
		t.Errorf("what was never uploaded: %d %s", status, said)
	}
	forged := small
	forged.MediaType, forged.Size = "text/html", 1
	h.json("POST", send, say(forged), 202, nil)
	id, err := regie.ParseID(session)
	fatal(t, err)
	found, err := h.client().Messages(t.Context(), dispatch.MessagesRequest{SessionID: id})
	fatal(t, err)
	if got := found[0].Message.Rich[1].Attachment; *got != small {
		t.Errorf("stored %+v, uploaded %+v", got, small)
	}

	half := upload("big.png", drawPNG(1900, 1900))
	for range 5 {
		if status, said := h.said("POST", send, say(half)); status >= 400 {
			if !strings.Contains(said, "begin a new session") {
				t.Errorf("%d %s", status, said)
			}
			return
		}
	}
	t.Error("a session takes any number of images")
}

// TestMentionImage sends the image that a message names with @, from the workspace or from
// elsewhere; what cannot be read is not sent.
func TestMentionImage(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("A picture.")))
	control := b.connect().Client
	drawn := drawPNG(4, 4)
	elsewhere := filepath.Join(t.TempDir(), "my shot.png")
	fatal(t, os.WriteFile(elsewhere, drawn, 0o600))
	b.file("in.png", string(drawn))
	b.file("bad.png", "no image")
	attach := func(text string) ([]regie.Segment, error) {
		return chat.AttachImages(t.Context(), control, app.ReadImage(b.root), chat.Mentions(text, app.Look(b.root)))
	}
	segments, err := attach(`compare @in.png with @"` + elsewhere + `", @missing.png`)
	if err != nil || len(segments) != 5 || segments[1].Attachment.Name != "in.png" || segments[3].Attachment.Name != "my shot.png" {
		t.Fatalf("%+v, %v", segments, err)
	}
	if _, err := attach("look at @bad.png"); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Error(err)
	}
	fatal(t, os.Truncate(filepath.Join(b.root, "bad.png"), 40<<20))
	if _, err := attach("look at @bad.png"); regie.CodeOf(err) != regie.CodeFileTooLarge {
		t.Error(err)
	}
	in := b.request(approval.Policy{})
	in.Text, in.Segments = "", segments
	view := b.await(control, b.send(control, in))
	if got := view.Round.End; got != regie.EndAnswered {
		t.Errorf("ended %s", got)
	}
}
