package storetest

import "github.com/regie-run/regie"

// notFound asks for missing rows.
func notFound(w *World) {
	id := regie.NewID()
	_, _, err := w.Store.Session(w.Ctx, id)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.Round(w.Ctx, id)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.RoundView(w.Ctx, id)
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.Claim(w.Ctx, id, "x")
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.RequestStop(w.Ctx, id, regie.StopPause)
	w.refused(regie.CodeNotFound, err)
	w.refused(regie.CodeNotFound, w.Store.Resume(w.Ctx, id))
	_, err = w.Store.Verify(w.Ctx, id)
	w.refused(regie.CodeNotFound, err)
	in := w.Submission("x")
	in.New = nil
	_, err = w.Store.Submit(w.Ctx, in)
	w.refused(regie.CodeNotFound, err)
}
