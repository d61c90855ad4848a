package client

import (
	"cmp"
	"context"
	"math"
	"net/http"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// The types of automations, for programs outside of this module (see types.go).
type (
	// NewAutomation asks for an automation.
	NewAutomation = dispatch.NewAutomation
	// AutomationEdit changes an automation.
	AutomationEdit = dispatch.AutomationEdit
	// AutomationView is an automation with its last and next runs.
	AutomationView = dispatch.AutomationView
	// AutomationFilter selects automations.
	AutomationFilter = store.AutomationFilter
	// AutomationVersion is what an automation was in one version.
	AutomationVersion = store.AutomationVersion
	// AutomationStart asks for a run.
	AutomationStart = dispatch.AutomationStart
	// AutomationStarted is the answer to it.
	AutomationStarted = dispatch.AutomationStarted
	// AutomationPause asks for a pause.
	AutomationPause = dispatch.AutomationPause
	// SchedulePreview asks for the next runs of a schedule.
	SchedulePreview = dispatch.SchedulePreview
	// ScheduleView is a schedule with its next runs.
	ScheduleView = dispatch.ScheduleView
	// FireFilter selects fires.
	FireFilter = store.FireFilter
	// FireView is a fire with what became of its run.
	FireView = store.FireView
)

// Automations are the automations of workspaces, as control.Automations.
type Automations struct{ client *Client }

const automationsPath = "/api/v1/automations"

// List returns the automations that a filter selects, the oldest first.
func (a *Automations) List(ctx context.Context, filter store.AutomationFilter) ([]dispatch.AutomationView, error) {
	return list[dispatch.AutomationView](ctx, a.client, automationsPath, filter, cmp.Or(filter.Limit, math.MaxInt))
}

// Get returns an automation.
func (a *Automations) Get(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodGet, automationPath(id, ""), nil)
}

// Create stores an automation. Where the request names an id, the same one again changes nothing.
func (a *Automations) Create(ctx context.Context, in dispatch.NewAutomation) (dispatch.AutomationView, error) {
	if in.ID.IsZero() {
		in.ID = regie.NewID()
	}
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodPost, automationsPath, in)
}

// Edit changes an automation, which makes a new version.
func (a *Automations) Edit(ctx context.Context, in dispatch.AutomationEdit) (dispatch.AutomationView, error) {
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodPatch, automationPath(in.ID, ""), in)
}

// Preview returns the next runs of a schedule that is not stored.
func (a *Automations) Preview(ctx context.Context, in dispatch.SchedulePreview) (dispatch.ScheduleView, error) {
	return ask[dispatch.ScheduleView](ctx, a.client, http.MethodPost, automationsPath+"/preview", in)
}

// Remove removes an automation; its runs stay.
func (a *Automations) Remove(ctx context.Context, id regie.ID) error {
	return a.client.call(ctx, http.MethodPost, automationPath(id, "/remove"), nil, nil)
}

// Versions returns the versions of an automation, the oldest first.
func (a *Automations) Versions(ctx context.Context, id regie.ID) ([]store.AutomationVersion, error) {
	return all[store.AutomationVersion](ctx, a.client, automationPath(id, "/versions"))
}

// Fires returns what became of the times of an automation, the latest first.
func (a *Automations) Fires(ctx context.Context, filter store.FireFilter) ([]store.FireView, error) {
	return list[store.FireView](ctx, a.client, automationPath(filter.AutomationID, "/runs"), filter,
		cmp.Or(filter.Limit, math.MaxInt))
}

// Run starts a run now, or has it wait for the end of an earlier one.
func (a *Automations) Run(ctx context.Context, in dispatch.AutomationStart) (dispatch.AutomationStarted, error) {
	if in.Request == "" {
		in.Request = regie.NewID().String()
	}
	return ask[dispatch.AutomationStarted](ctx, a.client, http.MethodPost, automationPath(in.ID, "/execute"), in)
}

// Enable has an automation run by its schedule and triggers, or no more.
func (a *Automations) Enable(ctx context.Context, id regie.ID, enabled bool) (dispatch.AutomationView, error) {
	word := "/disable"
	if enabled {
		word = "/enable"
	}
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodPost, automationPath(id, word), nil)
}

// Pause pauses an automation with its open runs.
func (a *Automations) Pause(ctx context.Context, in dispatch.AutomationPause) (dispatch.AutomationView, error) {
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodPost, automationPath(in.ID, "/pause"), in)
}

// Resume ends the pause of an automation and of its runs.
func (a *Automations) Resume(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodPost, automationPath(id, "/resume"), nil)
}

// Stop stops the open runs of an automation; its schedule goes on.
func (a *Automations) Stop(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodPost, automationPath(id, "/stop"), nil)
}

// Rotate gives the webhook of an automation a new token, which ends the present one.
func (a *Automations) Rotate(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
	return ask[dispatch.AutomationView](ctx, a.client, http.MethodPost, automationPath(id, "/token"), nil)
}

func automationPath(id regie.ID, word string) string {
	return automationsPath + "/" + id.String() + word
}
