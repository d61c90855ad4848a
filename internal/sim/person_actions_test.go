package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/store"
)

// say sends a request under its key, again after each death that kept its answer away, and keeps
// what became of it.
func (s *session) say(e invariant.Entry, send func(*invariant.Entry) error, allowed ...regie.Code) {
	for {
		e.Stage, e.At, e.Holder, e.Code = invariant.Sent, time.Now(), s.life.n, ""
		s.told = append(s.told, e)
		err := send(&e)
		synctest.Wait() // what it brought about comes first, or two would act at one time
		if s.revive() { // nobody heard an answer
			continue
		}
		e.Stage, e.Code, e.At = invariant.Acked, regie.CodeOf(err), time.Now()
		if err != nil {
			e.Stage = invariant.Refused
			known := false
			for _, code := range append(allowed, regie.CodeConflict, regie.CodeExpired) {
				known = known || e.Code == code
			}
			if !known {
				s.violate("%s: %v", e.Key, err)
			}
		}
		s.told = append(s.told, e)
		s.note(byPerson, "%s: %s %s", e.Key, e.Stage, e.Code)
		s.saw("said " + e.Stage + " " + string(e.Code))
		return
	}
}

// ask is say for what no check asks about later.
func (s *session) ask(key string, send func() error) {
	for {
		err := send()
		synctest.Wait()
		if s.revive() {
			continue
		}
		s.note(byPerson, "%s: %s", key, regie.CodeOf(err))
		s.saw(key + " " + string(regie.CodeOf(err)))
		switch regie.CodeOf(err) {
		case "", regie.CodeConflict, regie.CodeRoundInProgress:
		default:
			s.violate("%s: %v", key, err)
		}
		return
	}
}

// sayMessage says a message of the plan, marked so that it is known in a prompt.
func (s *session) sayMessage(st *step) {
	id := fmt.Sprintf("n%d", len(s.notes)+1)
	n := invariant.Note{ID: id, Text: fmt.Sprintf("note %s: %s", id, raw(st.Text)), Follows: true}
	in := s.request(id, n.Text, st.When)
	n.Text = strings.ReplaceAll(strings.ToValidUTF8(n.Text, "\uFFFD"), "\x00", "\uFFFD") // as any store takes it
	s.notes, s.asked = append(s.notes, n), append(s.asked, in)
	s.submit(in)
}

func (s *session) submit(in dispatch.RunRequest) {
	first := s.acked == 0
	s.say(invariant.Entry{Key: in.ClientID}, func(e *invariant.Entry) error {
		run, err := s.engine.Service().Rounds.Submit(access.AsOwner(context.Background()), in)
		e.Note = &run
		if err == nil {
			s.acked = max(s.acked, run.Seq, 1)
		}
		return err
	}, regie.CodeRoundInProgress)
	if first && s.acked > 0 && !s.follows() {
		s.follow()
	}
}

// follows reports whether the log is followed already: after a death in the first message the next
// life does.
func (s *session) follows() bool {
	return s.followed == s.life.n
}

func (s *session) decide(approval regie.ID, decisions []regie.Decision, by string) {
	s.decisions++
	in := dispatch.DecideRequest{ApprovalID: approval, Request: fmt.Sprintf("d%d", s.decisions), Decisions: decisions, By: by}
	s.sayDecision(in)
}

func (s *session) sayDecision(in dispatch.DecideRequest) {
	var allowed []regie.Code
	if slices.ContainsFunc(in.Decisions, func(d regie.Decision) bool { return len(d.Arguments) > 0 }) {
		// an edited call is looked at anew, and its file may be gone by then
		allowed = append(allowed, regie.CodeFileNotFound)
	}
	s.say(invariant.Entry{Key: in.Request, Decide: &in}, func(*invariant.Entry) error {
		_, err := s.engine.Service().Approvals.Decide(access.AsOwner(context.Background()), in)
		return err
	}, allowed...)
}

func (s *session) answer(question regie.ID, reply regie.QuestionReply) {
	s.sayAnswer(dispatch.AnswerRequest{QuestionID: question, Request: "answer to " + question.String(), Reply: reply, By: "ada"})
}

