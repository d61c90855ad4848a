package web

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// inboxPage is everything that waits for the person: a list, and one of its items next to it.
type inboxPage struct {
	*frame
	Kind   string // of the list: empty, decide, failed or aside
	Tabs   []inboxTab
	Shown  *inboxItem
	Detail template.HTML // the card of Shown
	Picked bool          // the address names it
	Later  []laterChoice
	Form   formOf
	Aside  int
	Back   time.Time // when the first of these comes back
}

type inboxTab struct {
	Kind, Word string
	Count      int
}

// inboxItem is a line of the inbox. Its id is that of an approval, question, call or session.
type inboxItem struct {
	ID                               regie.ID
	Key, Kind                        string // Kind: decide, failed, resume or seen
	Class, Icon, Title, Place, Query string
	Session                          regie.ID
	At, Deadline, Until              time.Time
	Left                             string
	Current                          bool

	rank     int
	card     *card // nil: none, else a part of cardData, which template shows
	cardData any
	template string
}

// laterChoice is a time until which an item is set aside.
type laterChoice struct {
	Value, Word string
	At          time.Time
}

func loadInbox(ctx context.Context, v *visit) (*inboxPage, error) {
	return v.loadInbox(ctx, cmp.Or(v.r.PathValue("id"), v.r.URL.Query().Get("id")), "")
}

// loadInbox reads the inbox, where a form failed with its problem. id names the item that it is
// about; the first one where it is empty.
func (v *visit) loadInbox(ctx context.Context, id, problem string) (*inboxPage, error) {
	page := &inboxPage{
		frame: v.newFrame("inbox", v.text.T("Inbox")), Kind: v.r.URL.Query().Get("kind"), Picked: id != "",
	}
	page.Path = "/inbox"
	if err := v.fillFrame(page.frame); err != nil {
		return nil, err
	}
	inbox, err := v.site.Service.Approvals.Inbox(ctx, store.InboxFilter{Limit: shownWaiting})
	if err != nil {
		return nil, err
	}
	sessions, err := v.site.Service.Sessions.List(ctx, store.SessionFilter{Limit: shownWaiting})
	if err != nil {
		return nil, err
	}
	all := listInbox(v, &inbox, sessions)
	list := page.sort(v, all, inbox.SetAside)
	if len(list) > 0 && page.Waiting > 0 && page.Kind == "" {
		page.Say = v.text.T("Needs you: %s", list[0].Title)
	}
	page.choose(v, all, list, id)
	if page.Shown == nil && id != "" {
		page.Shown = v.findClosed(ctx, id)
	}
	page.Stream = "/inbox/stream?kind=" + url.QueryEscape(page.Kind)
	if page.Shown != nil {
		page.Stream += "&id=" + page.Shown.ID.String()
	} else {
		page.Problem = problem
	}
	page.Form.Problem = problem
	err = page.draw(v, list)
	return page, err
}

// sort counts the items of each tab, and returns those of the page's own.
func (p *inboxPage) sort(v *visit, all []*inboxItem, aside map[regie.ID]time.Time) (list []*inboxItem) {
	p.Tabs = []inboxTab{
		{"", v.text.T("All"), 0},
		{"decide", v.text.T("Decide"), 0},
		{"failed", v.text.T("Failed"), 0},
		{"aside", v.text.T("Aside"), 0},
	}
	for _, i := range all {
		i.Query = "?kind=" + p.Kind
		kinds := []string{"", i.Kind}
		if i.Until = aside[i.ID]; !i.Until.IsZero() {
			kinds = []string{"aside"}
			if p.Aside++; p.Back.IsZero() || i.Until.Before(p.Back) {
				p.Back = i.Until
			}
		}
		for n := range p.Tabs {
			if slices.Contains(kinds, p.Tabs[n].Kind) {
				p.Tabs[n].Count++
			}
		}
		if slices.Contains(kinds, p.Kind) {
			list = append(list, i)
		}
	}
	return list
}

// choose picks the item next to the list, and the one that follows it.
func (p *inboxPage) choose(v *visit, all, list []*inboxItem, id string) {
	p.Form = formOf{Token: v.token, Next: "/inbox?kind=" + p.Kind}
	for _, i := range all {
		if i.ID.String() == id {
			p.Shown = i
		}
	}
	if id == "" && len(list) > 0 {
		p.Shown = list[0]
	}
	if n := slices.Index(list, p.Shown); n >= 0 && len(list) > 1 {
		p.Form.Next = "/inbox/" + list[(n+1)%len(list)].ID.String() + "?kind=" + p.Kind
	}
}

// draw renders the list and the card next to it.
func (p *inboxPage) draw(v *visit, list []*inboxItem) error {
	b := &thread{v: v}
	for _, i := range list {
		i.Current = i == p.Shown
		b.add("i-"+i.Key, "item-inbox", i)
	}
	// to the minute: the page changes no more often
	p.Items, p.Later = b.items, laterChoices(v.text, time.Now().Truncate(time.Minute))
	if p.Shown != nil && p.Shown.card != nil {
		p.Shown.card.Form, p.Shown.card.Brief = p.Form, true
		b.add("", p.Shown.template, p.Shown.cardData)
		p.Detail = b.items[len(list)].HTML
	}
	return b.err
}

