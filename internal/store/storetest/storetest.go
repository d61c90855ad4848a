package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// mainCases are the cases of a round's life.
var mainCases = map[string]func(*World){
	"Submit":             submit,
	"SubmitRefuses":      submitRefuses,
	"ExchangeAtOnce":     exchangeAtOnce,
	"Exchange":           exchange,
	"ActionsOneByOne":    actionsOneByOne,
	"SettleOnce":         settleOnce,
	"ReplyIsWhole":       replyIsWhole,
	"StaleEpoch":         staleEpoch,
	"InterruptWins":      interruptWins,
	"PauseStartsNothing": pauseStartsNothing,
	"StopIsIdempotent":   stopIsIdempotent,
	"Attempts":           attempts,
	"Orphans":            orphans,
	"StreamEqualsLog":    streamEqualsLog,
	"SessionsNeverMix":   sessionsNeverMix,
	"NeighboursUnharmed": neighboursUnharmed,
	"BlobsAndReadMarks":  blobsAndReadMarks,
	"LostResult":         lostResult,
	"Outage":             outage,
	"Summary":            summary,
	"NoSummary":          noSummary,
	"Levels":             levels,
	"MessageVariants":    messageVariants,
	"NotFound":           notFound,
	"Approvals":          approvals,
	"InboxPages":         inboxPages,
	"DecideTogether":     decideTogether,
	"DecidedEarly":       decidedBeforeParking,
	"Expiry":             expiry,
	"Question":           question,
	"Pending":            pending,
	"Stopping":           stopping,
	"SteeredEarly":       steeredBeforeParking, "SteeredWithout": steeredByWhoMayNot,
	"LeavesApprovals": leavesApprovals, "LaterStarted": laterStarted,
	"Rules":              rules,
	"RulesRevoked":       rulesRevoked,
	"RulesEnd":           rulesEnd,
	"GivenBack":          givenBack,
	"AskedAnew":          askedAnew,
	"Resolve":            resolve,
	"SetAside":           setAside,
	"ExtendDeadline":     extendDeadline,
	"Notes":              notes,
	"Enrich":             enrich,
	"OwnCommand":         ownCommand,
	"Changed":            changed,
	"RecentCalls":        recentCalls,
	"HandOver":           handOver,
	"Closes":             closes,
	"AutomationVersions": automationVersions,
	"DecidedOnce":        decidedOnce,
	"FiresRun":           firesRun,
	"ControlMatrix":      controlMatrix,
	"FiresWait":          firesWait,
	"EventsJoined":       eventsJoined,
	"ClockSetBack":       clockSetBack,
	"CountsOn":           countsOn,
	"ClockStands":        clockStands,
	"PostText":           postText,
	"ClaimsTogether":     claimsTogether,
	"Fork":               fork,
	"ForkRefuses":        forkRefuses,
	"Removal":            removal,
	"Removal of levels":  levelsGo,
	"EventsErased":       eventsErased,
	"Sessions":           sessions,
	"Undo":               undo,
	"Redo":               redo,
	"UndoTaken":          undoTaken,
	"UndoSources":        undoSources,
	"UndosTogether":      undosTogether,
	"Money":              money,
	"RollUps":            rollUps,
	"Caps":               caps,
	"CapsTogether":       capsTogether,
	"Halt":               halt,
	"Fallback":           fallback,
	"ProviderWait":       providerWait,
	"ProviderExpires":    providerExpires,
}

// Run runs the suite. open returns an empty store, which it closes when the test ends.
func Run(t *testing.T, open func(t *testing.T) *sqlite.Store) {
	t.Helper()
	cases := maps.Clone(mainCases)
	for _, more := range []map[string]func(*World){
		slotCases, clientCases, tokenCases, cacheCases,
		saidCases, takeBackCases, begunCases, notificationCases,
	} {
		maps.Copy(cases, more)
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(NewWorld(t, open(t)))
		})
	}
}

// World is a store with a user and a workspace, and helpers for tests.
type World struct {
	T         *testing.T
	Store     *sqlite.Store
	Ctx       context.Context
	User      regie.ID
	Workspace regie.Workspace
}

