package dispatch

import (
	"github.com/regie-run/regie"
)

// MessagesRequest names a part of a session's thread: what stands behind a sequence number, or with
// Before the last of what stands in front of one, and how many messages at most; zero means 1,000.
// They come in the order of the thread either way.
type MessagesRequest struct {
	SessionID     regie.ID
	After, Before int64
	Limit         int
}

// ForkRequest forks a session. The new session's id makes a repeated request change nothing.
type ForkRequest struct {
	SessionID regie.ID `json:"session_id"` // the new one's
	From      regie.ID `json:"from"`
	// At is a sequence number of the log, RoundID a run in its place; neither means the end.
	At      int64    `json:"at,omitempty"`
	RoundID regie.ID `json:"round_id,omitzero"`
	Name    string   `json:"name,omitempty"`
}

// RemoveRequest removes a session. Removing what is removed changes nothing.
type RemoveRequest struct {
	SessionID regie.ID `json:"session_id"`
	By        string   `json:"by,omitempty"`
}

// RenameRequest gives a session another name.
type RenameRequest struct {
	SessionID regie.ID `json:"session_id"`
	Name      string   `json:"name"`
}

// ReadRequest says how far the person has read a session; it never goes back.
type ReadRequest struct {
	SessionID regie.ID `json:"session_id"`
	Seq       int64    `json:"read_seq"`
}

// Replay is what running a stored round once more gave (invariant 17): the replies came from its
// log, the results from the rows of its calls, and each request was made anew and compared with the
// hash of what was sent then.
type Replay struct {
	RoundID   regie.ID     `json:"round_id"`
	Steps     []ReplayStep `json:"steps"`
	Identical int          `json:"identical"` // how many requests are what was sent
	// Difference is the number of the first exchange whose request is another one; 0 where none is.
	Difference int `json:"difference,omitempty"`
	// Skipped are the model calls that are not compared: a process that died or never sent it
	// stored nothing, and a summary that did not come is not rebuilt.
	Skipped []ReplaySkip `json:"skipped,omitempty"`
	// Unknown are the tools that the round called and that are not declared here: their
	// declarations were part of what was sent.
	Unknown []string `json:"unknown_tools,omitempty"`
}

// ReplaySkip is a model call that a Replay does not compare.
type ReplaySkip struct {
	Exchange int        `json:"exchange"`
	Attempt  int        `json:"attempt"`
	Recorded regie.Hash `json:"recorded,omitzero"` // nothing where it was not stored
}

// ReplayStep is one model call of a Replay.
type ReplayStep struct {
	Exchange int        `json:"exchange"`
	Attempt  int        `json:"attempt,omitempty"` // of a call that brought no reply
	Recorded regie.Hash `json:"recorded"`          // of what was sent
	Rebuilt  regie.Hash `json:"rebuilt"`
	Bytes    int        `json:"bytes"` // of the rebuilt request
	Calls    int        `json:"calls"` // of the reply
	// Cached says that nothing was sent: the reply came from the response cache (spec 6.4).
	Cached bool `json:"cached,omitempty"`
	// FirstSeq and LastSeq are what the request holds of the thread, as recorded.
	FirstSeq int64 `json:"first_seq"`
	LastSeq  int64 `json:"last_seq"`
}
