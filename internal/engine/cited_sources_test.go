package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

func TestWithSources(t *testing.T) {
	text := func(s string) provider.Part { return provider.Part{Type: regie.PartText, Text: s} }
	call := provider.Part{Type: regie.PartCall, Call: &provider.Call{Name: "f"}}
	two := []provider.Source{{Title: "A page", URL: "https://a.example"}, {}, {URL: "https://c.example"}}
	for name, c := range map[string]struct {
		parts   []provider.Part
		sources []provider.Source
		want    []provider.Part
	}{
		"none":           {[]provider.Part{text("a")}, nil, []provider.Part{text("a")}},
		"nothing to say": {[]provider.Part{text("a")}, []provider.Source{{}}, []provider.Part{text("a")}},
		"numbers stay":   {[]provider.Part{text("a [1][3]\n")}, two, []provider.Part{text("a [1][3]\n\n\n[1] A page https://a.example\n[3] https://c.example")}},
		"before calls":   {[]provider.Part{text("a [1]"), call}, two[:1], []provider.Part{text("a [1]\n\n[1] A page https://a.example"), call}},
		"on the way":     {[]provider.Part{text("I look."), call}, two, []provider.Part{text("I look."), call}},
		"the last text":  {[]provider.Part{text("a"), text("b")}, two[:1], []provider.Part{text("a"), text("b\n\n[1] A page https://a.example")}},
		"calls alone":    {[]provider.Part{call}, two, []provider.Part{call}},
	} {
		before := append([]provider.Part{}, c.parts...)
		if diff := cmp.Diff(c.want, withSources(c.parts, c.sources)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if diff := cmp.Diff(before, c.parts); diff != "" {
			t.Errorf("%s: the reply itself was changed:\n%s", name, diff)
		}
	}
}
