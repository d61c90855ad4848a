package storetest

import (
	"encoding/json"
	"sync"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

var takeBackCases = map[string]func(*World){"TakenBack": takenBack, "TakenBackTogether": takenBackTogether}

// submitWaiting submits a message that waits for its turn.
func submitWaiting(w *World, fence store.Fence, text string, when store.WhenBusy) regie.ID {
	w.T.Helper()
	in := w.Submission(text)
	in.SessionID, in.New, in.WhenBusy = fence.SessionID, nil, when
	accepted := resultOf(w.Store.Submit(w.Ctx, in))(w)
	w.equal("pending", accepted.Pending, true)
	return accepted.Message.ID
}

// takenBack withdraws waiting messages one by one. The next round has the others, and each
// withdrawal is logged once (decision 10).
func takenBack(w *World) {
	fence, foreign := w.Start(), w.Start()
	first, second, third := submitWaiting(w, fence, "one", store.Queue), submitWaiting(w, fence, "two", store.Steer),
		submitWaiting(w, fence, "three", store.Queue)
	before := w.head(fence.SessionID)
	for range 2 {
		m, err := w.Store.TakeBack(w.Ctx, fence.SessionID, second, regie.ID{})
		w.must(err)
		w.equal("what came back", []string{m.Text, m.ID.String()}, []string{"two", second.String()})
	}
	m, err := w.Store.TakeBack(w.Ctx, fence.SessionID, first, regie.ID{})
	w.must(err)
	w.equal("what came back", m.Text, "one")
	_, err = w.Store.TakeBack(w.Ctx, foreign.SessionID, third, regie.ID{})
	w.refused(regie.CodeNotFound, err)
	_, err = w.Store.TakeBack(w.Ctx, fence.SessionID, regie.NewID(), regie.ID{})
	w.refused(regie.CodeNotFound, err)
	events, err := w.Store.Events(w.Ctx, fence.SessionID, before, 10)
	w.must(err)
	var told []regie.ID
	for _, e := range events {
		var body struct {
			MessageID regie.ID `json:"message_id"`
			TakenBack bool     `json:"taken_back"`
		}
		w.must(json.Unmarshal(e.Body, &body))
		if e.Type == regie.EventMessageWithdrawn && body.TakenBack {
			told = append(told, body.MessageID)
		}
	}
	w.equal("the log tells", told, []regie.ID{second, first})
	view, err := w.Store.SessionView(w.Ctx, fence.SessionID, w.User)
	w.must(err)
	w.equal("what still waits", len(view.Pending), 1)

	out, err := w.Store.AppendReply(w.Ctx, fence, w.Answer(1))
	w.must(err)
	claimed, err := w.Store.Claim(w.Ctx, out.Next, "next")
	w.must(err)
	_, err = w.Store.TakeBack(w.Ctx, fence.SessionID, third, regie.ID{})
	w.refused(regie.CodeConflict, err)
	thread, err := w.Store.Thread(w.Ctx, fence.SessionID, 0)
	w.must(err)
	var said []string
	for i := range thread.Messages {
		if thread.Messages[i].Sender == regie.SenderUser {
			said = append(said, thread.Messages[i].Text)
		}
	}
	w.equal("the thread ends with", said[len(said)-1], "three")
	for _, text := range said {
		if text == "one" || text == "two" {
			w.T.Errorf("%q was taken back and stands in the thread", text)
		}
	}

	mine := submitWaiting(w, claimed.Fence, "four", store.Queue)
	submitWaiting(w, claimed.Fence, "five", store.Queue)
	_, err = w.Store.TakeBack(w.Ctx, fence.SessionID, mine, regie.ID{})
	w.must(err)
	_, err = w.Store.RequestStop(w.Ctx, claimed.Fence.RoundID, regie.StopStop)
	w.must(err)
	back, err := w.Store.Withdrawn(w.Ctx, fence.SessionID)
	w.must(err)
	w.equal("what the stop gives back", []int{len(back)}, []int{1})
	w.equal("what the stop gives back", back[0].Text, "five")
	w.head(fence.SessionID)
}

// takenBackTogether: the end of a round and the person take the same message; exactly one gets it.
func takenBackTogether(w *World) {
	for range 8 {
		fence := w.Start()
		id := submitWaiting(w, fence, "whose is it", store.Queue)
		var taken, ended error
		var out store.Outcome
		var both sync.WaitGroup
		both.Go(func() { _, taken = w.Store.TakeBack(w.Ctx, fence.SessionID, id, regie.ID{}) })
		both.Go(func() { out, ended = w.Store.AppendReply(w.Ctx, fence, w.Answer(1)) })
		both.Wait()
		w.must(ended)
		switch {
		case out.Next.IsZero():
			w.must(taken)
		default:
			w.refused(regie.CodeConflict, taken)
			resultOf(w.Store.RequestStop(w.Ctx, out.Next, regie.StopStop))(w)
		}
	}
}
