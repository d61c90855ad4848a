package storetest

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// visitors: a secret opens one session, which lists leave out, and what the visitors of a widget
// spend counts together, and against the cap of their widget.
func visitors(w *World) {
	now := time.Now()
	in := w.Submission("where is my order?")
	visitor := store.Visitor{
		SessionID: in.SessionID, Widget: "support", Hash: regie.HashOf([]byte("secret")),
		ExpiresAt: now.Add(time.Hour).Truncate(time.Microsecond),
	}
	w.must(w.Store.CreateVisitor(w.Ctx, visitor))
	found := resultOf(w.Store.VisitorBySecret(w.Ctx, visitor.Hash))(w)
	w.equal("visitor", []any{found.SessionID, found.Widget, found.ExpiresAt.UnixMicro()},
		[]any{visitor.SessionID, visitor.Widget, visitor.ExpiresAt.UnixMicro()})
	_, err := w.Store.VisitorBySecret(w.Ctx, regie.HashOf([]byte("another")))
	w.refused(regie.CodeNotFound, err)
	fence := startFree(w, in)
	w.equal("listed", len(resultOf(w.Store.Sessions(w.Ctx, store.SessionFilter{}))(w)), 0)
	w.equal("listed by its id", len(resultOf(w.Store.Sessions(w.Ctx, store.SessionFilter{ID: in.SessionID}))(w)), 1)
	used := func(widget string) int64 { return resultOf(w.Store.WidgetUsed(w.Ctx, widget, now))(w) }
	again := visitor
	again.SessionID = regie.NewID()
	w.must(w.Store.CreateVisitor(w.Ctx, again))
	w.equal("with the same secret", resultOf(w.Store.VisitorBySecret(w.Ctx, visitor.Hash))(w).SessionID, in.SessionID)
	w.equal("used before", used("support"), int64(0))
	wants := store.Reservation{Prompt: 40, Reply: 50, Least: 10, Caps: regie.Caps{Widget: 100}}
	w.equal("granted", resultOf(w.Store.Reserve(w.Ctx, fence, 1, wants))(w).Reserved, int64(90))
	w.equal("used", []int64{used("support"), used("other")}, []int64{90, 0})

	second := w.Submission("and mine?")
	visitor.SessionID, visitor.Hash = second.SessionID, regie.HashOf([]byte("second"))
	w.must(w.Store.CreateVisitor(w.Ctx, visitor))
	other := startFree(w, second)
	refused := resultOf(w.Store.Reserve(w.Ctx, other, 1, wants))(w).Refused
	if refused == nil || *refused != (store.OverCap{Scope: regie.CapWidget, Cap: 100, Used: 90}) {
		w.T.Errorf("a second visitor gets %+v", refused)
	}
	plain := startFree(w, w.Submission("no visitor"))
	w.equal("granted outside", resultOf(w.Store.Reserve(w.Ctx, plain, 1, wants))(w).Reserved, int64(90))
}
