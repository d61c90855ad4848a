package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// frame is what every page shows around its content.
type frame struct {
	snapshot
	Language, Theme, Token string
	Section                string // the entry of the navigation
	Path                   string // of the page
	Waiting                int    // in the inbox
	Chats                  []chatLine
	// Problem is an error of a form, and About what it is about: an id, or "send".
	Problem, About string
	Stream         string // the address of the page's stream; empty: none
}

// chatLine is a chat in the navigation.
type chatLine struct {
	ID      regie.ID
	place   regie.ID // its workspace
	Name    string
	At      time.Time
	Lamp    lamp
	Current bool
	Unread  int
}

const (
	shownChats   = 40
	shownWaiting = 200
)

var themes = []string{"light", "dark"}

func (v *visit) newFrame(section, title string) *frame {
	return &frame{
		snapshot: snapshot{Title: title}, Language: v.text.Language(), Theme: v.theme, Token: v.token, Section: section,
		Path: v.r.URL.Path,
	}
}

// fillFrame reads what the navigation shows.
func (v *visit) fillFrame(f *frame) error {
	ctx := v.r.Context()
	sessions, err := v.site.Service.Sessions.List(ctx, store.SessionFilter{Limit: shownChats, Type: regie.SessionChat})
	if err != nil {
		return err
	}
	inbox, err := v.site.Service.Approvals.Inbox(ctx, store.InboxFilter{Brief: true, Limit: shownWaiting})
	if err != nil {
		return err
	}
	for i := range sessions {
		s := &sessions[i]
		current := f.Path == "/chats/"+s.ID.String()
		if current { // it is being read
			s.Unread, s.Finished = 0, false
		}
		f.Chats = append(f.Chats, chatLine{
			ID: s.ID, place: s.WorkspaceID, Name: v.sessionName(s.Name), At: s.LastActivity,
			Lamp: v.lampOf(s, inbox.Unknown), Current: current, Unread: s.Unread,
		})
	}
	var waiting []regie.ID
	for i := range inbox.Approvals {
		waiting = append(waiting, inbox.Approvals[i].ID)
	}
	for i := range inbox.Questions {
		waiting = append(waiting, inbox.Questions[i].ID)
	}
	for i := range inbox.Unknown {
		waiting = append(waiting, inbox.Unknown[i].ID)
	}
	f.Waiting = len(slices.DeleteFunc(waiting, func(id regie.ID) bool { return !inbox.SetAside[id].IsZero() }))
	return err
}

// renderFilled renders a page with what the navigation shows.
func renderFilled(v *visit, f *frame, name string, page any) error {
	err := v.fillFrame(f)
	if err == nil {
		v.render(statusOf(f.Problem), name, page)
	}
	return err
}

func (v *visit) sessionName(name string) string {
	return cmp.Or(sanitize.Line(name), v.text.T("Untitled chat"))
}

// loadMore reads what the sidebar has besides, for phones, and the keys.
func loadMore(_ context.Context, v *visit) (*frame, error) {
	f := v.newFrame("more", v.text.T("More"))
	return f, v.fillFrame(f)
}

// setAppearance keeps a theme or a language in cookies.
func setAppearance(v *visit) error {
	year := time.Now().AddDate(1, 0, 0)
	for name, value := range map[string]string{
		themeCookie: v.r.PostForm.Get("theme"), languageCookie: v.r.PostForm.Get("language"),
	} {
		if value == "" {
			continue
		}
		c := &http.Cookie{ //nolint:gosec // it holds no secret
			Name: name, Value: value, Path: "/", Expires: year, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		}
		if !slices.Contains(append(themes, "en", "fr"), value) {
			c.Value, c.Expires = "", time.Unix(1, 0)
		}
		http.SetCookie(v.w, c)
	}
	return v.done(v.next())
}

// formatClock formats a time: the hour of today, the day of others.
func formatClock(at time.Time) string {
	at = at.Local()
	if now := time.Now(); at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02")
}

// formatUntil formats a deadline: the hour, and the day where that is not today.
func formatUntil(at time.Time) string {
	at = at.Local()
	if clock := formatClock(at); clock == at.Format("15:04") {
		return clock
	}
	return at.Format("2006-01-02 15:04")
}
