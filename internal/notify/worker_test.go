package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// receiver is a sender that answers by a function, and keeps what it was sent.
type receiver struct {
	answer func(ctx context.Context) error
	mu     sync.Mutex
	got    []Message
	at     []time.Time
}

func (r *receiver) send(ctx context.Context, m *Message) error {
	r.mu.Lock()
	r.got, r.at = append(r.got, *m), append(r.at, time.Now())
	r.mu.Unlock()
	return r.answer(ctx)
}

func (r *receiver) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

func accepts(context.Context) error { return nil }

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

var errRefused = errors.New("refused")

func refuses(context.Context) error { return errRefused }

// bench is a store with channels and a worker in simulated time.
type bench struct {
	*storetest.World
	present atomic.Bool
	worker  *Worker
}

// newBench returns a bench with a channel for each receiver.
func newBench(t *testing.T, receivers map[string]*receiver) *bench {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	b := &bench{World: storetest.NewWorld(t, s)}
	b.worker = b.newWorker(receivers)
	s.SetChannels(b.worker.Selected())
	return b
}

// newWorker returns another worker over the store.
func (b *bench) newWorker(receivers map[string]*receiver) *Worker {
	channels := map[string]config.Channel{}
	for name := range receivers {
		channels[name] = config.Channel{Type: config.ChannelNtfy}
	}
	w := New(Config{
		Store: b.Store, Channels: channels, Log: slog.New(slog.DiscardHandler), Translate: regie.Sentence.String,
		Present: func(context.Context, regie.ID) bool { return b.present.Load() },
	})
	for _, c := range w.channels {
		c.sender = receivers[c.name]
	}
	return w
}

// run runs a worker until the result is called.
func run(w *Worker) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { w.Run(ctx) })
	return func() {
		cancel()
		group.Wait()
	}
}

// newest returns the newest delivery of the channel phone.
func (b *bench) newest() store.Delivery {
	b.T.Helper()
	all, err := b.Store.Deliveries(b.Ctx, store.DeliveryFilter{})
	for _, d := range all {
		if d.Channel == "phone" {
			return d
		}
	}
	b.T.Fatal(all, err)
	return store.Delivery{}
}

// fail ends a round badly. People are notified of that even if they are there.
func (b *bench) fail() store.Fence {
	b.T.Helper()
	return b.end(b.Submission("go"), regie.EndProviderError)
}

// end submits a message and ends its round.
func (b *bench) end(in store.Submission, reason regie.RoundEnd) store.Fence {
	b.T.Helper()
	accepted, err := b.Store.Submit(b.Ctx, in)
	if err != nil {
		b.T.Fatal(err)
	}
	fence := accepted.Fence
	if err := b.FailAttempt(fence, store.Failure{
		Attempt: regie.Attempt{RoundID: fence.RoundID, Exchange: 1, Number: 1, Code: regie.CodeProviderOffline, Error: "x"},
		Advance: &store.Advance{Phase: regie.PhaseEnd, End: &store.End{Reason: reason, Note: regie.Verbatim("no route")}},
	}); err != nil {
		b.T.Fatal(err)
	}
	return fence
}

// TestWorker_Delivers sends a notification once, within a few seconds of its commit.
func TestWorker_Delivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phone := &receiver{answer: accepts}
		b := newBench(t, map[string]*receiver{"phone": phone})
		defer run(b.worker)()
		time.Sleep(time.Hour)
		before := time.Now()
		fence := b.fail()
		time.Sleep(time.Hour)
		if phone.count() != 1 || phone.at[0].Sub(before) > 2*poll {
			t.Fatalf("sent at %v, after %v", phone.at, before)
		}
		m, d := phone.got[0], b.newest()
		if m.ID != d.ID || m.Kind != regie.NotifyFailure || m.SessionID != fence.SessionID || m.RoundID != fence.RoundID || m.Title != "A run has failed" {
			t.Errorf("sent was %+v", m)
		}
		if d.State != store.DeliverySent || d.Attempts != 1 || !d.Error.IsZero() {
			t.Errorf("stored is %+v", d)
		}
	})
}

