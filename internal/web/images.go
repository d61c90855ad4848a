package web

import (
	"io"
	"mime/multipart"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// maxImageForm bounds the body of a form with images.
const maxImageForm = 16 << 20

// attachImages uploads the images of a form, and adds them to the form's message.
func attachImages(v *visit, in *dispatch.RunRequest) error {
	if v.r.MultipartForm == nil {
		return nil
	}
	for _, file := range v.r.MultipartForm.File["image"] {
		attached, err := attachImage(v, file)
		if err != nil {
			return err
		}
		if len(in.Segments) == 0 && in.Text != "" {
			in.Segments = append(in.Segments, regie.Segment{Text: in.Text + "\n"})
			in.Text = ""
		}
		in.Segments = append(in.Segments, regie.Segment{Attachment: &attached})
	}
	return nil
}

func attachImage(v *visit, file *multipart.FileHeader) (a regie.Attachment, err error) {
	var data []byte
	f, err := file.Open()
	if err == nil {
		defer f.Close()
		data, err = io.ReadAll(f)
	}
	if err != nil {
		return a, regie.Errorf(regie.CodeBadRequest, "the image cannot be read: %v", err)
	}
	return v.site.Service.Attachments.Add(v.r.Context(), dispatch.Upload{Name: file.Filename, Data: data})
}

// showImage serves an image of a chat. Nothing in it can run.
func showImage(v *visit, id regie.ID) error {
	image, err := v.site.Service.Attachments.Get(v.r.Context(), id, v.r.PathValue("name"))
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", image.MediaType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cache-Control", "private, max-age=86400")
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(image.Data) // the client has gone if this fails
	return nil
}
