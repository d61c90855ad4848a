package compat

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/store"
)

// Keys remembers what came with which Idempotency-Key, both as hashes, and what was answered,
// sealed (spec 10.2).
type Keys interface {
	// BeginKeyed begins a request, and returns what is known of its key: CodeKeyReused where
	// something else came with it before.
	BeginKeyed(ctx context.Context, key, request regie.Hash) (store.KeyedWrite, error)
	// AnswerKeyed notes that it was answered, and with what; ReleaseKeyed forgets one that came to
	// nothing.
	AnswerKeyed(ctx context.Context, key regie.Hash, status int, answer []byte) error
	ReleaseKeyed(ctx context.Context, key regie.Hash) error
}

const (
	// maxReplay bounds an answer of a provider that is kept for its key, in bytes.
	maxReplay = 16 << 20
	// beingPassed is for how long a request of another server that lives is taken to be still with
	// its provider.
	beingPassed = time.Minute
)

// keyOf reads the Idempotency-Key of a request: what another client calls its own is nothing of
// this one's.
func keyOf(r *http.Request) (string, error) {
	key, err := store.IdempotencyKey(r.Header.Values("Idempotency-Key"))
	if err != nil {
		return "", &problem{kind: kindInvalid, param: "Idempotency-Key", err: err}
	}
	if caller := access.From(r.Context()); key != "" && caller != nil && !caller.Token.ID.IsZero() {
		key = caller.Token.ID.String() + " " + key
	}
	return key, nil
}

// rememberedAs is what a key is remembered by.
func rememberedAs(place regie.Workspace, key string) regie.Hash {
	return regie.HashOf([]byte("openai\x00" + place.ID.String() + "\x00" + key))
}

// keyed remembers what came with a key, and refuses another request with it. The function it
// returns notes what became of the request: one that came to nothing leaves its key to the next
// one. Where that is not certain, the key stays its own. Again says that it was taken before.
func (s *server) keyed(ctx context.Context, place regie.Workspace, key string,
	raw []byte,
) (again bool, after func(error), err error) {
	after = func(error) {}
	if key == "" || s.Keys == nil {
		return false, after, nil
	}
	hash := rememberedAs(place, key)
	was, err := s.Keys.BeginKeyed(ctx, hash, store.HashUnder(key, raw))
	if err != nil || !was.Fresh {
		return was.Status == http.StatusOK, after, err
	}
	return false, func(err error) {
		left := ctx.Err() != nil
		ctx := context.WithoutCancel(ctx)
		if err == nil || errors.As(err, new(begun)) {
			// it stays begun if this fails, and is this request's all the same
			_ = s.Keys.AnswerKeyed(ctx, hash, http.StatusOK, nil)
			return
		}
		if !left && !passes(regie.CodeOf(err)) {
			_ = s.Keys.ReleaseKeyed(ctx, hash) // as above
		}
	}, nil
}

// replay is a request with a key that is passed on: its provider is asked once, whether or not who
// asked stays. The nil one has no key.
type replay struct {
	keys   Keys
	key    string
	hash   regie.Hash
	ctx    context.Context //nolint:containedctx // of the request without its client's
	finish func()
	// settled says that it is noted what became of it.
	settled bool
}

// atWork are the keys whose requests are with their providers, each with a channel that closes when
// it no longer is.
type atWork struct {
	mu   sync.Mutex
	keys map[regie.Hash]chan struct{}
}

// begin takes a key; where another request has it, the channel closes when that has ended.
func (a *atWork) begin(key regie.Hash) (other chan struct{}, end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if other, is := a.keys[key]; is {
		return other, nil
	}
	mine := make(chan struct{})
	a.keys[key] = mine
	return nil, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.keys, key)
		close(mine)
	}
}

