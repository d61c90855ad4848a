package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/store"
)

// readings is a store that counts how often the whole of a thread is read, and how many messages
// are.
type readings struct {
	engine.Store

	mu       sync.Mutex
	whole    int
	messages int
}

func (r *readings) Thread(ctx context.Context, session regie.ID, after int64) (store.Thread, error) {
	thread, err := r.Store.Thread(ctx, session, after)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.messages += len(thread.Messages); after == 0 {
		r.whole++
	}
	return thread, err
}

func (r *readings) take() (whole, messages int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	whole, messages = r.whole, r.messages
	r.whole, r.messages = 0, 0
	return whole, messages
}

func (b *harness) counted() (*app.Conn, *readings) {
	r := &readings{}
	return b.tuned(regie.Limits{}, func(c *engine.Config) { r.Store, c.Store = c.Store, r }), r
}

// TestWarmThread talks at random with a model that answers, reads, fails, and summarises, in both
// dialects, over restarts. What each model call was sent is what a thread that is rebuilt from the
// store alone gives (spec 2.3), and between two rounds of one process it is not read again
// (decision 48).
func TestWarmThread(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			var m *reader
			calls := 0
			m = newReader(t, func(step int) http.HandlerFunc {
				last := m.all[len(m.all)-1]
				native, ends := strings.Contains(string(last.body), `"tools":[`), calls >= 3 || random.IntN(3) == 0
				if calls++; ends {
					calls = 0
					if native {
						return replyWith(fmt.Sprintf("That was step %d.", step))
					}
					return replyWith(fmt.Sprintf(`{"pre_text":"That was step %d."}`, step))
				}
				path := []string{"note1.md", "note2.md", "note3.md", "nothing.md"}[random.IntN(4)]
				id := []string{"same", fmt.Sprint("c", step)}[random.IntN(2)]
				if native {
					return replyWith("", call{id, "files__read_file", fmt.Sprintf(`{"path":%q}`, path)}, call{id + "x", "files__list_files", `{}`})
				}
				return replyWith(fmt.Sprintf(`{"pre_text":"I read.","data_commands":[{"type":"files.read_file","params":{"path":%q}}]}`, path))
			}, func(n int) http.HandlerFunc { return replyWith(fmt.Sprintf("Summary %d.", n)) })
			summarises := seed%2 == 0
			b := library(t, m, config.Budget{})
			if summarises {
				b.settings.File.Budget.ContextTokens = 4000
			}
			notes(t, b.root, 3, 2000)
			conn, read := b.counted()
			var session regie.ID
			var views []store.RoundView
			spoken, cold := regie.DialectNative, true
			for range 14 {
				if random.IntN(6) == 0 {
					_ = conn.Close()
					conn, read = b.counted()
					cold = true
				}
				b.spoken = []regie.Dialect{spoken, spoken, spoken, regie.DialectJSON, regie.DialectNative}[random.IntN(5)]
				cold = cold || b.spoken != spoken
				spoken = b.spoken
				read.take()
				view := b.job(conn, session, fmt.Sprintf("Go on, %d.", len(views)))
				session, views = view.Session.ID, append(views, view)
				may := 0
				if cold {
					may++
				}
				if view.Round.End == regie.EndEarlyStop { // to say what was done
					may++
				}
				if whole, _ := read.take(); !summarises && whole > may {
					t.Errorf("round %d: the whole thread was read %d times", len(views), whole)
				}
				cold = false
			}
			for _, view := range views {
				rebuilt(t, conn, m, view)
			}
		})
	}
}

// TestOneMoreRound: what a further round of a chat reads of its thread does not grow with it (spec
// 2.3).
func TestOneMoreRound(t *testing.T) {
	t.Parallel()
	m := newReader(t, func(step int) http.HandlerFunc { return replyWith(fmt.Sprint("Answer ", step, ".")) }, nil)
	b := library(t, m, config.Budget{})
	conn, read := b.counted()
	view := b.job(conn, regie.ID{}, "Hello.")
	for n := range 40 {
		read.take()
		view = b.job(conn, view.Session.ID, "And?")
		if whole, messages := read.take(); whole > 0 || messages > 4 {
			t.Fatalf("round %d reads %d messages of its thread", n+2, messages)
		}
	}
}

// TestWarmUndone takes a round out of the conversation, and back in: the next round of the same
// process is sent what is stored then.
func TestWarmUndone(t *testing.T) {
	t.Parallel()
	m := newReader(t, func(step int) http.HandlerFunc { return replyWith(fmt.Sprint("Answer ", step, ".")) }, nil)
	b := library(t, m, config.Budget{})
	conn, read := b.counted()
	session := b.job(conn, regie.ID{}, "Hello.").Session.ID
	secret := b.job(conn, session, "The word is HYACINTH.")
	target := secret.Round.ID
	for n, gone := range []bool{true, false} {
		undo, err := conn.Undos.Undo(t.Context(), dispatch.UndoRequest{UndoID: regie.NewID(), Target: target, Chat: true})
		fatal(t, err)
		target = undo.ID
		read.take()
		view := b.job(conn, session, "And?")
		if knows := strings.Contains(string(m.all[len(m.all)-1].body), "HYACINTH"); knows == gone {
			t.Errorf("undo %d: the prompt has what was said: %v", n+1, knows)
		}
		if whole, _ := read.take(); whole != 1 {
			t.Errorf("undo %d: the thread is read %d times", n+1, whole)
		}
		rebuilt(t, conn, m, view)
	}
}
