package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// A client of the OpenAI-compatible endpoint brings tools of its own (decision 35). A call of such
// a tool stays PROPOSED when its round ends CLIENT_TOOLS. The transition that starts the session's
// next round settles it first: with the client's results, or as not run. So a prompt never shows
// half a batch, and a crash at any point leaves a session that can continue.

// ComponentClient is the author of the messages that a client's request adds to the person's.
const ComponentClient = "client"

// settlesClientCall reports whether a submission consists of a client's results alone; the
// transition fills its message.
func settlesClientCall(in *store.Submission) bool {
	return len(in.Results) > 0 && in.Message.System != nil
}

// importHistory stores a client's earlier conversation, in front of the message that starts the
// session's first round.
func (t roundTx) importHistory(b *batch, history []store.Imported, now time.Time) {
	for i := range history {
		m := history[i].Message
		t.insertCalls(b.fence.Chain, &m, history[i].Calls, now)
		m.SessionID, m.Time = b.fence.SessionID, now // and of no round: none here has written it
		b.messages = append(b.messages, placed{&m, len(b.events)})
		b.addEvent(regie.EventMessage, &m)
		for j := range history[i].Calls {
			b.addSettled(&history[i].Calls[j])
		}
	}
}

// settleClients settles the open calls of a client's tools, all of them. Where the client sends
// another message instead of results they become NOT_RUN. It returns CodeBadRequest for results of
// other calls.
func (t roundTx) settleClients(b *batch, in *store.Submission, message *regie.Message, now time.Time) error {
	open, err := t.openOfClients(b.fence.Chain)
	if err != nil || len(open) == 0 && len(in.Results) == 0 {
		return err
	}
	if len(in.Results) > 0 {
		if err := matchResults(open, in.Results); err != nil {
			return err
		}
	}
	for i := range open {
		at := slices.IndexFunc(in.Results, func(r regie.ClientResult) bool { return r.CallID == open[i].ID })
		if at >= 0 {
			open[i].State, open[i].Result, open[i].Tainted = regie.CallSucceeded, in.Results[at].Content, true
		} else {
			open[i].State, open[i].NotRun = regie.CallNotRun, regie.NotRunSuperseded
			open[i].Error = &regie.CallError{
				Code:    regie.Code(regie.NotRunSuperseded),
				Message: "the client went on without a result of this call: whether it ran there is not known",
			}
		}
		b.addSettled(&open[i])
		t.settleCall(&open[i], now)
	}
	t.noteFlow(b.fence.Chain, open)
	batch, err := readAll(t.tx, scanOne[regie.ID], "SELECT id FROM calls WHERE message_id = ? ORDER BY ordinal", open[0].MessageID)
	if err != nil {
		return err
	}
	system := &regie.SystemContent{Type: regie.SystemDataAdded, CallIDs: batch}
	if settlesClientCall(in) {
		message.System = system
		return nil
	}
	b.addMessage(&regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{
			Kind: regie.AuthorComponent,
			ID:   ComponentClient,
		}, TraceID: in.Round.TraceID, System: system,
	})
	return nil
}

// matchResults compares a client's results with the open calls.
func matchResults(open []regie.Call, results []regie.ClientResult) error {
	seen := map[regie.ID]bool{}
	for _, r := range results {
		switch known := slices.ContainsFunc(open, func(c regie.Call) bool { return c.ID == r.CallID }); {
		case !known:
			return regie.Errorf(regie.CodeBadRequest, "no call %s of this session waits for a result", r.CallID)
		case seen[r.CallID]:
			return regie.Errorf(regie.CodeBadRequest, "there are two results of the call %s", r.CallID)
		}
		seen[r.CallID] = true
	}
	for i := range open {
		if !seen[open[i].ID] {
			return regie.Errorf(regie.CodeBadRequest, "the call %s has no result: send one for each call", open[i].ID)
		}
	}
	return nil
}

// openOfClients returns a session's open calls of a client's tools; they are of one reply.
func (t roundTx) openOfClients(chain int64) ([]regie.Call, error) {
	return readAll(t.tx, func(row scanner, c *regie.Call) error {
		return row.Scan(&c.ID, &c.Exchange, &c.MessageID, &c.Tool, &c.Kind)
	}, `SELECT c.id, c.exchange, c.message_id, c.tool, c.kind FROM calls c JOIN rounds r ON r.id = c.round_id
		WHERE c.session = ? AND c.origin = 'CLIENT' AND c.settled_at IS NULL AND r.state = 'ENDED' ORDER BY c.ordinal`, chain)
}

// leaveClients settles the open calls of a session's client as NOT_RUN, where a round begins
// without their results, or no round will begin.
func (t roundTx) leaveClients(fence store.Fence, trace string, now time.Time) {
	b := batch{fence: fence, now: now}
	in := store.Submission{Round: regie.Round{TraceID: trace}}
	t.fail(t.settleClients(&b, &in, nil, now))
	b.writeBatch(t.tx)
}

// Waiting returns the calls of a client's tools that a session waits for, in their order (decision
// 35).
func (s roundStore) Waiting(ctx context.Context, session regie.ID) ([]regie.Call, error) {
	return readCalls(ctx, s.read, callsOfThread+`JOIN rounds r ON r.id = c.round_id
		WHERE s.id = ? AND c.origin = 'CLIENT' AND c.settled_at IS NULL AND r.state = 'ENDED' ORDER BY c.ordinal`, session)
}

// Unused returns the OpenAI-compatible clients' sessions without activity since a moment, the
// oldest first and at most so many. next is the last activity of the session after them, or zero.
func (s roundStore) Unused(ctx context.Context, since time.Time,
	most int,
) (sessions []regie.ID, next time.Time, err error) {
	type unused struct {
		id   regie.ID
		last time.Time
	}
	all, err := queryAll(ctx, s.read, func(row scanner, u *unused) error { return row.Scan(&u.id, &u.last) },
		`SELECT s.id, c.head_at FROM sessions s JOIN chains c ON c.n = s.n
		WHERE s.origin = 'api' AND s.deleted_at IS NULL ORDER BY c.head_at LIMIT ?`, most+1)
	for _, u := range all {
		if !u.last.Before(since) || len(sessions) == most {
			return sessions, u.last, err
		}
		sessions = append(sessions, u.id)
	}
	return sessions, next, err
}
