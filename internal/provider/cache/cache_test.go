package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// table is a store in memory: the real ones have a suite of their own (storetest).
type table struct {
	mu    sync.Mutex
	rows  map[regie.Hash]store.CachedReply
	trims int
}

func (d *table) CachedReply(_ context.Context, _ store.CacheOf, key regie.Hash, now time.Time) (store.CachedReply, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	row, found := d.rows[key]
	return row, found && now.Before(row.Expires), nil
}

func (d *table) TrimCache(context.Context, time.Time, int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trims++
	return nil
}

func (d *table) keep(c *Cache, q provider.Question, reply *provider.Reply) {
	entry := c.Entry(q, reply)
	entry.SessionID, entry.At = q.Session, time.Now()
	d.mu.Lock()
	if d.rows == nil {
		d.rows = map[regie.Hash]store.CachedReply{}
	}
	d.rows[q.Key] = *entry
	d.mu.Unlock()
	c.Stored(context.Background(), entry)
}

func question(name string) provider.Question {
	return provider.Question{
		Asker: provider.Asker{Session: regie.NewID()}, Key: regie.HashOf([]byte(name)), Provider: "p", Model: "m",
	}
}

func text(s string) *provider.Reply {
	return &provider.Reply{Parts: []provider.Part{{Type: regie.PartText, Text: s}}, StopReason: "stop", Usage: regie.Usage{Input: 100, Output: 10}}
}

func always(*provider.Reply) bool { return true }

var errAsked = errors.New("the model was asked")

func refuses() (*provider.Reply, error) { return nil, errAsked }

// TestKeptAnswer gives an answer again until it has expired. It costs nothing.
func TestKeptAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &table{}
		c := New(Config{Store: d, TTL: time.Hour})
		q := question("a")
		first, err := c.Ask(t.Context(), q, func() (*provider.Reply, error) { return text("hi"), nil }, always)
		if err != nil || !first.Cached.IsZero() || first.Usage.Input != 100 {
			t.Fatalf("%+v, %v", first, err)
		}
		d.keep(c, q, first)
		asked := time.Now()
		time.Sleep(time.Minute)
		reply, err := c.Ask(t.Context(), q, refuses, always)
		if err != nil || provider.JoinText(reply.Parts) != "hi" || !reply.Cached.Equal(asked) || reply.Usage != (regie.Usage{}) || reply.StopReason != "stop" {
			t.Fatalf("%+v, %v", reply, err)
		}
		time.Sleep(time.Hour)
		if _, err := c.Ask(t.Context(), q, refuses, always); !errors.Is(err, errAsked) {
			t.Errorf("an expired answer was given: %v", err)
		}
		if _, err := c.Ask(t.Context(), provider.Question{}, refuses, always); !errors.Is(err, errAsked) {
			t.Errorf("an answer without a key was given: %v", err)
		}
	})
}

// TestOneAsks has many ask the same at once: one of them asks the model, and the others have its
// answer.
func TestOneAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Store: &table{}})
		var calls, given int
		var mu sync.Mutex
		send := func() (*provider.Reply, error) { //nolint:unparam // as Ask wants it
			mu.Lock()
			calls++
			mu.Unlock()
			time.Sleep(time.Second)
			return text("hi"), nil
		}
		for range 50 {
			go func() {
				reply, err := c.Ask(t.Context(), question("a"), send, always)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || provider.JoinText(reply.Parts) != "hi" {
					t.Errorf("%+v, %v", reply, err)
				} else if !reply.Cached.IsZero() && reply.Usage == (regie.Usage{}) {
					given++
				}
				if err == nil { // as the engine does, and nobody else may see it
					reply.Usage.Output, reply.Parts[0].Text = 0, "changed"
				}
			}()
		}
		go func() { _, _ = c.Ask(t.Context(), question("b"), send, always) }() // another question waits for nobody
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if calls != 2 || given != 49 {
			t.Errorf("%d calls, %d answers given", calls, given)
		}
	})
}

// TestLeaderIsCancelled: who is cancelled harms nobody else. The next one asks, and who waits
// leaves at once when it is cancelled itself.
func TestLeaderIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Store: &table{}})
		gone := errors.New("the person left")
		send := func(ctx context.Context, reply *provider.Reply) func() (*provider.Reply, error) {
			return func() (*provider.Reply, error) {
				select {
				case <-time.After(time.Minute):
					return reply, nil
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
		}
		results := make(chan string, 4)
		ask := func(ctx context.Context, name string) {
			reply, err := c.Ask(ctx, question("a"), send(ctx, text(name)), always)
			if err != nil {
				results <- err.Error()
				return
			}
			results <- provider.JoinText(reply.Parts)
		}
		leader, leave := context.WithCancelCause(t.Context())
		waiter, leaveToo := context.WithCancelCause(t.Context())
		go ask(leader, "leader")
		synctest.Wait()
		go ask(waiter, "waiter")
		go ask(t.Context(), "stays")
		go ask(t.Context(), "stays")
		synctest.Wait()
		leaveToo(gone)
		synctest.Wait()
		leave(gone)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		got := map[string]int{}
		for range 4 {
			got[<-results]++
		}
		if got[gone.Error()] != 2 || got["stays"] != 2 {
			t.Errorf("%v", got)
		}
	})
}

