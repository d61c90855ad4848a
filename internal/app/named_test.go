package app_test

import (
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestRequestNames: an agent that a request names is one that there is, or its limits would be nobody's, and a size is the model that stands for it.
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
