package sqlite

import (
	"testing"
	"time"

	"github.com/regie-run/regie"
)

// TestNewsOf: people hear of what begins to wait and of what went wrong, once.
func TestNewsOf(t *testing.T) {
	t.Parallel()
	id, at := regie.NewID(), time.Now()
	chats, automations := regie.SessionChat, regie.SessionAutomation
	for name, c := range map[string]struct {
		body any
		want news
	}{
		"an approval":         {approvalEvent{ApprovalID: id, State: regie.ApprovalOpen, ExpiresAt: &at}, news{kind: regie.NotifyApproval, object: id}},
		"decided in part":     {approvalEvent{ApprovalID: id, State: regie.ApprovalOpen, Calls: []reviewEvent{{}}}, news{}},
		"an extended one":     {approvalEvent{ApprovalID: id, State: regie.ApprovalOpen, ExtendedTo: &at}, news{}},
		"an expired one":      {approvalEvent{ApprovalID: id, State: regie.ApprovalExpired}, news{}},
		"a question":          {questionEvent{QuestionID: id, State: regie.WaitOpen, Module: &regie.Module{}}, news{kind: regie.NotifyQuestion, object: id}},
		"its answer":          {questionEvent{QuestionID: id, State: regie.WaitResolved, Reply: &regie.QuestionReply{}}, news{}},
		"an unknown outcome":  {callEvent{CallID: id, State: regie.CallUnknown}, news{kind: regie.NotifyUnknown, object: id}},
		"a fork of it":        {callEvent{CallID: id, State: regie.CallUnknown, CopyOf: id}, news{}},
		"a failed call":       {callEvent{CallID: id, State: regie.CallFailed}, news{}},
		"a budget":            {regie.Notice{Kind: regie.NoticeBudget}, news{kind: regie.NotifyBudget}},
		"a lost network":      {&regie.Notice{Kind: regie.NoticeNetworkDown}, news{}},
		"one given up":        {&regie.Notice{Kind: regie.NoticeNetworkGiveUp}, news{kind: regie.NotifyPause}},
		"a failed run":        {&regie.Notice{Kind: regie.NoticeFailed}, news{}},
		"a started round":     {roundEvent{State: regie.RoundRunning}, news{}},
		"a person's pause":    {roundEvent{State: regie.RoundRunning, Stop: regie.StopPause}, news{}},
		"an answer":           {roundEvent{End: regie.EndAnswered}, news{kind: regie.NotifyFailure, of: automations}},
		"a completed run":     {roundEvent{End: regie.EndCompleted}, news{kind: regie.NotifyFinished, of: automations}},
		"a limit":             {roundEvent{End: regie.EndLimit}, news{kind: regie.NotifyFailure, of: automations}},
		"an early stop":       {roundEvent{End: regie.EndEarlyStop}, news{kind: regie.NotifyFailure, of: automations}},
		"no progress":         {roundEvent{End: regie.EndNoProgress}, news{kind: regie.NotifyFailure, of: automations}},
		"a denial":            {roundEvent{End: regie.EndDenied}, news{kind: regie.NotifyFailure, of: automations}},
		"a provider's error":  {roundEvent{End: regie.EndProviderError}, news{kind: regie.NotifyFailure, of: chats}},
		"the watchdog":        {roundEvent{End: regie.EndWatchdog}, news{kind: regie.NotifyFailure, of: chats}},
		"a stop":              {roundEvent{End: regie.EndStopped}, news{}},
		"an interruption":     {roundEvent{End: regie.EndInterrupted}, news{}},
		"calls of the client": {roundEvent{End: regie.EndClientTools}, news{}},
		"a state":             {stateEvent{State: regie.SessionPaused}, news{}},
	} {
		if got := newsOf(c.body); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
