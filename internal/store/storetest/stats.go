package storetest

import (
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// countedRounds ends a round with a duplicate and a failed call, and one at its limit.
func countedRounds(w *World) {
	fence := w.Start()
	reply := w.Reply(fence, 1, regie.KindQuery, regie.KindQuery, regie.KindAction)
	reply.Calls[1].State, reply.Calls[1].NotRun, reply.Calls[1].Result = regie.CallNotRun, regie.NotRunDuplicateInBatch, "as above"
	w.must(w.AppendReply(fence, reply))
	w.must(w.CommitCalls(fence, store.Settle{Exchange: 1, Start: &reply.Calls[2]}))
	settle := w.Settled(1, []regie.Call{reply.Calls[0], reply.Calls[2]})
	settle.Settled[1].State, settle.Settled[1].Error = regie.CallFailed, &regie.CallError{Code: regie.CodeInternal}
	settle.Settled[1].DurationUS = 1_900_000
	w.must(w.CommitCalls(fence, settle))
	answer := w.Answer(2)
	answer.Hit = regie.HashOf([]byte("key"))
	w.must(w.AppendReply(fence, answer))
	fence = w.Start()
	limited := w.Answer(1)
	limited.Advance.End.Reason = regie.EndLimit
	w.must(w.AppendReply(fence, limited))
}

// rollUps adds each round to its hour as it ends.
func rollUps(w *World) {
	countedRounds(w)
	from, to := time.Now().Add(-time.Hour), time.Now()
	read := func(root, group string, from, to time.Time) (all []store.RollUp) {
		rows := resultOf(w.Store.RollUps(w.Ctx, root, group, from, to))(w)
		slices.SortFunc(rows, func(a, b store.RollUp) int { return strings.Compare(string(a.End), string(b.End)) })
		return rows
	}
	want := []store.RollUp{
		{Group: "w", End: regie.EndAnswered, RoundCounts: store.RoundCounts{
			Rounds: 1, Relaunches: 1, Calls: 3, Duplicates: 1, Input: 100, Output: 20, CacheRead: 5, CacheHits: 1, History: 100, Cost: 42,
		}},
		{Group: "w", End: regie.EndLimit, RoundCounts: store.RoundCounts{Rounds: 1}},
	}
	w.equal("rounds", []int64{
		resultOf(w.Store.RoundsBetween(w.Ctx, "/w", from, to.Add(time.Hour)))(w), resultOf(w.Store.RoundsBetween(w.Ctx, "", from.Add(-time.Hour), from))(w),
	}, []int64{2, 0})
	w.equal("by workspace", read("", "workspace", from, to), want, cmpopts.IgnoreFields(store.RollUp{}, "Hour"))
	w.equal("elsewhere", len(read("/elsewhere", "", from, to)), 0)
	w.equal("before", len(read("/w", "agent", from.Add(-time.Hour), from)), 0)
	tools := resultOf(w.Store.ToolCounts(w.Ctx, "/w", from, to))(w)
	w.equal("tools", tools, []store.ToolCount{
		{Tool: "t.action", Bucket: 21, Calls: 1}, // from 1 s
		{Tool: "t.query", Bucket: 5, Calls: 1, Succeeded: 1},
	})
	w.equal("costs", resultOf(w.Store.DayCosts(w.Ctx, "/w", to))(w)[0].Cost, int64(42))
	w.must(w.Store.VerifyStats(w.Ctx))
}

// RollUpsDiffer asserts that roll-ups that were altered are noticed, and that both the backfill of
// the migration and RebuildStats write them as the transitions do.
func (w *World) RollUpsDiffer(migration string, exec func(statement string)) {
	w.T.Helper()
	countedRounds(w)
	w.must(w.Store.VerifyStats(w.Ctx))
	exec("UPDATE tool_stats SET calls = calls + 1")
	w.refused(regie.CodeChainBroken, w.Store.VerifyStats(w.Ctx))
	w.must(w.Store.RebuildStats(w.Ctx))
	w.must(w.Store.VerifyStats(w.Ctx))
	exec("DELETE FROM round_stats")
	exec("DELETE FROM tool_stats")
	w.refused(regie.CodeChainBroken, w.Store.VerifyStats(w.Ctx))
	_, backfill, _ := strings.Cut(migration, "-- The rounds that had ended before.\n")
	for statement := range strings.SplitSeq(strings.TrimSuffix(backfill, "-- +goose StatementEnd\n"), ";\n") {
		if statement != "" {
			exec(statement)
		}
	}
	w.must(w.Store.VerifyStats(w.Ctx))
}
