package config

import (
	"slices"
	"strings"
	"testing"
)

// TestTypesOfVendors: each vendor is of a type that has an entry.
func TestTypesOfVendors(t *testing.T) {
	for name, v := range vendors {
		if !slices.Contains(providerTypes, v.kind) {
			t.Errorf("%s is of type %q", name, v.kind)
		}
	}
	if got := strings.Join(KeyVariables(), " "); got != "ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY" {
		t.Errorf("keys are found in %s", got)
	}
}
