package store

import "github.com/regie-run/regie"

// AttachmentContent is an image of a message with its bytes.
type AttachmentContent struct {
	regie.Attachment
	Data []byte `json:"data"`
}
