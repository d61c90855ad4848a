package notify

import (
	"context"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Message is a notification as a receiver gets it, and the body of a webhook.
type Message struct {
	ID          regie.ID               `json:"id"`
	Kind        regie.NotificationKind `json:"type"`
	CreatedAt   time.Time              `json:"created_at"`
	WorkspaceID regie.ID               `json:"workspace_id,omitzero"`
	SessionID   regie.ID               `json:"session_id,omitzero"`
	RoundID     regie.ID               `json:"round_id,omitzero"`
	ObjectID    regie.ID               `json:"object_id,omitzero"`
	Title       string                 `json:"title"`
	Text        string                 `json:"text,omitempty"`
	URL         string                 `json:"url,omitempty"`
}

// body returns the text below the title, for receivers without a place for the link.
func (m *Message) body() string { return strings.TrimSpace(m.Text + "\n" + m.URL) }

// maxText bounds a line of a notification, in bytes.
const maxText = 500

// clip returns a line of a notification of what others wrote.
func clip(text string) string { return sanitize.Clip(sanitize.Line(text), maxText) }

// titles are what notifications say without content.
var titles = map[regie.NotificationKind]regie.Sentence{
	regie.NotifyApproval:    regie.Say("An agent waits for an approval"),
	regie.NotifyQuestion:    regie.Say("An agent has a question"),
	regie.NotifyUnknown:     regie.Say("The outcome of an action is unknown"),
	regie.NotifyFailure:     regie.Say("A run has failed"),
	regie.NotifyBudget:      regie.Say("A budget has stopped a run"),
	regie.NotifyPause:       regie.Say("A run is paused"),
	regie.NotifyFinished:    regie.Say("An automation has finished"),
	regie.NotifyTaskOverdue: regie.Say("A task is overdue"),
	regie.NotifyTest:        regie.Say("Notifications from Regie arrive here"),
}

// newMessage returns the message of a delivery without content.
func (w *Worker) newMessage(c *channel, d *store.Delivery) Message {
	return Message{
		ID: d.ID, Kind: d.Kind, CreatedAt: d.CreatedAt, WorkspaceID: d.WorkspaceID, SessionID: d.SessionID,
		RoundID: d.RoundID, ObjectID: d.ObjectID, Title: w.Translate(titles[d.Kind]), URL: c.Link,
	}
}

// compose returns the message of a delivery. Without content it tells nothing of the session but
// ids.
func (w *Worker) compose(ctx context.Context, c *channel, d *store.Delivery) (m Message, err error) {
	m = w.newMessage(c, d)
	path, hint := "/runs/"+d.RoundID.String(), regie.Say("regie runs show %s says more.", d.RoundID.String())
	switch {
	case !d.ObjectID.IsZero(): // it waits for a person
		path, hint = "/inbox/"+d.ObjectID.String(), regie.Say("regie approvals shows what waits.")
	case !d.AutomationID.IsZero():
		path = "/automations/" + d.AutomationID.String()
		hint = regie.Say("regie automations runs %s says more.", d.AutomationID.String())
	}
	var lines []string
	if c.Content && !d.Sealed { // content is egress (decision 34)
		var about regie.Sentence
		about, err = w.describe(ctx, d)
		lines = append(lines, d.SessionName, w.Translate(about))
	}
	if m.URL != "" {
		m.URL = strings.TrimRight(m.URL, "/") + path
	} else {
		lines = append(lines, w.Translate(hint))
	}
	for _, line := range lines {
		m.Text += clip(line) + "\n"
	}
	m.Text = strings.TrimSpace(strings.ReplaceAll(m.Text, "\n\n", "\n"))
	return m, err
}

// describe returns the question to the person, or why a run ended or did not begin; the zero
// sentence where nothing is known. It gives a delivery about an automation its present name.
func (w *Worker) describe(ctx context.Context, d *store.Delivery) (regie.Sentence, error) {
	if !d.AutomationID.IsZero() {
		found, err := w.Store.Automations(ctx, store.AutomationFilter{ID: d.AutomationID, Limit: 1})
		if err != nil || len(found) == 0 { // it is removed
			return regie.Sentence{}, err
		}
		d.SessionName = found[0].Name // the template may have the name of an earlier version
		if d.Kind == regie.NotifyPause || found[0].LastFire == nil {
			return found[0].PauseReason, nil
		}
		return found[0].LastFire.Reason, nil
	}
	if d.ObjectID.IsZero() {
		round, err := w.Store.Round(ctx, d.RoundID)
		return round.EndNote, err
	}
	inbox, err := w.Store.Inbox(ctx, store.InboxFilter{ID: d.ObjectID, Brief: true})
	switch {
	case len(inbox.Approvals) > 0 && len(inbox.Approvals[0].Reviews) > 0:
		return inbox.Approvals[0].Reviews[0].Preview.Sentence, err
	case len(inbox.Questions) > 0:
		return regie.Verbatim(inbox.Questions[0].Module.Text), err
	}
	return regie.Sentence{}, err
}