// NewWorld prepares a store.
func NewWorld(t *testing.T, s *sqlite.Store) *World {
	t.Helper()
	w := &World{T: t, Store: s, Ctx: t.Context()}
	user := resultOf(s.EnsureUser(w.Ctx, "ada"))(w)
	w.User = user.ID
	w.Workspace = resultOf(s.EnsureWorkspace(w.Ctx, user.ID, regie.Workspace{Name: "w", Root: "/w", FoundBy: "git"}))(w)
	return w
}

// AppendReply is the store's, for tests that care only about the error.
func (w *World) AppendReply(fence store.Fence, in store.Reply) error {
	_, err := w.Store.AppendReply(w.Ctx, fence, in)
	return err
}

// CommitCalls is the store's.
func (w *World) CommitCalls(fence store.Fence, in store.Settle) error {
	_, err := w.Store.CommitCalls(w.Ctx, fence, in)
	return err
}

// FailAttempt is the store's.
func (w *World) FailAttempt(fence store.Fence, in store.Failure) error {
	_, err := w.Store.FailAttempt(w.Ctx, fence, in)
	return err
}

func (w *World) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

func (w *World) refused(code regie.Code, err error) {
	w.T.Helper()
	if got := regie.CodeOf(err); got != code {
		w.T.Errorf("got %q (%v), want %q", got, err, code)
	}
}

func (w *World) equal(what string, got, want any, options ...cmp.Option) {
	w.T.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		w.T.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Submission is a message that makes a session and claims its round.
func (w *World) Submission(text string) store.Submission {
	session := regie.NewID()
	return store.Submission{
		SessionID: session, Holder: "test", Reserved: 70,
		New: &regie.Session{
			ID: session, WorkspaceID: w.Workspace.ID, UserID: w.User, Agent: "main", Name: text,
			Type: regie.SessionChat, Provider: "p", Model: "m",
		},
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser,
			Author: regie.Author{Kind: regie.AuthorUser, ID: w.User.String()}, Text: text,
		},
		Round: regie.Round{
			ID: regie.NewID(), Reason: regie.ReasonUserMessage, Limits: regie.Limits{Total: 20, CallsInReply: 10},
			Agent: "main", Provider: "p", Model: "m",
			Dialect: regie.DialectNative,
			TraceID: "trace", Policy: json.RawMessage(`{"allow":["*"]}`),
		},
	}
}

// Start submits a message and returns its claimed round.
func (w *World) Start() store.Fence {
	w.T.Helper()
	accepted := resultOf(w.Store.Submit(w.Ctx, w.Submission("go")))(w)
	return accepted.Fence
}

// Parked is Start for a round that waits for the network until a time.
func (w *World) Parked(until time.Time) store.Fence {
	w.T.Helper()
	fence := w.Start()
	out, err := w.Store.FailAttempt(w.Ctx, fence, store.Failure{
		Attempt: regie.Attempt{
			RoundID: fence.RoundID, Exchange: 1, Number: 1,
			Code: regie.CodeProviderOffline, Error: "no route",
		},
		Retry: &store.Open{Number: 1}, WaitUntil: until, Outage: &regie.Outage{Exchange: 1, Since: until, Tries: 1},
	})
	w.must(err)
	w.equal("parked", out.Parked, true)
	return fence
}

// Calls makes the calls of a reply, one for each kind.
func (w *World) Calls(fence store.Fence, exchange int, message regie.ID, kinds ...regie.CallKind) []regie.Call {
	calls := make([]regie.Call, len(kinds))
	for i, kind := range kinds {
		calls[i] = regie.Call{
			ID: regie.NewID(), RoundID: fence.RoundID, Exchange: exchange, Ordinal: i,
			MessageID: message, Origin: regie.OriginModel,
			Tool: "t." + string(kind), ProviderCallID: regie.NewID().String(), Kind: kind, Class: regie.ClassRead,
			Signature:  regie.HashOf([]byte{byte(i)}),
			Definition: regie.HashOf([]byte("definition")), Arguments: fmt.Sprintf(`{"n":%d}`, i),
			State: regie.CallProposed,
		}
		if kind == regie.KindAction {
			calls[i].Class = regie.ClassOnce
		}
	}
	return calls
}

