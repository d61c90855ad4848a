package control

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/workspace"
)

// Visits are the chats of visitors of widgets (spec 10.3). A visitor has one session. Only the
// configuration names its agent and workspace. What visitors read has no tool, cost or id of others
// in it.
type Visits struct {
	*core
	rounds *Rounds

	limits   sync.Mutex // guards those below
	widgets  map[string]*rate.Limiter
	visitors map[regie.ID]*rate.Limiter
}

const (
	// visitWindow is the time for which the messages of visitors are counted.
	visitWindow = 10 * time.Minute
	// visitLife is how long a visitor's secret opens its session.
	visitLife = 24 * time.Hour
	// maxVisit bounds a visitor's message in bytes.
	maxVisit = 8 << 10
	// keptLimiters is how many visitors' limiters are kept before the unused ones are dropped.
	keptLimiters = 10_000
)

// WidgetView is a widget as its visitors see it. ReadsOnly says that no tool of its agent changes
// anything.
type WidgetView struct {
	Title, Company string
	Origins        []string
	ReadsOnly      bool
}

// Visit is a visitor's chat as the visitor sees it.
type Visit struct {
	Lines []VisitLine
	State VisitState
	Seq   int64 // of the last event
}

// VisitState is what a visitor's chat does.
type VisitState string

// The states. VisitFailed is that of a run that ended without an answer.
const (
	VisitIdle    VisitState = "idle"
	VisitWorking VisitState = "working"
	VisitAsked   VisitState = "asked" // a person of the team
	VisitFailed  VisitState = "failed"
)

// VisitLine is a message, or the number of calls that succeeded between two messages.
type VisitLine struct {
	Seq      int64
	At       time.Time
	ClientID string // of the visitor's message
	Said     string // by the visitor
	Answer   string // of the agent, in Markdown
	Steps    int
}

// VisitMessage is a visitor's message. Secret is that of a chat that it begins, from the visitor's
// page; empty: a new one.
type VisitMessage struct{ ClientID, Text, Secret string }

// widgetOf returns the widget of a visitor.
func (v *Visits) widgetOf(caller *access.Caller) (config.Widget, error) {
	widget, there := v.Settings.File.Widgets[caller.Visitor.Widget]
	if !there {
		return widget, regie.Errorf(regie.CodeNotFound, "there is no widget %q here", caller.Visitor.Widget)
	}
	return widget, nil
}

// Widget returns the widget of the caller.
func (v *Visits) Widget(ctx context.Context) (WidgetView, error) {
	caller, err := v.authorize(ctx, "show_widget")
	if err != nil {
		return WidgetView{}, err
	}
	widget, err := v.widgetOf(caller)
	return WidgetView{
		Title: widget.Name(caller.Visitor.Widget), Company: widget.Company, Origins: widget.Origins,
		ReadsOnly: err == nil && v.readsOnly(ctx, &widget),
	}, err
}

// readsOnly reports whether each pattern of the widget's agent names tools that are there, and none
// of them changes anything.
func (v *Visits) readsOnly(ctx context.Context, widget *config.Widget) bool {
	ctx, cancel := context.WithCancel(ctx)
	cancel() // no server of tools is waited for
	agent := v.Projects.Agent(widget.Workspace, widget.Agent, v.Settings.File.Agents[widget.Agent])
	tools := v.Projects.ToolsIn(ctx, widget.Workspace, v.Tools(ctx))
	for _, pattern := range agent.Tools {
		if tools.CheckPatterns([]string{strings.TrimPrefix(pattern, "!")}) != nil {
			return false
		}
	}
	for _, tool := range tools.Definitions() {
		if tool.Kind != regie.KindQuery && regie.InScopes(agent.Scopes(), tool.Name) {
			return false
		}
	}
	return true
}