// passKeyed notes that a request with a key is about to be passed on, before anything of it
// happens. Where the same one came before, it is answered as that was, once that is there; done
// says that nothing is left to do.
func (p *passing) passKeyed(place regie.Workspace, data []byte) (done bool, err error) {
	key, err := keyOf(p.r)
	if key == "" || p.Keys == nil || p.api == APICount || err != nil { // to count costs nothing
		return false, err
	}
	hash := rememberedAs(place, key)
	other, end := p.working.begin(hash)
	for ; other != nil; other, end = p.working.begin(hash) {
		select {
		case <-other:
		case <-p.r.Context().Done():
			return true, context.Cause(p.r.Context())
		}
	}
	was, err := p.Keys.BeginKeyed(p.r.Context(), hash, store.HashUnder(key,
		[]byte(strings.Join(append(p.meant(), string(data)), "\x00"))))
	if err == nil && was.Fresh {
		ctx, cancel := context.WithCancel(context.WithoutCancel(p.r.Context()))
		stop := context.AfterFunc(p.Base, cancel)
		p.replay = &replay{keys: p.Keys, key: key, hash: hash, ctx: ctx, finish: func() { stop(); cancel(); end() }}
		p.kept = &kept{most: maxReplay}
		return false, nil
	}
	defer end()
	if err == nil {
		err = p.again(key, hash, was)
	}
	return true, err
}

// again answers with what the same request was answered before, where that is known.
func (p *passing) again(key string, hash regie.Hash, was store.KeyedWrite) error {
	switch {
	case was.Status == 0 && !was.Left && time.Since(was.Begun) < beingPassed:
		return regie.Errorf(regie.CodeKeyInUse,
			"the first request with this key is still being answered: ask again in a moment")
	case was.Status == 0 || was.Status != http.StatusOK:
		return begun{regie.Errorf(regie.CodeOutcomeUnknown,
			"the provider was asked when the first request with this key came, and its whole answer never did: it may have been charged; ask with a new key to ask once more")}
	case len(was.Answer) == 0:
		return begun{regie.Errorf(regie.CodeConflict,
			"this was answered when the same request came first; its answer was too large to be kept")}
	}
	kind, said, err := unpack(key, hash, was.Answer)
	if err != nil {
		return err
	}
	p.w.Header().Set("Idempotent-Replayed", "true")
	p.w.Header().Set("Content-Type", kind)
	_, _ = p.w.Write(said) // the client has gone
	return nil
}

// context is that of the request to the provider.
func (p *passing) context() context.Context {
	if p.replay == nil {
		return p.r.Context()
	}
	return p.ctx
}

// answered keeps an answer for who asks again with its key, before the client has the whole of it.
func (r *replay) answered(kind string, said []byte) {
	if r == nil {
		return
	}
	r.settled = true
	var sealed []byte
	if len(said) > 0 && len(said) <= maxReplay {
		sealed = store.SealAnswer(r.key, r.hash, pack(kind, said))
	}
	// it stays begun if this fails: it is not asked again
	_ = r.keys.AnswerKeyed(context.WithoutCancel(r.ctx), r.hash, http.StatusOK, sealed)
}

// released leaves the key of a request that its provider was not asked, or refused, to the next
// one.
func (r *replay) released() {
	if r == nil {
		return
	}
	r.settled = true
	_ = r.keys.ReleaseKeyed(context.WithoutCancel(r.ctx), r.hash) // as above
}

// end notes of a request of which nothing was noted yet that nobody knows what became of it.
func (r *replay) end() {
	if r == nil {
		return
	}
	if !r.settled {
		_ = r.keys.AnswerKeyed(context.WithoutCancel(r.ctx), r.hash, http.StatusBadGateway, nil) // as above
	}
	r.finish()
}

// pack makes an answer small: a stream says the same words thousands of times.
func pack(kind string, said []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = io.WriteString(z, kind+"\n") // a buffer takes everything
	_, _ = z.Write(said)
	_ = z.Close()
	return out.Bytes()
}

func unpack(key string, hash regie.Hash, sealed []byte) (kind string, said []byte, err error) {
	packed, err := store.OpenAnswer(key, hash, sealed)
	if err != nil {
		return "", nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		packed, err = io.ReadAll(z)
	}
	kinds, said, whole := bytes.Cut(packed, []byte("\n"))
	if err != nil || !whole {
		return "", nil, regie.Errorf(regie.CodeCorrupt, "the answer that was kept for this key cannot be read")
	}
	return string(kinds), said, nil
}

// neverSent reports whether a request certainly did not reach its provider, or was sent on by it
// and not taken.
func neverSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" ||
		regie.CodeOf(err) == regie.CodeProviderRejected
}
