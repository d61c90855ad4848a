package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestRequestNames: an agent that a request names is one that there is, or its limits would be
// nobody's, and a size is the model that stands for it.
func TestRequestNames(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("done"))
	b := newBed(t, m)
	p := b.settings.Providers[b.settings.Provider]
	p.Models = map[string]string{"large": "the-large-one"}
	b.settings.Providers[b.settings.Provider] = p
	conn := b.connect()
	defer conn.Close()
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

// TestProviderGone: over HTTP a provider that is not there is refused before anything is stored, in
// a session that is there too, by name and by the session's own settings.
func TestProviderGone(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t))
	h := b.serve("127.0.0.1:0")
	id := h.session()
	in := b.request(everything)
	in.Provider, in.Settings, in.ClientID = "nosuch", regie.Hash{}, regie.NewID().String()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	for path, body := range map[string]string{
		"/api/v1/runs":                         string(body),
		"/api/v1/sessions/" + id + "/messages": `{"content":"hi","provider":"nosuch","model":"x"}`,
	} {
		var out struct{ Code, Detail string }
		h.json("POST", path, body, 404, &out)
		if out.Code != string(regie.CodeNotFound) || !strings.Contains(out.Detail, `"nosuch"`) {
			t.Errorf("%s: %+v", path, out)
		}
	}
	var list struct{ Items []json.RawMessage }
	h.json("GET", "/api/v1/rounds", "", 200, &list)
	if len(list.Items) != 0 {
		t.Errorf("%s", list.Items)
	}
	if err := h.engine.Close(); err != nil {
		t.Fatal(err)
	}
	gone := b.settings.Provider
	other := b.settings.Providers[gone]
	other.Name = "another"
	b.settings.Choose(other, b.settings.Model, "test")
	delete(b.settings.Providers, gone)
	h = b.serve("127.0.0.1:0")
	h.json("POST", "/api/v1/sessions/"+id+"/messages", `{"content":"hi"}`, 404, nil)
}

// TestSessionNames: a session's name is one line that does nothing to a terminal and hides nothing,
// whoever gave it and however.
func TestSessionNames(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("done")))
	h := b.serve("127.0.0.1:0")
	const hostile = "\u001b]0;owned\u0007\u200b a\u202e\tb\u0085\u2028c\u001b[31m"
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
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