// Send sends a visitor's message. The first one makes the session and returns its secret: sent
// again with the same secret, it adds nothing. It returns CodeTooManyRequests where the visitor or
// the widget has had its share.
func (v *Visits) Send(ctx context.Context, in VisitMessage) (secret string, err error) {
	caller, err := v.authorize(ctx, "send_visit")
	if err != nil {
		return "", err
	}
	widget, err := v.widgetOf(caller)
	if in.Text = strings.TrimSpace(in.Text); err == nil && in.Text == "" {
		err = regie.Errorf(regie.CodeBadRequest, "the message is empty")
	} else if err == nil && len(in.Text) > maxVisit {
		err = regie.Errorf(regie.CodeBadRequest, "the message is too long: at most %d characters are allowed", maxVisit)
	}
	if err == nil {
		err = v.admit(ctx, caller, &widget)
	}
	if err != nil {
		return "", err
	}
	session := caller.Visitor.Session
	if session.IsZero() {
		if session, secret, err = v.beginVisit(ctx, caller, in.Secret); err != nil {
			return "", err
		}
	}
	_, err = v.rounds.submit(ctx, dispatch.RunRequest{
		ClientID: in.ClientID, SessionID: session, Root: widget.Workspace, FoundBy: workspace.FoundByDirectory,
		Text: in.Text, Agent: widget.Agent, ModelDefault: true, By: caller.By(""), TokenID: session,
		Policy:      approval.Policy{OnApproval: approval.Park}, // and no questions: only the team answers
		LeavesWaits: true, WhenBusy: store.Queue, Visitor: caller.By(""),
		Caps: regie.Caps{Widget: int64(widget.USDPerDay)},
	})
	return secret, err
}

// beginVisit makes the session of a secret. After a lost answer it returns the session that the
// same message made before. A secret that opens nothing any more is replaced by a new one.
func (v *Visits) beginVisit(ctx context.Context, caller *access.Caller, secret string) (regie.ID, string, error) {
	if !access.Whole(secret) {
		secret = access.NewSecret()
	}
	hash, now := access.HashOf(secret), time.Now()
	err := v.Store.CreateVisitor(ctx, store.Visitor{
		SessionID: caller.Token.ID, Widget: caller.Visitor.Widget, Hash: hash, ExpiresAt: now.Add(visitLife),
	})
	if err != nil {
		return regie.ID{}, "", err
	}
	made, err := v.Store.VisitorBySecret(ctx, hash)
	opens := made.Widget == caller.Visitor.Widget && now.Before(made.ExpiresAt)
	if regie.CodeOf(err) == regie.CodeNotFound || err == nil && !opens {
		return v.beginVisit(ctx, caller, "")
	}
	return made.SessionID, secret, err
}

// admit returns CodeTooManyRequests where a visitor or a widget has had its share of messages or
// money.
func (v *Visits) admit(ctx context.Context, caller *access.Caller, widget *config.Widget) error {
	used, err := v.Store.WidgetUsed(ctx, caller.Visitor.Widget, time.Now())
	switch {
	case err != nil:
		return err
	case used >= int64(widget.USDPerDay):
		return regie.Errorf(regie.CodeTooManyRequests, "This chat has answered a lot today. Come back tomorrow.")
	case !v.takeMessage(caller.Visitor, widget):
		return regie.Errorf(regie.CodeTooManyRequests, "Too many messages. Come back in 10 minutes.")
	}
	return nil
}

// takeMessage takes one of the messages that a visitor and its widget may send, and reports whether
// there was one.
func (v *Visits) takeMessage(visitor *access.Visitor, widget *config.Widget) bool {
	one, all := widget.Messages()
	v.limits.Lock()
	defer v.limits.Unlock()
	if v.widgets[visitor.Widget] == nil {
		v.widgets[visitor.Widget] = newVisitLimiter(all)
	}
	if visitor.Session.IsZero() { // its first one
		return v.widgets[visitor.Widget].Allow()
	}
	if len(v.visitors) > keptLimiters {
		for id, limiter := range v.visitors {
			if limiter.Tokens() >= float64(limiter.Burst()) {
				delete(v.visitors, id)
			}
		}
	}
	if v.visitors[visitor.Session] == nil {
		v.visitors[visitor.Session] = newVisitLimiter(one)
	}
	return v.visitors[visitor.Session].Allow() && v.widgets[visitor.Widget].Allow()
}

