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
	"github.com/regie-run/regie/internal/store"
)

// inboxPage is everything that waits for the person: a list, and one of its items next to it.
type inboxPage struct {
	*frame
	Kind   string // of the list: empty, decide, failed or aside
	Tabs   []inboxTab
	Items  []item
	First  string // its title
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

	rank   int
	render func(formOf) (string, error) // its card
}

// laterChoice is a time until which an item is set aside.
type laterChoice struct {
	Value, Word string
	At          time.Time
}

// inboxKinds are the tabs.
var inboxKinds = []string{"", "decide", "failed", "aside"}

func (s *Site) showInbox(v *visit) error {
	return v.renderInbox(v.r.PathValue("id"), "")
}

// renderInbox shows the inbox, where a form failed with its problem. id names the item that it is
// about; the first one where it is empty.
func (v *visit) renderInbox(id, problem string) error {
	page, err := v.loadInbox(v.r.Context(), id, problem)
	if err != nil {
		return err
	}
	page.Stream = "/inbox/stream?kind=" + url.QueryEscape(page.Kind)
	if page.Shown != nil {
		page.Stream += "&id=" + page.Shown.ID.String()
	}
	v.render(statusOf(problem), "inbox", page)
	return nil
}

func (v *visit) loadInbox(ctx context.Context, id, problem string) (*inboxPage, error) {
	page := &inboxPage{
		frame: v.newFrame("inbox", v.text.T("Inbox")), Kind: v.r.URL.Query().Get("kind"), Picked: id != "",
	}
	if page.Path = "/inbox"; !slices.Contains(inboxKinds, page.Kind) {
		page.Kind = ""
	}
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
	counts := map[string]int{}
	var list []*inboxItem
	for _, i := range all {
		kinds := []string{"", i.Kind}
		if i.Until = inbox.SetAside[i.ID]; !i.Until.IsZero() {
			kinds = []string{"aside"}
			if page.Aside++; page.Back.IsZero() || i.Until.Before(page.Back) {
				page.Back = i.Until
			}
		}
		for _, kind := range kinds {
			counts[kind]++
		}
		if i.Query = "?kind=" + page.Kind; slices.Contains(kinds, page.Kind) {
			list = append(list, i)
		}
	}
	words := []string{v.text.T("All"), v.text.T("Decide"), v.text.T("Failed"), v.text.T("Aside")}
	for n, kind := range inboxKinds {
		page.Tabs = append(page.Tabs, inboxTab{kind, words[n], counts[kind]})
	}
	if len(list) > 0 {
		page.First = list[0].Title
	}
	page.choose(v, all, list, id)
	if page.Shown == nil && id != "" {
		page.Shown = v.findClosed(ctx, id)
	}
	if problem != "" && page.Shown == nil {
		page.Problem = problem
	}
	page.Form.Problem = problem
	err = page.draw(v, list)
	return page, err
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
	for n, i := range list {
		if i == p.Shown && len(list) > 1 {
			next := list[(n+1)%len(list)]
			p.Form.Next = "/inbox/" + next.ID.String() + "?kind=" + p.Kind
		}
	}
}

// draw renders the list and the card next to it.
func (p *inboxPage) draw(v *visit, list []*inboxItem) error {
	for _, i := range list {
		i.Current = i == p.Shown
		html, err := v.fragment("item-inbox", i)
		if err != nil {
			return err
		}
		p.Items = append(p.Items, item{"i-" + i.Key, template.HTML(html)}) //nolint:gosec // a template has made it
	}
	if p.Shown == nil {
		return nil
	}
	p.Later = laterChoices(v, time.Now())
	if p.Shown.render == nil {
		return nil
	}
	html, err := p.Shown.render(p.Form)
	p.Detail = template.HTML(html) //nolint:gosec // a template has made it
	return err
}

// unknownCard is a call without a known outcome as people see it.
type unknownCard struct {
	ID   string
	Call callRow
	Form formOf
}

