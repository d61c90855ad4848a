package regie

import (
	"encoding/json"
	"time"
)

// Automation is a SEED session that runs on a schedule or a trigger (spec 5.3). Each change of its
// definition makes a new version, and each run keeps the version that it ran under.
type Automation struct {
	ID          ID `json:"id"`
	WorkspaceID ID `json:"workspace_id"`
	// UserID is the owner: runs have the owner's identity, slots and budget (decision 36).
	UserID  ID     `json:"user_id"`
	Name    string `json:"name"`
	Version int    `json:"version"` // from 1
	// SeedID is the SEED session with the message that each run begins with.
	SeedID     ID                   `json:"seed_id"`
	Definition AutomationDefinition `json:"definition"`
	CreatedBy  AutomationAuthor     `json:"created_by"`
	CreatedAt  time.Time            `json:"created_at"`
	Enabled    bool                 `json:"enabled"`
	// Paused says that nothing starts until a person resumes the automation, or until PausedUntil.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
	PauseReason Sentence  `json:"pause_reason,omitzero"`
	// Failures counts the failed runs since the last good one; three pause the automation
	// (decision 57).
	Failures int `json:"failures,omitempty"`
	// SeriesFrom is when the present series of the schedule began: at the last change of it.
	SeriesFrom time.Time `json:"series_from"`
	// DecidedTo is the last nominal instant that has its row among the fires.
	DecidedTo time.Time `json:"-"`
}

// AutomationAuthor is who created an automation: a user, or an agent by a call that a person
// approved.
type AutomationAuthor struct {
	Kind   AuthorKind `json:"kind"`
	ID     string     `json:"id"`
	CallID ID         `json:"call_id,omitzero"`
}

// AutomationDefinition is when and how an automation runs.
type AutomationDefinition struct {
	Schedule *Schedule `json:"schedule,omitempty"`
	// Webhook accepts POST /hooks/{id}/{token}. Files are patterns of workspace paths: a change
	// that Regie did not make fires the automation.
	Webhook bool          `json:"webhook,omitempty"`
	Files   []string      `json:"files,omitempty"`
	Missed  MissedPolicy  `json:"missed,omitempty"`  // empty: MissedOnce
	Overlap OverlapPolicy `json:"overlap,omitempty"` // empty: OverlapQueueOne
	Limits  Limits        `json:"limits,omitzero"`
	// USDPerRun is what one run may cost; zero leaves the bounds of the configuration.
	USDPerRun float64 `json:"usd_per_run,omitempty"`
	// Allow are patterns of tools that run without an approval, Ask of tools that always need one.
	Allow []string `json:"allow,omitempty"`
	Ask   []string `json:"ask,omitempty"`
	// OnApproval is what becomes of a call that needs an approval: park, deny or fail.
	OnApproval        string `json:"on_approval,omitempty"`
	RequireValidation bool   `json:"require_validation,omitempty"`
	// Tainted says that strangers may have dictated the text: an agent proposed it that had read
	// what they write. Its runs begin tainted (decision 34).
	Tainted bool `json:"tainted,omitempty"`
}

// MissedPolicy is what becomes of the times that passed while no engine ran.
type MissedPolicy string

// The policies for missed times.
const (
	MissedOnce MissedPolicy = "once" // the latest runs late, the others are COALESCED
	MissedSkip MissedPolicy = "skip"
	MissedEach MissedPolicy = "each"
)

// OverlapPolicy is what becomes of a time at which an earlier run has not ended.
type OverlapPolicy string

// The policies for overlapping runs.
const (
	OverlapSkip     OverlapPolicy = "skip"
	OverlapQueueOne OverlapPolicy = "queue_one" // one waits, the others are COALESCED
	OverlapParallel OverlapPolicy = "parallel"
)

// Schedule is a series of instants (spec 5.2). It has exactly one of Cron, EveryMinutes, Once and
// Period.
type Schedule struct {
	// Cron has five fields: minute, hour, day of the month, month, day of the week.
	Cron string `json:"cron,omitempty"`
	// EveryMinutes is elapsed time from the start of the series (decision 26).
	EveryMinutes int        `json:"every_minutes,omitempty"`
	Once         *LocalTime `json:"once,omitempty"`
	// Period is daily, weekly, monthly or yearly, at each of Times ("09:30").
	Period SchedulePeriod `json:"period,omitempty"`
	Times  []string       `json:"times,omitempty"`
	// Weekdays are those of a weekly schedule ("mon"), Days the days of the month of a monthly one
	// (-1 is the last), Dates the days of a yearly one ("02-28").
	Weekdays []string `json:"weekdays,omitempty"`
	Days     []int    `json:"days,omitempty"`
	Dates    []string `json:"dates,omitempty"`
	// Start and End bound the series; End is not part of it.
	Start *LocalTime `json:"start,omitempty"`
	End   *LocalTime `json:"end,omitempty"`
	Zone  string     `json:"zone"` // IANA
}

// Equal reports whether two schedules are the same, nil for none.
func (s *Schedule) Equal(other *Schedule) bool {
	one, _ := json.Marshal(s) // of plain fields
	two, _ := json.Marshal(other)
	return string(one) == string(two)
}

// LocalTime is a moment on the clock of a schedule's zone, "2026-12-01T09:00".
type LocalTime string

// SchedulePeriod is the period of a schedule.
type SchedulePeriod string

// The periods.
const (
	PeriodDaily   SchedulePeriod = "daily"
	PeriodWeekly  SchedulePeriod = "weekly"
	PeriodMonthly SchedulePeriod = "monthly"
	PeriodYearly  SchedulePeriod = "yearly"
)

// Trigger is why a run of an automation began.
type Trigger string

// The triggers.
const (
	TriggerManual    Trigger = "MANUAL"
	TriggerScheduled Trigger = "SCHEDULED"
	TriggerEvent     Trigger = "EVENT" // a webhook, or a changed file
)

// FireOutcome is what became of a fire (decisions 26 and 57).
type FireOutcome string

// The outcomes.
const (
	FireDue       FireOutcome = "DUE" // its run has not begun
	FireRan       FireOutcome = "RAN" // its session's transaction has committed
	FireSkipped   FireOutcome = "SKIPPED"
	FireCoalesced FireOutcome = "COALESCED"
	FireOverlap   FireOutcome = "OVERLAP"
	FireFailed    FireOutcome = "FAILED" // its run could not begin
)

// Fire is one instant at which an automation was to run. There is one row for each nominal instant
// of a schedule; Until makes it a row for a range of missed ones.
type Fire struct {
	ID           ID          `json:"id"`
	AutomationID ID          `json:"automation_id"`
	Trigger      Trigger     `json:"trigger"`
	NominalAt    time.Time   `json:"nominal_at"`
	Until        time.Time   `json:"until,omitzero"`
	Count        int         `json:"count,omitempty"` // of a range
	Outcome      FireOutcome `json:"outcome"`
	Reason       Sentence    `json:"reason,omitzero"`
	Version      int         `json:"version"` // of the automation
	SessionID    ID          `json:"session_id,omitzero"`
	// Late says that the instant had passed when an engine saw it.
	Late      bool      `json:"late,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	SettledAt time.Time `json:"settled_at,omitzero"`
	// Payload is the body of a webhook or the changed paths: content of strangers.
	Payload json.RawMessage `json:"payload,omitempty"`
}
