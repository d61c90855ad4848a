package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/store"
)

// Keys remembers what came with which Idempotency-Key, both as hashes, and what was answered,
// sealed (spec 10.2).
type Keys interface {
	// BeginKeyed begins a write, and returns what is known of its key: CodeKeyReused where
	// something else came with it before.
	BeginKeyed(ctx context.Context, key, request regie.Hash) (store.KeyedWrite, error)
	// AnswerKeyed notes what it was answered, ReleaseKeyed forgets one that came to nothing.
	AnswerKeyed(ctx context.Context, key regie.Hash, status int, answer []byte) error
	ReleaseKeyed(ctx context.Context, key regie.Hash) error
}

// repeatable are the writes that are safe to repeat when their outcome is unknown: their key is the
// id of what they create, or they name what they change so that a repeat harms nothing later. The
// others could change what came later: an interrupt the next round, a rename a later name.
var repeatable = map[string]bool{
	"create_session": true, "fork_session": true, "send_message": true, "start_run": true,
	"undo": true, "undo_in_session": true, "plan_undo": true,
	"decide": true, "review_edit": true, "answer_question": true, "resolve_call": true, "remove_session": true,
	"mark_session_read": true, "add_token": true,
	"revoke_token": true, "revoke_tokens": true, "revoke_rules": true, "beat": true,
}

// secret are the writes with an answer that is shown once and not stored for a repeat.
var secret = map[string]bool{"add_token": true, "make_setup_link": true}

const (
	// beingDone is for how long a write that has begun is taken to be still at work.
	beingDone = time.Minute
	// maxAnswer bounds an answer that is kept; a larger one is made again, as far as that adds
	// nothing.
	maxAnswer = 256 << 10
)

// keyedWrite is a write with an Idempotency-Key, while it is answered; nil is one without.
type keyedWrite struct {
	keys Keys
	id   string // of the operation
	key  string
	hash regie.Hash
	was  store.KeyedWrite
}

// beginKeyedWrite makes the key of a request one of its operation and of the thing that it is
// about, and begins the write where what came with the key is remembered: another request with the
// same key is refused with CodeKeyReused, by whichever process it comes to (spec 10.2).
func beginKeyedWrite[Q, B any](s *server, r *http.Request, id string, in *request[Q, B]) (*keyedWrite, error) {
	if in.Key == "" {
		return nil, nil //nolint:nilnil // a write without a key is none of these
	}
	in.Key = id + " " + r.PathValue("id") + r.PathValue("name") + " " + in.Key
	// what another client calls its request is nothing of this one's
	if caller := access.From(r.Context()); caller != nil && !caller.Token.ID.IsZero() {
		in.Key = caller.Token.ID.String() + " " + in.Key
	}
	if s.Keys == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil, nil //nolint:nilnil // nobody remembers
	}
	said, err := json.Marshal(struct {
		Query Q
		Body  B
	}{in.Query, in.Body})
	if err != nil {
		return nil, err
	}
	k := &keyedWrite{keys: s.Keys, id: id, key: in.Key, hash: regie.HashOf([]byte("idempotency-key\x00" + in.Key))}
	k.was, err = s.Keys.BeginKeyed(r.Context(), k.hash, store.HashUnder(in.Key, said))
	return k, err
}

// storedAnswer returns what the same request was answered, where that is known, and an error where
// it may not be done again.
func (k *keyedWrite) storedAnswer() (answer []byte, err error) {
	switch {
	case k == nil || k.was.Fresh:
		return nil, nil
	case k.was.Status != 0 && secret[k.id]:
		return nil, regie.Errorf(regie.CodeConflict,
			"the same request already created this, and its secret is shown only once: create another one with a new key")
	case k.was.Status != 0 && len(k.was.Answer) > 0:
		return store.OpenAnswer(k.key, k.hash, k.was.Answer)
	case repeatable[k.id]:
		return nil, nil
	case k.was.Status != 0:
		return nil, regie.Errorf(regie.CodeConflict,
			"this request was already carried out; its answer was too large to store")
	case !k.was.Left && time.Since(k.was.Begun) < beingDone:
		return nil, regie.Errorf(regie.CodeKeyInUse,
			"the first request with this key is still being answered: ask again in a moment")
	default:
		return nil, regie.Errorf(regie.CodeOutcomeUnknown,
			"the outcome of the first request with this key is unknown: check it, then use a new key")
	}
}

// writeContext returns that of the request; a write with a key is done or not, whether or not who
// asked stays.
func (k *keyedWrite) writeContext(r *http.Request) context.Context {
	if k == nil {
		return r.Context()
	}
	return context.WithoutCancel(r.Context())
}

// storeAnswer notes how a write ended: its answer, or nothing where it failed, so that the key may
// come again. Who asked may have left by then.
func (k *keyedWrite) storeAnswer(ctx context.Context, status int, answer []byte, err error) {
	if k == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		if k.was.Fresh { // else the first request with the key may still be at work
			_ = k.keys.ReleaseKeyed(ctx, k.hash) // it stays begun if this fails, which is true of it
		}
		return
	}
	var sealed []byte
	if !secret[k.id] && len(answer) <= maxAnswer {
		sealed = store.SealAnswer(k.key, k.hash, answer)
	}
	_ = k.keys.AnswerKeyed(ctx, k.hash, status, sealed) // as above
}

// performWrite does a write once for its key, and returns its answer with what is sent for it: what
// the same request was answered before, where that is known. One that is done again is found by its
// key and adds nothing.
func performWrite[Q, B, A any](s *server, r *http.Request, o *operation, in *request[Q, B], again bool,
	do func(context.Context, *request[Q, B]) (A, error),
) (answer A, body []byte, replayed bool, err error) {
	k, err := beginKeyedWrite(s, r, o.id, in)
	if err != nil {
		return answer, nil, false, err
	}
	if !again {
		if body, err = k.storedAnswer(); err != nil || body != nil {
			return answer, body, true, err
		}
	}
	if answer, err = do(k.writeContext(r), in); err == nil {
		body, err = json.Marshal(answer)
	}
	body = append(body, '\n')
	k.storeAnswer(r.Context(), o.status, body, err)
	return answer, body, k != nil && !k.was.Fresh && k.was.Status != 0, err
}

// serveWrite does a write once for its key, and answers it.
func serveWrite[Q, B, A any](s *server, w http.ResponseWriter, r *http.Request, o *operation, in *request[Q, B],
	do func(context.Context, *request[Q, B]) (A, error),
) {
	_, body, replayed, err := performWrite(s, r, o, in, false, do)
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	s.writeJSON(w, o.status, body)
}
