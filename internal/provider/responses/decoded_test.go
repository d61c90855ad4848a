package responses_test

import (
	"testing"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/responses"
	"github.com/regie-run/regie/internal/provider/wire/wiretest"
)

// TestRecordedStreams holds each recorded stream to its whole reply or its error, and to none where
// it is cut (spec 12.6).
func TestRecordedStreams(t *testing.T) {
	wiretest.Streams(t, func(t *testing.T) func(stream string) (*provider.Reply, error) {
		t.Helper()
		return wiretest.Asker(t, "gpt-5.5", "/v1/responses", "text/event-stream", func(address string) (provider.Provider, error) {
			return responses.New(responses.Config{Name: "test", BaseURL: address})
		})
	}, "*.sse", "crash_*.txt")
}
