package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Prompt implements sdk.Agent: it sends one message and follows its run to the end.
func (a *agent) Prompt(ctx context.Context, in sdk.PromptRequest) (sdk.PromptResponse, error) {
	stop, err := a.runPrompt(ctx, in)
	return sdk.PromptResponse{StopReason: stop}, a.editorError(err)
}

func (a *agent) runPrompt(ctx context.Context, in sdk.PromptRequest) (sdk.StopReason, error) {
	s, err := a.knownSession(in.SessionId)
	if err != nil {
		return "", err
	}
	request := s.request
	request.ClientID, request.SessionID = regie.NewID().String(), s.id
	if request.Segments, err = a.promptSegments(ctx, s, in.Prompt); err != nil {
		return "", err
	}
	if len(request.Segments) == 1 && request.Segments[0].Text != "" {
		request.Text, request.Segments = request.Segments[0].Text, nil
	}
	s.stopFollowing()
	run, err := a.Control.Submit(a.ctx, request) // a cancelled prompt does not cancel the submission
	if err != nil {
		return "", err
	}
	f := a.newFollower(s, run.RoundID)
	f.own, f.pending = run.MessageID, run.Pending
	if run.Pending { // asks the open request of the earlier run again
		view, err := a.Control.Session(a.ctx, s.id)
		if err != nil {
			return "", err
		}
		f.state = view.State
	}
	return f.followRound(ctx)
}

// goOn follows the running round of a session in the background, until its end, the next prompt, or
// the end of the connection.
func (a *agent) goOn(s *session, view *store.SessionView) {
	n := len(view.History)
	if n == 0 || view.History[n-1].State == regie.RoundEnded {
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	done := make(chan struct{})
	f := a.newFollower(s, view.History[n-1].ID)
	f.background, f.state = true, view.State
	s.mu.Lock()
	s.leave = func() {
		cancel()
		<-done
	}
	s.mu.Unlock()
	go func() {
		defer close(done)
		_, _ = f.followRound(ctx) // who follows next reads on; an error of the engine meets the next prompt too
	}()
}

// stopFollowing ends who follows the session in the background.
func (s *session) stopFollowing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leave != nil {
		s.leave()
	}
	s.leave = nil
}

// replaySession sends the editor the messages of a stored session.
func (a *agent) replaySession(ctx context.Context, s *session, view *store.SessionView) (err error) {
	tell := func(update sdk.SessionUpdate) {
		if err == nil {
			err = a.sendUpdate(ctx, s, update)
		}
	}
	for i := range view.Thread {
		m := &view.Thread[i]
		if m.Superseded || m.Message.System != nil {
			continue
		}
		switch {
		case m.Message.Sender == regie.SenderUser:
			tell(sdk.UpdateUserMessageText(sanitize.Strip(m.Message.LinearText())))
		case m.Message.AI != nil:
			if thought := chat.Thoughts(m.Message.AI); thought != "" {
				tell(sdk.UpdateAgentThoughtText(thought))
			}
			tell(sdk.UpdateAgentMessageText(sanitize.Strip(m.Message.AI.Text())))
		case m.Message.Text != "":
			tell(sdk.UpdateAgentMessageText(sanitize.Strip(m.Message.Text)))
		}
		for j := range m.Calls {
			if !isSilent(m.Calls[j].Tool) {
				tell(s.startUpdate(&m.Calls[j]))
			}
		}
	}
	return err
}
