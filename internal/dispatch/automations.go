package dispatch

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// NewAutomation asks for an automation. Its template is a text, or segments, or what a person said
// in a chat, or the template of another automation.
type NewAutomation struct {
	// ID makes a repeated request change nothing.
	ID             regie.ID        `json:"id,omitzero"`
	WorkspaceID    regie.ID        `json:"workspace_id,omitzero"`
	Root           string          `json:"root,omitempty"`
	Name           string          `json:"name,omitempty"` // empty: the beginning of the text
	Text           string          `json:"text,omitempty"`
	Segments       []regie.Segment `json:"segments,omitempty"`
	FromSession    regie.ID        `json:"from_session,omitzero"`
	FromAutomation regie.ID        `json:"from_automation,omitzero"`
	// Agent, Provider and Model answer; empty: the main agent, and its own model.
	Agent        string     `json:"agent,omitempty"`
	Provider     string     `json:"provider,omitempty"`
	Model        string     `json:"model,omitempty"`
	ApprovalMode regie.Mode `json:"approval_mode,omitempty"`
	// When is the schedule in words ("weekly mon 09:00"), instead of definition.schedule.
	When       string                     `json:"when,omitempty"`
	Definition regie.AutomationDefinition `json:"definition"`
	Disabled   bool                       `json:"disabled,omitempty"`
	// CallID is the call of the agent that proposed it.
	CallID regie.ID `json:"-"`
}

// AutomationEdit changes an automation, which makes a new version. What is nil stays.
type AutomationEdit struct {
	ID regie.ID `json:"-"`
	// Version is the one that was changed; 0: the newest.
	Version int     `json:"version,omitempty"`
	Name    *string `json:"name,omitempty"`
	Text    *string `json:"text,omitempty"`
	// Segments are the text with what it mentions, instead of Text.
	Segments     []regie.Segment `json:"segments,omitempty"`
	Agent        *string         `json:"agent,omitempty"`
	Provider     *string         `json:"provider,omitempty"`
	Model        *string         `json:"model,omitempty"`
	ApprovalMode *regie.Mode     `json:"approval_mode,omitempty"`
	// When is the schedule in words; empty takes the schedule away.
	When *string `json:"when,omitempty"`
	// Definition is merged into the definition (RFC 7396: null removes a key).
	Definition json.RawMessage `json:"definition,omitempty"`
}

// AutomationView is an automation as people see it.
type AutomationView struct {
	store.AutomationRow
	Text         string          `json:"text"`
	Segments     []regie.Segment `json:"segments,omitempty"`
	Agent        string          `json:"agent"`
	Provider     string          `json:"provider_id,omitempty"`
	Model        string          `json:"model,omitempty"`
	ApprovalMode regie.Mode      `json:"approval_mode,omitempty"`
	When         string          `json:"when,omitempty"`
	// NextRuns are on the clock of the schedule's zone.
	NextRuns []time.Time `json:"next_runs"`
	// HookPath is the address of its webhook with the token, in the answer that made it alone.
	HookPath string `json:"hook_path,omitempty"`
}

// SchedulePreview asks for the next runs of a schedule that is not stored.
type SchedulePreview struct {
	WorkspaceID regie.ID        `json:"workspace_id,omitzero"`
	Root        string          `json:"root,omitempty"`
	When        string          `json:"when,omitempty"`
	Schedule    *regie.Schedule `json:"schedule,omitempty"`
}

// ScheduleView is a schedule with its next runs.
type ScheduleView struct {
	Schedule *regie.Schedule `json:"schedule"`
	When     string          `json:"when"`
	NextRuns []time.Time     `json:"next_runs"`
}

// AutomationPause pauses an automation with its open runs.
type AutomationPause struct {
	ID regie.ID `json:"-"`
	// Until is when the pause ends; zero: a person resumes it.
	Until time.Time `json:"until,omitzero"`
}

// AutomationStart starts a run now.
type AutomationStart struct {
	ID regie.ID `json:"-"`
	// Request is the client's id of the start: the same one again starts nothing.
	Request string `json:"request,omitempty"`
}

// AutomationStarted is the answer to a start: the run, or the fire that waits for the end of an
// earlier run.
type AutomationStarted struct {
	Fire regie.Fire `json:"fire"`
	Run  *Run       `json:"run,omitempty"`
}

// ControlRequest asks what a round that a session started now would get. Trigger is the row of the
// table for a session of type AUTOMATION; empty is MANUAL.
type ControlRequest struct {
	SessionID regie.ID
	Trigger   regie.Trigger `query:"trigger" enum:"MANUAL SCHEDULED EVENT" doc:"Why an automation's run would begin; MANUAL where it is left out."`
}

// MaxHookBody bounds the body of a request to a webhook in bytes.
const MaxHookBody = 64 << 10

// HookRequest is a request to the webhook of an automation.
type HookRequest struct {
	ID    regie.ID
	Token string
	// Key is the sender's idempotency key; empty: each request is an event.
	Key  string
	Body []byte
}

// FileWatch is a workspace with files that fire automations, with the patterns of each.
type FileWatch struct {
	Workspace   regie.Workspace
	Automations map[regie.ID][]string
}

// FileChanges are the paths of a watched workspace that have changed since a moment, each with what
// the file was before and after: the same for every engine that sees the change.
type FileChanges struct {
	FileWatch
	Since time.Time
	Paths map[string]string
}
