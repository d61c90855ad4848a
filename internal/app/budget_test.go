package app_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
)

// batches is a model that reads so many files in each reply, and then answers.
func batches(replies, files int) func(int) http.HandlerFunc {
	return func(step int) http.HandlerFunc {
		if step > replies {
			return says("All of it is read.")
		}
		var calls []call
		for i := range files {
			calls = append(calls, call{fmt.Sprintf("c%d_%d", step, i), "files__read_file", fmt.Sprintf(`{"path":"note%d.md"}`, (step-1)*files+i+1)})
		}
		return says("", calls...)
	}
}

// TestCrowded brings with each reply most of what there is room for: the results before are left
// out and no model is asked for a summary that the next batch would make useless. The newest ones
// are all there each time.
func TestCrowded(t *testing.T) {
	t.Parallel()
	const replies, files = 8, 4
	m := newReader(t, batches(replies, files), func(n int) http.HandlerFunc { return says(fmt.Sprintf("Summary %d.", n)) })
	b := library(t, m, config.Budget{ContextTokens: 20_000})
	notes(t, b.root, replies*files, 13_000)
	conn := b.observed()
	defer conn.Close()
	view := b.job(conn, regie.ID{}, theJob)
	steps, summaries, failed := purposes(view)
	if view.Round.End != regie.EndAnswered || steps != replies+1 || summaries != 0 || failed != replies-1 {
		t.Errorf("%s %s: %d steps, %d summaries, %d times without a model", view.Round.End, view.Round.EndNote, steps, summaries, failed)
	}
	for i, a := range m.all {
		if len(a.body)/4 > 20_000 {
			t.Errorf("prompt %d has about %d tokens", i, len(a.body)/4)
		}
		for n := range files {
			if mine := fmt.Sprintf("note %d says", (i-1)*files+n+1); i > 0 && !bytes.Contains(a.body, []byte(mine)) {
				t.Errorf("%q is not in prompt %d, where it is new", mine, i)
			}
		}
	}
	m.prefixes(failed)
	rebuilt(t, conn, m, view)
}

// TestHugeBatch brings in one reply more than the thread's whole share: of its results the first
// are left out, and it is not asked about.
func TestHugeBatch(t *testing.T) {
	t.Parallel()
	m := newReader(t, batches(1, 10), nil)
	b := library(t, m, config.Budget{ContextTokens: 20_000})
	notes(t, b.root, 10, 14_000)
	conn := b.observed()
	defer conn.Close()
	view := b.job(conn, regie.ID{}, theJob)
	last := m.all[len(m.all)-1].body
	if view.Round.End != regie.EndAnswered || len(m.all) != 2 || len(last)/4 > 25_000 || bytes.Contains(last, []byte("note 1 says")) || !bytes.Contains(last, []byte("note 10 says")) {
		t.Errorf("%s %s: %d prompts, the last has about %d tokens", view.Round.End, view.Round.EndNote, len(m.all), len(last)/4)
	}
	rebuilt(t, conn, m, view)
}

// TestThousandsOfCalls makes far more calls in one reply than there may be: each has its result in
// the store, and the model sees a part of them again, in either dialect.
func TestThousandsOfCalls(t *testing.T) {
	t.Parallel()
	const made = 3000
	for _, spoken := range []regie.Dialect{regie.DialectNative, regie.DialectJSON} {
		t.Run(string(spoken), func(t *testing.T) {
			m := newReader(t, func(step int) http.HandlerFunc {
				var calls []call
				var commands []string
				for i := range made {
					calls = append(calls, call{fmt.Sprint("c", i), "files__list_files", fmt.Sprintf(`{"pattern":"%d"}`, i)})
					commands = append(commands, fmt.Sprintf(`{"type":"files.list_files","params":{"pattern":"%d"}}`, i))
				}
				switch {
				case step > 1 && spoken == regie.DialectJSON:
					return says(`{"pre_text":"That was a lot."}`)
				case step > 1:
					return says("That was a lot.")
				case spoken == regie.DialectJSON:
					return says(`{"pre_text":"I look.","data_commands":[` + strings.Join(commands, ",") + `]}`)
				}
				return says("", calls...)
			}, nil)
			b := library(t, m, config.Budget{ModelWindow: 20_000})
			b.spoken = spoken
			conn := b.observed()
			defer conn.Close()
			view := b.job(conn, regie.ID{}, theJob)
			last := m.all[len(m.all)-1].body
			if view.Round.End != regie.EndAnswered || len(m.all) != 2 || len(view.Exchanges[0].Calls) != made || len(last) > 60_000 {
				t.Fatalf("%s %s: %d prompts, %d calls, the last prompt has %d bytes", view.Round.End, view.Round.EndNote, len(m.all), len(view.Exchanges[0].Calls), len(last))
			}
			if want := []byte("2872 more calls of this reply were not executed either, and are not shown"); bytes.Count(last, want) != 1 || bytes.Count(last, []byte("as all that follow")) != 1 {
				t.Errorf("what is left out is not told, or told twice: %.3000s", last)
			}
			for i, c := range view.Exchanges[0].Calls {
				if over := i >= 20; over != (c.NotRun == regie.NotRunOverLimit) || over && c.Error == nil {
					t.Fatalf("call %d is %s %s", i, c.State, c.NotRun)
				}
			}
			rebuilt(t, conn, m, view)
		})
	}
}