// TestFailureIsShared: a failure of the provider is everybody's, what it cost only of who asked; a
// reply with calls is nobody else's.
func TestFailureIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Store: &table{}})
		calls := 0
		var mu sync.Mutex
		both := func(name string, send func() (*provider.Reply, error), answers func(*provider.Reply) bool) (replies [2]*provider.Reply, errs [2]error) {
			var group sync.WaitGroup
			for i := range 2 {
				group.Go(func() {
					replies[i], errs[i] = c.Ask(t.Context(), question(name), func() (*provider.Reply, error) {
						mu.Lock()
						calls++
						mu.Unlock()
						time.Sleep(time.Second)
						return send()
					}, answers)
				})
				synctest.Wait()
			}
			group.Wait()
			return replies, errs
		}
		busy := &provider.Error{Code: regie.CodeProviderBusy, Retryable: true, Message: "busy", Partial: "so", Usage: regie.Usage{Input: 5}, RetryAfter: time.Second}
		_, errs := both("a", func() (*provider.Reply, error) { return nil, busy }, always)
		var shared *provider.Error
		if calls != 1 || !errors.Is(errs[0], busy) || !errors.As(errs[1], &shared) || shared.Partial != "" || shared.Usage != (regie.Usage{}) || !shared.Retryable || shared.RetryAfter != time.Second {
			t.Errorf("%d calls, %v, %+v", calls, errs[0], shared)
		}
		calls = 0
		replies, errs := both("b", func() (*provider.Reply, error) { return text("calls"), nil }, func(*provider.Reply) bool { return false })
		if calls != 2 || errs[0] != nil || errs[1] != nil || !replies[1].Cached.IsZero() {
			t.Errorf("%d calls, %v", calls, errs)
		}
		if _, err := c.Ask(t.Context(), question("b"), refuses, always); !errors.Is(err, errAsked) {
			t.Errorf("what is no answer was kept: %v", err)
		}
	})
}

// TestProxiedAnswer holds what is of no session in memory, within its bound, until it is cleared.
func TestProxiedAnswer(t *testing.T) {
	c := New(Config{Store: &table{}})
	asked := 0
	ask := func(name string) {
		q := question(name)
		q.Session = regie.ID{}
		_, err := c.Ask(t.Context(), q, func() (*provider.Reply, error) {
			asked++
			return text(strings.Repeat("x", maxAnswer)), nil
		}, always)
		if err != nil {
			t.Fatal(err)
		}
	}
	ask("a")
	if ask("a"); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	for i := range 20 {
		ask(fmt.Sprint(i))
	}
	if len(c.proxied) > maxProxied/maxAnswer {
		t.Errorf("%d answers are held", len(c.proxied))
	}
	c.Clear()
	asked = 0
	if ask("19"); asked != 1 {
		t.Error("a cleared answer was given")
	}
}

// TestStoreIsTrimmed looks at the bound of the store at first, and then once a sixteenth of it was
// added. What is too large is not kept.
func TestStoreIsTrimmed(t *testing.T) {
	d := &table{}
	c := New(Config{Store: d, Size: 160_000})
	large := text(strings.Repeat("x", 4000))
	for range 10 {
		d.keep(c, question("a"), large)
	}
	if d.trims != 4 { // the first, then each third
		t.Errorf("trimmed %d times", d.trims)
	}
	if c.Entry(question("a"), text(strings.Repeat("x", maxAnswer))) != nil {
		t.Error("an answer beyond all bounds is kept")
	}
}

// FuzzRead reads whatever the database holds: it is an answer, or none, and what was written is
// read as it was.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{`{"parts":[{"type":"text","text":"hi"}],"stop_reason":"stop"}`, `{"parts":[{"type":"call"}]}`, `{}`, ``, `[`, `{"parts":[{"type":"thinking","opaque":{"a":1}}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply, err := read(data)
		if err != nil {
			return
		}
		again, err := write(reply)
		if err != nil || len(reply.Parts) == 0 {
			t.Fatalf("%q: %+v, %v", data, reply, err)
		}
		if same, err := read(again); err != nil || provider.JoinText(same.Parts) != provider.JoinText(reply.Parts) {
			t.Fatalf("%q became %q, %v", data, again, err)
		}
	})
}
