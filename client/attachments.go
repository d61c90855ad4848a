package client

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The types of images, for programs outside of this module (see types.go).
type (
	// Upload is an image for a message that follows.
	Upload = dispatch.Upload
	// AttachmentContent is an image of a message with its bytes.
	AttachmentContent = store.AttachmentContent
)

// Attachments are the images that wait for their message, as control.Attachments.
type Attachments struct{ client *Client }

// Add stores an image, PNG or JPEG, for a segment of a message that follows within a day. It
// returns CodeBadRequest for any other file, and for an image that is too large.
func (a *Attachments) Add(ctx context.Context, in dispatch.Upload) (regie.Attachment, error) {
	return ask[regie.Attachment](ctx, a.client, http.MethodPost, "/api/v1/attachments", in)
}

// Get returns an image of a session's thread.
func (a *Attachments) Get(ctx context.Context, session regie.ID, blob regie.Hash) (store.AttachmentContent, error) {
	return ask[store.AttachmentContent](ctx, a.client, http.MethodGet,
		"/api/v1/sessions/"+session.String()+"/attachments/"+blob.String(), nil)
}
