package store

import (
	"encoding/json"
	"time"

	"github.com/regie-run/regie"
)

// Asked is a transition's requests to a person (spec 4.4, 4.5): an approval of calls of its batch,
// questions, or both. Each becomes a wait with a deadline (decision 12).
type Asked struct {
	Approval  *regie.Approval
	Questions []regie.Question
	// Plan is a plan that a question asks to approve.
	Plan json.RawMessage
}

// Outcome is the result of a transition of a running round.
type Outcome struct {
	// Parked says that the round now waits and its holder has released it. A round without an open
	// wait does not park: it stays with its holder, and its calls have changed meanwhile.
	Parked bool
	// Seq is the place of a stored reply in the log.
	Seq int64
	// Admitted are messages that took their place in the thread, after the batch's results
	// (decision 10).
	Admitted []regie.Message
	// Next is the round that admitted messages started; any process may claim it.
	Next regie.ID
	// Reserved is the reservation of the model call that the transition opened.
	Reserved int64
}

// Decide is the transition of a person's decisions on calls of one approval (decision 20).
type Decide struct {
	ApprovalID regie.ID
	// Request is the answer's own id: the same one again changes nothing.
	Request string
	// Decisions are complete: By is set, Scope is one that was proposed.
	Decisions []regie.Decision
	// Previews are of edited calls: what their new arguments do.
	Previews map[regie.ID]regie.Preview
	// Rules are the rules of AnswerSession and AnswerAlways; the store sets their workspace and
	// their time.
	Rules []regie.Rule
}

// AnswerQuestion is the transition of a person's answer to a module.
type AnswerQuestion struct {
	QuestionID regie.ID
	Request    string
	Reply      regie.QuestionReply
	// Result is the text for the model, Message the message in the thread.
	Result  string
	Message regie.Message
	// Mode is what the session's mode becomes, where the answer approves a plan; else empty.
	Mode regie.Mode
}

// Resolved is the outcome of a wait.
type Resolved struct {
	SessionID regie.ID `json:"session_id"`
	RoundID   regie.ID `json:"round_id"`
	// Ready says that the round has no open wait any more: it can be claimed, unless its session is
	// paused.
	Ready bool `json:"ready"`
	// MessageID and Seq are the answer's message and its place in the log; zero where the answer
	// had been given before, and of a decision.
	MessageID regie.ID `json:"-"`
	Seq       int64    `json:"-"`
}

// WhenBusy says how a message is handled that arrives during a round (spec 3).
type WhenBusy string

// The ways.
const (
	Queue  WhenBusy = "queue"  // a new round when this one ends
	Steer  WhenBusy = "steer"  // part of this round's next model call
	Reject WhenBusy = "reject" // refused with CodeRoundInProgress, nothing stored
)

// ErrLeavesWaits refuses a message that would answer or withdraw an open request, where its sender
// lacks the scope to do so.
var ErrLeavesWaits = regie.Errorf(regie.CodeMissingScope,
	"the session waits for an answer: answering or withdrawing it requires a token with the scope %s",
	string(regie.ScopeApprove))

// InboxFilter selects open requests to people.
type InboxFilter struct {
	Root      string   `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	SessionID regie.ID `query:"session" doc:"Of one session."`
	ID        regie.ID `query:"id" doc:"One approval or question, in whatever state."`
	// Short is as people type it: without hyphens.
	Short string `query:"short" doc:"The end of an id, or its beginning from eight digits on, in whatever state."`
	// Closed includes closed ones.
	Closed bool `query:"state" enum:"pending all" doc:"pending: what is open (the default); all: what is closed too."`
	// After is the cursor: each list continues behind it, oldest first. Limit is the page size of
	// each, 0 for all.
	After Mark `query:"cursor" list:"inbox" doc:"next_cursor of the page before."`
	Limit int  `query:"limit" min:"1" max:"500" doc:"How many at most, approvals and questions together; 50 where it is left out."`
	// Brief omits large parts, diffs and arguments: a list of a thousand stays small.
	Brief bool `query:"brief" doc:"Without diffs and arguments."`
	// UserID is the user for SetAside.
	UserID regie.ID
}

// Inbox is the open requests to people (spec 4.4).
type Inbox struct {
	Approvals []regie.Approval `json:"approvals"`
	Questions []regie.Question `json:"questions"`
	// Unknown are the calls without a known outcome, the newest first. SetAside says until when the
	// user has set items aside (decision 61). A first page without an id has both.
	Unknown  []regie.Call           `json:"unknown,omitempty"`
	SetAside map[regie.ID]time.Time `json:"set_aside,omitempty"`
}

// Aside is the transition that hides an item of the inbox from a user until a time: an approval, a
// question, a call without a known outcome or a session (decision 61).
type Aside struct {
	UserID, ItemID regie.ID
	Until          time.Time
}

// Extension is the transition that moves the deadline of an approval or a question.
type Extension struct {
	ItemID regie.ID
	Until  time.Time
	By     string
}
