package store

import (
	"slices"
	"time"

	"github.com/regie-run/regie"
)

// SessionFilter selects sessions, without removed ones.
type SessionFilter struct {
	Root  string   `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	ID    regie.ID `query:"id" doc:"One session, or one of its rounds."`
	Short string   `query:"short" doc:"The end of such an id, or its beginning from eight digits on."`
	// UserID is the user for whom unread messages are counted (decision 45).
	UserID regie.ID
	// Before is the cursor: the list continues behind it.
	Before Mark `query:"cursor" list:"sessions" doc:"next_cursor of the page before."`
	// Limit is the page size; zero means 1,000.
	Limit int `query:"limit" min:"1" max:"1000" doc:"How many at most; 50 where it is left out."`
	// API includes the sessions of OpenAI-compatible clients (decision 35). A filter by id always
	// includes them.
	API  bool              `query:"api" doc:"Has the sessions of OpenAI-compatible clients among them."`
	Type regie.SessionType `query:"type" enum:"CHAT AUTOMATION" doc:"Those of one type; all of them where it is left out."`
}

// SessionSummary is one line of sessions list (spec 10.1).
type SessionSummary struct {
	regie.Session
	Workspace string `json:"workspace"` // its name, for people
	Root      string `json:"root,omitempty"`
	Messages  int    `json:"messages"` // in the thread
	Rounds    int    `json:"rounds"`
	// Unread counts the answers and notices behind the user's read mark. Finished says that a round
	// has ended behind it: while the user was away (decision 45).
	Unread   int            `json:"unread"`
	Finished bool           `json:"finished_while_away,omitempty"`
	LastEnd  regie.RoundEnd `json:"last_end_reason,omitempty"` // of the newest round, once it has ended
	Head     int64          `json:"head"`                      // the last sequence number of its log
	// QueuePosition is a QUEUED session's place in the queue, from 1 (spec 5.1).
	QueuePosition int `json:"queue_position,omitempty"`
}

// SessionView is a session with its thread (spec 10.1 sessions show).
type SessionView struct {
	SessionSummary
	// Mode says whether the session's owner is present (spec 5.4).
	Mode   Mode          `json:"mode,omitempty"`
	Thread []MessageView `json:"thread"`
	// History are its rounds, oldest first.
	History []regie.Round `json:"history"`
	// Spent is the cost of its model calls.
	Spent regie.Spending `json:"spent"`
	// Waits are the open ones. ActiveTasks are the long tasks that have not ended (decision 74).
	Waits       []regie.Wait `json:"waits"`
	ActiveTasks []regie.ID   `json:"active_tasks"`
	// Execution is the bookkeeping of an AUTOMATION session.
	Execution *regie.Execution `json:"execution_metadata,omitempty"`
	// Pending are messages that wait for their place in the thread (decision 10).
	Pending []MessageView `json:"pending,omitempty"`
	// Undos are the undos of its rounds, oldest first.
	Undos []regie.Undo `json:"undos,omitempty"`
	// Forks are its present forks.
	Forks []regie.ID `json:"forks,omitempty"`
	// Audit is the result of verifying its log, AuditError the error where the log was altered.
	Audit      *VerifyReport `json:"audit,omitempty"`
	AuditError string        `json:"audit_error,omitempty"`
}

// MessageView is a message with its place in the log and the calls that it owns.
type MessageView struct {
	Seq     int64         `json:"seq"`
	Time    time.Time     `json:"time"`
	Message regie.Message `json:"message"`
	Calls   []regie.Call  `json:"calls,omitempty"`
	// Superseded says that an undo has taken the message out of the conversation.
	Superseded bool `json:"superseded,omitempty"`
}

// Fork is the transition that copies a session's thread into a new session, up to a point (decision
// 17).
type Fork struct {
	// SessionID is the new session's; the same fork again changes nothing.
	SessionID regie.ID
	From      regie.ID
	// At is a sequence number of the log of From; zero means its end. Round names a round of From
	// instead: its end is the point.
	At    int64
	Round regie.ID
	Name  string // empty: that of From
	// TokenID is the token of the caller: the fork belongs to it, not to the token that began From.
	TokenID regie.ID
}

// Forked is the answer to a Fork.
type Forked struct {
	Session  regie.Session `json:"session"` // ForkedFrom.Seq is where the thread was cut
	Messages int           `json:"messages"`
	Calls    int           `json:"calls"`
	// Open says that the point lies in an exchange with unsettled calls: the fork ends before its
	// reply.
	Open bool `json:"open,omitempty"`
}

// Cut returns the last message that a fork at a sequence number copies: the end of the exchange at
// that point (decision 17). A reply is copied only with the message of its results. Without that
// message the exchange is open and the thread is cut before the reply, because a prompt is never
// built from half a batch (decision 4).
func Cut(thread Thread, at int64) (last int64, open bool) {
	last = at
	for i := range thread.Messages {
		m := &thread.Messages[i]
		calls := thread.Calls[m.ID]
		if m.Seq > last {
			break
		}
		if m.Sender == regie.SenderUser { // what it names goes with it, once it was read
			last = max(last, dataOf(thread.Messages[i+1:], m.ID))
		}
		if len(calls) == 0 || m.System != nil { // a person's enrichments come with their results
			continue
		}
		end := resultsOf(thread.Messages[i+1:], calls[0].ID)
		if end == 0 {
			return m.Seq - 1, true
		}
		last = max(last, end)
	}
	return last, false
}

// dataOf returns the sequence number of the message that enriches a person's message, or 0.
func dataOf(after []regie.Message, enriched regie.ID) int64 {
	for i := range after {
		switch m := &after[i]; {
		case m.AI != nil:
			return 0
		case m.Enriching() && m.System.Enriches == enriched:
			return m.Seq
		}
	}
	return 0
}

// resultsOf returns the sequence number of the message with a call's result, or 0.
func resultsOf(after []regie.Message, call regie.ID) int64 {
	for i := range after {
		if s := after[i].System; s != nil && slices.Contains(s.CallIDs, call) {
			return after[i].Seq
		}
	}
	return 0
}

// Remove is the transition that removes a session: a tombstone and its log stay, its content is
// erased (decision 15).
type Remove struct {
	SessionID regie.ID
	By        string
}

// Removed is the answer to a Remove.
type Removed struct {
	// SessionIDs are the session and its sub-agents', which are removed with it; empty where it was
	// removed before.
	SessionIDs []regie.ID `json:"session_ids"`
	Bodies     int64      `json:"bodies"` // how many rows of logs lost their body
	Blobs      int64      `json:"blobs"`  // erased attachments, whole results and file contents
	Rules      int        `json:"rules"`  // its session-scoped rules, which were revoked
	// Forks are the sessions that were forked from it: they have their own copies and stay.
	Forks []regie.ID `json:"forks,omitempty"`
}

// LogOwner is the owner of a log: a session, a workspace or a user.
type LogOwner struct {
	ID        regie.ID `json:"id"`
	Kind      string   `json:"kind"` // session, workspace or user; stats: the roll-ups, where they differ
	Name      string   `json:"name,omitempty"`
	Workspace string   `json:"workspace"` // its name
	Removed   bool     `json:"removed,omitempty"`
}

// LogFilter selects logs.
type LogFilter struct {
	Root  string   `query:"root" doc:"The directory of a workspace; all of them where it is left out."`
	ID    regie.ID `query:"id" doc:"One session, or one of its rounds; removed ones too."`
	Short string   `query:"short" doc:"The end of an id, or its beginning from eight digits on."`
}

// LogReport says whether one log is unaltered (spec 11.4).
type LogReport struct {
	LogOwner
	VerifyReport
	Error string `json:"error,omitempty"` // the first fault
}

// SaidMessage is a message for a search, with the name of its session.
type SaidMessage struct {
	regie.Message
	Session string
}
