package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

var cacheCases = map[string]func(*World){"Cache": cache, "CacheTrim": cacheTrim, "CacheErased": cacheErased}

// Kept ends a new round with an answer for the response cache.
func (w *World) Kept(key, answer string, expires time.Time) store.Fence {
	w.T.Helper()
	fence := w.Start()
	reply := w.Answer(1)
	reply.Keep = &store.CachedReply{
		Key: regie.HashOf([]byte(key)), Provider: "p", Model: "m", Reply: []byte(answer),
		Usage: regie.Usage{Input: 100, Output: 20}, Expires: expires,
	}
	w.must(w.AppendReply(fence, reply))
	return fence
}

func findCached(w *World, of store.CacheOf, key string, now time.Time) (string, store.CachedReply) {
	w.T.Helper()
	out, found, err := w.Store.CachedReply(w.Ctx, of, regie.HashOf([]byte(key)), now)
	w.must(err)
	if !found {
		return "", out
	}
	return string(out.Reply), out
}

func readCacheStats(w *World, root string) store.CacheStats {
	w.T.Helper()
	stats := resultOf(w.Store.CacheStats(w.Ctx, root, time.Now()))(w)
	return stats
}

// cache stores an answer with the transition of its reply, returns it only to the same user and
// workspace, and counts its savings (spec 6.4).
func cache(w *World) {
	own, end := store.CacheOf{WorkspaceID: w.Workspace.ID, UserID: w.User},
		time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	fence := w.Kept("a", `{"text":"é\u0000"}`, end)
	text, found := findCached(w, own, "a", time.Now())
	w.equal("the answer", text, `{"text":"é\u0000"}`)
	w.equal("whose", []any{found.SessionID, found.Provider, found.Model, found.Usage, found.Expires, found.At.IsZero()},
		[]any{fence.SessionID, "p", "m", regie.Usage{Input: 100, Output: 20}, end, false})
	for what, of := range map[string]store.CacheOf{
		"another workspace": {WorkspaceID: regie.NewID(), UserID: w.User},
		"another user":      {WorkspaceID: w.Workspace.ID, UserID: regie.NewID()},
	} {
		text, _ = findCached(w, of, "a", time.Now())
		w.equal(what, text, "")
	}
	text, _ = findCached(w, own, "a", end)
	w.equal("once it has expired", text, "")
	text, _ = findCached(w, own, "b", time.Now())
	w.equal("another question", text, "")

	for range 2 { // given twice
		reply := w.Answer(1)
		reply.Hit = regie.HashOf([]byte("a"))
		w.must(w.AppendReply(w.Start(), reply))
	}
	stats := readCacheStats(w, "/w")
	w.equal("stats", []int64{stats.Entries, stats.Hits, stats.Saved, stats.Expired, stats.Bytes},
		[]int64{1, 2, 240, 0, int64(len(`{"text":"é\u0000"}`))})
	w.equal("everywhere", readCacheStats(w, ""), stats)
	w.equal("elsewhere", readCacheStats(w, "/other"), store.CacheStats{})

	again := w.Kept("a", "new", end) // in its place
	text, found = findCached(w, own, "a", time.Now())
	w.equal("the answer in its place", []any{text, found.SessionID, readCacheStats(w, "").Hits},
		[]any{"new", again.SessionID, int64(0)})

	// A hit of a deleted entry is no error, and a refused reply is not cached.
	gone := resultOf(w.Store.ClearCache(w.Ctx, "/other"))(w)
	w.equal("cleared elsewhere", gone, int64(0))
	gone = resultOf(w.Store.ClearCache(w.Ctx, "/w"))(w)
	w.equal("cleared", []int64{gone, readCacheStats(w, "").Entries}, []int64{1, 0})
	reply := w.Answer(1)
	reply.Hit = regie.HashOf([]byte("a"))
	w.must(w.AppendReply(w.Start(), reply))

	stale := w.Start()
	resultOf(w.Store.Claim(w.Ctx, stale.RoundID, "next"))(w)
	reply = w.Answer(1)
	reply.Keep = &store.CachedReply{Key: regie.HashOf([]byte("s")), Reply: []byte("x"), Expires: end}
	w.refused(regie.CodeStale, w.AppendReply(stale, reply))
	w.equal("kept of a refused reply", readCacheStats(w, "").Entries, int64(0))
}

// cacheTrim bounds the cache: expired entries are deleted first, then the least recently used.
func cacheTrim(w *World) {
	own := store.CacheOf{WorkspaceID: w.Workspace.ID, UserID: w.User}
	end := time.Now().Add(time.Hour)
	for i := range 4 {
		w.Kept(fmt.Sprint(i), strings.Repeat("x", 100), end)
	}
	w.Kept("old", "y", time.Now().Add(-time.Second))
	reply := w.Answer(1)
	reply.Hit = regie.HashOf([]byte("0")) // used again
	w.must(w.AppendReply(w.Start(), reply))
	w.equal("expired", readCacheStats(w, "").Expired, int64(1))
	w.must(w.Store.TrimCache(w.Ctx, time.Now(), 1000))
	w.equal("below the bound", readCacheStats(w, "").Entries, int64(4))
	w.must(w.Store.TrimCache(w.Ctx, time.Now(), 250))
	var left []string
	for i := range 4 {
		if text, _ := findCached(w, own, fmt.Sprint(i), time.Now()); text != "" {
			left = append(left, fmt.Sprint(i))
		}
	}
	w.equal("left", left, []string{"0", "3"})
}

// cacheErased: removing a session deletes its answers from the cache (decision 15).
func cacheErased(w *World) {
	own, end := store.CacheOf{WorkspaceID: w.Workspace.ID, UserID: w.User}, time.Now().Add(time.Hour)
	fence := w.Kept("a", "secret", end)
	other := w.Kept("b", "other", end)
	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: fence.SessionID, By: "ada"}))(w)
	text, _ := findCached(w, own, "a", time.Now())
	w.equal("of the removed session", text, "")
	text, _ = findCached(w, own, "b", time.Now())
	w.equal("of another one", text, "other")
	w.equal("entries", readCacheStats(w, "").Entries, int64(1))
	w.head(other.SessionID)
}
