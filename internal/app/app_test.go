package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

func states(view store.RoundView) []string {
	var out []string
	for _, e := range view.Exchanges {
		for _, c := range e.Calls {
			state := string(c.State)
			if c.NotRun != "" {
				state += " " + string(c.NotRun)
			}
			out = append(out, state)
		}
	}
	return out
}

func expect(t *testing.T, view store.RoundView, end regie.RoundEnd, calls ...string) {
	t.Helper()
	if view.Round.End != end {
		t.Errorf("the round ended %s (%s), want %s", view.Round.End, view.Round.EndNote, end)
	}
	if diff := cmp.Diff(calls, states(view)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestMixedBatch runs queries and actions of one reply in their order, with each intent before its
// effect.
func TestMixedBatch(t *testing.T) {
	t.Parallel()
	m := newModel(t,
		replyWith("I look.", call{"a", "files__list_files", `{}`}, call{"b", "files__write_file", `{"path":"x.txt","content":"one\n"}`},
			call{"c", "files__read_file", `{"path":"x.txt"}`}, call{"d", "files__write_file", `{"path":"x.txt","content":"two\n","mode":"append"}`}),
		replyWith("All done."))
	b := newHarness(t, m)
	view := b.run(everything)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
	data, err := os.ReadFile(filepath.Join(b.root, "x.txt"))
	if err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("%q, %v", data, err)
	}
	// The query in the middle saw the first write and not the second.
	if got := view.Exchanges[0].Calls[2].Result; !strings.Contains(got, "one") || strings.Contains(got, "two") {
		t.Errorf("the read in the middle saw %q", got)
	}
	if got := view.Exchanges[1].Reply.AI.Text(); got != "All done." {
		t.Errorf("the answer is %q", got)
	}
	// nobody says what it costs
	if u := view.Exchanges[0].Reply.Usage; u.Input < 500 || u.Input > 5000 || !u.Estimated || !view.Exchanges[0].Usage.Estimated || view.Exchanges[0].Money.Known {
		t.Errorf("usage %+v, money %+v", view.Exchanges[0].Reply.Usage, view.Exchanges[0].Money)
	}
}

// TestBadCalls proposes what cannot run; each gets its one result with a reason, and the model may
// go on.
func TestBadCalls(t *testing.T) {
	t.Parallel()
	calls := []call{
		{"a", "files__reed_file", `{}`},
		{"b", "files__read_file", `{"file":"x"}`},
		{"c", "files__read_file", `{"path":"../../etc/passwd"}`},
		{"d", "files__read_file", `{"path":"same"}`},
		{"e", "files__read_file", `{ "path" : "same" }`},
		{"a", "files__list_files", `{}`}, // the id stands twice
		{"", "files__list_files", `{"recursive":true}`},
		{"h", "files__read_file", `{"path":"1"}`},
		{"i", "files__read_file", `{"path":"2"}`},
		{"j", "files__read_file", `{"path":"3"}`},
		{"k", "files__read_file", `{"path":"over the limit"}`},
	}
	m := newModel(t, replyWith("", calls...), replyWith("I could not."))
	view := newHarness(t, m).run(everything)
	expect(t, view, regie.EndAnswered, "NOT_RUN OUT_OF_SCOPE", "NOT_RUN INVALID", "FAILED", "FAILED", "NOT_RUN DUPLICATE_IN_BATCH", "SUCCEEDED",
		"SUCCEEDED", "FAILED", "FAILED", "FAILED", "NOT_RUN OVER_LIMIT")
	last := m.last()
	for _, want := range []string{"files__read_file", "PATH_OUTSIDE", "FILE_NOT_FOUND", "DUPLICATE_IN_BATCH", "OVER_LIMIT"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model is not told %s", want)
		}
	}
	ids := map[string]bool{}
	for _, c := range view.Exchanges[0].Calls {
		if c.ProviderCallID == "" || ids[c.ProviderCallID] {
			t.Errorf("the provider's id %q is empty or repeats", c.ProviderCallID)
		}
		ids[c.ProviderCallID] = true
	}
}

func refuses(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, status) }
}
