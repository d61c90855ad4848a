package web

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// chatRoutes are what the menu of a chat and the foot of an answer do.
func chatRoutes() map[string]func(*visit) error {
	return map[string]func(*visit) error{
		"POST /chats/{id}/fork": forkChat, "POST /chats/{id}/rename": renameChat,
		"GET /chats/{id}/delete": showRemoval, "POST /chats/{id}/delete": removeChat,
		"GET /chats/{id}/undo": showUndo, "POST /chats/{id}/undo": undoRound,
		"GET /chats/{id}/export": exportChat, "POST /chats/{id}/resume": resumeChat,
		"GET /approvals/{id}/edit": showEdit, "POST /approvals/{id}/edit": showEdit,
		"GET /offers": listOffers, "GET /more": showMore,
	}
}

// forkChat copies a chat up to the end of a round, or the whole of it.
func forkChat(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	to, err := fork(v, id, v.field("round"))
	if err != nil {
		return v.failForm("send", err)
	}
	return v.done(to)
}

func fork(v *visit, id regie.ID, round string) (to string, err error) {
	in := dispatch.ForkRequest{SessionID: regie.NewID(), From: id}
	if round != "" {
		if in.RoundID, err = regie.ParseID(round); err != nil {
			return "", err
		}
	}
	_, err = v.site.Service.Sessions.Fork(v.r.Context(), in)
	return "/chats/" + in.SessionID.String(), err
}

// renameChat gives a chat a name.
func renameChat(v *visit) error {
	id, err := v.id()
	if err == nil {
		err = v.site.Service.Sessions.Rename(v.r.Context(), dispatch.SessionChange{SessionID: id, Name: v.field("name")})
	}
	if err != nil {
		return v.failForm("send", err)
	}
	return v.done("/chats/" + id.String())
}

// resumeChat goes on with the paused run of a chat.
func resumeChat(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	round, err := newestRound(v, id)
	if err == nil {
		err = v.site.Service.Rounds.Resume(v.r.Context(), round)
	}
	if err != nil {
		return v.failForm("send", err)
	}
	return v.done("/chats/" + id.String())
}

func newestRound(v *visit, chat regie.ID) (regie.ID, error) {
	rounds, err := v.site.Service.Rounds.List(v.r.Context(), store.RoundFilter{SessionID: chat, Limit: 1})
	if err == nil && len(rounds) == 0 {
		err = regie.Errorf(regie.CodeConflict, "nothing runs in this chat")
	}
	if err != nil {
		return regie.ID{}, err
	}
	return rounds[0].Round.ID, nil
}

// removalPage asks whether a chat is to be deleted.
type removalPage struct {
	*frame
	Chat     string // its path
	Name     string
	Messages int
	Works    bool
}

func showRemoval(v *visit) error {
	summary, err := v.summary()
	if err != nil {
		return err
	}
	f := v.newFrame("chats", v.text.T("Delete this chat?"))
	page := removalPage{
		frame: f, Chat: "/chats/" + summary.ID.String(), Name: v.sessionName(summary.Name), Messages: summary.Messages,
		Works: summary.State == regie.SessionActive,
	}
	if err := v.fillFrame(f); err != nil {
		return err
	}
	v.render(http.StatusOK, "removal", page)
	return nil
}

// summary reads the session that the path names.
func (v *visit) summary() (out store.SessionSummary, err error) {
	id, err := v.id()
	if err != nil {
		return out, err
	}
	found, err := v.site.Service.Sessions.List(v.r.Context(), store.SessionFilter{ID: id})
	if err == nil && len(found) != 1 {
		err = regie.Errorf(regie.CodeNotFound, "there is no chat %s here", id)
	}
	if err != nil {
		return out, err
	}
	return found[0], nil
}

func removeChat(v *visit) error {
	id, err := v.id()
	if err == nil {
		_, err = v.site.Service.Sessions.Remove(v.r.Context(), dispatch.RemoveRequest{SessionID: id})
	}
	if err != nil {
		return err
	}
	return v.done("/")
}

