package providertest_test

import (
	"testing"

	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestConform holds each codec that speaks over HTTP to the one suite.
func TestConform(t *testing.T) {
	for _, format := range providertest.Formats() {
		t.Run(format.Name, func(t *testing.T) { providertest.Conform(t, &format) })
	}
}

// TestVendors holds the codec of Chat Completions to the same suite as each vendor, in that
// vendor's framing and under its own rules.
func TestVendors(t *testing.T) {
	t.Parallel()
	for _, format := range providertest.Vendors() {
		t.Run(format.Name, func(t *testing.T) {
			t.Parallel()
			providertest.Conform(t, &format)
		})
	}
}
