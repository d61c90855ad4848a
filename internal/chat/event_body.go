package chat

import (
	"encoding/json"

	"github.com/regie-run/regie"
)

// Body is what surfaces read of an event that is no message. Each type of event has some of it; one
// that was erased has nothing.
type Body struct {
	RoundID    regie.ID             `json:"round_id"`
	CallID     regie.ID             `json:"call_id"`
	MessageID  regie.ID             `json:"message_id"`
	ApprovalID regie.ID             `json:"approval_id"`
	QuestionID regie.ID             `json:"question_id"`
	State      string               `json:"state"`
	Session    regie.SessionState   `json:"session_state"`
	Place      int                  `json:"position"`
	Stop       regie.StopRequest    `json:"stop_request"`
	End        regie.RoundEnd       `json:"end_reason"`
	Note       regie.Sentence       `json:"end_note"`
	TakenBack  bool                 `json:"taken_back"`
	Tool       string               `json:"tool"`
	Exit       string               `json:"exit"` // the exit code of a command that failed
	Code       regie.Code           `json:"code"`
	WaitMS     int64                `json:"wait_ms"`
	Decisions  []regie.Decision     `json:"calls"`
	Reply      *regie.QuestionReply `json:"reply"`
	Mode       regie.Mode           `json:"approval_mode"`
	Plan       struct {
		Steps []Step `json:"steps"`
	} `json:"plan"`
}

// Step is one of a plan; its status is pending, active or done.
type Step struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// BodyOf reads the body of an event.
func BodyOf(event *regie.Event) (b Body) {
	if event.Type != regie.EventMessage {
		_ = json.Unmarshal(event.Body, &b) // a field that it has not says nothing
	}
	return b
}

// RoundEnds reports whether an event ends a round.
func RoundEnds(event *regie.Event, body *Body) bool {
	return event.Type == regie.EventRound && body.State == string(regie.RoundEnded)
}
