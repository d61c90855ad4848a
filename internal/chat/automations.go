package chat

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/automation"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// FindAutomation returns the one automation of the workspace at root that a person names: by its
// id, its last four or more characters, its first eight or more, or as "last", the newest. Errors
// are those of Find.
func FindAutomation(ctx context.Context, control Control, root, name string) (dispatch.AutomationView, error) {
	none := regie.Errorf(regie.CodeNotFound, "there is no automation %s in this workspace: see regie automations list", name)
	return findOne(name, none, func(a *dispatch.AutomationView) regie.ID { return a.ID },
		func(id regie.ID, part string) ([]dispatch.AutomationView, error) {
			return control.Automations.List(ctx, store.AutomationFilter{Root: root, ID: id, Short: part})
		})
}

// ChangeAutomation does what a person's word says with an automation, and reads it as it is then.
// end is that of a pause: a duration, or a moment on this machine's clock.
func ChangeAutomation(ctx context.Context, c Control, word string, a *dispatch.AutomationView, end string) (err error) {
	switch all := c.Automations; word {
	case "show":
	case "pause":
		at, wrong := time.ParseInLocation("2006-01-02T15:04", end, time.Local)
		if wrong != nil && end != "" {
			span, err := Span(end)
			if err != nil {
				return err
			}
			at = time.Now().Add(span)
		}
		*a, err = all.Pause(ctx, dispatch.AutomationPause{ID: a.ID, Until: at})
	case "resume":
		*a, err = all.Resume(ctx, a.ID)
	case "stop":
		*a, err = all.Stop(ctx, a.ID)
	case "enable", "disable":
		*a, err = all.Enable(ctx, a.ID, word == "enable")
	case "token":
		*a, err = all.Rotate(ctx, a.ID)
	default:
		err = regie.Errorf(regie.CodeBadRequest, "%q is none of run, show, pause, resume, stop, enable, disable and token", word)
	}
	return err
}

// Automations lists automations, each with its next and its last run.
func (p *Page) Automations(list []dispatch.AutomationView) {
	if len(list) == 0 {
		p.writeLine(p.Text.T("no automations in this workspace (--all: everywhere)"))
	}
	for i := range list {
		if writeAutomation(p, &list[i], 1); p.Everywhere {
			p.writeNote(p.Text.T("in the workspace %s", sanitize.Line(list[i].Root)))
		}
	}
}

// writeAutomation writes when an automation runs, with a number of its next runs.
func writeAutomation(p *Page, a *dispatch.AutomationView, next int) {
	said := p.Text.T("without a schedule")
	if s := a.Definition.Schedule; s != nil {
		said = automation.Describe(p.Text, s)
	}
	switch {
	case !a.Enabled:
		said += "  [" + p.Text.T("disabled") + "]"
	case a.Paused && a.PausedUntil.IsZero():
		said += "  [" + strings.TrimRight(p.Text.T("paused: %s", sanitize.Line(p.Text.Sentence(a.PauseReason))), ": ") + "]"
	case a.Paused:
		said += "  [" + p.Text.T("paused until %s", formatInstant(p.Text, a, a.PausedUntil)) + "]"
	}
	p.writeLine(Short(a.ID) + "  " + sanitize.Line(a.Name) + "  " + said)
	for _, at := range a.NextRuns[:min(next, len(a.NextRuns))] {
		p.writeNote(p.Text.T("next: %s", formatInstant(p.Text, a, at)))
	}
	for _, session := range a.Running {
		p.writeNote(p.Text.T("running: session %s", Short(session)))
	}
	if a.LastFire != nil {
		p.writeNote(p.Text.T("last: %s", describeFire(p.Text, a, a.LastFire)))
	}
}

// formatInstant writes an instant on the clock of an automation's zone, or of this machine.
func formatInstant(t *i18n.Printer, a *dispatch.AutomationView, at time.Time) string {
	zone := ""
	if s := a.Definition.Schedule; s != nil {
		zone = s.Zone
	}
	return automation.FormatInstant(t, at.Local(), zone)
}

