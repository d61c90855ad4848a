package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// SaveUpload stores an image that the holder of a token has uploaded; the same one again is kept
// for longer, under its new name.
func (s sessionStore) SaveUpload(ctx context.Context, token regie.ID, a regie.Attachment, data []byte) error {
	if _, err := s.PutBlob(ctx, data); err != nil {
		return err
	}
	now := time.Now().UnixMicro()
	return s.writer.do(ctx, func(t *tx) error {
		t.exec(`INSERT INTO uploads (blob, token, media_type, name, size, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
			ON CONFLICT (blob, token) DO UPDATE SET name = excluded.name, created_at = excluded.created_at`,
			a.Blob, token.String(), a.MediaType, a.Name, a.Size, now)
		return nil
	})
}

// Upload returns an image that the holder of a token uploaded after a moment, or CodeNotFound.
func (s sessionStore) Upload(ctx context.Context, token regie.ID, blob regie.Hash, after time.Time) (
	a regie.Attachment, err error,
) {
	err = s.read.QueryRowContext(ctx,
		"SELECT blob, media_type, name, size FROM uploads WHERE blob = ? AND token = ? AND created_at > ?", blob, token.String(),
		after.UnixMicro()).Scan(&a.Blob, &a.MediaType, &a.Name, &a.Size)
	return a, unlessFound(err, regie.Errorf(regie.CodeNotFound,
		"there is no uploaded image %s here: upload it again, it is kept for a day", blob))
}

// RemoveUploads forgets what was uploaded before a moment, and erases what no session holds.
func (s sessionStore) RemoveUploads(ctx context.Context, before time.Time) error {
	now := time.Now()
	due, err := queryAll(ctx, s.read, scanOne[regie.Hash], "SELECT blob FROM uploads WHERE created_at < ?",
		before.UnixMicro())
	if err != nil || len(due) == 0 {
		return err
	}
	blobs := map[regie.Hash]bool{}
	for _, blob := range due {
		blobs[blob] = true
	}
	return s.writer.do(ctx, func(t *tx) error {
		defer t.overwriteFree()()
		t.exec("DELETE FROM uploads WHERE created_at < ?", before.UnixMicro())
		return t.sessions.eraseBlobs(blobs, now, &store.Removed{})
	})
}

// AttachedBytes returns the size of all images in a session's thread.
func (s sessionStore) AttachedBytes(ctx context.Context, session regie.ID) (size int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT CAST(coalesce(sum(a.size), 0) AS BIGINT) FROM sessions s
		JOIN messages m ON m.session = s.n JOIN attachments a ON a.message_id = m.id WHERE s.id = ?`, session).Scan(&size)
	return size, err
}

// Attachment returns an image of a session's thread, or CodeNotFound.
func (s sessionStore) Attachment(ctx context.Context, session regie.ID, blob regie.Hash) (
	a store.AttachmentContent, err error,
) {
	err = s.read.QueryRowContext(ctx, `SELECT a.blob, a.media_type, a.name, a.size, b.data FROM sessions s
		JOIN messages m ON m.session = s.n JOIN attachments a ON a.message_id = m.id JOIN blobs b ON b.hash = a.blob
		WHERE s.id = ? AND a.blob = ? AND b.data IS NOT NULL AND s.deleted_at IS NULL LIMIT 1`, session, blob).
		Scan(&a.Blob, &a.MediaType, &a.Name, &a.Size, &a.Data)
	return a, unlessFound(err, regie.Errorf(regie.CodeNotFound, "there is no image %s in this session", blob))
}
