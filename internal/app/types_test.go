package app_test

import (
	"testing"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
)

// TestTypesHaveCodecs: each type of the registry is made by its own codec, and nothing else is.
func TestTypesHaveCodecs(t *testing.T) {
	t.Parallel()
	made := app.Makers()
	for _, name := range config.TypeNames(false) {
		if !made[name] {
			t.Errorf("nobody makes %s", name)
		}
		delete(made, name)
	}
	if len(made) > 0 {
		t.Errorf("not in the registry: %v", made)
	}
}
