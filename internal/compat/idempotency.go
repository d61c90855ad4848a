package compat

import (
	"context"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/store"
)

// Keys remembers what came with which Idempotency-Key, both as hashes.
type Keys interface {
	// BeginKeyed begins a request, and returns what is known of its key: CodeKeyReused where
	// something else came with it before.
	BeginKeyed(ctx context.Context, key, request regie.Hash) (store.KeyedWrite, error)
	// AnswerKeyed notes that it was answered, and with what; ReleaseKeyed forgets one that came to
	// nothing.
	AnswerKeyed(ctx context.Context, key regie.Hash, status int, answer []byte) error
	ReleaseKeyed(ctx context.Context, key regie.Hash) error
}

// keyOf reads the Idempotency-Key of a request. Each token has keys of its own.
func keyOf(r *http.Request) (string, error) {
	key, err := store.IdempotencyKey(r.Header.Values("Idempotency-Key"))
	if err != nil {
		return "", &problem{param: "Idempotency-Key", err: err}
	}
	if caller := access.From(r.Context()); key != "" && caller != nil && !caller.Token.ID.IsZero() {
		key = caller.Token.ID.String() + " " + key
	}
	return key, nil
}

// beginKeyed remembers what came with a key, and refuses another request with it. The function it
// returns notes what became of the request: one that came to nothing leaves its key to the next
// one. Where that is not certain, the key stays its own. Again says that it was taken before.
func (s *server) beginKeyed(ctx context.Context, place regie.Workspace, key string,
	raw []byte,
) (again bool, after func(error), err error) {
	after = func(error) {}
	if key == "" || s.Keys == nil {
		return false, after, nil
	}
	hash := regie.HashOf([]byte("openai\x00" + place.ID.String() + "\x00" + key))
	was, err := s.Keys.BeginKeyed(ctx, hash, store.HashUnder(key, raw))
	if err != nil || !was.Fresh {
		return was.Status == http.StatusOK, after, err
	}
	return false, func(err error) {
		left := ctx.Err() != nil
		ctx := context.WithoutCancel(ctx)
		switch {
		case err == nil || problemOf(err).begun:
			// it stays begun if this fails, and is this request's all the same
			_ = s.Keys.AnswerKeyed(ctx, hash, http.StatusOK, nil)
		case !left && !isTemporary(regie.CodeOf(err)):
			_ = s.Keys.ReleaseKeyed(ctx, hash) // as above
		}
	}, nil
}

// ofBefore says of an error that it is what came of a request before, and how to ask once more.
func ofBefore(sent *submitted, err error) error {
	out := problemOf(err)
	if out.again {
		return err
	}
	out.err = regie.Errorf(regie.CodeOf(err),
		"this is what came of the first request with this Idempotency-Key, which had begun: ask with a new key to ask once more. %s",
		out.err)
	if sent.results {
		out.err = regie.Errorf(regie.CodeOf(err),
			"this is what came of the same results before, which count once: go on with a message of the user. %s",
			problemOf(err).err)
	}
	return out
}

// begunSafely marks an error of work that was begun. By its key, or its results, the same request
// finds it, and is told how it ends.
func begunSafely(sent *submitted, err error) error {
	p := problemOf(err)
	p.begun = true
	p.again = p.again || (sent.keyed || sent.results) && isTemporary(regie.CodeOf(err))
	return p
}
