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
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/control"
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

// TestAttachments_Automation: an automation takes the images that its caller uploaded and those
// that it has, and its runs show them to the model. A caller who only knows a hash reads nothing.
func TestAttachments_Automation(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	upload := func(name string, size int, changes ...func(*http.Request)) (out regie.Attachment) {
		t.Helper()
		body, _ := json.Marshal(map[string]any{"name": name, "data": drawPNG(size, size)})
		s.json("POST", "/api/v1/attachments", string(body), 201, &out, changes...)
		return out
	}
	create := func(blob regie.Hash, more string) string {
		return `{"segments":[{"text":"look: "},{"attachment":{"blob":"` + blob.String() + `"}}]` + more + `}`
	}
	own := upload("own.png", 16)
	place := s.placeAt(s.b.root)
	here := `,"workspace_id":"` + place.ID.String() + `"`
	confined := bearer(s.house.add(control.TokenRequest{Name: "here", Scopes: regie.TokenScopes(), Workspaces: []regie.ID{place.ID}}).Secret)
	var theirs client.AutomationView
	s.json("POST", "/api/v1/automations", `{"text":"x"`+here+`}`, 201, &theirs, confined)
	for what, blob := range map[string]regie.Hash{"the owner's": own.Blob, "none": regie.HashOf([]byte("never uploaded"))} {
		for method, path := range map[string]string{"POST": "", "PATCH": "/" + theirs.ID.String()} {
			more := map[string]string{"POST": here}[method]
			if status, said := s.said(method, "/api/v1/automations"+path, create(blob, more), confined); status != 404 || !strings.Contains(said, "upload it again") {
				t.Errorf("%s, %s: %d %s", what, method, status, said)
			}
		}
	}

	var made, edited, copied client.AutomationView
	s.json("POST", "/api/v1/automations", create(own.Blob, here), 201, &made)
	started, err := s.all.Run(t.Context(), client.AutomationStart{ID: made.ID})
	fatal(t, err)
	s.fires(made.ID, "RAN COMPLETED")
	if !strings.Contains(s.lastRead(), own.Label()) {
		t.Errorf("the model reads %s, not %s", s.lastRead(), own.Label())
	}
	s.json("GET", "/api/v1/sessions/"+started.Run.SessionID.String()+"/attachments/"+own.Blob.String(), "", 200, nil, confined)
	s.json("PATCH", "/api/v1/automations/"+made.ID.String(), create(own.Blob, ""), 200, &edited, confined)
	s.json("POST", "/api/v1/automations", `{"from_automation":"`+made.ID.String()+`"}`, 201, &copied, confined)
	for _, view := range []client.AutomationView{made, edited, copied} {
		if got := view.Segments[1].Attachment; *got != own {
			t.Errorf("stored %+v, uploaded %+v", got, own)
		}
	}
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
