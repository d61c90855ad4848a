package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/session"
)

// kept are the stored results of a session.
type kept struct {
	session regie.ID
	results map[regie.ID]string
}

func (k *kept) read(_ context.Context, of, call regie.ID) (string, error) {
	result, ok := k.results[call]
	if of != k.session || !ok {
		return "", regie.Errorf(regie.CodeNotFound, "there is no result of call %s here", call)
	}
	return result, nil
}

// desk has the toolkit's tools, which are called as the engine calls them: checked, then run.
type desk struct {
	t     testing.TB
	kept  *kept
	tools *tool.Registry
}

func newDesk(tb testing.TB) *desk {
	tb.Helper()
	d := &desk{t: tb, kept: &kept{session: regie.NewID(), results: map[regie.ID]string{}}}
	made, err := session.Tools(d.kept.read)
	if err != nil {
		tb.Fatal(err)
	}
	if d.tools, err = tool.NewRegistry(made...); err != nil {
		tb.Fatal(err)
	}
	return d
}

// call runs a tool; arguments that do not fit its schema come back as a failed outcome.
func (d *desk) call(name string, arguments any) tool.Outcome {
	d.t.Helper()
	checked := d.tools.Check(tool.WireName(name), encode(d.t, arguments))
	if checked.Error != nil {
		return tool.Outcome{State: regie.CallFailed, Error: checked.Error}
	}
	return tool.Run(d.t.Context(), checked.Tool, &tool.Invocation{CallID: regie.NewID(), SessionID: d.kept.session, Arguments: checked.Arguments})
}

func encode(tb testing.TB, value any) string {
	tb.Helper()
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// refused checks an error for the model: its code, its parameter, and words of its sentence or
// hint.
func refused(t *testing.T, err error, param string, words ...string) {
	t.Helper()
	advice, ok := errors.AsType[tool.Advice](err)
	if !ok || regie.CodeOf(err) != regie.CodeBadArguments || advice.Param != param {
		t.Fatalf("got %#v", err)
	}
	for _, word := range words {
		if said := err.Error() + " " + advice.Hint; !strings.Contains(said, word) {
			t.Errorf("%q does not say %q", said, word)
		}
	}
}

// harmful reports whether a text holds what a person must not be shown.
func harmful(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u202e' || r == '\u200b' || r == '\u2028' || r == '\ufeff'
	})
}
