package sqlite

import (
	"context"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// CachedReply returns the unexpired answer of a user in a workspace under a key (spec 6.4), and
// whether it exists.
func (s moneyStore) CachedReply(ctx context.Context, of store.CacheOf, key regie.Hash,
	now time.Time,
) (out store.CachedReply, found bool, err error) {
	out.Key = key
	err = s.read.QueryRowContext(ctx, `SELECT s.id, c.provider, c.model, c.reply, c.input_tokens, c.output_tokens, c.created_at, c.expires_at
		FROM cached_replies c JOIN sessions s ON s.n = c.session
		WHERE c.key = ? AND c.expires_at > ? AND s.workspace_id = ? AND s.user_id = ? AND s.deleted_at IS NULL`,
		key, now.UnixMicro(), of.WorkspaceID, of.UserID).
		Scan(&out.SessionID, &out.Provider, &out.Model, &out.Reply, &out.Usage.Input, &out.Usage.Output, &out.At,
			&out.Expires)
	return out, err == nil, unlessFound(err, nil)
}

// cacheReply stores an answer in the response cache with the transition of its reply, or counts a
// hit.
func (t moneyTx) cacheReply(fence store.Fence, in *store.Reply, now time.Time) {
	if !in.Hit.IsZero() { // it may have gone since it was read
		t.exec("UPDATE cached_replies SET hits = hits + 1, used_at = ? WHERE key = ?",
			now.UnixMicro(), in.Hit)
		t.exec("UPDATE exchanges SET cached = 1 WHERE round_id = ? AND number = ?", fence.RoundID, in.Exchange.Number)
	}
	k := in.Keep
	if k == nil {
		return
	}
	t.exec(`INSERT INTO cached_replies (key, session, provider, model, reply, size, input_tokens, output_tokens, created_at, used_at, expires_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, ?10)
		ON CONFLICT (key) DO UPDATE SET session = excluded.session, reply = excluded.reply, size = excluded.size, input_tokens = excluded.input_tokens,
			output_tokens = excluded.output_tokens, hits = 0, created_at = excluded.created_at, used_at = excluded.used_at, expires_at = excluded.expires_at`,
		k.Key, fence.Chain, k.Provider, k.Model, string(k.Reply), len(k.Reply), k.Usage.Input, k.Usage.Output,
		now.UnixMicro(), k.Expires.UnixMicro())
}

// TrimCache deletes expired entries from the response cache, and then the least recently used ones
// until the rest has at most so many bytes.
func (s moneyStore) TrimCache(ctx context.Context, now time.Time, most int64) error {
	return s.clearCache(ctx, func(t *tx) {
		t.exec("DELETE FROM cached_replies WHERE expires_at <= ?", now.UnixMicro())
		t.exec(`DELETE FROM cached_replies WHERE key IN (SELECT key FROM (
			SELECT key, sum(size) OVER (ORDER BY used_at DESC, key) AS upto FROM cached_replies) AS sizes WHERE upto > ?)`, most)
	})
}

// ClearCache empties the response cache of the workspace at root, or of all of them for "", and
// returns how many answers went.
func (s moneyStore) ClearCache(ctx context.Context, root string) (gone int64, err error) {
	err = s.clearCache(ctx, func(t *tx) {
		gone = t.count(`DELETE FROM cached_replies WHERE session IN (
			SELECT s.n FROM sessions s JOIN workspaces w ON w.id = s.workspace_id WHERE w.root = ?1 OR ?1 = '')`, root)
	})
	return gone, err
}

// clearCache deletes answers and overwrites the freed pages, as Remove does.
func (s moneyStore) clearCache(ctx context.Context, remove func(*tx)) error {
	return s.writer.do(ctx, func(t *tx) error {
		defer t.overwriteFree()()
		remove(t)
		return nil
	})
}

// CacheStats counts the response cache of the workspace at root, or of all workspaces for "".
func (s moneyStore) CacheStats(ctx context.Context, root string, now time.Time) (out store.CacheStats, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(c.size), 0), coalesce(sum(c.hits), 0), coalesce(sum(c.hits * (c.input_tokens + c.output_tokens)), 0),
			coalesce(sum(CASE WHEN c.expires_at <= ?1 THEN 1 ELSE 0 END), 0), min(c.created_at)
		FROM cached_replies c JOIN sessions s ON s.n = c.session JOIN workspaces w ON w.id = s.workspace_id WHERE w.root = ?2 OR ?2 = ''`, now.UnixMicro(), root).
		Scan(&out.Entries, &out.Bytes, &out.Hits, &out.Saved, &out.Expired, &out.Oldest)
	return out, err
}