func (s *session) sayAnswer(in dispatch.AnswerRequest) {
	s.say(invariant.Entry{Key: in.Request, Answer: &in}, func(*invariant.Entry) error {
		_, err := s.engine.Service().Approvals.Answer(access.AsOwner(context.Background()), in)
		return err
	})
}

func (s *session) sayWord(word regie.StopRequest) {
	round := s.current()
	if round.IsZero() {
		return
	}
	e := invariant.Entry{Key: string(word), Word: &invariant.Word{Word: word, Round: round}}
	s.say(e, func(*invariant.Entry) error {
		switch word {
		case regie.StopInterrupt:
			return s.engine.Service().Rounds.Interrupt(access.AsOwner(context.Background()), round)
		case regie.StopPause:
			return s.engine.Service().Rounds.Pause(access.AsOwner(context.Background()), round)
		case regie.StopStop:
			_, err := s.engine.Service().Sessions.Stop(access.AsOwner(context.Background()), s.id)
			return err
		default:
			return s.engine.Service().Rounds.Resume(access.AsOwner(context.Background()), round)
		}
	})
}

// repeat says again what was said, under the same keys, as a client does that does not know whether
// it was heard.
func (s *session) repeat() {
	done := map[string]bool{}
	for _, e := range append([]invariant.Entry(nil), s.told...) {
		if done[e.Key] || e.Stage != invariant.Acked || len(done) >= 6 {
			continue
		}
		done[e.Key] = true
		switch {
		case e.Decide != nil:
			s.sayDecision(*e.Decide)
		case e.Answer != nil:
			s.sayAnswer(*e.Answer)
		case e.Note != nil:
			for _, in := range s.asked { // as it was written: what an @ names may be there only since
				if in.ClientID == e.Key {
					in.WhenBusy = store.Queue
					s.submit(in)
				}
			}
		}
	}
}

// revoke takes every standing rule back.
func (s *session) revoke() {
	list, err := s.engine.Service().Rules.List(access.AsOwner(context.Background()), store.RuleFilter{})
	if err != nil {
		s.unlessDead("the rules cannot be read: %v", err)
		return
	}
	if list.AuditError != "" {
		s.violate("the log of the rules does not verify (invariant 17): %s", list.AuditError)
	}
	var ids []regie.ID
	for i := range list.Rules {
		ids = append(ids, list.Rules[i].ID)
	}
	if len(ids) > 0 {
		s.say(invariant.Entry{Key: "revoke", Revoke: true}, func(*invariant.Entry) error {
			return s.engine.Service().Rules.Revoke(access.AsOwner(context.Background()), dispatch.RevokeRequest{RuleIDs: ids, By: "ada"})
		})
	}
}

// resolve finds out what became of the calls of which nobody knew, from the ledger, and says so.
func (s *session) resolve() {
	if s.lingers() > 0 {
		return // what is still at work may yet happen
	}
	for _, r := range s.rounds() {
		view, err := s.engine.Service().Rounds.Get(access.AsOwner(context.Background()), r.Round.ID)
		if err != nil {
			s.unlessDead("the round cannot be read: %v", err)
			return
		}
		logs, err := s.engine.Service().Sessions.Verify(access.AsOwner(context.Background()), store.LogFilter{ID: view.Session.ID})
		if err != nil {
			s.unlessDead("the log cannot be verified: %v", err)
			return
		}
		if len(logs) != 1 || logs[0].Error != "" {
			s.violate("the log does not verify (invariant 17): %+v", logs)
		}
		for _, exchange := range view.Exchanges {
			for i := range exchange.Calls {
				c := &exchange.Calls[i]
				if c.State != regie.CallUnknown || !strings.HasPrefix(c.Tool, "ledger.") {
					continue
				}
				as := regie.ResolvedDidNotHappen
				if s.happened(c.ID) {
					as = regie.ResolvedHappened
				}
				s.ask("resolve", func() error {
					return s.engine.Service().Approvals.Resolve(access.AsOwner(context.Background()), dispatch.ResolveRequest{CallID: c.ID, As: as, Note: "I looked", By: "ada"})
				})
			}
		}
	}
}
