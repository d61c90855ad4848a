package web

import (
	"context"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// inboxPage is everything that waits for the person.
type inboxPage struct {
	*frame
	Items []item
}

func (s *Site) showInbox(v *visit) error { return v.renderInbox("", "") }

func (v *visit) renderInbox(about, problem string) error {
	page, err := v.loadInbox(v.r.Context(), about, problem)
	if err != nil {
		return err
	}
	page.Stream = "/inbox/stream"
	v.render(statusOf(problem), "inbox", page)
	return nil
}

func (v *visit) loadInbox(ctx context.Context, about, problem string) (*inboxPage, error) {
	f := v.newFrame("inbox", v.text.T("Inbox"))
	f.Path = "/inbox"
	if err := v.fillFrame(f); err != nil {
		return nil, err
	}
	inbox, err := v.site.Service.Approvals.Inbox(ctx, store.InboxFilter{Limit: shownWaiting})
	if err != nil {
		return nil, err
	}
	b := v.newThread(&inbox, nil)
	b.about, b.problem, b.next = about, problem, f.Path
	if problem != "" { // what the form was about may be closed by now, and is shown with how it was
		v.addClosed(ctx, &inbox, about)
	}
	for i := range inbox.Approvals {
		card := v.approvalCard(&inbox.Approvals[i])
		card.Form, card.Brief = b.form(card.ID), true
		b.add(card.ID, "item-approval", card)
	}
	for i := range inbox.Questions {
		card := v.questionCard(&inbox.Questions[i])
		card.Form, card.Brief = b.form(card.ID), true
		b.add(card.ID, "item-question", card)
	}
	if !shows(b.items, about) {
		f.Problem = problem
	}
	return &inboxPage{frame: f, Items: b.items}, b.err
}

// addClosed adds the request that an item is about, where it is no longer open.
func (v *visit) addClosed(ctx context.Context, inbox *store.Inbox, about string) {
	if len(about) < 2 {
		return
	}
	id, err := regie.ParseID(about[2:])
	if err != nil {
		return
	}
	found, err := v.site.Service.Approvals.Inbox(ctx, store.InboxFilter{ID: id})
	if err != nil {
		return
	}
	for i := range found.Approvals {
		if found.Approvals[i].State != regie.ApprovalOpen {
			inbox.Approvals = append(inbox.Approvals, found.Approvals[i])
		}
	}
	for i := range found.Questions {
		if found.Questions[i].State != regie.WaitOpen {
			inbox.Questions = append(inbox.Questions, found.Questions[i])
		}
	}
}
