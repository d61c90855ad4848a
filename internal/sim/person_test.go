package sim

import (
	"context"
	"fmt"
	"strings"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/store"
)

// person is what the person knows and has said. It outlives each life of the engine.
type person struct {
	id        regie.ID // of the session
	lives     int      // that are over
	told      []invariant.Entry
	notes     []invariant.Note
	asked     []dispatch.RunRequest // how the engine was sent them
	acked     int64
	decisions int // requests that decide
	followed  int // the life whose log is followed
	paced     int // steps of the end, for times of their own

	// under world.mu
	stream []regie.Event
}

func newPerson() person { return person{id: regie.NewID()} }

func (s *session) hear(e regie.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = append(s.stream, e)
}

// heard is how far the log was heard.
func (s *session) heard() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.stream) == 0 {
		return 0
	}
	return s.stream[len(s.stream)-1].Seq
}

// step does one step of the plan.
func (s *session) step(n int, st *step) {
	s.sleep(st.After)
	s.note(byPerson, "step %d: %s", n, st.Do)
	if s.acked == 0 && st.Do != doMessage { // there is no session yet: its first step was taken away
		return
	}
	switch st.Do {
	case doMessage:
		s.sayMessage(st)
	case doDecide, doDispute:
		s.decideAll(st.Choice, st.Do == doDispute)
	case doAnswer:
		s.answerAll(st.Choice)
	case doInterrupt, doPause, doResume, doStop:
		s.sayWord(map[string]regie.StopRequest{doInterrupt: regie.StopInterrupt, doPause: regie.StopPause, doResume: invariant.Resume, doStop: regie.StopStop}[st.Do])
	case doClose:
		s.ask("close", func() error { return s.engine.Service().Sessions.Close(access.AsOwner(context.Background()), s.id) })
	case doRestart:
		s.restart(time.Duration(1 + st.Choice%uint64(time.Second)))
	case doDown:
		s.restart(s.days(st))
	case doJump:
		s.jump(st)
	case doRevoke:
		s.revoke()
	case doResolve:
		s.resolve()
	case doRepeat:
		s.repeat()
	}
	synctest.Wait()
	s.revive()
}

// days is a time that passes deadlines: of approvals, or of questions too.
func (s *session) days(st *step) time.Duration {
	return time.Duration(25+24*7*(st.Choice%2))*time.Hour + time.Duration(st.Choice%uint64(time.Hour))
}

func (s *session) jump(st *step) {
	d := min(s.days(st), 2*max(s.plan.ApprovalTTL, s.plan.QuestionTTL)) // a clock that ticks each minute takes its time
	if st.Choice%8 > 0 {
		d = min(d, 31*time.Minute)
	}
	s.sleep(d + time.Duration(st.Choice%999_979))
}

// restart closes the engine in good order, lets time pass, and opens the next.
func (s *session) restart(down time.Duration) {
	s.shut()
	time.Sleep(down)
	s.open()
}

// finish has the person come back until nothing is left to do, or stay away.
func (s *session) finish() {
	const patience = 400
	if s.plan.Cap > 0 { // until here it has held; from here on the person pays
		invariant.WithinCap(context.Background(), s.db, s.id, s.plan.Cap, s.violate)
		s.cap.Store(0)
	}
	for range patience {
		s.paced++
		s.sleep(20*time.Second + time.Duration(s.paced)*1_000_003)
		if s.acked == 0 {
			return // no message was heard at all
		}
		open, paused, waits := s.look()
		switch {
		case !open:
			s.checkWaiting()
			s.sleep(10 * time.Minute) // what is deaf ends
			if open, _, _ = s.look(); !open {
				return
			}
		case paused:
			s.sayWord(invariant.Resume)
		case s.plan.Left && waits:
			s.checkWaiting()
			return
		case !s.plan.Left:
			s.decideAll(uint64(s.paced), s.paced%3 == 1)
			s.answerAll(uint64(s.paced))
		}
	}
	s.violate("the session does not end (invariant 11): %s", s.stuck())
}

// look reports whether a round is open, whether the session is paused, and whether it waits for a
// person.
func (s *session) look() (open, paused, waits bool) {
	for _, r := range s.rounds() {
		if r.Round.State != regie.RoundEnded {
			open, paused = true, r.Session.State == regie.SessionPaused
			waits = r.Round.State == regie.RoundWaiting && !paused && r.Session.State != regie.SessionWaitingNetwork
		}
	}
	return open, paused, waits
}

func (s *session) rounds() []store.RoundSummary {
	rounds, err := s.engine.Service().Rounds.List(access.AsOwner(context.Background()), store.RoundFilter{Limit: 1000})
	if err != nil && !s.life.isDead() {
		s.violate("the rounds cannot be read: %v", err)
	}
	return rounds
}