// listInbox lists all items: the nearest deadline first, then by kind, the newest first.
func listInbox(v *visit, inbox *store.Inbox, sessions []store.SessionSummary) (out []*inboxItem) {
	names := map[regie.ID]string{}
	for i := range sessions {
		names[sessions[i].ID] = sessions[i].Name
		if line := sessionItem(v, &sessions[i]); line != nil {
			out = append(out, line)
		}
	}
	for i := range inbox.Approvals {
		a, shown := &inbox.Approvals[i], v.approvalCard(&inbox.Approvals[i])
		out = append(out, &inboxItem{
			ID: a.ID, Class: "you", Icon: "warn", Session: a.SessionID, At: a.CreatedAt, Deadline: a.ExpiresAt,
			card: &shown.card, cardData: shown, template: "item-approval",
		})
	}
	for i := range inbox.Questions {
		q, shown := &inbox.Questions[i], v.questionCard(&inbox.Questions[i])
		out = append(out, &inboxItem{
			ID: q.ID, Class: "you", Icon: "ask", Session: q.SessionID, At: q.CreatedAt, Deadline: q.ExpiresAt,
			card: &shown.card, cardData: shown, template: "item-question",
		})
	}
	for i := range inbox.Unknown {
		c, shown := &inbox.Unknown[i], v.unknownCard(&inbox.Unknown[i])
		shown.Session = v.sessionName(names[c.SessionID])
		out = append(out, &inboxItem{
			ID: c.ID, Class: "unknown", Icon: "lozenge", Session: c.SessionID, At: c.SettledAt, rank: 1,
			card: &shown.card, cardData: shown, template: "item-unknown",
		})
	}
	for _, i := range out {
		if i.card != nil {
			i.Kind, i.Key, i.Title, i.Place = "decide", i.card.ID, i.card.Title, i.card.Session
		}
		if !i.Deadline.IsZero() {
			i.Left = v.text.T("%s left", formatSpan(v.text, max(0, time.Until(i.Deadline))))
		}
	}
	slices.SortStableFunc(out, func(a, b *inboxItem) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.Deadline.Compare(b.Deadline), b.At.Compare(a.At))
	})
	return out
}

// sessionItem returns the line of a session that failed, is paused or has ended unseen, or nil.
func sessionItem(v *visit, s *store.SessionSummary) *inboxItem {
	line := &inboxItem{
		ID: s.ID, Key: "s-" + s.ID.String(), Title: v.sessionName(s.Name), Session: s.ID, At: s.LastActivity,
	}
	end := endChip(v.text, s.LastEnd)
	switch {
	case s.State == regie.SessionPaused:
		line.Kind, line.Icon, line.Place, line.rank = "resume", "pause", v.text.T("Paused: resume or stop it"), 3
	case !s.Finished || s.State != regie.SessionIdle && s.State != regie.SessionClosed:
		return nil
	case end.Class == "bad" || end.Class == "you":
		line.Kind, line.Class, line.Icon, line.Place, line.rank = "failed", end.Class, "cross", end.Word, 2
	default:
		line.Kind, line.Icon, line.Place, line.rank = "seen", "tick", v.text.T("Finished while you were away"), 4
	}
	return line
}

// findClosed returns the approval or question that an id names, where it is no longer open.
func (v *visit) findClosed(ctx context.Context, text string) *inboxItem {
	id, err := regie.ParseID(text)
	if err != nil {
		return nil
	}
	found, err := v.site.Service.Approvals.Inbox(ctx, store.InboxFilter{ID: id})
	if closed := listInbox(v, &found, nil); err == nil && len(closed) == 1 {
		return closed[0]
	}
	return nil
}

// laterChoices are the times that a person chooses from.
func laterChoices(t *i18n.Printer, now time.Time) []laterChoice {
	now = now.Local()
	at := func(days, hour int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, hour, 0, 0, 0, now.Location())
	}
	afternoon := at(0, 14)
	if now.Hour() >= 14 {
		afternoon = at(1, 14)
	}
	return []laterChoice{
		{"hour", t.T("For an hour"), now.Add(time.Hour)},
		{"afternoon", t.T("Until the afternoon"), afternoon},
		{"tomorrow", t.T("Until tomorrow morning"), at(1, 9)},
		{"monday", t.T("Until Monday"), at(7-(int(now.Weekday())+6)%7, 9)},
	}
}

// findLater returns the time of a choice; zero for none.
func findLater(t *i18n.Printer, value string) time.Time {
	for _, choice := range laterChoices(t, time.Now()) {
		if choice.Value == value {
			return choice.At
		}
	}
	return time.Time{}
}

// openLonger is how long an extended request stays open.
const openLonger = 7 * 24 * time.Hour

// changeItem sets an item aside or shows it again, extends its deadline, or goes on with it.
func changeItem(v *visit, id regie.ID) (err error) {
	ctx, s := v.r.Context(), v.site.Service
	switch v.field("do") {
	case "extend":
		err = s.Approvals.Extend(ctx, dispatch.ExtendRequest{ItemID: id, Until: time.Now().Add(openLonger)})
	case "seen":
		var found []store.SessionSummary
		if found, err = s.Sessions.List(ctx, store.SessionFilter{ID: id}); len(found) == 1 {
			err = s.Sessions.MarkRead(ctx, dispatch.ReadRequest{SessionID: id, Seq: found[0].Head})
		}
	case "resume":
		_, err = resumeChat(v, id)
	default:
		until := cmp.Or(findLater(v.text, v.field("until")), time.Now()) // now shows it again
		err = s.Approvals.SetAside(ctx, dispatch.SetAsideRequest{ItemID: id, Until: until})
	}
	return v.finishForm("i-"+id.String(), err, v.next())
}
