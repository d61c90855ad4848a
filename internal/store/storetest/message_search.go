package storetest

import (
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

var saidCases = map[string]func(*World){
	"Said":  said,
	"Names": names,
}

// said searches the messages in the sessions of a workspace, the newest first, page by page (spec
// 10.2, search).
func said(w *World) {
	var want []string
	for _, text := range []string{"first", "second"} {
		accepted := resultOf(w.Store.Submit(w.Ctx, w.Submission(text)))(w)
		w.must(w.AppendReply(accepted.Fence, w.Answer(1)))
		want = append(want, "USER in "+text, "AI in "+text)
	}
	gone := resultOf(w.Store.Submit(w.Ctx, w.Submission("gone")))(w)
	w.must(w.AppendReply(gone.Fence, w.Answer(1)))
	resultOf(w.Store.Remove(w.Ctx, store.Remove{SessionID: gone.Fence.SessionID, By: "ada"}))(w)
	slices.Reverse(want)
	read := func(workspace, before regie.ID, most int) (out []string, last regie.ID) {
		w.must(w.Store.Said(w.Ctx, workspace, before, func(m store.SaidMessage) bool {
			out, last = append(out, string(m.Sender)+" in "+m.Session), m.ID
			return len(out) < most
		}))
		return out, last
	}
	all, _ := read(w.Workspace.ID, regie.ID{}, 100)
	w.equal("all", all, want)
	first, last := read(w.Workspace.ID, regie.ID{}, 1)
	w.equal("the newest", first, want[:1])
	rest, _ := read(w.Workspace.ID, last, 100)
	w.equal("the others", rest, want[1:])
	none, _ := read(regie.NewID(), regie.ID{}, 100)
	w.equal("elsewhere", len(none), 0)
}

// names finds users, workspaces, calls and messages by name or part of an id.
func names(w *World) {
	user, err := w.Store.UserNamed(w.Ctx, "ada")
	w.must(err)
	w.equal("a user", user, w.User)
	user, err = w.Store.UserNamed(w.Ctx, "nobody")
	w.must(err)
	w.equal("no user", user, regie.ID{})
	another, err := w.Store.EnsureWorkspace(w.Ctx, w.User, regie.Workspace{Name: "a", Root: "/a", FoundBy: "git"})
	w.must(err)
	workspaces, err := w.Store.Workspaces(w.Ctx)
	w.must(err)
	w.equal("workspaces", []regie.ID{workspaces[0].ID, workspaces[1].ID}, []regie.ID{another.ID, w.Workspace.ID})

	in := w.Submission("go")
	in.Message.ClientID = "key"
	accepted, err := w.Store.Submit(w.Ctx, in)
	w.must(err)
	active := resultOf(w.Store.LastActive(w.Ctx))(w)
	w.equal("active workspaces", len(active), 1)
	w.equal("last active", active[w.Workspace.ID], accepted.Message.Time.Truncate(time.Microsecond))
	for id, want := range map[string]bool{"key": true, "other": false, "": false} {
		known, err := w.Store.Known(w.Ctx, in.SessionID, id)
		w.must(err)
		w.equal("known "+id, known, want)
	}
	reply := w.Reply(accepted.Fence, 1, regie.KindQuery, regie.KindQuery)
	w.must(w.AppendReply(accepted.Fence, reply))
	id := reply.Calls[1].ID
	for _, root := range []string{"", w.Workspace.Root} {
		found, err := w.Store.CallNamed(w.Ctx, root, id.String()[24:])
		w.must(err)
		w.equal("a call in "+root, found, id)
	}
	for part, code := range map[string]regie.Code{id.String()[24:]: regie.CodeNotFound, "x' OR 1": regie.CodeBadID} {
		_, err = w.Store.CallNamed(w.Ctx, another.Root, part)
		w.refused(code, err)
	}
	waiting, err := w.Store.Waiting(w.Ctx, in.SessionID)
	w.must(err)
	w.equal("nobody waits for a client", len(waiting), 0)
	kind, asks, err := w.Store.Standing(w.Ctx, in.SessionID)
	w.must(err)
	w.equal("standing", []any{kind, asks}, []any{regie.SessionChat, false})
	kind, _, err = w.Store.Standing(w.Ctx, regie.NewID())
	w.must(err)
	w.equal("of no session", kind, regie.SessionType(""))
}
