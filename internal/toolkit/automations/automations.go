// Package automations is the toolkit by which an agent proposes an automation: a person sees its
// definition with its next runs, may edit it, and decides (spec 5.3).
//
// The package keeps nothing and starts nothing of its own: it has no goroutine.
package automations

import (
	"context"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
)

// Service stores automations for the owner of the sessions.
type Service interface {
	Preview(ctx context.Context, in dispatch.SchedulePreview) (dispatch.ScheduleView, error)
	Create(ctx context.Context, in dispatch.NewAutomation) (dispatch.AutomationView, error)
}

type proposal struct {
	Name     string `json:"name" jsonschema:"a short name"`
	Text     string `json:"text" jsonschema:"what each run is to do, complete in itself: a run knows nothing of this chat"`
	When     string `json:"when" jsonschema:"the schedule: every 15m; daily 09:00,18:30; weekly mon-fri 09:00; monthly 1,-1 09:00; yearly 02-28 09:00; once 2026-12-01T09:00; cron 0 9 * * 1-5"`
	Zone     string `json:"zone,omitempty" jsonschema:"the IANA time zone of the schedule; by default that of the workspace"`
	OnChange string `json:"on_change,omitempty" jsonschema:"a run also starts when a file changes that matches one of these patterns, separated by spaces, such as inbox/** docs/*.md"`
}

type proposer struct{ service func() Service }

// Tools returns automations.propose. service may be nil where the tool is only described.
func Tools(service func() Service) ([]tool.Tool, error) {
	made, err := tool.New(regie.ToolDefinition{
		Name: "automations.propose", Kind: regie.KindAction, Class: regie.ClassKeyed, Risk: regie.RiskExternal,
		Description: "Propose an automation: a job that runs by itself on a schedule, in sessions of its own. The person sees it with its next runs and decides.",
	}, tool.Handler[proposal]{
		Run: proposer{service}.create, Preview: proposer{service}.preview,
		MustAsk: func(context.Context, *tool.Invocation, proposal) []regie.Sentence {
			return []regie.Sentence{regie.Say("an automation runs again and again without you")}
		},
	})
	return []tool.Tool{made}, err
}

// preview checks the schedule, and shows the next runs.
func (p proposer) preview(ctx context.Context, inv *tool.Invocation, in proposal) (out regie.Preview, err error) {
	if inv.Unattended {
		return out, regie.Errorf(regie.CodeForbidden, "nobody is here to decide about an automation: say in your answer what is to be repeated, and when")
	}
	found, err := p.service().Preview(access.AsOwner(ctx), dispatch.SchedulePreview{
		WorkspaceID: inv.Workspace.ID, When: in.When, Schedule: &regie.Schedule{Zone: in.Zone},
	})
	if err != nil {
		return out, err
	}
	var next []string
	for _, at := range found.NextRuns {
		next = append(next, at.Format("2006-01-02 15:04 -07:00"))
	}
	starts := strings.TrimSpace(found.When + " " + found.Schedule.Zone + " " + in.OnChange)
	return regie.Preview{
		Sentence: regie.Say("create the automation \"%s\", which runs without you: %s", in.Name, starts),
		Warnings: []regie.Sentence{regie.Say("its next runs: %s", strings.Join(next, ", "))},
		Diff:     in.Text + "\n", Once: true,
	}, nil
}

// create stores the automation under the call's id: a repeated call creates nothing more.
func (p proposer) create(ctx context.Context, inv *tool.Invocation, in proposal) (tool.Result, error) {
	zone := regie.Schedule{Zone: in.Zone}
	made, err := p.service().Create(access.AsOwner(ctx), dispatch.NewAutomation{
		ID: inv.CallID, CallID: inv.CallID, FromSession: inv.SessionID, Name: in.Name, Text: in.Text, When: in.When,
		Definition: regie.AutomationDefinition{Schedule: &zone, Files: strings.Fields(in.OnChange)},
	})
	if code := regie.CodeOf(err); code == regie.CodeBadRequest || code == regie.CodeBadPattern {
		err = tool.NotDone{Err: err}
	}
	return tool.Result{Content: "created the automation " + made.ID.String() + ": " + made.When}, err
}