// exportChat sends a chat as a file, as the command regie sessions export writes it.
func exportChat(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	export, err := v.site.Service.Sessions.Export(v.r.Context(), id)
	if err != nil {
		return err
	}
	kind, ending := "application/json", ".json"
	markdown := v.r.URL.Query().Get("format") == "markdown"
	if markdown {
		kind, ending = "text/markdown; charset=utf-8", ".md"
	}
	h := v.w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Disposition", `attachment; filename="regie-`+id.String()+ending+`"`)
	if markdown {
		chat.Markdown(v.w, v.text, &export)
		return nil
	}
	out := json.NewEncoder(v.w)
	out.SetIndent("", "  ")
	_ = out.Encode(export) // the client has gone if this fails
	return nil
}

// undoPage shows what an undo would do, before it is done.
type undoPage struct {
	*frame
	Chat    string // its path
	Plan    *regie.UndoPlan
	Request dispatch.UndoRequest
	Files   []undoneFile
	Removes string
	Effects []string
	Blocked bool // a conflict is in the way
	Force   bool // and can be overridden
}

// undoneFile is what becomes of one file.
type undoneFile struct {
	fileDiff
	Sentence, Conflict string
	Warnings           []string
}

// undoRequest reads which undo a request is about: of a run, or of an undo.
func (v *visit) undoRequest(values func(string) string) (in dispatch.UndoRequest, err error) {
	in.Chat, in.Force = true, values("force") != ""
	if in.SessionID, err = v.id(); err == nil && values("target") != "" {
		in.Target, err = regie.ParseID(values("target"))
	}
	return in, err
}

func showUndo(v *visit) error {
	in, err := v.undoRequest(v.r.URL.Query().Get)
	if err != nil {
		return err
	}
	return renderUndo(v, in, "")
}

func renderUndo(v *visit, in dispatch.UndoRequest, problem string) error {
	in.Plan, in.UndoID = regie.Hash{}, regie.ID{} // those of the plan that is shown now
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
		Blocked: len(plan.Conflicts(in.Force)) > 0, Force: !in.Force && len(plan.Conflicts(true)) == 0,
		Removes: sanitize.Line(strings.Join(plan.Removes, ", ")),
	}
	for i := range plan.Previews {
		preview := &plan.Previews[i]
		file := undoneFile{
			fileDiff: parseFileDiff("f-"+plan.Files[i].Path, plan.Files[i].Path, preview.Diff),
			Sentence: capitalize(sanitize.Line(v.text.Sentence(preview.Sentence))),
		}
		if preview.Conflict != nil {
			file.Conflict = sanitize.Line(v.text.Sentence(preview.Conflict.Sentence))
		}
		for _, warning := range preview.Warnings {
			file.Warnings = append(file.Warnings, sanitize.Line(v.text.Sentence(warning)))
		}
		page.Files = append(page.Files, file)
	}
	for i := range plan.Effects {
		e := &plan.Effects[i]
		page.Effects = append(page.Effects, callSentence(v.text, &regie.Call{Tool: e.Tool, Arguments: e.Arguments}))
	}
	if err := v.fillFrame(f); err != nil {
		return err
	}
	v.render(statusOf(problem), "undo", page)
	return nil
}

// undoRound undoes what a page has shown, and nothing else.
func undoRound(v *visit) error {
	in, err := v.undoRequest(v.field)
	if err == nil {
		in.UndoID, err = regie.ParseID(v.field("undo_id"))
	}
	if err == nil {
		err = in.Plan.UnmarshalText([]byte(v.field("plan")))
	}
	if err != nil {
		return err
	}
	if _, err := v.site.Service.Undos.Undo(v.r.Context(), in); err != nil {
		return renderUndo(v, in, v.text.Error(err))
	}
	return v.done("/chats/" + in.SessionID.String())
}
