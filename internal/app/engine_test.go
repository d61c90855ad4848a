package app_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestOneEngine asserts decision 1: one process holds the data directory, the others are its
// clients.
func TestOneEngine(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("hello"))
	b := newBed(t, m)
	first := b.connect()
	defer first.Close()
	second := b.connect()
	defer second.Close()
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
	run, err := second.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
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
		says("I look.", call{"a", "files__list_files", `{}`}),
		func(w http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			select {
			case <-free:
				says("Done.")(w, r)
			case <-r.Context().Done():
			}
		})
	b := newBed(t, m)
	engine, client := b.connect(), b.connect()
	defer client.Close()
	run, err := client.Submit(t.Context(), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	<-asked // the client has taken over and asks again
	close(free)
	if err := <-followed; !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	if !client.IsEngine() {
		t.Error("the client did not become the engine")
	}
	view, err := client.Get(t.Context(), run.RoundID)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, view, regie.EndAnswered, "SUCCEEDED")
	if attempts := view.Exchanges[1].Attempts; len(attempts) != 1 || attempts[0].Code != regie.CodeEngineGone {
		t.Errorf("the lost model call is not booked: %+v", attempts)
	}
}

// TestSubmitRefuses sends requests that cannot be served; each says why and stores nothing.
func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	b := newBed(t, m)
	conn := b.connect()
	defer conn.Close()
	client := b.connect()
	defer client.Close()
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
		for surface, control := range map[string]chat.Control{"engine": conn, "client": client} {
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

// TestRepeatedSubmission asks twice with one client id: one round.
func TestRepeatedSubmission(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("hello"))
	b := newBed(t, m)
	conn := b.connect()
	defer conn.Close()
	request := b.request(everything)
	first, err := conn.Submit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	b.await(conn, first)
	second, err := conn.Submit(t.Context(), request)
	if err != nil || !second.Duplicate || second.RoundID != first.RoundID || m.count() != 1 {
		t.Errorf("%+v, %v, %d requests", second, err, m.count())
	}
}

// TestLongDataDirectory uses a path that no socket address takes.
func TestLongDataDirectory(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("hello"))
	b := newBed(t, m)
	b.settings.DataDir = filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	first, second := b.connect(), b.connect()
	defer second.Close()
	defer first.Close()
	run, err := second.Submit(context.WithoutCancel(t.Context()), b.request(everything))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, b.await(second, run), regie.EndAnswered)
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
	}, says("hello")))
	b := newBed(t, m)
	first := b.connect()
	request := b.request(everything)
	request.Settings = b.settings.Fingerprint()
	run, err := first.Submit(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	elsewhere := newModel(t) // would fail the test at any request
	own := b.settings
	b.settings.BaseURL = elsewhere.server.URL + "/v1"
	other := b.connect()
	if err := other.Resume(t.Context(), run.RoundID); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("resumed elsewhere: %v", err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	b.settings = own
	again := b.connect()
	defer again.Close()
	expect(t, b.await(again, run), regie.EndAnswered)
	if elsewhere.count() != 0 {
		t.Errorf("%d requests went to the other server", elsewhere.count())
	}
}