func newVisitLimiter(messages int) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(messages)/visitWindow.Seconds()), messages)
}

// Thread returns the chat of a visitor.
func (v *Visits) Thread(ctx context.Context) (out Visit, err error) {
	caller, err := v.authorize(ctx, "show_visit")
	if err != nil {
		return out, err
	}
	out.State = VisitIdle
	if caller.Visitor.Session.IsZero() {
		return out, nil
	}
	view, err := v.Store.SessionView(ctx, caller.Visitor.Session, regie.ID{})
	if err != nil {
		return out, err
	}
	out.Seq, out.State = view.Head, visitState(&view)
	for i := range view.Thread {
		out.addMessage(&view.Thread[i])
	}
	for i := range view.Pending {
		m := &view.Pending[i]
		out.Lines = append(out.Lines, VisitLine{
			At: m.Time, ClientID: m.Message.ClientID, Said: sanitize.Strip(m.Message.LinearText()),
		})
	}
	return out, nil
}

// addMessage adds a message and its calls.
func (v *Visit) addMessage(m *store.MessageView) {
	line := VisitLine{Seq: m.Seq, At: m.Time}
	switch {
	case m.Superseded:
		return
	case m.Message.Sender == regie.SenderUser:
		line.Said, line.ClientID = sanitize.Strip(m.Message.LinearText()), m.Message.ClientID
	case m.Message.AI != nil:
		line.Answer = strings.TrimSpace(m.Message.AI.Text())
	}
	if line.Said+line.Answer != "" {
		v.Lines = append(v.Lines, line)
	}
	steps := 0
	for i := range m.Calls {
		if m.Calls[i].State == regie.CallSucceeded && !strings.HasPrefix(m.Calls[i].Tool, "session.") {
			steps++
		}
	}
	if last := len(v.Lines) - 1; steps > 0 && last >= 0 && v.Lines[last].Steps > 0 {
		v.Lines[last].Steps += steps
	} else if steps > 0 {
		v.Lines = append(v.Lines, VisitLine{Seq: m.Seq, At: m.Time, Steps: steps})
	}
	if m.Message.AI != nil && strings.TrimSpace(m.Message.AI.PostText) != "" {
		v.Lines = append(v.Lines, VisitLine{Seq: m.Seq, At: m.Time, Answer: m.Message.AI.PostText})
	}
}

func visitState(view *store.SessionView) VisitState {
	switch view.State {
	case regie.SessionWaitingValidation, regie.SessionWaitingResponse, regie.SessionPaused:
		return VisitAsked
	case regie.SessionIdle, regie.SessionClosed:
		switch cmp.Or(view.LastEnd, regie.EndAnswered) {
		case regie.EndAnswered, regie.EndCompleted, regie.EndDenied:
			return VisitIdle
		}
		return VisitFailed
	default:
		return VisitWorking
	}
}

// Follow is Events.Follow for a visitor: of events it tells only that there was one.
func (v *Visits) Follow(ctx context.Context, after int64, sink func(dispatch.Item) error) error {
	caller, err := v.authorize(ctx, "follow_visit")
	if err != nil {
		return err
	}
	return v.Dispatcher.Stream(ctx, caller.Visitor.Session, after, func(i dispatch.Item) error {
		switch {
		case i.Event != nil && i.Event.Removes():
			return sink(i)
		case i.Event != nil:
			return sink(dispatch.Item{Event: &regie.Event{Type: i.Event.Type}})
		case i.Delta.CallID.IsZero() && i.Delta.Content != "":
			return sink(dispatch.Item{Delta: &dispatch.Delta{
				RoundID: i.Delta.RoundID, Exchange: i.Delta.Exchange, Content: i.Delta.Content,
			}})
		}
		return nil
	})
}