func (s *session) stuck() string {
	var out []string
	for _, r := range s.rounds() {
		out = append(out, fmt.Sprintf("round %d is %s in phase %s, stop %q, session %s", r.Round.Number, r.Round.State, r.Round.Phase, r.Round.Stop, r.Session.State))
	}
	return strings.Join(out, "; ")
}

// current is the open round, or the newest.
func (s *session) current() (id regie.ID) {
	for _, r := range s.rounds() { // newest first
		if id.IsZero() || r.Round.State != regie.RoundEnded {
			id = r.Round.ID
		}
	}
	return id
}

// request is a message as the engine is sent it.
func (s *session) request(id, text string, when store.WhenBusy) dispatch.RunRequest {
	in := dispatch.RunRequest{
		ClientID: id, SessionID: s.id, Root: s.dir + "/work", FoundBy: "directory", Text: text, Agent: "main", Provider: "sim", Model: "m", Policy: s.plan.Policy,
		Limits: s.plan.Limits, WhenBusy: when, RequireValidation: s.plan.Validate, Type: s.plan.Type, Dialect: s.plan.Dialect,
	}
	if in.Segments = chat.Mentions(text, app.Look(in.Root)); in.Segments != nil {
		in.Text = ""
	}
	return in
}

// decideAll answers what is asked, some calls of it in requests of their own.
func (s *session) decideAll(choice uint64, dispute bool) {
	inbox, err := s.engine.Service().Approvals.Inbox(access.AsOwner(context.Background()), store.InboxFilter{SessionID: s.id})
	if err != nil {
		s.unlessDead("the inbox cannot be read: %v", err)
		return
	}
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		var now []regie.Decision
		for k := range a.Reviews {
			review := &a.Reviews[k]
			if review.Decision != nil {
				continue
			}
			if d := s.decision(review, choice); d.Answer != "" {
				now = append(now, d)
			}
			if len(now) > 0 && choice%3 == 0 {
				s.decide(a.ID, now, "ada")
				now = nil
			}
		}
		if len(now) == 0 {
			continue
		}
		s.decide(a.ID, now, "ada")
		if d := now[0]; dispute {
			other := regie.Decision{CallID: d.CallID, Answer: regie.AnswerAllow}
			if d.Answer != regie.AnswerDeny {
				other.Answer = regie.AnswerDeny
			}
			s.decide(a.ID, []regie.Decision{other}, "eve")
		}
	}
}

// decision is what the person says to a call; "" is that they have not made up their mind.
func (s *session) decision(review *regie.Review, choice uint64) regie.Decision {
	out := regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow}
	dice := dice(choice, string(review.Arguments))
	scopes := review.Preview.Scopes
	switch n := dice.IntN(100); {
	case strings.Contains(string(review.Arguments), ".env"): // nobody who looks at it lets the canary go to a model
		out.Answer = regie.AnswerDeny
	case n < 35:
	case n < 50:
		out.Arguments = edit(review.Arguments)
	case n < 62:
		out.Answer = regie.AnswerDeny
	case n < 74:
		out.Answer, out.Reason = regie.AnswerDeny, "not \u202ethis one"
	case n < 92 && len(scopes) > 0:
		out.Answer, out.Scope = regie.AnswerSession, &scopes[dice.IntN(len(scopes))]
		if n >= 86 {
			out.Answer = regie.AnswerAlways
		}
		if n%2 == 0 {
			out.ExpiresAt = time.Now().Add(time.Duration(1+dice.Int64N(int64(time.Hour))) + time.Minute)
		}
	case n >= 92:
		out.Answer = ""
	}
	return out
}

// answerAll answers the open questions.
func (s *session) answerAll(choice uint64) {
	inbox, err := s.engine.Service().Approvals.Inbox(access.AsOwner(context.Background()), store.InboxFilter{SessionID: s.id})
	if err != nil {
		s.unlessDead("the inbox cannot be read: %v", err)
		return
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		dice := dice(choice, q.Module.Text)
		var reply regie.QuestionReply
		switch {
		case q.Module.Kind == regie.ModuleValidation:
			yes := dice.IntN(2) == 0
			reply.Yes = &yes
		case q.Module.AllowFreeText && dice.IntN(2) == 0:
			reply.Text = "as you like \u202e"
		default:
			reply.Choices = []string{q.Module.Options[dice.IntN(len(q.Module.Options))]}
		}
		s.answer(q.ID, reply)
	}
}

func (s *session) unlessDead(format string, err error) {
	if !s.life.isDead() {
		s.violate(format, err)
	}
}
