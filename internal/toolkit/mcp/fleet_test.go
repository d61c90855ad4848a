package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
)

// fleetOf is a started fleet of the servers until the end of the test; set changes what tests
// change.
func fleetOf(t *testing.T, set func(*Server), configs ...Config) *Fleet {
	t.Helper()
	house, err := tool.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFleet(house, slog.New(slog.DiscardHandler), configs...)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range f.members {
		m.server.grace = 200 * time.Millisecond
		set(m.server)
	}
	f.Start()
	t.Cleanup(f.Close)
	return f
}

func keep(*Server) {}

// namesOf are the names of a registry's tools.
func namesOf(r *tool.Registry) []string {
	var out []string
	for _, d := range r.Definitions() {
		out = append(out, d.Name)
	}
	return out
}

// A server that never answers costs a round its Wait and nothing more, and keeps no other server's
// tools away.
func TestFleetDoesNotWaitForEver(t *testing.T) {
	hung, well := command(t, "hangs"), command(t, "raw")
	hung.Name, hung.Wait, hung.StartTimeout = "hung", time.Millisecond, time.Hour
	well.Wait = time.Hour
	f := fleetOf(t, keep, hung, well)
	r := f.Tools(t.Context())
	if got := namesOf(r); !slices.Equal(got, []string{"box.do"}) {
		t.Errorf("there are %v", got)
	}
	if got := r.Missing(); len(got) != 1 || got[0].Toolkit != "hung" || r.Away("hung.do") == nil {
		t.Errorf("missing: %v", got)
	}
	// A round that is stopped does not wait at all.
	f.members[0].wait = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Tools(ctx)
}

// What the tools are is told by where the fleet ends: afterwards nothing is tried any more.
func TestFleetCloses(t *testing.T) {
	c := command(t, "hangs")
	c.Wait = time.Hour
	f := fleetOf(t, keep, c)
	done := make(chan *tool.Registry, 1)
	go func() { done <- f.Tools(t.Context()) }()
	f.Close()
	if r := <-done; len(r.Missing()) != 1 {
		t.Errorf("missing: %v", r.Missing())
	}
	f.Tools(t.Context())
}

// A server behind a URL goes and comes back. While it is away its tools are; nobody has to start
// anew.
func TestFleetOverHTTP(t *testing.T) {
	var down atomic.Bool
	c, _ := web(t, func(inner http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				http.Error(w, "down for repairs", http.StatusBadGateway)
				return
			}
			inner.ServeHTTP(w, r)
		})
	})
	c.Wait = time.Hour
	var later atomic.Int64
	f := fleetOf(t, func(s *Server) { s.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) } }, c)
	if r := f.Tools(t.Context()); len(r.Missing()) != 0 || len(namesOf(r)) == 0 {
		t.Fatalf("missing %v", r.Missing())
	}
	down.Store(true)
	settles := func(what string, ok func(*tool.Registry) bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !ok(f.Tools(t.Context())); later.Add(int64(2 * freshness)) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %v", what, f.Registry().Missing())
			}
			f.tries.Wait() // a list that is merely old is read again without anybody waiting
		}
	}
	settles("its tools stay", func(r *tool.Registry) bool { return len(r.Missing()) == 1 && len(namesOf(r)) == 0 })
	down.Store(false)
	settles("its tools do not come back", func(r *tool.Registry) bool { return len(r.Missing()) == 0 && len(namesOf(r)) > 0 })
}

// A server that is slow with its list may be at work: what it listed before stays.
func TestFleetKeepsASlowServersTools(t *testing.T) {
	c := command(t, "slow")
	c.Wait, c.StartTimeout = time.Hour, 2*time.Second
	f := fleetOf(t, keep, c)
	if got := namesOf(f.Tools(t.Context())); !slices.Equal(got, []string{"box.do"}) {
		t.Fatalf("there are %v", got)
	}
	f.members[0].server.live.Load().changed.Store(true)
	r := f.Tools(t.Context())
	if got := namesOf(r); !slices.Equal(got, []string{"box.do"}) || len(r.Missing()) != 0 {
		t.Errorf("there are %v, missing %v", got, r.Missing())
	}
	if f.members[0].failures != 1 {
		t.Errorf("%d tries failed", f.members[0].failures)
	}
}

// A call finds a list that changed in silence; the next round has it without another look at the
// server.
func TestFleetShowsWhatACallFound(t *testing.T) {
	s := command(t, "sdk")
	s.Wait = time.Hour
	f := fleetOf(t, keep, s)
	first := f.Tools(t.Context())
	mutates, _, _ := first.Lookup("box.mutates")
	echo, old, _ := first.Lookup("box.echo")
	if out := call(t, mutates, "{}"); out.State != regie.CallSucceeded {
		t.Fatalf("%+v", out.Error)
	}
	told(t, f.members[0].server)
	if out := call(t, echo, "{}"); out.Error == nil || out.Error.Code != regie.CodeToolChanged {
		t.Fatalf("%+v", out)
	}
	if _, hash, _ := first.Lookup("box.echo"); hash != old {
		t.Errorf("a registry has changed")
	}
	if _, hash, _ := f.Tools(t.Context()).Lookup("box.echo"); hash == old {
		t.Errorf("the next round has the tool as it was")
	}
}

// What is wrong with a configuration is an error at once; what is wrong with a server is not.
func TestFleetRefuses(t *testing.T) {
	house, err := tool.NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewFleet(house, slog.New(slog.DiscardHandler), Config{Name: "files", URL: "http://a/"}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("got %v", err)
	}
	f := fleetOf(t, keep, Config{Name: "box", Command: []string{"/no/such/program"}})
	if got := f.Tools(t.Context()).Missing(); len(got) != 1 || !strings.Contains(got[0].Why, "/no/such/program") {
		t.Errorf("missing: %v", got)
	}
}