// TestWorker_RetriesForADay tries a receiver that refuses, after 10 s, 20 s and so on up to an
// hour, for a day; all attempts have one id.
func TestWorker_RetriesForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phone := &receiver{answer: refuses}
		b := newBench(t, map[string]*receiver{"phone": phone})
		defer run(b.worker)()
		b.fail()
		time.Sleep(25 * time.Hour)
		d := b.newest()
		if d.State != store.DeliveryFailed || d.Error.String() != "refused" {
			t.Fatalf("after a day: %+v", d)
		}
		want := firstPause
		for i, at := range phone.at[1:] {
			if pause := at.Sub(phone.at[i]); pause < want || pause > want+2*poll {
				t.Errorf("pause %d was %v, want %v", i, pause, want)
			}
			if phone.got[i].ID != d.ID {
				t.Error("an attempt has an id of its own")
			}
			want = min(2*want, lastPause)
		}
		if last := phone.at[len(phone.at)-1].Sub(phone.at[0]); last > giveUp || last < giveUp-2*lastPause {
			t.Errorf("the last of %d attempts was after %v", len(phone.at), last)
		}
		phone.answer = accepts
		b.fail()
		time.Sleep(time.Minute)
		if b.newest().State != store.DeliverySent {
			t.Error("the channel is dead after a failure")
		}
	})
}

// TestWorker_Hangs ends an attempt after 20 s; a receiver that hangs holds up no other channel, and
// no more than four attempts are made at once.
func TestWorker_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast := &receiver{answer: accepts}
		all := map[string]*receiver{"fast": fast, "a": {answer: hangs}, "b": {answer: hangs}, "c": {answer: hangs}}
		b := newBench(t, all)
		stop := run(b.worker)
		b.fail()
		time.Sleep(3 * poll)
		if fast.count() != 1 {
			t.Fatal("a channel waits for another one")
		}
		time.Sleep(attemptTimeout)
		deliveries, err := b.Store.Deliveries(b.Ctx, store.DeliveryFilter{})
		for _, d := range deliveries {
			if d.Channel != "fast" && (d.State != store.DeliveryPending || d.Attempts != 1 || d.Error.String() != context.DeadlineExceeded.Error()) {
				t.Errorf("%+v, %v", d, err)
			}
		}
		time.Sleep(firstPause)
		before := time.Now()
		stop()
		if waited := time.Since(before); waited > time.Second {
			t.Errorf("the end waited for %v", waited)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		all := map[string]*receiver{}
		for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			all[name] = &receiver{answer: hangs}
		}
		b := newBench(t, all)
		defer run(b.worker)()
		b.fail()
		time.Sleep(3 * poll)
		under := 0
		for _, r := range all {
			under += r.count()
		}
		if under != atOnce {
			t.Errorf("%d attempts at once", under)
		}
	})
}

// TestWorker_Presence holds back what the owner can see, until they leave, and forgets what was
// decided meanwhile and what has finished. The desktop shows it at once.
func TestWorker_Presence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phone, screen := &receiver{answer: accepts}, &receiver{answer: accepts}
		b := newBench(t, map[string]*receiver{"phone": phone, "screen": screen})
		b.worker.channels[1].Type = config.ChannelDesktop
		defer run(b.worker)()
		b.present.Store(true)
		b.Ask(1)
		b.fail()
		time.Sleep(10 * time.Minute)
		if phone.count() != 1 || phone.got[0].Kind != regie.NotifyFailure || screen.count() != 2 {
			t.Fatalf("while the owner is there: %+v, on the screen %+v", phone.got, screen.got)
		}
		b.present.Store(false)
		time.Sleep(presencePause + 2*poll)
		if phone.count() != 2 || phone.got[1].Kind != regie.NotifyApproval {
			t.Fatalf("once the owner has left: %+v", phone.got)
		}
		b.present.Store(true)
		_, reply, asked := b.Ask(1)
		time.Sleep(time.Minute)
		if _, err := b.Store.Decide(b.Ctx, store.Decide{ApprovalID: asked.ID, Request: "x", Decisions: []regie.Decision{
			{CallID: reply.Calls[0].ID, Answer: regie.AnswerDeny, By: "ada"},
		}}); err != nil {
			t.Fatal(err)
		}
		b.present.Store(false)
		time.Sleep(time.Hour)
		if d := b.newest(); phone.count() != 2 || d.State != store.DeliverySkipped || d.Attempts != 0 {
			t.Errorf("decided on the screen: %+v", d)
		}
		b.present.Store(true)
		in := b.Submission("every night")
		in.New.Type = regie.SessionAutomation
		b.end(in, regie.EndCompleted)
		time.Sleep(time.Minute)
		b.present.Store(false)
		time.Sleep(time.Hour)
		if d := b.newest(); phone.count() != 2 || d.Kind != regie.NotifyFinished || d.State != store.DeliverySkipped {
			t.Errorf("finished on the screen: %+v", d)
		}
	})
}

