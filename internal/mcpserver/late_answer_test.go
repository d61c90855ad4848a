package mcpserver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
)

// TestQuestionMeanwhile: a client that may not answer sends a message while the session waits for
// nothing, and a question opens before it comes there: the message neither answers the question nor
// withdraws it.
func TestQuestionMeanwhile(t *testing.T) {
	ask := provider.Call{ID: "q", Name: "session__ask_user", Arguments: `{"question":"Which?","options":["a","b"]}`}
	b := newHarness(t, providertest.Scene{Text: []string{"Hello."}}, providertest.Scene{Text: []string{"Hm."}, Calls: []provider.Call{ask}})
	var meanwhile func(ctx context.Context, in dispatch.RunRequest) // between the look at a session and the message to it
	b.config.Control.Submit = func(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error) {
		if meanwhile != nil {
			meanwhile(ctx, in)
		}
		return b.conn.Submit(ctx, in)
	}
	session := b.stdio(nil)
	text, data, failed := call(t, session, "start_session", object{"prompt": "say hello", "wait": 30})
	if failed || data["state"] != "IDLE" {
		t.Fatal(text)
	}
	meanwhile = func(ctx context.Context, in dispatch.RunRequest) {
		in.ClientID, in.Text, in.LeavesWaits, in.Policy = "person", "ask me", false, approval.Policy{OnApproval: approval.Park, Questions: true}
		run, err := b.conn.Submit(ctx, in)
		if err == nil {
			err = b.conn.Wait(ctx, run.RoundID)
		}
		if err != nil {
			t.Error(err)
		}
	}
	text, _, failed = call(t, session, "send_message", object{"session_id": data["session_id"], "text": "b"})
	id, err := regie.ParseID(fmt.Sprint(data["session_id"]))
	if err != nil {
		t.Fatal(err)
	}
	view, err := b.conn.Session(t.Context(), id)
	if !failed || !strings.Contains(text, string(regie.CodeMissingScope)) || err != nil || view.State != regie.SessionWaitingResponse {
		t.Errorf("the client is told %s, and the session is %s (%v)", text, view.State, err)
	}
}

// TestSteerAnswersNothing: a client that may not answer may steer, which withdraws the question;
// its words are not the person's answer, where a free text would be one either.
func TestSteerAnswersNothing(t *testing.T) {
	ask := provider.Call{ID: "q", Name: "session__ask_user", Arguments: `{"question":"Which?","options":["a","b"],"allow_free_text":true}`}
	b := newHarness(t, providertest.Scene{Text: []string{"Hm."}, Calls: []provider.Call{ask}}, providertest.Scene{Text: []string{"As you say."}})
	session := b.stdio(nil)
	in := b.config.Request
	in.ClientID, in.SessionID, in.Text, in.Policy = "person", regie.NewID(), "ask me", approval.Policy{OnApproval: approval.Park, Questions: true}
	run, err := b.conn.Submit(t.Context(), in)
	if err == nil {
		err = b.conn.Wait(t.Context(), run.RoundID)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, data, failed := call(t, session, "send_message", object{"session_id": in.SessionID.String(), "text": "something else", "when_busy": "steer", "wait": 30})
	if failed || data["state"] != "IDLE" {
		t.Fatal(text)
	}
	inbox, err := b.conn.Inbox(t.Context(), store.InboxFilter{SessionID: in.SessionID, Closed: true})
	if err != nil || len(inbox.Questions) != 1 || inbox.Questions[0].Reply != nil {
		t.Errorf("%+v (%v)", inbox.Questions, err)
	}
}