// Reply makes the transition of a reply with calls.
func (w *World) Reply(fence store.Fence, exchange int, kinds ...regie.CallKind) store.Reply {
	message := regie.Message{
		ID: regie.NewID(), Sender: regie.SenderAI, Author: regie.Author{
			Kind: regie.AuthorAgent, ID: "main",
			Model: "m",
		}, Exchange: exchange,
		AI: &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: "I look."}}},
	}
	calls := w.Calls(fence, exchange, message.ID, kinds...)
	for _, c := range calls {
		message.AI.Parts = append(message.AI.Parts, regie.Part{
			Type: regie.PartCall, CallID: c.ID, Tool: c.Tool,
			Arguments: regie.HashOf([]byte(c.Arguments)),
		})
	}
	return store.Reply{
		Message: message, Calls: calls,
		Exchange: regie.Exchange{
			Number: exchange, FirstSeq: 2, LastSeq: 2, Request: regie.HashOf([]byte("request")),
			Usage: regie.Usage{Input: 100, Output: 20, CacheRead: 5},
			Money: regie.Money{Reserved: 70, Cost: 42, Known: true}, StopReason: "tool_calls",
			FirstByteUS: 10, ModelUS: 20,
		},
		Advance: store.Advance{Phase: regie.PhaseCalls, Counters: regie.Counters{Total: exchange}},
	}
}

// Settled gives calls their results and the message of these.
func (w *World) Settled(exchange int, calls []regie.Call) store.Settle {
	message := &regie.Message{
		ID: regie.NewID(), Sender: regie.SenderSystem, Author: regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		Exchange: exchange,
		System:   &regie.SystemContent{Type: regie.SystemDataAdded},
	}
	out := store.Settle{Exchange: exchange, Message: message}
	for _, c := range calls {
		c.State, c.Result, c.DurationUS = regie.CallSucceeded, "result of "+c.Arguments, 5
		out.Settled = append(out.Settled, c)
		message.System.CallIDs = append(message.System.CallIDs, c.ID)
	}
	out.Advance = &store.Advance{
		Phase: regie.PhaseModel, Counters: regie.Counters{Total: exchange, Queries: 1},
		Open: &store.Open{Number: exchange + 1, Reason: regie.ExchangeData, Reserved: 9},
	}
	return out
}

// Answer makes the transition that ends a round.
func (w *World) Answer(exchange int) store.Reply {
	return store.Reply{
		Message: regie.Message{
			ID: regie.NewID(), Sender: regie.SenderAI, Author: regie.Author{Kind: regie.AuthorAgent, ID: "main"},
			Exchange: exchange,
			AI:       &regie.AIReply{Parts: []regie.Part{{Type: regie.PartText, Text: "Done."}}},
		},
		Exchange: regie.Exchange{Number: exchange},
		Advance: store.Advance{
			Phase: regie.PhaseEnd, Counters: regie.Counters{Total: exchange},
			End: &store.End{Reason: regie.EndAnswered},
		},
	}
}

// head verifies the session's log and returns its last sequence number.
func (w *World) head(session regie.ID) int64 {
	w.T.Helper()
	report := resultOf(w.Store.Verify(w.Ctx, session))(w)
	return report.Events
}

// unchanged asserts that fn fails with a code and leaves the session's log unchanged.
func (w *World) unchanged(session regie.ID, code regie.Code, fn func() error) {
	w.T.Helper()
	before := w.head(session)
	w.refused(code, fn())
	if after := w.head(session); after != before {
		w.T.Errorf("a refused transition moved the log from %d to %d", before, after)
	}
}

func together(n int, fn func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { fn(i) })
	}
	group.Wait()
}

// resultOf returns the result of a store's method; the test ends on an error.
func resultOf[T any](value T, err error) func(*World) T {
	return func(w *World) T {
		w.T.Helper()
		w.must(err)
		return value
	}
}
