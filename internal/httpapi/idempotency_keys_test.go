package httpapi

import (
	"context"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// TestBegunKeys: a write that has begun and was never answered is done again only where that harms
// nothing.
func TestBegunKeys(t *testing.T) {
	for name, c := range map[string]struct {
		id   string
		was  store.KeyedWrite
		code regie.Code // "": it is done
	}{
		"fresh":             {"interrupt_session", store.KeyedWrite{Fresh: true}, ""},
		"at work":           {"interrupt_session", store.KeyedWrite{Begun: time.Now()}, regie.CodeKeyInUse},
		"left at work":      {"interrupt_session", store.KeyedWrite{Begun: time.Now(), Left: true}, regie.CodeOutcomeUnknown},
		"left, with its id": {"fork_session", store.KeyedWrite{Begun: time.Now(), Left: true}, ""},
		"nobody knows":      {"interrupt_session", store.KeyedWrite{Begun: time.Now().Add(-2 * beingDone)}, regie.CodeOutcomeUnknown},
		"with its own id":   {"fork_session", store.KeyedWrite{Begun: time.Now()}, ""},
		"a large answer":    {"undo", store.KeyedWrite{Status: 200}, ""},
		"a word's":          {"change_limits", store.KeyedWrite{Status: 200}, regie.CodeConflict},
		"a secret":          {"make_setup_link", store.KeyedWrite{Status: 201}, regie.CodeConflict},
		"sealed otherwise":  {"fork_session", store.KeyedWrite{Status: 201, Answer: make([]byte, 64)}, regie.CodeCorrupt},
	} {
		k := &keyedWrite{id: c.id, key: "k", was: c.was}
		answer, err := k.storedAnswer()
		if answer != nil || err == nil != (c.code == "") || err != nil && regie.CodeOf(err) != c.code {
			t.Errorf("%s: %q, %v; want %s", name, answer, err, c.code)
		}
	}
}

// releases counts the keys that are released.
type releases struct {
	Keys
	count int
}

// ReleaseKeyed implements Keys.
func (r *releases) ReleaseKeyed(context.Context, regie.Hash) error {
	r.count++
	return nil
}

// TestFailedKeys: a write that fails releases its key, and a repeat that fails beside the first
// request does not release the key of that one.
func TestFailedKeys(t *testing.T) {
	for fresh, want := range map[bool]int{true: 1, false: 0} {
		keys := &releases{}
		k := &keyedWrite{keys: keys, id: "fork_session", was: store.KeyedWrite{Fresh: fresh}}
		k.storeAnswer(t.Context(), 0, nil, regie.Errorf(regie.CodeBadRequest, "no"))
		if keys.count != want {
			t.Errorf("fresh %v: released %d times, want %d", fresh, keys.count, want)
		}
	}
}
