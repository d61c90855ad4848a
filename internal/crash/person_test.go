//go:build faults

package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/invariant"
	"github.com/regie-run/regie/internal/store"
)

const lookAgain = 20 * time.Millisecond // between two looks where no event wakes the person

// control is what a person needs of an engine: an app.Conn, or several engines at once.
type control interface {
	Submit(ctx context.Context, in dispatch.RunRequest) (dispatch.Run, error)
	Interrupt(ctx context.Context, round regie.ID) error
	Pause(ctx context.Context, round regie.ID) error
	Resume(ctx context.Context, round regie.ID) error
	Stop(ctx context.Context, session regie.ID) (dispatch.Stopped, error)
	Inbox(ctx context.Context, filter store.InboxFilter) (store.Inbox, error)
	Decide(ctx context.Context, in dispatch.DecideRequest) (store.Resolved, error)
	Answer(ctx context.Context, in dispatch.AnswerRequest) (store.Resolved, error)
	List(ctx context.Context, filter store.RoundFilter) ([]store.RoundSummary, error)
	Events(ctx context.Context, session regie.ID, after int64, sink func(dispatch.Item) error) error
}

// undos is the noun of the control that a person uses.
type undos interface {
	Undo(ctx context.Context, in dispatch.UndoRequest) (regie.Undo, error)
}

// person follows the plan of one session in one process. What an earlier process said is said again
// first, as a client does that does not know whether it was heard.
type person struct {
	conn     control
	undos    undos
	plan     plan
	session  regie.ID
	root     string
	settings config.Config
	told     *journal
	said     map[string]bool // in this process
	done     map[string]bool // words that need not be said again
	paused   regie.ID        // the round that is to be resumed
	resumeAt time.Time
	undone   regie.ID // the last undo
	heard    func(seq int64)
	patience time.Duration // after which a session that does not end is stuck
	// many says that there are several engines: a word that was given up by one that stood still
	// may be obeyed behind the next one.
	many bool

	mu    sync.Mutex
	seq   int64
	round regie.ID // that runs or waits, as far as the log was read
	rang  chan struct{}
}

func newPerson(conn control, undos undos, p plan, session regie.ID, root string, settings config.Config, told *journal) *person {
	return &person{
		conn: conn, undos: undos, plan: p, session: session, root: root, settings: settings, told: told, said: map[string]bool{}, done: map[string]bool{},
		rang: make(chan struct{}, 1), patience: 20 * time.Second, heard: func(seq int64) { fmt.Printf("ack %d\n", seq) },
	}
}

// live does all of the plan.
func (p *person) live(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first, err := p.submit(ctx, "only", firstText(p.plan.seed), "")
	if err != nil {
		return err
	}
	p.heard(first.Seq)
	if err := p.bringNeighbours(ctx); err != nil {
		return err
	}
	followed := make(chan error, 1)
	go func() { followed <- p.conn.Events(ctx, p.session, 0, p.hear) }()
	if err := p.repeat(ctx); err != nil {
		return err
	}
	for started := time.Now(); ; {
		over, err := p.step(ctx)
		if err != nil || over {
			return err
		}
		select {
		case <-p.rang:
		case <-time.After(lookAgain):
		case err := <-followed:
			return err
		}
		if time.Since(started) > p.patience {
			return p.stuck(ctx)
		}
	}
}

