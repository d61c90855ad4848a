package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// forgets bounds how many expired keys a write with a key deletes.
const forgets = 100

// SetHolder sets the name of this process in leases. It is called before the store is used.
func (s tokenStore) SetHolder(holder string) { s.holder = holder }

// BeginKeyed records the begin of a write with an Idempotency-Key (spec 10.2): the key and the
// request, both as hashes. It returns the record of the key, and CodeKeyReused where the key came
// with another request before. It also deletes keys older than store.KeysKept.
func (s tokenStore) BeginKeyed(ctx context.Context, key, request regie.Hash) (store.KeyedWrite, error) {
	var out store.KeyedWrite
	err := s.writer.do(ctx, func(t *tx) error {
		now := time.Now()
		out = store.KeyedWrite{Fresh: true, Begun: now}
		t.exec(
			"DELETE FROM request_keys WHERE key IN (SELECT key FROM request_keys WHERE at < CAST(? AS BIGINT) ORDER BY at, key LIMIT ?)",
			now.Add(-store.KeysKept).UnixMicro(), forgets)
		fresh := t.count(
			"INSERT INTO request_keys (key, request, at, holder) VALUES (?, ?, ?, ?) ON CONFLICT (key) DO NOTHING",
			key, request, now.UnixMicro(), s.holder)
		if fresh == 1 {
			return nil
		}
		var before regie.Hash
		var begun int64
		// the data directory has one process at a time
		query := "SELECT request, at, status, answer, holder <> ? FROM request_keys WHERE key = ?"
		if t.other != nil {
			query = `SELECT k.request, k.at, k.status, k.answer, k.holder <> ? AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.name = k.holder AND h.until > clock_timestamp())
				FROM request_keys k WHERE k.key = ?`
		}
		if err := t.row(query, s.holder, key).Scan(&before, &begun, &out.Status, &out.Answer, &out.Left); err != nil {
			return err
		}
		out.Fresh, out.Begun = false, time.UnixMicro(begun)
		if before != request {
			return ErrKeyReused
		}
		return nil
	})
	return out, err
}

// AnswerKeyed stores the answer of a begun write, once. The answer is opaque here.
func (s tokenStore) AnswerKeyed(ctx context.Context, key regie.Hash, status int, answer []byte) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("UPDATE request_keys SET status = ?, answer = ? WHERE key = ? AND status = 0", status,
			append([]byte{}, answer...), key)
		return nil
	})
}

// ReleaseKeyed deletes the key of a begun write that failed: the key may come with another request.
// An answered key stays.
func (s tokenStore) ReleaseKeyed(ctx context.Context, key regie.Hash) error {
	return s.writer.do(ctx, func(t *tx) error {
		t.exec("DELETE FROM request_keys WHERE key = ? AND status = 0", key)
		return nil
	})
}

// ErrKeyReused says that an Idempotency-Key came with another request before.
var ErrKeyReused = regie.Errorf(regie.CodeKeyReused,
	"this key was used for another request: give each request its own")
