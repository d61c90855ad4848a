package notify

import (
	"context"
	"log/slog"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// told is a store that holds one approval, one question, one round and one automation.
type told struct {
	Store
	inbox      store.Inbox
	round      regie.Round
	automation []store.AutomationRow
}

func (s told) Automations(context.Context, store.AutomationFilter) ([]store.AutomationRow, error) {
	return s.automation, nil
}

func (s told) Inbox(context.Context, store.InboxFilter) (store.Inbox, error) { return s.inbox, nil }

func (s told) Round(context.Context, regie.ID) (regie.Round, error) { return s.round, nil }

// TestCompose shows each kind with and without content: without, nothing of the session is in it.
func TestCompose(t *testing.T) {
	t.Parallel()
	round, object, session := regie.NewID(), regie.NewID(), regie.NewID()
	approval := store.Inbox{Approvals: []regie.Approval{{Reviews: []regie.Review{
		{Preview: regie.Preview{Sentence: regie.Verbatim("write 3 lines to secret-plan.md\x1b[2J\nSubject: forged")}},
	}}}}
	question := store.Inbox{Questions: []regie.Question{{Module: regie.Module{Text: "Which " + strings.Repeat("é", 600)}}}}
	ended := regie.Round{EndNote: regie.Say("nothing happened in it for %s", "10m0s")}
	runs, inbox := "regie runs show "+round.String()+" says more.", "regie approvals shows what waits."
	for name, c := range map[string]struct {
		kind     regie.NotificationKind
		channel  config.Channel
		sealed   bool
		french   bool
		inbox    store.Inbox
		title    string
		text     string
		url      string
		noObject bool
	}{
		"an approval":            {kind: regie.NotifyApproval, inbox: approval, title: "An agent waits for an approval", text: inbox},
		"with a link":            {kind: regie.NotifyApproval, channel: config.Channel{Link: "https://r.example/"}, title: "An agent waits for an approval", url: "https://r.example/inbox/" + object.String()},
		"with content":           {kind: regie.NotifyApproval, channel: config.Channel{Content: true, Link: "https://r.example"}, inbox: approval, title: "An agent waits for an approval", text: "Payroll of May\nwrite 3 lines to secret-plan.md␛[2J␊Subject: forged", url: "https://r.example/inbox/" + object.String()},
		"sealed":                 {kind: regie.NotifyApproval, channel: config.Channel{Content: true}, sealed: true, inbox: approval, title: "An agent waits for an approval", text: inbox},
		"a long question":        {kind: regie.NotifyQuestion, channel: config.Channel{Content: true}, inbox: question, title: "An agent has a question", text: "Payroll of May\nWhich " + strings.Repeat("é", 247) + "\n" + inbox},
		"an unknown outcome":     {kind: regie.NotifyUnknown, channel: config.Channel{Content: true}, title: "The outcome of an action is unknown", text: "Payroll of May\n" + inbox},
		"a failure":              {kind: regie.NotifyFailure, noObject: true, title: "A run has failed", text: runs},
		"a failure, with a note": {kind: regie.NotifyFailure, noObject: true, channel: config.Channel{Content: true, Link: "https://r.example"}, title: "A run has failed", text: "Payroll of May\nnothing happened in it for 10m0s", url: "https://r.example/runs/" + round.String()},
		"a budget":               {kind: regie.NotifyBudget, noObject: true, title: "A budget has stopped a run", text: runs},
		"a pause":                {kind: regie.NotifyPause, noObject: true, title: "A run is paused", text: runs},
		"an end":                 {kind: regie.NotifyFinished, noObject: true, title: "An automation has finished", text: runs},
		"a task":                 {kind: regie.NotifyTaskOverdue, noObject: true, title: "A task is overdue", text: runs},
		"in French":              {kind: regie.NotifyFailure, french: true, noObject: true, channel: config.Channel{Link: "https://r.example"}, title: "Une exécution a échoué", url: "https://r.example/runs/" + round.String()},
	} {
		language := map[bool]string{false: "en", true: "fr"}[c.french]
		w := New(Config{Store: told{inbox: c.inbox, round: ended}, Log: slog.New(slog.DiscardHandler), Translate: i18n.New(language).Sentence})
		d := store.Delivery{ID: regie.NewID(), Kind: c.kind, SessionID: session, RoundID: round, ObjectID: object, SessionName: "Payroll of May", Sealed: c.sealed, CreatedAt: time.Now()}
		if c.noObject {
			d.ObjectID = regie.ID{}
		}
		m, err := w.compose(t.Context(), &channel{Channel: c.channel}, &d)
		if err != nil {
			t.Fatal(err)
		}
		want := Message{ID: d.ID, Kind: d.Kind, CreatedAt: d.CreatedAt, SessionID: session, RoundID: round, ObjectID: d.ObjectID, Title: c.title, Text: c.text, URL: c.url}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, kind := range regie.NotificationKinds() {
		if titles[kind].IsZero() {
			t.Errorf("%s has no title", kind)
		}
	}
}

// TestCompose_Automation tells of runs that did not begin: there is no round, and the session is a
// template.
func TestCompose_Automation(t *testing.T) {
	t.Parallel()
	id := regie.NewID()
	row := store.AutomationRow{LastFire: &store.FireView{Fire: regie.Fire{Reason: regie.Say("nothing happened in it for %s", "10m0s")}}}
	row.ID, row.Name, row.PauseReason = id, "Payroll", regie.Say("its last runs failed: %s", "3")
	never := row
	never.LastFire, never.PauseReason = nil, regie.Sentence{}
	runs, link := "regie automations runs "+id.String()+" says more.", "https://r.example/automations/"+id.String()
	for name, c := range map[string]struct {
		kind    regie.NotificationKind
		channel config.Channel
		found   []store.AutomationRow
		text    string
		url     string
	}{
		"without content":  {kind: regie.NotifyFailure, found: []store.AutomationRow{row}, text: runs},
		"with a link":      {kind: regie.NotifyPause, channel: config.Channel{Link: "https://r.example/"}, found: []store.AutomationRow{row}, url: link},
		"a failed start":   {kind: regie.NotifyFailure, channel: config.Channel{Content: true}, found: []store.AutomationRow{row}, text: "Payroll\nnothing happened in it for 10m0s\n" + runs},
		"a pause":          {kind: regie.NotifyPause, channel: config.Channel{Content: true, Link: "https://r.example"}, found: []store.AutomationRow{row}, text: "Payroll\nits last runs failed: 3", url: link},
		"nothing is known": {kind: regie.NotifyFailure, channel: config.Channel{Content: true}, found: []store.AutomationRow{never}, text: "Payroll\n" + runs},
		"it is removed":    {kind: regie.NotifyFailure, channel: config.Channel{Content: true}, text: "Payroll of May\n" + runs},
	} {
		w := New(Config{Store: told{automation: c.found}, Log: slog.New(slog.DiscardHandler), Translate: i18n.New("en").Sentence})
		m, err := w.compose(t.Context(), &channel{Channel: c.channel}, &store.Delivery{ID: regie.NewID(), Kind: c.kind, SessionID: regie.NewID(), AutomationID: id, SessionName: "Payroll of May"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{c.text, c.url}, []string{m.Text, m.URL}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDesktopCommand: no text becomes an option, markup or a part of a script.
func TestDesktopCommand(t *testing.T) {
	t.Parallel()
	m := &Message{Title: `-u" & quit`, Text: `<b>x</b> & "y"`, URL: "https://r.example/inbox/1"}
	want := []string{"notify-send", "--app-name=Regie", "--", `-u" & quit`, "&lt;b&gt;x&lt;/b&gt; &amp; &#34;y&#34;\nhttps://r.example/inbox/1"}
	if diff := cmp.Diff(want, desktopCommand("linux", m)); diff != "" {
		t.Error(diff)
	}
	mac := desktopCommand("darwin", m)
	if diff := cmp.Diff([]string{`-u" & quit`, "<b>x</b> & \"y\"\nhttps://r.example/inbox/1"}, mac[3:]); diff != "" || strings.Contains(mac[2], "quit") {
		t.Errorf("%q %s", mac, diff)
	}
}

// TestWriteMail holds a message to what mail readers expect.
func TestWriteMail(t *testing.T) {
	t.Parallel()
	from, err := mail.ParseAddress("Régie <regie@example.com>")
	if err != nil {
		t.Fatal(err)
	}
	id := regie.NewID()
	at := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	got := string(writeMail(&Message{ID: id, CreatedAt: at, Title: "Un agent attend\r\nBcc: x@y.z", Text: "é\n.\nend", URL: "https://r.example"}, from, []string{"<a@b.c>", "<d@e.f>"}))
	want := "From: =?utf-8?q?R=C3=A9gie?= <regie@example.com>\r\nTo: <a@b.c>,\r\n <d@e.f>\r\nSubject: =?utf-8?q?Un_agent_attend=0D=0ABcc:_x@y.z?=\r\n" +
		"Date: Sat, 28 Nov 2026 09:00:00 +0000\r\nMessage-ID: <" + id.String() + "@example.com>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=A9\r\n.\r\nend\r\nhttps://r.example\r\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