// TestWhatIsTooLarge: a person is told to say less only of what they said, and what a server
// refused is told in its own words.
func TestWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("all of the garden ", 3000)
	huge := func(int) http.HandlerFunc {
		return says("", call{"c", "files__list_files", fmt.Sprintf(`{"pattern":%q}`, long)})
	}
	for name, c := range map[string]struct {
		answer  func(int) http.HandlerFunc
		budget  config.Budget
		window  int
		text    string
		want    []string
		wantNot string
	}{
		"a person's message": {reads(0), config.Budget{ModelWindow: 8000}, 0, long, []string{"say it in less", "of 6000"}, "smaller steps"},
		"the model's calls":  {huge, config.Budget{ModelWindow: 8000}, 0, "Look.", []string{"smaller steps"}, "say it in less"},
		"as refused":         {reads(0), config.Budget{}, 2000, "Look.", []string{"refused a prompt of about", "by our estimate", "maximum context length is 1 token"}, "takes"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newReader(t, c.answer, func(int) http.HandlerFunc { return says("no") })
			m.window = c.window
			b := library(t, m, c.budget)
			conn := b.observed()
			defer conn.Close()
			view := b.job(conn, regie.ID{}, c.text)
			if view.Round.End != regie.EndProviderError || strings.Contains(view.Round.EndNote.String(), c.wantNot) {
				t.Errorf("%s %s", view.Round.End, view.Round.EndNote)
			}
			for _, want := range c.want {
				if !strings.Contains(view.Round.EndNote.String(), want) {
					t.Errorf("%q is not in %q", want, view.Round.EndNote)
				}
			}
		})
	}
}

// TestSummaryCounts: the tokens of a summary are tokens of its run, and end it where they pass its
// limit.
func TestSummaryCounts(t *testing.T) {
	t.Parallel()
	after, most := 0, int64(0)
	for _, limited := range []bool{false, true} {
		m, b := crowded(t, func(int) http.HandlerFunc { return says("Summary of the notes." + gist) })
		conn := b.tuned(regie.Limits{Tokens: most}, nil)
		view := b.job(conn, regie.ID{}, theJob)
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		if limited {
			if view.Round.End != regie.EndLimit || len(m.all) != after {
				t.Errorf("%s after %d replies, the limit is reached with the summary, which is number %d", view.Round.End, len(m.all), after)
			}
			continue
		}
		after = slices.IndexFunc(m.all, func(a asked) bool { return a.summary }) + 1
		if view.Round.End != regie.EndAnswered || after == 0 {
			t.Fatalf("%s, summarised after %d", view.Round.End, after)
		}
		for _, e := range view.Exchanges[:after] {
			most += e.Usage.Input + e.Usage.Output
		}
		most -= 10 // the summary passes it, whatever the times in the results are
	}
}

// TestFarAbove comes with a long thread to a model with a small window: each request for a summary
// fits it, and after some of them the rest goes without a model.
func TestFarAbove(t *testing.T) {
	t.Parallel()
	m := newReader(t, func(int) http.HandlerFunc { return says(strings.Repeat("The garden wants water. ", 150)) },
		func(n int) http.HandlerFunc { return says(fmt.Sprintf("Summary %d.", n) + gist) })
	b := library(t, m, config.Budget{})
	conn := b.observed()
	view := b.job(conn, regie.ID{}, theJob)
	for range 40 {
		view = b.job(conn, view.Session.ID, "And then?")
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	b.settings.File.Budget.ModelWindow = 6600
	m.window, m.all, m.sums = 6600*4, nil, 0
	conn = b.observed()
	defer conn.Close()
	view = b.job(conn, view.Session.ID, "And in the end?")
	_, summaries, failed := purposes(view)
	if view.Round.End != regie.EndAnswered || summaries != 4 || m.sums != 4 || failed != 1 {
		t.Errorf("%s %s: %d summaries of %d, %d times without a model", view.Round.End, view.Round.EndNote, summaries, m.sums, failed)
	}
	rebuilt(t, conn, m, view)
}
