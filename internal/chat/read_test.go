package chat_test

import (
	"slices"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
)

// TestReadBoth reads options, a text, and a text beside options.
func TestReadBoth(t *testing.T) {
	m := &regie.Module{Kind: regie.ModuleChoice, Options: []string{"one", "two", "three"}, AllowMultiple: true, AllowFreeText: true}
	for _, row := range []struct {
		line    string
		choices []string
		text    string
	}{
		{"1,3", []string{"one", "three"}, ""},
		{"1,3: and a fourth", []string{"one", "three"}, "and a fourth"},
		{"2: this: that", []string{"two"}, "this: that"},
		{"7: is no option", nil, "7: is no option"},
		{"1:30 is when", nil, "1:30 is when"},
		{"note: all of them", nil, "note: all of them"},
	} {
		reply, err := chat.Read(m, row.line)
		if err != nil || !slices.Equal(reply.Choices, row.choices) || reply.Text != row.text {
			t.Errorf("%q is %q and %q: %v", row.line, reply.Choices, reply.Text, err)
		}
	}
	m.AllowFreeText = false
	if reply, err := chat.Read(m, "1,3: and a fourth"); err == nil {
		t.Errorf("it takes a text: %+v", reply)
	}
}
