package web

import (
	"encoding/json"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// editPage is where the arguments of a call are edited before it is allowed.
type editPage struct {
	*frame
	Approval        regie.ID
	Chat, Arguments string // Chat is a path
	Part            reviewPart
	// Edited is what the edited call would do: with Exact as its arguments, made from Shown.
	Edited       *reviewPart
	Exact, Shown string
}

// showEdit shows the arguments of a call for editing. A POST shows what the edited call would do.
func showEdit(v *visit, id regie.ID) error {
	found, err := v.site.Service.Approvals.Inbox(v.r.Context(), store.InboxFilter{ID: id})
	if err != nil {
		return err
	}
	for i := range found.Approvals {
		a := &found.Approvals[i]
		for j := range a.Reviews {
			if r := &a.Reviews[j]; r.CallID.String() == v.r.FormValue("call") && r.Decision == nil {
				return renderEdit(v, a, r)
			}
		}
	}
	return regie.Errorf(regie.CodeNotFound, "there is no such call that waits for an answer")
}

func renderEdit(v *visit, a *regie.Approval, r *regie.Review) error {
	f := v.newFrame("chats", v.text.T("Edit before you allow"))
	page := editPage{frame: f, Approval: a.ID, Chat: "/chats/" + a.SessionID.String(), Part: v.reviewPart(r)}
	if v.r.Method == http.MethodPost {
		page.Arguments = v.r.PostForm.Get("arguments")
		f.Problem = v.text.Error(page.review(v))
	} else {
		page.Arguments = string(chat.Pretty(r.Arguments))
	}
	return renderFilled(v, f, "edit", page)
}

// review looks at what the edited call would do; nothing is stored.
func (p *editPage) review(v *visit) error {
	if !json.Valid([]byte(p.Arguments)) {
		return regie.Errorf(regie.CodeBadRequest, "the arguments are no JSON: check quotes, commas and brackets")
	}
	decision := regie.Decision{CallID: p.Part.CallID, Answer: regie.AnswerAllow, Arguments: []byte(p.Arguments)}
	reviewed, err := v.site.Service.Approvals.Review(v.r.Context(),
		dispatch.DecideRequest{ApprovalID: p.Approval, Decisions: []regie.Decision{decision}})
	if err != nil || len(reviewed.Reviews) != 1 {
		return err
	}
	edited := &reviewed.Reviews[0]
	part := v.reviewPart(edited)
	shown, err := json.Marshal(chat.ShownEdit(edited))
	p.Edited, p.Exact, p.Shown = &part, string(edited.Arguments), string(shown)
	return err
}
