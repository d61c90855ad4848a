package acp

import (
	"context"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/store"
)

// Prompt implements sdk.Agent: one message, and what becomes of it, to the end of its run.
func (a *agent) Prompt(ctx context.Context, in sdk.PromptRequest) (sdk.PromptResponse, error) {
	stop, err := a.prompt(ctx, in)
	return sdk.PromptResponse{StopReason: stop}, a.refused(err)
}

func (a *agent) prompt(ctx context.Context, in sdk.PromptRequest) (sdk.StopReason, error) {
	s, err := a.known(in.SessionId)
	if err != nil {
		return "", err
	}
	request := s.request
	request.ClientID, request.SessionID = regie.NewID().String(), s.id
	if request.Segments, err = a.segments(s, in.Prompt); err != nil {
		return "", err
	}
	if len(request.Segments) == 1 && request.Segments[0].Enrichment == nil {
		request.Text, request.Segments = request.Segments[0].Text, nil
	}
	s.stopFollowing()
	run, err := a.Control.Submit(a.ctx, request) // whatever becomes of the prompt, the message is stored or it is not
	if err != nil {
		return "", err
	}
	s.locked(func() { s.running = run.RoundID })
	f := a.follow(s, run.RoundID)
	f.own, f.pending = run.MessageID, run.Pending
	if run.Pending { // what the run before it waits for is asked again
		view, err := a.Control.Session(a.ctx, s.id)
		if err != nil {
			return "", err
		}
		f.state = view.State
	}
	return f.run(ctx)
}

// goOn follows a session whose run goes on, in the background: to its end, to the next prompt, or
// to the end of the connection.
func (a *agent) goOn(s *session, view *store.SessionView) {
	n := len(view.History)
	if n == 0 || view.History[n-1].State == regie.RoundEnded {
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	done := make(chan struct{})
	f := a.follow(s, view.History[n-1].ID)
	f.background, f.state = true, view.State
	s.locked(func() {
		s.running, s.leave = f.round, func() {
			cancel()
			<-done
		}
	})
	go func() {
		defer close(done)
		_, _ = f.run(ctx) // who follows next reads on; an error of the engine meets the next prompt too
	}()
}

// locked runs something that touches what a prompt and who follows in the background share.
func (s *session) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// stopFollowing ends who follows the session in the background.
func (s *session) stopFollowing() {
	leave := func() {}
	s.locked(func() {
		if s.leave != nil {
			leave, s.leave = s.leave, nil
		}
	})
	leave()
}

// replay tells the editor what a stored session has said.
func (a *agent) replay(ctx context.Context, s *session, view *store.SessionView) error {
	for i := range view.Thread {
		m := &view.Thread[i]
		if m.Superseded || m.Message.System != nil {
			continue
		}
		var updates []sdk.SessionUpdate
		switch {
		case m.Message.Sender == regie.SenderUser:
			updates = append(updates, sdk.UpdateUserMessageText(plain.Strip(m.Message.LinearText())))
		case m.Message.AI != nil:
			if thought := thoughts(m.Message.AI); thought != "" {
				updates = append(updates, sdk.UpdateAgentThoughtText(thought))
			}
			updates = append(updates, sdk.UpdateAgentMessageText(plain.Strip(m.Message.AI.Text())))
		case m.Message.Text != "":
			updates = append(updates, sdk.UpdateAgentMessageText(plain.Strip(m.Message.Text)))
		}
		for j := range m.Calls {
			if !silent(m.Calls[j].Tool) {
				updates = append(updates, s.start(&m.Calls[j]))
			}
		}
		for _, update := range updates {
			if err := a.tell(ctx, s, update); err != nil {
				return err
			}
		}
	}
	return nil
}

// thoughts are what a reply thinks.
func thoughts(reply *regie.AIReply) (out string) {
	for i := range reply.Parts {
		if reply.Parts[i].Type == regie.PartThinking {
			out += plain.Strip(reply.Parts[i].Text)
		}
	}
	return out
}
