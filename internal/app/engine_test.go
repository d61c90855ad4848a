package app_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestOneEngine asserts decision 1: one process holds the data directory, the others are its
// clients.
func TestOneEngine(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("hello"))
	b := newHarness(t, m)
	first := b.connect()
	second := b.connect()
	if !first.IsEngine() || second.IsEngine() {
		t.Fatalf("engines: %v, %v", first.IsEngine(), second.IsEngine())
	}
	if _, err := app.OpenEngine(t.Context(), app.Options{Config: b.settings}); regie.CodeOf(err) != regie.CodeLocked {
		t.Errorf("a second engine: %v", err)
	}
	for _, name := range []string{"engine.sock", "engine.lock", "audit.key"} {
		info, err := os.Stat(filepath.Join(b.settings.DataDir, name))
		if err != nil && name == "engine.sock" && len(b.settings.DataDir) > 80 {
			continue // the socket lies elsewhere where the path is too long for an address
		}
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	run := b.send(second, b.request(everything))
	expect(t, b.await(second, run), regie.EndAnswered)
	list, err := second.List(t.Context(), store.RoundFilter{Root: b.root, Limit: 5})
	if err != nil || len(list) != 1 || list[0].Round.ID != run.RoundID || list[0].Text != "do it" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestTakeOver ends the engine while a client's run is in the middle: the client becomes the
// engine, the same round goes on, and the client's view of the log has neither gap nor repeat.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	asked, free := make(chan struct{}, 4), make(chan struct{})
	m := newModel(t,
		replyWith("I look.", call{"a", "files__list_files", `{}`}),
		func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			select {
			case <-free:
				replyWith("Done.")(w, r)
			case <-r.Context().Done():
			}
		})
	b := newHarness(t, m)
	engine, client := b.connect(), b.connect()
	run := b.send(client, b.request(everything))
	followed := make(chan error, 1)
	var last int64
	go func() {
		followed <- client.Events(t.Context(), run.SessionID, 0, func(item dispatch.Item) error {
			if item.Event == nil {
				return nil
			}
			if item.Event.Seq != last+1 {
				t.Errorf("event %d after %d", item.Event.Seq, last)
			}
			last = item.Event.Seq
			if item.Event.Type == regie.EventRound && strings.Contains(string(item.Event.Body), "ENDED") {
				return errSeen
			}
			return nil
		})
	}()
	<-asked
	fatal(t, engine.Close())
	<-asked // the client has taken over and asks again
	close(free)
	if err := <-followed; !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	if !client.IsEngine() {
		t.Error("the client did not become the engine")
	}
	view := b.round(client, run.RoundID)
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	if attempts := view.Exchanges[1].Attempts; len(attempts) != 1 || attempts[0].Code != regie.CodeEngineGone {
		t.Errorf("the lost model call is not booked: %+v", attempts)
	}
}

// TestSubmitRefuses sends requests that cannot be served; each says why and stores nothing.
func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	b := newHarness(t, m)
	conn := b.connect()
	client := b.connect()
	for name, c := range map[string]struct {
		spoil func(*dispatch.RunRequest)
		code  regie.Code
	}{
		"empty":          {func(r *dispatch.RunRequest) { r.Text = " \n" }, regie.CodeBadRequest},
		"too long":       {func(r *dispatch.RunRequest) { r.Text = strings.Repeat("x", 5<<20) }, regie.CodeBadRequest},
		"no session":     {func(r *dispatch.RunRequest) { r.SessionID = regie.ID{} }, regie.CodeBadRequest},
		"no model":       {func(r *dispatch.RunRequest) { r.Provider, r.Model = "another", "" }, regie.CodeNoModel},
		"relative root":  {func(r *dispatch.RunRequest) { r.Root = "here" }, regie.CodePathInvalid},
		"other settings": {func(r *dispatch.RunRequest) { r.Settings = regie.HashOf([]byte("other")) }, regie.CodeConflict},
		"bad pattern":    {func(r *dispatch.RunRequest) { r.Policy.Allow = []string{"[files"} }, regie.CodeBadPattern},
		"bad policy":     {func(r *dispatch.RunRequest) { r.Policy.OnApproval = "maybe" }, regie.CodeBadRequest},
	} {
		for surface, control := range map[string]service{"engine": conn, "client": client} {
			request := b.request(everything)
			c.spoil(&request)
			if _, err := control.Submit(t.Context(), request); regie.CodeOf(err) != c.code {
				t.Errorf("%s by the %s: %v (%v), want %v", name, surface, regie.CodeOf(err), err, c.code)
			}
		}
	}
	list, err := conn.List(t.Context(), store.RoundFilter{Limit: 5})
	if err != nil || len(list) != 0 {
		t.Errorf("refused requests left %+v, %v", list, err)
	}
	if _, err := client.Get(t.Context(), regie.NewID()); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("an unknown round: %v", err)
	}
	if err := client.Events(t.Context(), regie.NewID(), 0, func(dispatch.Item) error { return nil }); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("an unknown session: %v", err)
	}
}

