package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// onChat handles a form about a chat: do returns the page to show then, "" for that of the chat.
func onChat(do func(v *visit, id regie.ID) (to string, err error)) func(*visit) error {
	return withID(func(v *visit, id regie.ID) error {
		to, err := do(v, id)
		return v.finishForm("send", err, cmp.Or(to, "/chats/"+id.String()))
	})
}

// markRead says how far the page has been shown to the person.
func markRead(v *visit, id regie.ID) (string, error) {
	seq, _ := strconv.ParseInt(v.field("seq"), 10, 64) // 0 for what is no number
	return "", v.site.Service.Sessions.MarkRead(v.r.Context(), dispatch.ReadRequest{SessionID: id, Seq: seq})
}

func stopChat(v *visit, id regie.ID) (string, error) {
	_, err := v.site.Service.Sessions.Stop(v.r.Context(), id)
	return "", err
}

func setMode(v *visit, id regie.ID) (string, error) {
	return "", v.site.Service.Sessions.SetMode(v.r.Context(),
		dispatch.SessionChange{SessionID: id, ApprovalMode: regie.Mode(v.field("mode"))})
}

// forkChat copies a chat up to the end of a round, or the whole of it.
func forkChat(v *visit, id regie.ID) (string, error) {
	in := dispatch.ForkRequest{SessionID: regie.NewID(), From: id}
	in.RoundID, _ = regie.ParseID(v.field("round")) // zero for the whole chat
	_, err := v.site.Service.Sessions.Fork(v.r.Context(), in)
	return "/chats/" + in.SessionID.String(), err
}

func renameChat(v *visit, id regie.ID) (string, error) {
	change := dispatch.SessionChange{SessionID: id, Name: v.field("name")}
	return "", v.site.Service.Sessions.Rename(v.r.Context(), change)
}

func removeChat(v *visit, id regie.ID) (string, error) {
	_, err := v.site.Service.Sessions.Remove(v.r.Context(), dispatch.RemoveRequest{SessionID: id})
	return "/", err
}

// resumeChat goes on with the paused run of a chat.
func resumeChat(v *visit, id regie.ID) (string, error) {
	rounds, err := v.site.Service.Rounds.List(v.r.Context(), store.RoundFilter{SessionID: id, Limit: 1})
	if err == nil && len(rounds) > 0 {
		err = v.site.Service.Rounds.Resume(v.r.Context(), rounds[0].Round.ID)
	}
	return "", err
}

// exportChat sends a chat as a file, as the command regie sessions export writes it.
func exportChat(v *visit, id regie.ID) error {
	export, err := v.site.Service.Sessions.Export(v.r.Context(), id)
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	name := `attachment; filename="regie-` + id.String()
	if v.r.URL.Query().Get("format") == "markdown" {
		h.Set("Content-Type", "text/markdown; charset=utf-8")
		h.Set("Content-Disposition", name+`.md"`)
		chat.Markdown(v.w, v.text, &export)
		return nil
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", name+`.json"`)
	out := json.NewEncoder(v.w)
	out.SetIndent("", "  ")
	_ = out.Encode(export) // the client has gone if this fails
	return nil
}

// undoPage shows what an undo would do, before it is done.
type undoPage struct {
	*frame
	Chat               string // its path
	Plan               *regie.UndoPlan
	Request            dispatch.UndoRequest
	Files              []reviewPart
	Effects, Conflicts []string
	CanForce           bool
}

// showUndo shows the plan of an undo. A POST agrees to the plan that it names.
func showUndo(v *visit) error {
	in := dispatch.UndoRequest{Chat: true, Force: v.r.FormValue("force") != ""}
	var err error
	if in.SessionID, err = v.id(); err != nil {
		return err
	}
	in.Target, _ = regie.ParseID(v.r.FormValue("target")) // zero for the newest run
	if v.r.Method != http.MethodPost {
		return renderUndo(v, in, "")
	}
	agreed := in
	if agreed.UndoID, err = regie.ParseID(v.field("undo_id")); err == nil {
		err = agreed.Plan.UnmarshalText([]byte(v.field("plan")))
	}
	if err == nil {
		_, err = v.site.Service.Undos.Undo(v.r.Context(), agreed)
	}
	if err != nil {
		return renderUndo(v, in, v.text.Error(err))
	}
	return v.done("/chats/" + in.SessionID.String())
}

func renderUndo(v *visit, in dispatch.UndoRequest, problem string) error {
	plan, err := v.site.Service.Undos.Plan(v.r.Context(), in)
	if err != nil {
		return err
	}
	f := v.newFrame("chats", v.text.T("Undo this run?"))
	if !plan.Undoes.IsZero() {
		f.Title = v.text.T("Bring this run back?")
	}
	f.Problem = problem
	page := undoPage{
		frame: f, Chat: "/chats/" + plan.SessionID.String(), Plan: &plan, Request: chat.Agreed(in, &plan),
		CanForce: !in.Force && len(plan.Conflicts(true)) == 0,
	}
	for i := range plan.Previews {
		p, path := &plan.Previews[i], plan.Files[i].Path
		page.Files = append(page.Files, reviewPart{
			Sentence: capitalize(v.sayLine(p.Sentence)), Warnings: sentences(v, p.Warnings),
			fileDiff: parseFileDiff("f-"+path, path, p.Diff),
		})
		if c := p.Conflict; c != nil && (!in.Force || !c.Forceable) {
			page.Conflicts = append(page.Conflicts, sanitize.Line(path+": "+v.text.Sentence(c.Sentence)))
		}
	}
	for i := range plan.Effects {
		e := &plan.Effects[i]
		page.Effects = append(page.Effects, callSentence(v.text, &regie.Call{Tool: e.Tool, Arguments: e.Arguments}))
	}
	if len(plan.Removes) > 0 {
		gone := sanitize.Line(strings.Join(plan.Removes, ", "))
		page.Effects = append(page.Effects, v.text.T("directories that become empty are removed: %s", gone))
	}
	return renderFilled(v, f, "undo", page)
}