// hear takes in one event of the log.
func (p *person) hear(item dispatch.Item) error {
	if item.Event == nil {
		return nil
	}
	p.heard(item.Event.Seq)
	var body struct {
		RoundID regie.ID         `json:"round_id"`
		State   regie.RoundState `json:"state"`
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seq = item.Event.Seq
	if item.Event.Type == regie.EventRound && json.Unmarshal(item.Event.Body, &body) == nil {
		p.round = body.RoundID
		if body.State == regie.RoundEnded {
			p.round = regie.ID{}
		}
	}
	select {
	case p.rang <- struct{}{}:
	default:
	}
	return nil
}

func (p *person) at() (int64, regie.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seq, p.round
}

// say sends a request under its key and keeps what became of it. A refusal that another one's word
// explains is no error.
func (p *person) say(e invariant.Entry, send func(*invariant.Entry) error) (accepted bool, err error) {
	p.said[e.Key], e.Stage = true, invariant.Sent
	if err := p.told.write(e); err != nil {
		return false, err
	}
	err = send(&e)
	e.Stage, e.Code = invariant.Acked, regie.CodeOf(err)
	if err != nil {
		e.Stage, e.Why = invariant.Refused, err.Error()
	}
	if err := p.told.write(e); err != nil {
		return false, err
	}
	if err != nil && e.Code != regie.CodeConflict && e.Code != regie.CodeExpired && (e.Undo == nil || e.Code != regie.CodeNotFound) {
		return false, fmt.Errorf("%s: %w", e.Key, err)
	}
	return err == nil, nil
}

func (p *person) decide(ctx context.Context, in dispatch.DecideRequest) (bool, error) {
	return p.say(invariant.Entry{Key: in.Request, Decide: &in}, func(*invariant.Entry) error {
		_, err := p.conn.Decide(ctx, in)
		return err
	})
}

func (p *person) answer(ctx context.Context, in dispatch.AnswerRequest) error {
	_, err := p.say(invariant.Entry{Key: in.Request, Answer: &in}, func(*invariant.Entry) error {
		_, err := p.conn.Answer(ctx, in)
		return err
	})
	return err
}

func (p *person) submit(ctx context.Context, id, text string, when store.WhenBusy) (run dispatch.Run, err error) {
	_, err = p.say(invariant.Entry{Key: id}, func(e *invariant.Entry) error {
		in := dispatch.RunRequest{
			ClientID: id, SessionID: p.session, Root: p.root, FoundBy: "directory", Text: text, Agent: "main", Provider: p.settings.Provider,
			Model: p.settings.Model, Policy: p.plan.policy, WhenBusy: when, Dialect: p.plan.dialect, Type: p.plan.session,
			Limits: regie.Limits{ContextTokens: p.plan.budget},
		}
		if in.Segments = chat.Mentions(text, app.Look(p.root)); in.Segments != nil {
			in.Text = ""
		}
		if command, is := chat.CommandOf(text); is {
			in.Text, in.Command = "", command
		}
		run, err = p.conn.Submit(ctx, in)
		e.Note = &run
		return err
	})
	return run, err
}

// repeat says again what earlier processes had said, once each.
func (p *person) repeat(ctx context.Context) error {
	for _, e := range p.told.earlier {
		var err error
		switch {
		case e.Word != nil:
			p.done[string(e.Word.Word)] = p.done[string(e.Word.Word)] || e.Stage == invariant.Acked
			if e.Word.Word == regie.StopPause { // it may have been heard
				p.paused, p.done[string(invariant.Resume)] = e.Word.Round, false
			}
		case p.said[e.Key]:
		case e.Decide != nil:
			_, err = p.decide(ctx, *e.Decide)
		case e.Answer != nil:
			err = p.answer(ctx, *e.Answer)
		case e.Undo != nil:
			_, err = p.sayUndo(ctx, e.Key, *e.Undo)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step does what is due now and reports whether nothing is left to do.
func (p *person) step(ctx context.Context) (over bool, err error) {
	idle, waits, err := p.look(ctx)
	if err != nil {
		return false, err
	}
	seq, round := p.at()
	for _, n := range p.plan.notes {
		if (seq >= n.at || idle) && !p.said[n.id] {
			if _, err := p.submit(ctx, n.id, n.text, n.when); err != nil {
				return false, err
			}
			idle, waits = false, false
		}
	}
	if busy, err := p.speak(ctx, seq, round); busy || err != nil {
		return false, err
	}
	if idle && p.plan.own() != "" && !p.said["own"] {
		_, err := p.submit(ctx, "own", regie.CommandMark+p.plan.own(), "")
		return false, err
	}
	if idle && p.plan.undos > 0 {
		return p.undo(ctx)
	}
	if p.plan.kind != "left" {
		return idle, p.sayAll(ctx)
	}
	return idle || waits, nil
}

// look reports whether every round of the session has ended, or else waits for a person.
func (p *person) look(ctx context.Context) (idle, waits bool, err error) {
	rounds, err := p.conn.List(ctx, store.RoundFilter{Root: p.root, Limit: 200})
	idle, waits = true, true
	for i := range rounds {
		r := &rounds[i]
		if p.isNeighbour(r.Session.ID) {
			idle = idle && r.Round.State == regie.RoundEnded
		}
		if r.Session.ID == p.session {
			idle = idle && r.Round.State == regie.RoundEnded
			waits = waits && r.Round.State != regie.RoundRunning && r.Session.State != regie.SessionPaused
			if p.many && r.Session.State == regie.SessionPaused && p.done[string(invariant.Resume)] {
				p.done[string(invariant.Resume)], p.resumeAt = false, time.Now()
			}
		}
	}
	return idle, waits, err
}

// speak says the plan's stopping word when it is time, and takes a pause back. It reports whether
// the session is paused.
func (p *person) speak(ctx context.Context, seq int64, round regie.ID) (busy bool, err error) {
	if p.plan.word != "" && !p.done[string(p.plan.word)] && seq >= p.plan.wordAt && !round.IsZero() {
		if p.plan.word == regie.StopPause {
			p.paused, p.done[string(invariant.Resume)] = round, false // an earlier one took back an earlier pause
		}
		err = p.sayWord(ctx, invariant.Word{Word: p.plan.word, Round: round})
	}
	if p.paused.IsZero() || p.done[string(invariant.Resume)] || err != nil {
		return false, err
	}
	if p.resumeAt.IsZero() { // also after a restart: a paused session stays paused
		p.resumeAt = time.Now().Add(time.Duration(p.plan.dice("resume").IntN(40)) * time.Millisecond)
	}
	if time.Now().Before(p.resumeAt) {
		return true, p.sayAll(ctx) // it stays answerable
	}
	return true, p.sayWord(ctx, invariant.Word{Word: invariant.Resume, Round: p.paused})
}

func (p *person) sayWord(ctx context.Context, w invariant.Word) error {
	_, err := p.say(invariant.Entry{Key: string(w.Word), Word: &w}, func(*invariant.Entry) error {
		switch w.Word {
		case regie.StopInterrupt:
			return p.conn.Interrupt(ctx, w.Round)
		case regie.StopPause:
			return p.conn.Pause(ctx, w.Round)
		case regie.StopStop:
			_, err := p.conn.Stop(ctx, p.session)
			return err
		default:
			return p.conn.Resume(ctx, w.Round)
		}
	})
	p.done[string(w.Word)] = err == nil
	return err
}

// sayAll answers what waits for the person.
func (p *person) sayAll(ctx context.Context) error {
	inbox, err := p.conn.Inbox(ctx, store.InboxFilter{SessionID: p.session})
	if err != nil {
		return err
	}
	for i := range inbox.Approvals {
		a := &inbox.Approvals[i]
		if p.tarries(a.ID, a.CreatedAt) {
			continue
		}
		for n, group := range p.plan.groups(a) {
			in := dispatch.DecideRequest{ApprovalID: a.ID, Request: fmt.Sprintf("%s/%d", a.ID, n), Decisions: group, By: "ada"}
			if p.said[in.Request] {
				continue
			}
			accepted, err := p.decide(ctx, in)
			if err == nil && accepted && p.plan.kind == "disputed" {
				err = p.dispute(ctx, in)
			}
			if err != nil {
				return err
			}
		}
	}
	for i := range inbox.Questions {
		q := &inbox.Questions[i]
		if in := (dispatch.AnswerRequest{QuestionID: q.ID, Request: q.ID.String(), Reply: p.plan.reply(q), By: "ada"}); !p.said[in.Request] && !p.tarries(q.ID, q.CreatedAt) {
			if err := p.answer(ctx, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// tarries reports whether the person has not made up their mind: where things expire, often until
// it is too late.
func (p *person) tarries(id regie.ID, since time.Time) bool {
	if p.plan.kind != "late" {
		return false
	}
	return time.Since(since) < time.Duration(p.plan.dice(id.String()).Int64N(int64(2*p.plan.ttl)))
}

// dispute answers a call once more, otherwise and as somebody else.
func (p *person) dispute(ctx context.Context, in dispatch.DecideRequest) error {
	d := in.Decisions[0]
	in.Request, in.By = "disputed/"+in.Request, "eve"
	if d.Answer == regie.AnswerDeny {
		in.Decisions = []regie.Decision{{CallID: d.CallID, Answer: regie.AnswerAllow}}
	} else {
		in.Decisions = []regie.Decision{{CallID: d.CallID, Answer: regie.AnswerDeny}}
	}
	_, err := p.decide(ctx, in)
	return err
}

// undo takes back what the last run did, then that undo, and so on, as often as the plan says. It
// reports whether all of it was said.
func (p *person) undo(ctx context.Context) (over bool, err error) {
	for n := range p.plan.undos {
		key := fmt.Sprintf("undo%d", n+1)
		if p.said[key] {
			continue
		}
		in := dispatch.UndoRequest{UndoID: regie.NewID(), SessionID: p.session, Root: p.root, Chat: p.plan.talk, By: "ada"}
		if n > 0 {
			in.Target, in.SessionID = p.undone, regie.ID{}
		}
		if n > 0 && p.undone.IsZero() {
			break // there was nothing
		}
		_, err := p.sayUndo(ctx, key, in)
		return false, err
	}
	return true, nil
}

func (p *person) sayUndo(ctx context.Context, key string, in dispatch.UndoRequest) (bool, error) {
	return p.say(invariant.Entry{Key: key, Undo: &in}, func(*invariant.Entry) error {
		done, err := p.undos.Undo(ctx, in)
		if err == nil {
			p.undone = done.ID
		}
		return err
	})
}

// stuck says how the session stands.
func (p *person) stuck(ctx context.Context) error {
	rounds, err := p.conn.List(ctx, store.RoundFilter{Root: p.root, Limit: 200})
	out := []error{fmt.Errorf("the session does not end: %w", err)}
	for i := range rounds {
		if r := &rounds[i]; r.Session.ID == p.session {
			out = append(out, fmt.Errorf("round %d is %s in phase %s, stop %q, session %s", r.Round.Number, r.Round.State, r.Round.Phase, r.Round.Stop, r.Session.State))
		}
	}
	return errors.Join(out...)
}