// TestLongDataDirectory uses a path that no socket address takes.
func TestLongDataDirectory(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("hello"))
	b := newHarness(t, m)
	b.settings.DataDir = filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	b.connect()
	second, run := b.start(everything)
	expect(t, b.await(second, run), regie.EndAnswered)
}

// TestTwoProviders has two clients with two providers work side by side on one data directory: each
// is answered by its own, also where the engine is the other one's, and the engine that comes next
// has a run wait whose settings it does not have, until a client brings them (decision 54).
func TestTwoProviders(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	m := newModel(t, replyWith("from the first"))
	b := newHarness(t, m)
	if b.settings.Database != "" {
		t.Skip("on a shared database another engine may have the settings: the round stays for the watchdog's time")
	}
	first := b.connect()
	own := b.settings
	elsewhere := newModel(t, replyWith("from the second"), once(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}, replyWith("once more from the second")))
	b.settings.BaseURL, b.settings.APIKey = elsewhere.server.URL+"/v1", "sk-of-the-second-client"
	theirs := b.settings
	second := b.connect()
	if second.IsEngine() {
		t.Fatal("the second client became an engine beside the first one")
	}
	var session regie.ID
	for _, client := range []struct {
		conn     *app.Conn
		settings config.Config
		want     string
	}{{first, own, "from the first"}, {second, theirs, "from the second"}} {
		request := b.request(everything)
		request.Settings = client.settings.Fingerprint()
		run := b.send(client.conn, request)
		view := b.await(client.conn, run)
		expect(t, view, regie.EndAnswered)
		if got := view.Exchanges[0].Reply.AI.Text(); got != client.want {
			t.Errorf("answered %q, want %q", got, client.want)
		}
		session = run.SessionID
	}

	request := b.request(everything)
	request.SessionID = session
	request.Settings = theirs.Fingerprint()
	run := b.send(second, request)
	<-asked
	fatal(t, second.Close())
	fatal(t, first.Close())
	b.settings = own
	next := b.connect() // which has not the second one's settings
	b.until(next, run.SessionID, func(e *regie.Event) bool {
		return e.Type == regie.EventSessionState && strings.Contains(string(e.Body), string(regie.SessionWaitingProvider))
	})
	b.settings = theirs
	again := b.connect()
	view := b.await(again, run)
	expect(t, view, regie.EndAnswered)
	if got := view.Exchanges[0].Reply.AI.Text(); got != "once more from the second" {
		t.Errorf("answered %q", got)
	}
}

// TestOtherSettingsLeaveARun opens the data directory under other settings while a run is
// interrupted: the run is neither resumed at another server nor ended, and goes on once its own
// settings are back.
func TestOtherSettingsLeaveARun(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	m := newModel(t, once(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}, replyWith("hello")))
	b := newHarness(t, m)
	first := b.connect()
	request := b.request(everything)
	request.Settings = b.settings.Fingerprint()
	run := b.send(first, request)
	<-asked
	fatal(t, first.Close())
	elsewhere := newModel(t) // would fail the test at any request
	own := b.settings
	b.settings.BaseURL = elsewhere.server.URL + "/v1"
	other := b.connect()
	if err := other.Resume(t.Context(), run.RoundID); regie.CodeOf(err) != regie.CodeNoModel {
		t.Errorf("resumed elsewhere: %v", err)
	}
	fatal(t, other.Close())
	b.settings = own
	again := b.connect()
	expect(t, b.await(again, run), regie.EndAnswered)
	if elsewhere.count() != 0 {
		t.Errorf("%d requests went to the other server", elsewhere.count())
	}
}

// TestPlaceOfLock: who takes a lock that another process had has its place; who takes a copy of it
// has not.
func TestPlaceOfLock(t *testing.T) {
	t.Parallel()
	place := func(dir string) string {
		t.Helper()
		f, place, err := app.Lock(dir)
		fatal(t, err)
		defer f.Close()
		if got := app.Holder(dir); got != strconv.Itoa(os.Getpid()) {
			t.Errorf("the holder is %q", got)
		}
		return place
	}
	dir, other := t.TempDir(), t.TempDir()
	first := place(dir)
	if first == "" || place(dir) != first {
		t.Error("the same lock has two places")
	}
	copied, err := os.ReadFile(filepath.Join(dir, "engine.lock"))
	if err == nil {
		err = os.WriteFile(filepath.Join(other, "engine.lock"), copied, 0o600)
	}
	fatal(t, err)
	second := place(other)
	if second == first || place(other) != second {
		t.Error("a copied lock has the place of the first one, or none of its own")
	}
}

// TestSameNames: an engine in another container may have the same machine's name and the same path
// of its data directory. It lives all the same.
func TestSameNames(t *testing.T) {
	t.Parallel()
	b, db := shared(t, newModel(t))
	b.connect()
	elsewhere := b.elsewhere()
	fatal(t, os.Rename(b.settings.DataDir, b.settings.DataDir+".first"))
	fatal(t, os.Rename(elsewhere, b.settings.DataDir))
	second := b.connect()
	var alive int
	fatal(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM holders WHERE until > clock_timestamp()").Scan(&alive))
	if alive != 2 || !second.IsEngine() {
		t.Errorf("%d engines hold a lease, want 2", alive)
	}
}
