package store

import (
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
)

// Template is a SEED session with its one message, as a new version of an automation makes it.
type Template struct {
	Session regie.Session
	Message regie.Message
}

// SaveAutomation is the transition that stores a new version of an automation. A new schedule
// begins a new series (decision 26).
type SaveAutomation struct {
	Automation regie.Automation
	// Template is nil where the version keeps the template of the one before.
	Template *Template
	// After is the version that it was made from: 0 for a new automation. For any but the newest
	// version the transition returns CodeConflict, and CodeNotFound for a removed automation.
	After int
	// Hook is the hash of a new token of its webhook; zero keeps the present one.
	Hook regie.Hash
	By   string
}

// AutomationChange is the transition of a person's word about an automation. What is nil stays.
type AutomationChange struct {
	ID      regie.ID
	Enabled *bool
	Paused  *bool
	Until   time.Time // of a pause; zero: until a person resumes it
	Reason  regie.Sentence
	Removed bool
	By      string
}

// AutomationFilter selects automations, without removed ones.
type AutomationFilter struct {
	Root  string   `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	ID    regie.ID `query:"id" doc:"One automation."`
	Short string   `query:"short" doc:"The end of its id, or its beginning from eight digits on."`
	// After is the cursor: the list continues behind it.
	After Mark `query:"cursor" list:"automations" doc:"next_cursor of the page before."`
	Limit int  `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// AutomationRow is an automation with its template and its latest fire.
type AutomationRow struct {
	regie.Automation
	Root     string        `json:"root,omitempty"`
	Seed     regie.Session `json:"-"`
	Message  regie.Message `json:"-"`
	HasHook  bool          `json:"-"`
	LastFire *FireView     `json:"last_fire,omitempty"`
	// Running are its sessions that have not ended.
	Running []regie.ID `json:"running,omitempty"`
}

// AutomationVersion is what an automation was in one version.
type AutomationVersion struct {
	Version    int                        `json:"version"`
	Name       string                     `json:"name"`
	SeedID     regie.ID                   `json:"seed_id"`
	Definition regie.AutomationDefinition `json:"definition"`
	By         string                     `json:"created_by"`
	At         time.Time                  `json:"created_at"`
}

// FireFilter selects the fires of an automation, the latest first.
type FireFilter struct {
	AutomationID regie.ID
	Before       Mark `query:"cursor" list:"fires" doc:"next_cursor of the page before."`
	Limit        int  `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
}

// FireView is a fire with what became of its run.
type FireView struct {
	regie.Fire
	State     regie.SessionState `json:"state,omitempty"`
	EndReason regie.SessionEnd   `json:"end_reason,omitempty"`
	StartedAt time.Time          `json:"started_at,omitzero"`
	EndedAt   time.Time          `json:"ended_at,omitzero"`
	// SpentMicroUSD is the cost of its model calls.
	SpentMicroUSD int64 `json:"spent_microusd,omitempty"`
	// CostUnknown says that some of them have an unknown cost.
	CostUnknown bool `json:"cost_unknown,omitempty"`
}

// DecideFires stores the fires of a schedule up to a moment. It changes nothing where another
// engine was faster, or where the automation has changed since it was read.
type DecideFires struct {
	Automation *regie.Automation
	Fires      []regie.Fire
	DecidedTo  time.Time
}

// AddFire is the transition of a manual start or an event. Key makes a repeated one change nothing.
type AddFire struct {
	Fire regie.Fire
	Key  string
}

// DueFire is a fire that has not begun, with what its start needs.
type DueFire struct {
	regie.Fire
	WorkspaceID regie.ID
}

// StartFire has a submission carry out a fire: its session's transition settles it RAN. Joined is
// how many events are joined to it, as its message was written.
type StartFire struct {
	Fire   regie.Fire
	Ask    slot.Ask
	Joined int
}

// SettleFire is the transition of a due fire that does not run. FAILED counts as a failed run.
type SettleFire struct {
	ID      regie.ID
	Outcome regie.FireOutcome
	Reason  regie.Sentence
}

// ErrNotNow is the error of a start that has to wait, because an earlier run of the automation has
// not ended or the automation is paused, ErrNoSlot of one for which no slot is free. Nothing is
// stored.
var (
	ErrNotNow = regie.Errorf(regie.CodeConflict, "the run waits for the automation's earlier run, or for its pause to end")
	ErrNoSlot = regie.Errorf(regie.CodeConflict, "the run waits for a free slot")
)

// ErrEventJoined is the error of a start with a message that was written before the latest event
// was joined to the fire.
var ErrEventJoined = regie.Errorf(regie.CodeConflict, "an event was joined to the run as it began")

// ErrFireSettled is the error of a start that came too late: the fire has an outcome, or its
// automation was removed.
var ErrFireSettled = regie.Errorf(regie.CodeConflict, "this run has begun already, or will not begin any more")

// MaxFailures is how many failed runs in a row pause an automation (decision 57).
const MaxFailures = 3
