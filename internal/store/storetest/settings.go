package storetest

import (
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

func settings(w *World) {
	holds := func(want map[string]string) {
		w.T.Helper()
		got := resultOf(w.Store.Settings(w.Ctx))(w)
		w.equal("settings", got, want)
	}
	holds(map[string]string{})
	w.must(w.Store.Settle(w.Ctx, []store.Setting{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}, "ada"))
	holds(map[string]string{"a": "1", "b": "2"})
	w.must(w.Store.Settle(w.Ctx, []store.Setting{{Name: "a", Value: "3"}, {Name: "b"}, {Name: "a", Value: "4"}}, "ada"))
	holds(map[string]string{"a": "4"})
	w.must(w.Store.Settle(w.Ctx, []store.Setting{{Name: "b", Value: "5"}}, "ada"))
	holds(map[string]string{"a": "4", "b": "5"})
}

func requestKeys(w *World) {
	one, other, request := regie.HashOf([]byte("one")), regie.HashOf([]byte("other")), regie.HashOf([]byte("request"))
	remember := func(key, request regie.Hash) error {
		_, err := w.Store.BeginKeyed(w.Ctx, key, request)
		return err
	}
	w.must(remember(one, request))
	w.must(remember(one, request))
	w.refused(regie.CodeKeyReused, remember(one, other))
	w.must(remember(one, request))
	// Of many concurrent writes with one key one sets its request.
	outcomes := make([]error, 8)
	var group sync.WaitGroup
	for i := range outcomes {
		group.Go(func() { outcomes[i] = remember(other, regie.HashOf([]byte{byte(i)})) })
	}
	group.Wait()
	taken := 0
	for _, err := range outcomes {
		if err == nil {
			taken++
		} else {
			w.refused(regie.CodeKeyReused, err)
		}
	}
	w.equal("requests that a key stands for", taken, 1)

	// A key is begun, then answered once or released; an answer never changes.
	key := regie.HashOf([]byte("begun"))
	begin := func(what string, want store.KeyedWrite) {
		w.T.Helper()
		got := resultOf(w.Store.BeginKeyed(w.Ctx, key, request))(w)
		w.equal(what, []any{got.Fresh, got.Status, string(got.Answer), got.Begun.IsZero()},
			[]any{want.Fresh, want.Status, string(want.Answer), false})
	}
	begin("first", store.KeyedWrite{Fresh: true})
	begin("begun", store.KeyedWrite{})
	w.must(w.Store.ReleaseKeyed(w.Ctx, key))
	begin("given up", store.KeyedWrite{Fresh: true})
	w.must(w.Store.AnswerKeyed(w.Ctx, key, 201, []byte("made")))
	w.must(w.Store.AnswerKeyed(w.Ctx, key, 200, []byte("something else")))
	w.must(w.Store.ReleaseKeyed(w.Ctx, key))
	begin("answered", store.KeyedWrite{Status: 201, Answer: []byte("made")})
	_, err := w.Store.BeginKeyed(w.Ctx, key, other)
	w.refused(regie.CodeKeyReused, err)

	// A write of another process counts as left once that process has ended.
	key = regie.HashOf([]byte("left"))
	left := func(what string, want bool) {
		w.T.Helper()
		got := resultOf(w.Store.BeginKeyed(w.Ctx, key, request))(w)
		w.equal(what, got.Left, want)
	}
	w.Store.SetHolder("one")
	left("fresh", false)
	left("its own", false)
	w.Store.SetHolder("two")
	left("of a process that has no lease", true)
}
