package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
)

// TestAttend: a chat says that it is there as long as it is, whatever comes of it, and no more once
// it may not.
func TestAttend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"heard":           {nil, 5},
		"nobody hears it": {regie.Errorf(regie.CodeServerDown, "away"), 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := 0
				end := keepPresence(t.Context(), func(context.Context) (dispatch.Presence, error) {
					said++
					return dispatch.Presence{}, c.err
				})
				time.Sleep(4*beats + time.Second) // of the bubble
				end()
				time.Sleep(time.Hour)
				if said != c.want {
					t.Errorf("it said so %d times, want %d", said, c.want)
				}
			})
		})
	}
}
