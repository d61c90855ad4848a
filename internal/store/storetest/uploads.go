package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

func uploads(w *World) {
	token, data := regie.NewID(), []byte("picture")
	sent := regie.Attachment{Blob: regie.HashOf(data), MediaType: "image/png", Name: "a.png", Size: 7}
	w.must(w.Store.SaveUpload(w.Ctx, token, sent, data))
	w.equal("upload", resultOf(w.Store.Upload(w.Ctx, token, sent.Blob, time.Now().Add(-time.Hour)))(w), sent)
	_, err := w.Store.Upload(w.Ctx, token, sent.Blob, time.Now().Add(time.Hour))
	w.refused(regie.CodeNotFound, err) // it is too old
	_, err = w.Store.Upload(w.Ctx, regie.NewID(), sent.Blob, time.Time{})
	w.refused(regie.CodeNotFound, err) // it is somebody else's
	sent.Name = "b.png"
	w.must(w.Store.SaveUpload(w.Ctx, token, sent, data))
	w.equal("upload under another name", resultOf(w.Store.Upload(w.Ctx, token, sent.Blob, time.Time{}))(w), sent)

	other := []byte("never sent")
	w.must(w.Store.SaveUpload(w.Ctx, token, regie.Attachment{Blob: regie.HashOf(other), MediaType: "image/png", Size: 10}, other))
	w.must(w.Store.RemoveUploads(w.Ctx, time.Now().Add(-time.Hour))) // nothing is that old
	_, err = w.Store.Blob(w.Ctx, regie.HashOf(other))
	w.must(err)
	w.must(w.Store.RemoveUploads(w.Ctx, time.Now().Add(time.Hour)))
	_, err = w.Store.Blob(w.Ctx, regie.HashOf(other))
	w.refused(regie.CodeNotFound, err)
	w.must(w.Store.SaveUpload(w.Ctx, token, sent, data))
	in := w.Submission("look")
	in.Message.Text, in.Message.Rich = "", []regie.Segment{{Text: "look "}, {Attachment: &sent}}
	w.must(func() error { _, err := w.Store.Submit(w.Ctx, in); return err }())
	w.equal("bytes of the session", resultOf(w.Store.AttachedBytes(w.Ctx, in.SessionID))(w), int64(7))
	w.equal("the image", resultOf(w.Store.Attachment(w.Ctx, in.SessionID, sent.Blob))(w),
		store.AttachmentContent{Attachment: sent, Data: data})
	_, err = w.Store.Attachment(w.Ctx, regie.NewID(), sent.Blob)
	w.refused(regie.CodeNotFound, err)
	w.equal("bytes of another", resultOf(w.Store.AttachedBytes(w.Ctx, regie.NewID()))(w), int64(0))
	w.must(w.Store.RemoveUploads(w.Ctx, time.Now().Add(time.Hour)))
	_, err = w.Store.Blob(w.Ctx, sent.Blob) // its message holds it
	w.must(err)
	_, err = w.Store.Upload(w.Ctx, token, sent.Blob, time.Time{})
	w.refused(regie.CodeNotFound, err)
}
