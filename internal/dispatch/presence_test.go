package dispatch_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/store/storetest"
)

// TestPresence has a user come, stay with ten thousand streams, and go: the mode follows within the
// time of presence, a row is written now and then, and who died without a word is there no longer
// than that.
func TestPresence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var commits atomic.Int64
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir(), Gate: func(committed, wrote bool) error {
			if committed && wrote {
				commits.Add(1)
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		user := storetest.NewWorld(t, s).User
		open := func(place string) *dispatch.Present {
			return dispatch.NewPresent(s, place, 5*time.Minute, slog.New(slog.DiscardHandler))
		}
		here, there := open("a"), open("b")
		defer there.Close()
		is := func(what string, mode store.Mode, at *dispatch.Present) dispatch.Presence {
			t.Helper()
			one, err := at.Of(t.Context(), user)
			if err != nil || one.Mode != mode {
				t.Errorf("%s: %s, %v; it should be %s", what, one.Mode, err, mode)
			}
			return one
		}
		if all, err := here.All(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("somebody is known before anybody came: %v, %v", all, err)
		}
		is("before", store.ModeBackend, here)
		here.Beat(t.Context(), user)
		came := time.Now()
		is("after a heartbeat", store.ModeUI, here)
		is("after a heartbeat elsewhere", store.ModeUI, there)
		time.Sleep(5*time.Minute - time.Second)
		is("just before its time is over", store.ModeUI, here)
		time.Sleep(2 * time.Second)
		if one := is("after it", store.ModeBackend, here); !one.LastSeen.Equal(came) {
			t.Errorf("last seen at %s, not at %s", one.LastSeen, came)
		}
		is("after it, elsewhere", store.ModeBackend, there)

		before := commits.Load()
		for range 10_000 {
			here.Enter(t.Context(), user)
		}
		if n := commits.Load() - before; n != 1 {
			t.Errorf("ten thousand streams that open write %d times", n)
		}
		began := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := commits.Load() - before; n > 1+time.Hour.Milliseconds()/(150*time.Second).Milliseconds() {
			t.Errorf("in an hour of ten thousand streams it is written %d times", n)
		}
		if one := is("with streams", store.ModeUI, here); one.Streams != 10_000 || !one.Since.Equal(began) {
			t.Errorf("%d streams since %s", one.Streams, one.Since)
		}
		is("with streams elsewhere", store.ModeUI, there)
		for range 10_000 {
			here.Leave(user)
		}
		is("when the streams are closed", store.ModeUI, here)
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		is("later", store.ModeBackend, here)
		is("later, elsewhere", store.ModeBackend, there)

		quiet := commits.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := commits.Load() - quiet; n != 0 {
			t.Errorf("it is written %d times where nobody is", n)
		}

		there.Enter(t.Context(), user) // and its process dies
		next := open("c")
		defer next.Close()
		is("while the other one lives", store.ModeUI, next)
		if users, streams := there.Connected(); users != 1 || streams != 1 {
			t.Errorf("%d users, %d streams", users, streams)
		}
	})
}

// TestPresenceKept keeps what was written of a dead process for its time, and then for a day.
func TestPresenceKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		world := storetest.NewWorld(t, s)
		seen := time.Now().UTC()
		if err := s.Present(t.Context(), []store.PresenceMark{{UserID: world.User, Place: "dead", Since: seen, Seen: seen}}); err != nil {
			t.Fatal(err)
		}
		p := dispatch.NewPresent(s, "next", 5*time.Minute, slog.New(slog.DiscardHandler))
		defer p.Close()
		time.Sleep(time.Minute)
		if one, err := p.Of(t.Context(), world.User); err != nil || one.Mode != store.ModeUI {
			t.Errorf("a minute later: %s, %v", one.Mode, err)
		}
		time.Sleep(23 * time.Hour)
		if one, err := p.Of(t.Context(), world.User); err != nil || one.Mode != store.ModeBackend || !one.LastSeen.Equal(seen) {
			t.Errorf("a day later: %+v, %v", one, err)
		}
		time.Sleep(time.Hour)
		if all, err := p.All(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("after a day: %v, %v", all, err)
		}
		other := regie.NewID()
		if one, err := p.Of(t.Context(), other); err != nil || one.Mode != store.ModeBackend || one.UserID != other {
			t.Errorf("who was never there: %+v, %v", one, err)
		}
	})
}
