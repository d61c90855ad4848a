package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

// errStands ends following a session that has come to rest.
var errStands = errors.New("the session stands")

// errOver is the cause that ends a wait after its time.
var errOver = errors.New("the wait is over")

// maxWait bounds a wait in seconds.
const maxWait = 600

// await waits until a session rests: its run has ended, or it waits for a person. It puts approvals
// and questions to the person at the client, if there is one. The end of the time is no error and
// stops nothing.
func (s *server) await(ctx context.Context, request *mcp.CallToolRequest, session regie.ID, seconds int) error {
	if seconds <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Duration(min(seconds, maxWait))*time.Second, errOver)
	defer cancel()
	elicits := s.canElicit(request)
	progress := &progress{request: request, text: s.Text}
	for {
		goes, err := s.stands(ctx, session, progress)
		if goes = goes && elicits && err == nil; goes {
			goes, err = s.put(ctx, request, session)
		}
		if errors.Is(context.Cause(ctx), errOver) {
			return nil
		}
		if err != nil || !goes {
			return err
		}
	}
}

// stands follows a session until it rests, and reports whether it then asks a person something.
func (s *server) stands(ctx context.Context, session regie.ID, progress *progress) (asks bool, err error) {
	view, err := s.Control.Session(ctx, session)
	if err != nil {
		return false, err
	}
	if still(view.State) {
		return asking(view.State), nil
	}
	state := view.State
	err = s.Control.Events(ctx, session, view.Head, func(item dispatch.Item) error {
		if item.Event == nil {
			return nil
		}
		progress.tell(ctx, item.Event)
		if now := stateOf(item.Event); now != "" {
			state = now
		}
		if still(state) {
			return errStands
		}
		return nil
	})
	if errors.Is(err, errStands) {
		err = nil
	}
	return asking(state), err
}

// stateOf returns the session state in an event, "" for none. Most state changes come with the
// event that caused them.
func stateOf(event *regie.Event) regie.SessionState {
	var body struct {
		State regie.SessionState `json:"state"`
		With  regie.SessionState `json:"session_state"`
	}
	if json.Unmarshal(event.Body, &body) != nil || event.Type != regie.EventSessionState {
		return body.With
	}
	return body.State
}

// still reports whether a session in a state rests until new input comes.
func still(state regie.SessionState) bool {
	return state != regie.SessionActive && state != regie.SessionQueued && state != regie.SessionWaitingTask
}

func asking(state regie.SessionState) bool {
	return state == regie.SessionWaitingValidation || state == regie.SessionWaitingResponse
}

// progress tells a client that wants to know that a call goes on.
type progress struct {
	request *mcp.CallToolRequest
	text    *i18n.Printer
	told    float64
}

// tell tells one event. A client that does not listen loses nothing: what happened is in the log.
func (p *progress) tell(ctx context.Context, event *regie.Event) {
	if p.request == nil || p.request.Params.GetProgressToken() == nil {
		return
	}
	message := p.text.T("working")
	if event.Type == regie.EventApproval || event.Type == regie.EventQuestion {
		message = p.text.T("waits for a person")
	}
	p.told++
	_ = p.request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: p.request.Params.GetProgressToken(), Progress: p.told, Message: message,
	})
}