// TestWorker_SeveralEngines sends each notification once as long as no engine dies.
func TestWorker_SeveralEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phone := &receiver{answer: func(context.Context) error {
			time.Sleep(300 * time.Millisecond)
			return nil
		}}
		b := newBench(t, map[string]*receiver{"phone": phone})
		defer run(b.worker)()
		defer run(b.newWorker(map[string]*receiver{"phone": phone}))()
		defer run(b.newWorker(map[string]*receiver{"phone": phone}))()
		ids := map[regie.ID]int{}
		for range 20 {
			b.fail()
		}
		time.Sleep(time.Minute)
		for _, m := range phone.got {
			ids[m.ID]++
		}
		if len(ids) != 20 || len(phone.got) != 20 {
			t.Errorf("%d notifications, %d attempts", len(ids), len(phone.got))
		}
	})
}

// TestWorker_DeadEngine sends what an engine had claimed that died, once its lease ends.
func TestWorker_DeadEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phone := &receiver{answer: accepts}
		b := newBench(t, map[string]*receiver{"phone": phone})
		b.fail()
		d := b.newest()
		d.Attempts, d.NextAt = 1, time.Now().Add(lease)
		if claimed, err := b.Store.UpdateDelivery(b.Ctx, &d, 0); !claimed || err != nil {
			t.Fatal(claimed, err)
		}
		defer run(b.worker)()
		time.Sleep(lease - time.Second)
		if phone.count() != 0 {
			t.Error("sent while another engine holds it")
		}
		time.Sleep(2 * poll)
		if phone.count() != 1 || phone.got[0].ID != d.ID || b.newest().Attempts != 2 {
			t.Errorf("after the lease: %+v", b.newest())
		}
	})
}

// TestWorker_Test sends to one channel or all, and says what is wrong.
func TestWorker_Test(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, map[string]*receiver{"a": {answer: accepts}, "b": {answer: refuses}})
		all, err := b.worker.Test(t.Context(), "")
		if err != nil || len(all) != 2 || all[0].State != store.DeliverySent || all[1].State != store.DeliveryFailed || all[1].Error.String() != "refused" {
			t.Errorf("%+v, %v", all, err)
		}
		if one, err := b.worker.Test(t.Context(), "a"); err != nil || len(one) != 1 || one[0].Channel != "a" {
			t.Errorf("%+v, %v", one, err)
		}
		if _, err := b.worker.Test(t.Context(), "c"); regie.CodeOf(err) != regie.CodeNotFound {
			t.Errorf("an unknown channel: %v", err)
		}
		b.worker.channels[0].TokenEnv = "NTFY"
		one, err := b.worker.Test(t.Context(), "a")
		if err != nil || one[0].Error.String() != "the variable NTFY is not set: set it for the engine" {
			t.Errorf("without its variable: %+v, %v", one, err)
		}
		if stored, err := b.Store.Deliveries(b.Ctx, store.DeliveryFilter{}); err != nil || len(stored) != 0 {
			t.Errorf("a test is stored: %+v, %v", stored, err)
		}
	})
}
