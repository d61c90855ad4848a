package providertest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestTemperature: what a codec says of the temperature is what its requests carry, whatever the
// model and the effort.
func TestTemperature(t *testing.T) {
	zero, carried, left := 0.0, 0, 0
	for _, format := range slices.Concat(providertest.Formats(), providertest.Vendors()) {
		p, err := format.Open("http://127.0.0.1:1", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{"scripted", "claude-opus-5-5", "claude-opus-4-8", "claude-sonnet-4-6", "claude-3-7-sonnet-20250219", "gpt-5.5", "o3-mini", "gpt-4o", "gemini-3-pro"} {
			for _, effort := range append([]string{""}, regie.Efforts()...) {
				c, err := p.Open(provider.Head{Model: model, MaxOutput: 8192, Temperature: &zero, ReasoningEffort: effort})
				if err != nil {
					t.Fatal(err)
				}
				c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: "hi"}}})
				shower, ok := c.(provider.Shower)
				if !ok {
					t.Fatalf("%s does not show its requests", format.Name)
				}
				sent := strings.Contains(string(shower.Body()), `"temperature":0`)
				if said := p.Capabilities(model).Temperature.Carried(effort); said != sent {
					t.Errorf("%s, %s, effort %q: it is said %v, and sent %v", format.Name, model, effort, said, sent)
				}
				relaunch := 0.2
				c.EndWith(provider.Tail{Temperature: &relaunch})
				body := string(shower.Body())
				if n, keeps := strings.Count(body, `"temperature":`), strings.HasPrefix(model, "gemini-3") && format.Name == "gemini"; sent &&
					(n != 1 || strings.Contains(body, `"temperature":0.2`) == keeps) || !sent && n > 0 {
					t.Errorf("%s, %s, effort %q: the relaunch says %s", format.Name, model, effort, body)
				}
				if sent {
					carried++
				} else {
					left++
				}
			}
		}
	}
	if carried == 0 || left == 0 {
		t.Errorf("%d carried, %d left out", carried, left)
	}
}
