package compat

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// maxTries bounds how often a request is submitted with one key; what the last one came to stands.
const maxTries = 32

// nth are the words of which the ids of a request with a key are made, by how often it was
// submitted before: another one for each try, and the same whoever makes them, so that of two that
// try at once one is stored.
func nth(try int, words ...string) []string {
	if try > 1 {
		words = append(words, "try "+strconv.Itoa(try))
	}
	return words
}

// tried submits a request with a key. What came before and came to nothing, since its provider
// refused it for now, is submitted once more, where it may be: that is what its client asks for.
// Where anything came of it, it is what it was. Submit is told the round that was refused; zero: it
// is the first try.
func (s *server) tried(ctx context.Context, submit func(try int,
	before regie.ID) (submitted, error),
) (submitted, error) {
	var before regie.ID
	for try := 1; ; try++ {
		out, err := submit(try, before)
		out.tries = try
		if err != nil || !out.Duplicate || out.Pending || try == maxTries {
			return out, err
		}
		view, err := s.Control.Get(ctx, out.RoundID)
		again := false
		if err == nil {
			again, err = s.mayTry(ctx, &out, &view)
		}
		if err != nil {
			return out, begun{err}
		}
		if !again {
			return out, nil
		}
		before = out.RoundID
	}
}

// mayTry reports whether the same request with its key is submitted once more. Results of calls
// count once, whatever their key.
func (s *server) mayTry(ctx context.Context, sent *submitted, view *store.RoundView) (bool, error) {
	if !sent.keyed || sent.results || sent.tries >= maxTries || !refusedForNow(view) {
		return false, nil
	}
	if !sent.inside {
		return true, nil
	}
	session, err := s.Control.Session(ctx, view.Session.ID)
	return err == nil && takenBack(&session, view.Round.ID) != stays, err
}

// refusedForNow reports whether a round ended because its provider took no request for now, or was
// not there, before anything came of it: nothing was said, nothing ran, and nothing can be charged.
// A reply that broke off is none of these.
func refusedForNow(view *store.RoundView) bool {
	if view.Round.State != regie.RoundEnded || view.Round.End != regie.EndProviderError ||
		len(view.Exchanges) == 0 || len(view.Enrichments) > 0 {
		return false
	}
	return !slices.ContainsFunc(view.Exchanges, func(e store.ExchangeView) bool {
		return e.Reply != nil || e.Summary != nil || len(e.Calls) > 0 || len(e.Attempts) == 0 ||
			slices.ContainsFunc(e.Attempts, func(a regie.Attempt) bool {
				passing := a.Code == regie.CodeProviderBusy || a.Code == regie.CodeProviderOffline
				return !passing || a.Partial != "" || a.Usage != regie.Usage{}
			})
	})
}

// saidIn reports whether a session has a message by this id of its client's.
func saidIn(view *store.SessionView, client string) bool {
	of := func(m store.MessageView) bool { return m.Message.ClientID == client }
	return slices.ContainsFunc(view.Thread, of) || slices.ContainsFunc(view.Pending, of)
}

// taking says whether a round that was refused can be taken back.
type taking int

const (
	stays taking = iota // it settled calls of the client's: without it the prompt would have half a batch
	takes
	taken // it is
)

func takenBack(view *store.SessionView, round regie.ID) taking {
	out := taken
	for i := range view.Thread {
		switch m := &view.Thread[i]; {
		case m.Message.RoundID != round:
		case m.Message.System != nil && m.Message.System.Type == regie.SystemDataAdded:
			return stays
		case !m.Superseded:
			out = takes
		}
	}
	return out
}

// clear makes way for a message, whose id at its client is client, in a session that was there:
// what a provider refused for now is no part of the conversation that its client sees, so it is
// taken back before it is said again. Behind the answer that a request goes on from that is all
// there may be; of one that names no answer it is what came of it before. What is submitted already
// has its way.
func (s *server) clear(ctx context.Context, a *asking, client string, before regie.ID) error {
	if a.number == 0 && before.IsZero() {
		return nil
	}
	const looks = 3
	for look := 1; ; look++ {
		view, err := s.Control.Session(ctx, a.session)
		if err != nil || saidIn(&view, client) {
			return err
		}
		back := []regie.ID{before}
		if a.number > 0 {
			if back, err = s.behind(ctx, a, &view); err != nil {
				return err
			}
		}
		for _, round := range slices.Backward(back) {
			if err == nil && takenBack(&view, round) == takes {
				_, err = s.Control.Undo(ctx, dispatch.UndoRequest{
					UndoID: idOf("undo", round.String()), Target: round,
					Chat: true,
				})
			}
		}
		switch busy := regie.CodeOf(err) == regie.CodeRoundInProgress || regie.CodeOf(err) == regie.CodeConflict; {
		case !busy:
			return err
		case look == looks: // somebody else's message is being answered: nothing of this one is stored
			return &problem{again: true, err: err}
		}
	}
}

// counted refuses results that go on from an answer which is not the last one, unless they are the
// same ones again.
func (s *server) counted(ctx context.Context, a *asking, summary *store.SessionSummary, client string) error {
	if a.number == 0 || summary.Rounds == a.number {
		return nil
	}
	view, err := s.Control.Session(ctx, a.session)
	if err == nil && !saidIn(&view, client) {
		err = a.moved
	}
	return err
}

// behind are the rounds of a session behind the answer that a request goes on from, where each of
// them was refused: else the session has gone on.
func (s *server) behind(ctx context.Context, a *asking, view *store.SessionView) (out []regie.ID, err error) {
	there := false
	for i := range view.History {
		switch r := &view.History[i]; {
		case r.Number == a.number:
			there = true
		case r.Number > a.number:
			round, err := s.Control.Get(ctx, r.ID)
			if err != nil {
				return nil, err
			}
			if !refusedForNow(&round) {
				return nil, a.moved
			}
			out = append(out, r.ID)
		}
	}
	if !there {
		return nil, a.moved
	}
	return out, nil
}

// ofBefore says of an error that it is what came of a request before, and how to ask once more.
// Where the same request may be sent again, it is left as it is.
func ofBefore(sent *submitted, err error) error {
	var out problem
	if was, is := errors.AsType[*problem](err); is {
		if was.again {
			return err
		}
		out, err = *was, was.err
	}
	out.err = regie.Errorf(regie.CodeOf(err),
		"this is what came of the first request with this Idempotency-Key, which had begun: ask with a new key to ask once more. %s", err)
	if sent.results {
		out.err = regie.Errorf(regie.CodeOf(err),
			"this is what came of the same results before, which count once: go on with a message of the user. %s", err)
	}
	return &out
}

// safely says of an error that ended the wait for what has begun that the same request may be sent
// again: by its key, or its results, it is found, and told how it ends.
func safely(sent *submitted, err error) error {
	if (sent.keyed || sent.results) && passes(regie.CodeOf(err)) {
		return &problem{again: true, err: err}
	}
	return err
}
