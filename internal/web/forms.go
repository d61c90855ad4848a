package web

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// field returns a field of the form, without the spaces around it.
func (v *visit) field(name string) string { return strings.TrimSpace(v.r.PostForm.Get(name)) }

// failForm shows the page of a form again, with the reason at the item that it is about.
func (v *visit) failForm(about string, err error) error {
	if v.byScript() {
		return err
	}
	said, next := v.text.Error(err), v.next()
	if chat, bad := regie.ParseID(strings.TrimPrefix(next, "/chats/")); bad == nil {
		return v.renderChat(chat, about, said, v.r.PostForm.Get("text"))
	}
	if strings.HasPrefix(next, "/inbox") && len(about) > 2 {
		page, err := v.loadInbox(v.r.Context(), about[2:], said)
		if err == nil {
			v.render(statusOf(said), "inbox", page)
		}
		return err
	}
	return err
}

// message makes the request of a message that a form holds.
func (v *visit) message(session regie.ID) dispatch.RunRequest {
	in := dispatch.RunRequest{
		ClientID: cmp.Or(v.field("client_message_id"), regie.NewID().String()), SessionID: session,
		Text:     strings.ReplaceAll(strings.TrimSpace(v.r.PostForm.Get("text")), "\r\n", "\n"),
		WhenBusy: store.WhenBusy(cmp.Or(v.field("when_busy"), string(store.Queue))),
	}
	in.Policy.OnApproval, in.Policy.Questions = "park", true // who speaks here can answer here
	return in
}

var errNoText = regie.Errorf(regie.CodeBadRequest, "the message is empty: write what should be done")

// beginChat makes a chat with its first message.
func beginChat(v *visit) error {
	session, err := regie.ParseID(v.field("session_id"))
	if err != nil {
		return err
	}
	in := v.message(session)
	in.ApprovalMode, in.Agent = regie.Mode(v.field("mode")), v.field("agent")
	place, err := findPlace(v, v.field("workspace_id"))
	if in.WorkspaceID = place.ID; err == nil {
		err = submitMessage(v, &in, place.Root)
	}
	if err != nil {
		return v.renderNew(v.r.PostForm.Get("text"), v.text.Error(err))
	}
	return v.done("/chats/" + session.String())
}

// sendMessage sends a message in a chat.
func sendMessage(v *visit, id regie.ID) error {
	found, err := v.site.Service.Sessions.List(v.r.Context(), store.SessionFilter{ID: id})
	if err == nil && len(found) != 1 {
		err = regie.Errorf(regie.CodeNotFound, "there is no chat %s here", id)
	}
	if err != nil {
		return err
	}
	in := v.message(id)
	return v.finishForm("send", submitMessage(v, &in, found[0].Root), "/chats/"+id.String())
}

// submitMessage sends the message of a form to a chat of the workspace at root.
func submitMessage(v *visit, in *dispatch.RunRequest, root string) error {
	err := completeMessage(v, in, root)
	if err == nil {
		err = attachImages(v, in)
	}
	if err == nil && in.Text == "" && len(in.Segments) == 0 {
		err = errNoText
	}
	if err == nil {
		_, err = v.site.Service.Rounds.Submit(v.r.Context(), *in)
	}
	return err
}

// takeBack takes a message back that waits for its turn.
func takeBack(v *visit, id regie.ID) error {
	message, err := regie.ParseID(v.field("message_id"))
	if err == nil {
		in := dispatch.TakeBackRequest{SessionID: id, MessageID: message}
		_, err = v.site.Service.Sessions.TakeBack(v.r.Context(), in)
	}
	return v.finishForm("p-"+message.String(), err, "/chats/"+id.String())
}

// decideCalls takes a person's word on the calls of an approval that the form names.
func decideCalls(v *visit, id regie.ID) error {
	about := "a-" + id.String()
	found, err := v.site.Service.Approvals.Inbox(v.r.Context(), store.InboxFilter{ID: id})
	if err == nil && len(found.Approvals) != 1 {
		err = regie.Errorf(regie.CodeNotFound, "there is no approval %s here", id)
	}
	if err != nil {
		return v.failForm(about, err)
	}
	decisions, err := v.decisions(&found.Approvals[0])
	in := dispatch.DecideRequest{ApprovalID: id, Decisions: decisions, Request: requestID(id, decisions)}
	if shown := v.field("shown"); err == nil && shown != "" {
		if json.Unmarshal([]byte(shown), &in.Shown) != nil {
			err = regie.Errorf(regie.CodeBadRequest, "the form does not say what was shown: open its page again")
		}
	}
	if err == nil {
		_, err = v.site.Service.Approvals.Decide(v.r.Context(), in)
	}
	return v.finishForm(about, err, v.next())
}

// decisions are what a form says of the calls that it names.
func (v *visit) decisions(a *regie.Approval) (out []regie.Decision, err error) {
	answer := regie.Answer(v.field("answer"))
	for i := range a.Reviews {
		r := &a.Reviews[i]
		if !slices.Contains(v.r.PostForm["call"], r.CallID.String()) {
			continue
		}
		d := regie.Decision{CallID: r.CallID, Answer: answer}
		if answer == regie.AnswerDeny {
			d.Reason = v.field("reason")
		}
		if edited := v.field("arguments"); edited != "" && len(v.r.PostForm["call"]) == 1 {
			d.Arguments = json.RawMessage(edited)
		}
		n, bad := strconv.Atoi(v.field("scope"))
		if bad == nil && len(a.Reviews) == 1 && n >= 0 && n < len(r.Preview.Scopes) &&
			(answer == regie.AnswerSession || answer == regie.AnswerAlways) {
			d.Scope = &r.Preview.Scopes[n]
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return nil, regie.Errorf(regie.CodeBadRequest, "no call is chosen: mark those that the answer is about")
	}
	return out, nil
}

// requestID is the id of an answer: the same answer again adds nothing.
func requestID(id regie.ID, answer any) string {
	data, _ := json.Marshal(answer) // plain data
	sum := sha256.Sum256(append(id[:], data...))
	return "web-" + hex.EncodeToString(sum[:12])
}

// answerQuestion takes a person's answer to a question.
func answerQuestion(v *visit, id regie.ID) error {
	reply := regie.QuestionReply{Text: v.field("reply_text")}
	reply.Choices = slices.DeleteFunc(v.r.PostForm["choice"], func(choice string) bool { return choice == "" })
	if said := v.field("yes"); said != "" {
		reply.Yes = new(said == "yes")
	}
	_, err := v.site.Service.Approvals.Answer(v.r.Context(), dispatch.AnswerRequest{
		QuestionID: id, Reply: reply, Request: requestID(id, reply),
	})
	return v.finishForm("q-"+id.String(), err, v.next())
}

// resolveCall takes a person's word on a call with an unknown outcome.
func resolveCall(v *visit, id regie.ID) error {
	err := v.site.Service.Approvals.Resolve(v.r.Context(), dispatch.ResolveRequest{
		CallID: id, As: regie.ResolvedAs(v.field("as")), Note: v.field("note"),
	})
	return v.finishForm("u-"+id.String(), err, v.next())
}