// listInbox lists all items: the nearest deadline first, then by kind, the newest first.
func listInbox(v *visit, inbox *store.Inbox, sessions []store.SessionSummary) (out []*inboxItem) {
	names := map[regie.ID]string{}
	for i := range sessions {
		names[sessions[i].ID] = v.sessionName(sessions[i].Name)
		if line := sessionItem(v, &sessions[i]); line != nil {
			out = append(out, line)
		}
	}
	for i := range inbox.Approvals {
		a, card := &inbox.Approvals[i], v.approvalCard(&inbox.Approvals[i])
		out = append(out, &inboxItem{
			ID: a.ID, Key: card.ID, Kind: "decide", Class: "you", Icon: "warn", Title: card.Title,
			Place: card.Session, Session: a.SessionID, At: a.CreatedAt, Deadline: a.ExpiresAt,
			render: func(form formOf) (string, error) {
				card.Form, card.Brief = form, true
				return v.fragment("item-approval", card)
			},
		})
	}
	for i := range inbox.Questions {
		q, card := &inbox.Questions[i], v.questionCard(&inbox.Questions[i])
		out = append(out, &inboxItem{
			ID: q.ID, Key: card.ID, Kind: "decide", Class: "you", Icon: "ask", Title: card.Title,
			Place: card.Session, Session: q.SessionID, At: q.CreatedAt, Deadline: q.ExpiresAt,
			render: func(form formOf) (string, error) {
				card.Form, card.Brief = form, true
				return v.fragment("item-question", card)
			},
		})
	}
	for i := range inbox.Unknown {
		c, key := &inbox.Unknown[i], "u-"+inbox.Unknown[i].ID.String()
		out = append(out, &inboxItem{
			ID: c.ID, Key: key, Kind: "decide", Class: "unknown", Icon: "lozenge",
			Title: v.text.T("Did this happen: %s?", callSentence(v.text, c)),
			Place: cmp.Or(names[c.SessionID], v.sessionName("")), Session: c.SessionID, At: c.SettledAt, rank: 1,
			render: func(form formOf) (string, error) {
				return v.fragment("item-unknown", unknownCard{key, v.callRow(c, nil), form})
			},
		})
	}
	for _, i := range out {
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
func laterChoices(v *visit, now time.Time) []laterChoice {
	return []laterChoice{
		{"hour", v.text.T("For an hour"), laterTime("hour", now)},
		{"afternoon", v.text.T("Until the afternoon"), laterTime("afternoon", now)},
		{"tomorrow", v.text.T("Until tomorrow morning"), laterTime("tomorrow", now)},
		{"monday", v.text.T("Until Monday"), laterTime("monday", now)},
	}
}

// laterTime returns the time of a choice. For any other word it returns now, which shows the item
// again.
func laterTime(choice string, now time.Time) time.Time {
	now = now.Local()
	at := func(days, hour int) time.Time {
		return time.Date(now.Year(), now.Month(), now.Day()+days, hour, 0, 0, 0, now.Location())
	}
	switch choice {
	case "hour":
		return now.Add(time.Hour)
	case "afternoon":
		if now.Hour() < 14 {
			return at(0, 14)
		}
		return at(1, 14)
	case "tomorrow":
		return at(1, 9)
	case "monday":
		return at(7-(int(now.Weekday())+6)%7, 9)
	default:
		return now
	}
}

// openLonger is how long an extended request stays open.
const openLonger = 7 * 24 * time.Hour

// changeItem sets an item aside or shows it again, extends its deadline, or goes on with it.
func (s *Site) changeItem(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	ctx := v.r.Context()
	switch v.field("do") {
	case "extend":
		err = s.Service.Approvals.Extend(ctx, dispatch.ExtendRequest{ItemID: id, Until: time.Now().Add(openLonger)})
	case "seen":
		var found []store.SessionSummary
		if found, err = s.Service.Sessions.List(ctx, store.SessionFilter{ID: id}); len(found) == 1 {
			err = s.Service.Sessions.MarkRead(ctx, dispatch.ReadRequest{SessionID: id, Seq: found[0].Head})
		}
	case "resume":
		var found []store.RoundSummary
		if found, err = s.Service.Rounds.List(ctx, store.RoundFilter{SessionID: id, Limit: 1}); len(found) == 1 {
			err = s.Service.Rounds.Resume(ctx, found[0].Round.ID)
		}
	default:
		until := laterTime(v.field("until"), time.Now())
		err = s.Service.Approvals.SetAside(ctx, dispatch.SetAsideRequest{ItemID: id, Until: until})
	}
	if err != nil {
		return v.failForm("i-"+id.String(), err)
	}
	return v.done(v.next())
}
