package storetest

import (
	"encoding/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

func agentVersions(w *World) {
	save := func(name, definition string, after int) (store.AgentVersion, error) {
		return w.Store.SaveAgent(w.Ctx, store.SaveAgent{
			Name: name, Definition: json.RawMessage(definition), By: "ada", After: after,
		})
	}
	names := func() (out []string) {
		for _, v := range resultOf(w.Store.Agents(w.Ctx))(w) {
			out = append(out, v.Name)
		}
		return out
	}
	first := resultOf(save("reviewer", `{"model":"small"}`, 0))(w)
	w.equal("first version", first.Version, 1)
	_, err := save("reviewer", `{}`, 0)
	w.refused(regie.CodeConflict, err)
	_, err = save("nobody", `{}`, 1)
	w.refused(regie.CodeNotFound, err)
	second := resultOf(save("reviewer", `{"model":"large"}`, 1))(w)
	_, err = save("reviewer", `{}`, 1)
	w.refused(regie.CodeConflict, err)
	w.must(func() error { _, err := save("clerk", `{}`, 0); return err }())
	w.equal("agents", names(), []string{"clerk", "reviewer"})
	w.equal("the newest", resultOf(w.Store.Agent(w.Ctx, "reviewer", 0))(w).Definition, second.Definition)
	w.equal("the first", resultOf(w.Store.Agent(w.Ctx, "reviewer", 1))(w).Definition, first.Definition)

	w.must(func() error { _, err := save("reviewer", "", 2); return err }())
	w.equal("agents", names(), []string{"clerk"})
	_, err = w.Store.Agent(w.Ctx, "reviewer", 0)
	w.refused(regie.CodeNotFound, err)
	_, err = save("reviewer", `{}`, 3)
	w.refused(regie.CodeNotFound, err)
	w.equal("the version of a session", resultOf(w.Store.Agent(w.Ctx, "reviewer", 2))(w).Definition, second.Definition)
	again := resultOf(save("reviewer", `{"model":"m"}`, 0))(w)
	w.equal("made again", again.Version, 4)

	all := resultOf(w.Store.AgentVersions(w.Ctx, "reviewer"))(w)
	w.equal("versions, the third a deletion", []any{len(all), len(all[2].Definition), all[3].By}, []any{4, 0, "ada"})

	in := w.Submission("hello")
	in.New.Agent, in.New.AgentVersion = "reviewer", 4
	w.must(func() error { _, err := w.Store.Submit(w.Ctx, in); return err }())
	session, _, err := w.Store.Session(w.Ctx, in.SessionID)
	w.must(err)
	w.equal("agent version", session.AgentVersion, 4)
	forked := resultOf(w.Store.Fork(w.Ctx, store.Fork{SessionID: regie.NewID(), From: in.SessionID}))(w)
	session, _, err = w.Store.Session(w.Ctx, forked.Session.ID)
	w.must(err)
	w.equal("agent version of a fork", session.AgentVersion, 4)
}
