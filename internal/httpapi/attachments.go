package httpapi

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

func attachmentOperations(s *server) []operation {
	return []operation{
		newOperation(s, http.MethodPost, "/attachments", "upload_attachment",
			"Upload an image, PNG or JPEG, for a segment of a message that follows within a day", http.StatusCreated,
			func(ctx context.Context, in *request[none, dispatch.Upload]) (regie.Attachment, error) {
				return s.Service.Attachments.Add(ctx, in.Body)
			}),
		newOperation(s, http.MethodGet, "/sessions/{id}/attachments/{name}", "show_attachment",
			"An image of a session's thread, by the hash that its segment names", http.StatusOK,
			func(ctx context.Context, in *request[none, none]) (store.AttachmentContent, error) {
				return s.Service.Attachments.Get(ctx, in.ID, in.Name)
			}),
	}
}
