package control

import (
	"bytes"
	"context"
	"image"
	_ "image/jpeg" // the formats that are taken
	_ "image/png"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// UploadsKept is how long an uploaded image can be sent.
const UploadsKept = 24 * time.Hour

// maxImageName bounds the name of an image in bytes.
const maxImageName = 200

// Attachments are the images that wait for their message (decision 18).
type Attachments struct{ *core }

// Add stores an image for a segment of a message that follows. It returns CodeBadRequest for what
// is no whole PNG or JPEG image, and for one beyond the bounds.
func (a *Attachments) Add(ctx context.Context, in dispatch.Upload) (regie.Attachment, error) {
	caller, err := a.authorize(ctx, "upload_attachment")
	if err != nil {
		return regie.Attachment{}, err
	}
	kind, err := checkImage(in.Data)
	if err != nil {
		return regie.Attachment{}, err
	}
	name := path.Base(strings.ReplaceAll(storable(in.Name), `\`, "/"))
	if name = sanitize.Clip(name, maxImageName); name == "." || name == "/" {
		name = "image." + kind
	}
	out := regie.Attachment{
		Blob: regie.HashOf(in.Data), MediaType: "image/" + kind, Name: name, Size: int64(len(in.Data)),
	}
	return out, a.Store.SaveUpload(ctx, caller.Token.ID, out, in.Data)
}

// Get returns an image of a session's thread by its hash, or CodeNotFound.
func (a *Attachments) Get(ctx context.Context, session regie.ID, blob string) (store.AttachmentContent, error) {
	if _, err := a.authorize(ctx, "show_session", session); err != nil {
		return store.AttachmentContent{}, err
	}
	var hash regie.Hash
	if err := hash.UnmarshalText([]byte(blob)); err != nil {
		return store.AttachmentContent{}, regie.Errorf(regie.CodeBadRequest, "%q is not the hash of an image", blob)
	}
	return a.Store.Attachment(ctx, session, hash)
}

// decoding lets one image at a time be decoded: a small file can take much memory.
var decoding sync.Mutex

// checkImage returns the format of an image, png or jpeg. It decodes all of it: a model's server
// would refuse a damaged one, with the thread that it is in.
func checkImage(data []byte) (kind string, err error) {
	if len(data) > regie.MaxImageBytes {
		return "", regie.Errorf(regie.CodeBadRequest, "the image has %d bytes, at most %d are allowed: make it smaller",
			len(data), regie.MaxImageBytes)
	}
	found, kind, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || kind != "png" && kind != "jpeg" { // other packages may read other formats
		return "", regie.Errorf(regie.CodeBadRequest, "the file is no image that can be sent: PNG and JPEG can")
	}
	if max(found.Width, found.Height) > regie.MaxImageSide || found.Width*found.Height > regie.MaxImagePixels {
		return "", regie.Errorf(regie.CodeBadRequest,
			"the image has %d × %d pixels, at most %d on a side and %d in all are allowed: make it smaller",
			found.Width, found.Height, regie.MaxImageSide, regie.MaxImagePixels)
	}
	decoding.Lock()
	defer decoding.Unlock()
	if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
		return "", regie.Errorf(regie.CodeBadRequest, "the image is damaged: %v", err)
	}
	return kind, nil
}

func hasImages(in *dispatch.RunRequest) bool {
	return slices.ContainsFunc(in.Segments, func(s regie.Segment) bool { return s.Attachment != nil })
}

// takeUploads completes the images of a message by what was uploaded, or is stored in segments that
// the caller may use: a client names one by its blob. It returns CodeNotFound for one that the
// caller did not upload, and CodeBadRequest where a session would hold more than models take.
func (c *core) takeUploads(ctx context.Context, in *dispatch.RunRequest, stored ...regie.Segment) error {
	if !hasImages(in) || in.Fire != nil { // those of a template are stored
		return nil
	}
	size, err := c.Store.AttachedBytes(ctx, in.SessionID)
	if err != nil {
		return err
	}
	token := access.From(ctx).Token.ID
	for i := range in.Segments {
		named := in.Segments[i].Attachment
		if named == nil {
			continue
		}
		at := slices.IndexFunc(stored, func(s regie.Segment) bool {
			return s.Attachment != nil && s.Attachment.Blob == named.Blob
		})
		var found regie.Attachment
		if at >= 0 {
			found = *stored[at].Attachment
		} else if found, err = c.Store.Upload(ctx, token, named.Blob, time.Now().Add(-UploadsKept)); err != nil {
			return err
		}
		in.Segments[i].Attachment = &found
		size += found.Size
	}
	if size > regie.MaxImagesBytes {
		return regie.Errorf(regie.CodeBadRequest,
			"the images of this session would have %d bytes, at most %d are allowed: begin a new session, or make them smaller",
			size, regie.MaxImagesBytes)
	}
	return nil
}
