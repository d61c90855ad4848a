package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestRequestNames: an agent that a request names is one that there is, or its limits would be
// nobody's, and a size is the model that stands for it.
func TestRequestNames(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("done"))
	b := newHarness(t, m)
	p := b.settings.Providers[b.settings.Provider]
	p.Models = map[string]string{"large": "the-large-one"}
	b.settings.Providers[b.settings.Provider] = p
	conn := b.connect()
	for name, c := range map[string]struct {
		change func(*dispatch.RunRequest)
		want   regie.Code
	}{
		"no such agent":           {func(in *dispatch.RunRequest) { in.Agent = "nosuch" }, regie.CodeNotFound},
		"no such agent, no model": {func(in *dispatch.RunRequest) { in.Agent, in.Provider, in.Model = "nosuch", "", "" }, regie.CodeNotFound},
		"no such provider":        {func(in *dispatch.RunRequest) { in.Provider = "nosuch" }, regie.CodeNotFound},
		"one's, without agent":    {func(in *dispatch.RunRequest) { in.Agent, in.Provider = "", "nosuch" }, regie.CodeNotFound},
		"another's replay":        {func(in *dispatch.RunRequest) { in.Provider, in.Settings = "replay", regie.Hash{} }, regie.CodeNotFound},
		"a size that means one":   {func(in *dispatch.RunRequest) { in.Model = "large" }, ""},
		"the same, without agent": {func(in *dispatch.RunRequest) { in.Agent, in.Model = "", "large" }, ""},
		"the model itself":        {func(in *dispatch.RunRequest) { in.Model = "the-large-one" }, ""},
	} {
		in := b.request(everything)
		c.change(&in)
		run, err := conn.Submit(t.Context(), in)
		if regie.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.want != "" {
			if found, err := conn.Sessions(t.Context(), store.SessionFilter{ID: in.SessionID}); err != nil || len(found) != 0 {
				t.Errorf("%s: a session is stored: %+v, %v", name, found, err)
			}
			continue
		}
		if view := b.await(conn, run); view.Round.Model != "the-large-one" {
			t.Errorf("%s: it was asked %q", name, view.Round.Model)
		}
	}
}

// TestProviderGone: in a session that is there, a message is refused where the provider of its
// settings is gone.
func TestProviderGone(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	id := h.session()
	fatal(t, h.engine.Close())
	gone := b.settings.Provider
	other := b.settings.Providers[gone]
	other.Name = "another"
	b.settings.Choose(other, b.settings.Model, "test")
	delete(b.settings.Providers, gone)
	h = b.serve("127.0.0.1:0")
	var out struct{ Code, Detail string }
	h.json("POST", "/api/v1/sessions/"+id+"/messages", `{"content":"hi"}`, 404, &out)
	h.json("POST", "/api/v1/sessions/"+id+"/messages", `{"content":"hi","provider":"nosuch","model":"x"}`, 404, &out)
	if out.Code != string(regie.CodeNotFound) || !strings.Contains(out.Detail, `"nosuch"`) {
		t.Errorf("%+v", out)
	}
}

// TestSessionNames: a session's name is one line that does nothing to a terminal and hides nothing,
// whoever gave it and however.
func TestSessionNames(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("done")))
	h := b.serve("127.0.0.1:0")
	const hostile = "\u001b]0;owned\u0007\u200b a\u202e\tb\u0085\u2028c\u001b[31m"
	text, err := json.Marshal(hostile)
	fatal(t, err)
	name := func(id string) string { return h.view(id).Name }
	said := h.session()
	h.read("POST", "/api/v1/sessions/"+said+"/messages", `{"content":`+string(text)+`}`, nil, carrying("Accept", "text/event-stream"))
	named := h.session()
	h.json("PATCH", "/api/v1/sessions/"+named, `{"name":`+string(text)+`}`, 200, nil)
	in := b.request(everything)
	in.Text, in.SessionID, in.ClientID = "\u001b\u0007\n"+hostile, regie.NewID(), "new"
	if _, err := h.engine.Service().Rounds.Submit(access.AsOwner(t.Context()), in); err != nil {
		t.Fatal(err)
	}
	for what, id := range map[string]string{"its first message": said, "a person": named, "a new one": in.SessionID.String()} {
		if got := name(id); got != "a b c" {
			t.Errorf("named by %s: %q", what, got)
		}
	}
	h.json("PATCH", "/api/v1/sessions/"+named, `{"name":"\u001b[1m\u200b"}`, 400, nil)
}

// TestNamedSettingsOfAClient: a client that was told to decide by a file of settings is refused a
// run where the engine decides by others. One that was told nothing is answered by whatever the
// engine has, and so is one whose file says the same.
func TestNamedSettingsOfAClient(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("one"), replyWith("two"), replyWith("three")))
	b.connect()
	own := b.settings
	for _, row := range []struct {
		name           string
		apart, refused bool
		change         func()
	}{
		{"the same", true, false, func() {}},
		{"others that nobody named", false, false, func() { b.settings.File.Approvals.RequireValidation = true }},
		{"a check of every call", true, true, func() { b.settings.File.Approvals.RequireValidation = true }},
		{"another sandbox", true, true, func() { b.settings.File.Shell.Sandbox = "landlock" }},
		{"a network", true, true, func() { b.settings.File.Shell.Network = true }},
		{"what is no decision", true, false, func() { b.settings.File.Listen = "127.0.0.1:1" }},
	} {
		b.settings = own
		b.settings.Apart = row.apart
		row.change()
		client, err := app.Connect(t.Context(), app.Options{Config: b.settings})
		if (regie.CodeOf(err) == regie.CodeConflict) != row.refused || row.refused == (err == nil) {
			t.Errorf("%s: %v", row.name, err)
		}
		if err == nil {
			run := b.send(client, b.request(everything))
			expect(t, b.await(client, run), regie.EndAnswered)
			fatal(t, client.Close())
		}
		reader, err := app.Connect(t.Context(), app.Options{Config: b.settings, ReadOnly: true})
		fatal(t, err)
		if _, err := reader.Sessions(t.Context(), store.SessionFilter{}); err != nil {
			t.Errorf("%s: who only looks is refused: %v", row.name, err)
		}
		fatal(t, reader.Close())
	}
}
