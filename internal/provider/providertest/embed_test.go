package providertest_test

import (
	"testing"

	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestEmbedders holds each embedder to the one suite.
func TestEmbedders(t *testing.T) {
	t.Parallel()
	for _, format := range providertest.EmbedFormats() {
		t.Run(format.Name+" "+format.Model, func(t *testing.T) {
			t.Parallel()
			providertest.EmbedConform(t, &format)
		})
	}
}
