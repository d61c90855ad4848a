package regie

import "time"

// Opening is what the model reads once before the first message of a round (decision 14): when and
// where it began, and who speaks. It is part of that message, so that rebuilt prompts have the same
// bytes, in forks too.
type Opening struct {
	// At is when the round began, in its time zone, to the second; zero while the message waits for
	// its round.
	At time.Time `json:"at,omitzero"`
	// Zone is the IANA name of the time zone, or LocalZone where the machine's has no name.
	Zone string `json:"time_zone"`
	// User is the name of the message's author in the store.
	User string `json:"user,omitempty"`
	// DayOnly leaves the time of day out: an answer that may be given again (spec 6.4) is right for
	// a day, not for a minute.
	DayOnly bool `json:"day_only,omitempty"`
	French  bool `json:"french,omitempty"`
	// ScheduledFor is when the run of an automation was due, zero for any other one.
	ScheduledFor time.Time `json:"scheduled_for,omitzero"`
	// Plan says that the session is in plan mode (decision 71).
	Plan bool `json:"plan,omitempty"`
}

// LocalZone is the time zone of a machine that does not know its name.
const LocalZone = "Local"

// Beginning returns the opening of a round that begins at a time; nil of nil.
func (o *Opening) Beginning(at time.Time) *Opening {
	if o == nil {
		return nil
	}
	out := *o
	zone, err := time.LoadLocation(o.Zone)
	if err != nil { // its name was valid where the message came in, on a machine that knows more of them
		zone = time.UTC
	}
	out.At = at.In(zone).Truncate(time.Second)
	if !o.ScheduledFor.IsZero() {
		out.ScheduledFor = o.ScheduledFor.In(zone)
	}
	return &out
}

// Waiting returns the opening of a message that waits for its round; nil of nil.
func (o *Opening) Waiting() *Opening {
	if o == nil {
		return nil
	}
	out := *o
	out.At = time.Time{}
	return &out
}