// Automation writes everything about an automation.
func (p *Page) Automation(a *dispatch.AutomationView) {
	writeAutomation(p, a, len(a.NextRuns))
	for line := range strings.SplitSeq(strings.TrimRight(sanitize.Visible(a.Text), "\n"), "\n") {
		p.writeNote("> " + line)
	}
	if a.HookPath != "" {
		p.writeNote(p.Text.T("webhook, shown only now, with its token: POST %s at the address of regie serve", a.HookPath))
	}
	answers := strings.Fields(a.Agent + " " + a.Provider + " " + a.Model + " " + string(a.ApprovalMode))
	p.writeNote(p.Text.T("version %d, agent %s", a.Version, sanitize.Line(strings.Join(answers, " "))))
	d := a.Definition
	d.Missed, d.Overlap = cmp.Or(d.Missed, regie.MissedOnce), cmp.Or(d.Overlap, regie.OverlapQueueOne)
	d.Schedule = nil                                                 // it is above, in words
	data, _ := jsonv2.Marshal(&d, jsonv2.OmitZeroStructFields(true)) // of plain fields
	p.writeNote(p.Text.T("settings: %s", sanitize.Line(string(data))))
}

// Fires lists what became of the times of an automation.
func (p *Page) Fires(a *dispatch.AutomationView, fires []store.FireView) {
	for i := range fires {
		p.writeLine(describeFire(p.Text, a, &fires[i]))
	}
}

func describeFire(t *i18n.Printer, a *dispatch.AutomationView, f *store.FireView) string {
	said := formatInstant(t, a, f.NominalAt)
	if f.Count > 1 {
		said += " " + t.T("to %s: %d times", formatInstant(t, a, f.Until), f.Count)
	}
	said += strings.TrimRight(fmt.Sprintf("  %-9s  %s %s", f.Trigger, f.Outcome, cmp.Or(string(f.EndReason), string(f.State))), " ")
	if !f.Reason.IsZero() {
		said += "  " + sanitize.Line(t.Sentence(f.Reason))
	}
	if f.SpentMicroUSD > 0 {
		said += "  " + t.T("$%s", regie.Dollars(f.SpentMicroUSD))
	}
	if !f.SessionID.IsZero() {
		said += "  " + t.T("session %s", Short(f.SessionID))
	}
	return said
}

// manageAutomations lists the workspace's automations, or does something with one of them.
func manageAutomations(c *Conversation, typed string) {
	word, rest, _ := strings.Cut(typed, " ")
	name, until, _ := strings.Cut(rest, " ")
	loadBeside(c, func(ctx context.Context) (show func(), err error) {
		if word == "" {
			list, err := c.Control.Automations.List(ctx, store.AutomationFilter{Root: c.Request.Root})
			return func() { c.Page.Automations(list) }, err
		}
		one, err := FindAutomation(ctx, c.Control, c.Request.Root, cmp.Or(name, "last"))
		if err == nil && word == "run" {
			started, err := c.Control.Automations.Run(ctx, dispatch.AutomationStart{ID: one.ID})
			return func() { c.Page.Fires(&one, []store.FireView{{Fire: started.Fire}}) }, err
		}
		if err == nil {
			err = ChangeAutomation(ctx, c.Control, word, &one, until)
		}
		return func() { c.Page.Automation(&one) }, err
	}, func(show func()) { show() })
}

// automateChat makes an automation of what the person said in this chat, once they have seen its
// next runs.
func automateChat(c *Conversation, when string) {
	if when == "" || c.Last.IsZero() {
		c.Note(c.Text.T("give the agent the job once, then say when it is to do it again: /automate weekly mon 09:00"))
		return
	}
	in := dispatch.NewAutomation{ID: regie.NewID(), FromSession: c.Session, Root: c.Request.Root, When: when}
	if !c.Request.ModelDefault {
		in.Provider, in.Model = c.Request.Provider, c.Request.Model
	}
	loadBeside(c, func(ctx context.Context) (dispatch.ScheduleView, error) {
		return c.Control.Automations.Preview(ctx, dispatch.SchedulePreview{Root: in.Root, When: when})
	}, func(found dispatch.ScheduleView) {
		shown := dispatch.AutomationView{NextRuns: found.NextRuns}
		shown.ID, shown.Name, shown.Enabled = in.ID, c.Text.T("what you said in this chat"), true
		shown.Definition.Schedule = found.Schedule
		writeAutomation(c.Page, &shown, len(found.NextRuns))
		c.Renderer.Confirm("", []Key{
			{yesNames, c.Text.T("[y] create"), func() {
				loadBeside(c, func(ctx context.Context) (dispatch.AutomationView, error) {
					return c.Control.Automations.Create(ctx, in)
				}, func(made dispatch.AutomationView) {
					if c.Page.Automation(&made); c.NoSchedules != nil && c.NoSchedules() {
						c.Note(c.Text.T("no regie serve runs on this data directory: until it does, only regie automations run starts runs"))
					}
				})
			}},
			{"esc " + noNames, c.Text.T("[n] leave it"), func() { c.Note(c.Text.T("no automation was created")) }},
		})
	})
}
