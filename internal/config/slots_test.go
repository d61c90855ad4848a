package config

import (
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/slot"
)

// TestSlots reads what the file says of slots (decision 52).
func TestSlots(t *testing.T) {
	for text, want := range map[string]slot.Capacity{
		"":                         slot.Default,
		"slots: exclusive":         {Exclusive: true, Chat: 4, Automation: 1, API: 64},
		"slots: {chat: 2}":         {Chat: 2, Automation: 1, API: 64},
		"slots: {automation: 3}":   {Chat: 4, Automation: 3, API: 64},
		"slots: {chat: 1, api: 9}": {Chat: 1, Automation: 1, API: 9},
	} {
		c, err := load(t, text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := c.File.Slots.Capacity(); got != want {
			t.Errorf("%s means %+v", text, got)
		}
	}
	for text, want := range map[string]string{
		"slots: shared":          "slots is",
		"slots: {chats: 4}":      "unknown key chats",
		"slots: {chat: 0}":       "between 1 and",
		"slots: {chat: many}":    "a whole number",
		"slots: {api: 100001}":   "between 1 and",
		"slots: {Exclusive: no}": "unknown key Exclusive",
		"slots: [4, 1, 64]":      "a list was found",
	} {
		if _, err := load(t, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
