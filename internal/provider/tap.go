package provider

import (
	"bytes"
	"context"
)

// Tap keeps what a server answers, as it comes over the wire (spec 12.6: traps are tested on
// recorded bytes). It is used by the goroutine that sends.
type Tap struct {
	Status int    // of HTTP; 0 where nothing answered
	Kind   string // the content type

	body bytes.Buffer
}

// maxTapped bounds what a Tap keeps, in bytes; a codec reads no more of a reply.
const maxTapped = 32 << 20

// Begin says that a server has begun to answer; what was kept of an earlier answer goes.
func (t *Tap) Begin(status int, kind string) {
	t.Status, t.Kind = status, kind
	t.body.Reset()
}

// Write implements io.Writer; it never fails.
func (t *Tap) Write(p []byte) (int, error) {
	t.body.Write(p[:min(len(p), maxTapped-t.body.Len())])
	return len(p), nil
}

// Bytes is what was read of the answer's body.
func (t *Tap) Bytes() []byte { return t.body.Bytes() }

type tapKey struct{}

// WithTap returns a context whose requests to a model server are kept in t.
func WithTap(ctx context.Context, t *Tap) context.Context {
	return context.WithValue(ctx, tapKey{}, t)
}

// TapOf returns the Tap of a context, or nil.
func TapOf(ctx context.Context) *Tap {
	t, _ := ctx.Value(tapKey{}).(*Tap)
	return t
}
