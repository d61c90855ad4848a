package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// unattended is a request for a run that nobody watches.
func (b *harness) unattended(dialect regie.Dialect) dispatch.RunRequest {
	in := b.request(everything)
	in.Type, in.Dialect = regie.SessionAutomation, dialect
	return in
}

func closed(t *testing.T, view store.RoundView, end regie.SessionEnd) {
	t.Helper()
	if view.Session.Type != regie.SessionAutomation || view.Session.State != regie.SessionClosed || view.Session.EndReason != end {
		t.Errorf("the session is %s %s %q, want it closed with %q", view.Session.Type, view.Session.State, view.Session.EndReason, end)
	}
}

// inBoth runs a test in both dialects, with their words for a step, the end, and a reply that is
// neither.
func inBoth(t *testing.T, run func(t *testing.T, dialect regie.Dialect, act, done, silent func(n int) http.HandlerFunc)) {
	t.Helper()
	t.Run("native", func(t *testing.T) {
		run(t, regie.DialectNative,
			func(n int) http.HandlerFunc {
				return replyWith("", write(fmt.Sprint("a", n), fmt.Sprint(n, ".txt"), "x\n"))
			},
			func(int) http.HandlerFunc {
				return replyWith("", call{"done", "session__complete", `{"summary":"All is written."}`})
			},
			func(int) http.HandlerFunc { return replyWith("I think so.") })
	})
	t.Run("json", func(t *testing.T) {
		run(t, regie.DialectJSON,
			func(n int) http.HandlerFunc {
				return replyWith(fmt.Sprintf(`{"pre_text":"Step.","action_commands":[{"type":"files.write_file","params":{"path":"%d.txt","content":"x\n"}}],"post_text":"Hm."}`, n))
			},
			func(int) http.HandlerFunc { return replyWith(`{"pre_text":"All is written.","completed":true}`) },
			func(int) http.HandlerFunc { return replyWith(`{"pre_text":"I think so."}`) })
	})
}

// TestAutomation goes through what differs where nobody is there (spec 3.1, decision 44), in both
// dialects.
func TestAutomation(t *testing.T) {
	t.Parallel()
	inBoth(t, func(t *testing.T, d regie.Dialect, act, done, silent func(int) http.HandlerFunc) {
		t.Helper()
		t.Run("nudged once", func(t *testing.T) {
			m := newModel(t, act(1), silent(0), act(2), done(0))
			b := newHarness(t, m)
			view := b.ask(b.unattended(d))
			expect(t, view, regie.EndCompleted, "SUCCEEDED", "SUCCEEDED", "SUCCEEDED")
			closed(t, view, regie.SessionCompleted)
			if view.Exchanges[2].Reason != regie.ExchangeNudge || !strings.Contains(m.last(), "[COMPLETE_REFUSED] Nobody reads along") {
				t.Errorf("%s, read %s", view.Exchanges[2].Reason, m.last())
			}
			if view.Round.Reason != regie.ReasonAutomationStart || !strings.Contains(m.last(), "no person is present") || strings.Contains(m.last(), "[Guidance") {
				t.Errorf("%s, read %s", view.Round.Reason, m.last())
			}
			if strings.Contains(m.last(), "session__ask_user") || strings.Contains(m.last(), `"communication_module"`) {
				t.Error("a question is offered")
			}
		})
		t.Run("silent for good", func(t *testing.T) {
			b := newHarness(t, newModel(t, act(1), silent(0), silent(1)))
			view := b.ask(b.unattended(d))
			expect(t, view, regie.EndAnswered, "SUCCEEDED")
			closed(t, view, regie.SessionTimeout)
			if !strings.Contains(view.Round.EndNote.String(), "without declaring") || view.Round.Counters.Retries != 1 {
				t.Errorf("%q, %+v", view.Round.EndNote, view.Round.Counters)
			}
		})
		t.Run("done in the last reply", func(t *testing.T) {
			b := newHarness(t, newModel(t, act(1), done(0)))
			in := b.unattended(d)
			in.Limits.Total = 2
			expect(t, b.ask(in), regie.EndCompleted, "SUCCEEDED", "SUCCEEDED")
		})
	})
}

// TestAutomationFails has the model refuse the key: the session closes with an error, and somebody
// is told (decision 42).
func TestAutomationFails(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)))
	view := b.ask(b.unattended(""))
	expect(t, view, regie.EndProviderError)
	closed(t, view, regie.SessionError)
	told := false
	for _, e := range b.events(view.Session.ID) {
		var n regie.Notice
		told = told || e.Type == regie.EventNotice && json.Unmarshal(e.Body, &n) == nil && n.Kind == regie.NoticeFailed && n.RoundID == view.Round.ID
	}
	if !told {
		t.Error("nobody is told")
	}
}

// TestRelaunchAnswer withholds the tools after what has succeeded, and gives them back after a
// failure (spec 3.3).
func TestRelaunchAnswer(t *testing.T) {
	t.Parallel()
	policy := approval.Policy{Allow: []string{"*.*"}, Relaunch: approval.RelaunchAnswer}
	withheld := func(m *model) string { return fmt.Sprint(strings.Contains(m.last(), `"tool_choice":"none"`)) }
	t.Run("native", func(t *testing.T) {
		var m *model
		var seen []string
		look := func(next http.HandlerFunc) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				seen = append(seen, withheld(m))
				next(w, r)
			}
		}
		m = newModel(t,
			// no work yet: the tools stay
			look(replyWith("", call{"p", "session__update_plan", `{"steps":[{"text":"read","status":"active"}]}`})),
			// fails: they stay
			look(replyWith("", call{"a", "files__read_file", `{"path":"nothing"}`})),
			// succeeds: withheld
			look(replyWith("", call{"b", "files__list_files", `{}`})),
			// proposed all the same: not run
			look(replyWith("", call{"c", "files__list_files", `{"recursive":true}`})),
			look(replyWith("There is nothing.")))
		view := newHarness(t, m).run(policy)
		expect(t, view, regie.EndAnswered, "SUCCEEDED", "FAILED", "SUCCEEDED", "NOT_RUN OUT_OF_SCOPE")
		if got := strings.Join(seen, " "); got != "false false false true true" {
			t.Errorf("withheld: %s", got)
		}
		if !strings.Contains(m.last(), "No tools are available now") || !strings.Contains(m.last(), "TOOLS_WITHHELD") {
			t.Errorf("the model read %s", m.last())
		}
	})
	t.Run("json", func(t *testing.T) {
		m := newModel(t, replyWith(`{"pre_text":"I look.","data_commands":[{"type":"files.list_files"}]}`), replyWith(`{"pre_text":"More.","data_commands":[{"type":"files.list_files","params":{"recursive":true}}]}`), replyWith(`{"pre_text":"Nothing."}`))
		b := newHarness(t, m)
		expect(t, b.ask(b.inJSON(policy)), regie.EndAnswered, "SUCCEEDED", "NOT_RUN OUT_OF_SCOPE")
		if !strings.Contains(m.last(), "No commands are available now") {
			t.Errorf("the model read %s", m.last())
		}
	})
	t.Run("from the configuration", func(t *testing.T) {
		m := newModel(t, replyWith("", call{"a", "files__list_files", `{}`}), replyWith("Nothing."))
		b := newHarness(t, m)
		b.settings.File.Agents = map[string]config.Agent{"main": {Relaunch: "answer"}}
		expect(t, b.run(everything), regie.EndAnswered, "SUCCEEDED")
		if withheld(m) != "true" {
			t.Error("the tools were there")
		}
	})
}

// TestConfiguredLimits are those of the file, which a request can only lower, and an agent's go
// before them (spec 13, decision 52).
func TestConfiguredLimits(t *testing.T) {
	t.Parallel()
	file := config.File{
		Limits: config.Limits{Chat: regie.Limits{Total: 40, Tokens: 1000}, Automation: regie.Limits{Total: 7}},
		Agents: map[string]config.Agent{"main": {Limits: regie.Limits{Queries: 2}}},
		Budget: config.Budget{MaxContextMessages: 12},
	}
	for name, c := range map[string]struct {
		kind    regie.SessionType
		dialect regie.Dialect
		lower   regie.Limits
		want    regie.Limits
	}{
		"chat":         {"", "", regie.Limits{}, regie.Limits{Total: 40, Queries: 2, Retries: 3, FormatErrors: 3, CallsInReply: 10, Tokens: 1000}},
		"chat in JSON": {"", regie.DialectJSON, regie.Limits{}, regie.Limits{Total: 40, Queries: 2, Retries: 3, FormatErrors: 3, CallsInReply: 10, Tokens: 1000}},
		"lowered":      {"", "", regie.Limits{Total: 5, Queries: 9, Tokens: 2000, Seconds: 60}, regie.Limits{Total: 5, Queries: 2, Retries: 3, FormatErrors: 3, CallsInReply: 10, Tokens: 1000, Seconds: 60}},
		"budget": {"", "", regie.Limits{ContextTokens: 9000, ContextMessages: 40}, regie.Limits{
			Total: 40, Queries: 2, Retries: 3, FormatErrors: 3, CallsInReply: 10, Tokens: 1000, ContextTokens: 9000, ContextMessages: 12,
		}},
		"automation": {regie.SessionAutomation, "", regie.Limits{Tokens: 50}, regie.Limits{Total: 7, Queries: 2, Retries: 5, FormatErrors: 5, CallsInReply: 10, Tokens: 50}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, refuses(http.StatusUnauthorized, "no"))
			b := newHarness(t, m)
			b.settings.File = file
			in := b.request(everything)
			in.Type, in.Dialect, in.Limits = c.kind, c.dialect, c.lower
			view := b.ask(in)
			if c.want.ContextTokens == 0 { // as by default
				c.want.ContextTokens, c.want.ContextMessages = 80_000, 12
			}
			if view.Round.Limits != c.want {
				t.Errorf("limits %+v, want %+v", view.Round.Limits, c.want)
			}
			if c.want.Seconds > 0 && view.Round.Deadline.IsZero() || !strings.Contains(m.last(), fmt.Sprintf("%d replies in this", c.want.Total)) {
				t.Errorf("deadline %s, read %s", view.Round.Deadline, m.last())
			}
		})
	}
}

// TestSpent ends rounds whose tokens or time are used up (spec 3.2).
func TestSpent(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		usage string
		limit int64 // of one reply, and less than of two
	}{
		"nothing":           {`{"prompt_tokens":0,"completion_tokens":0}`, 4000}, // of some 3,000 a reply, estimated
		"less than nothing": {`{"prompt_tokens":-5,"completion_tokens":-1}`, 4000},
		"no number":         {`{"prompt_tokens":"12"}`, 4000},
		// the most that was asked for: 8,192 of a reply
		"too much": {`{"prompt_tokens":9223372036854775807,"completion_tokens":9223372036854775807}`, 13_000},
	} {
		t.Run("tokens, where the server claims "+claim, func(t *testing.T) {
			b := newHarness(t, newModel(t, claims(c.usage, replyWith("", write("a", "a.txt", "x"))), claims(c.usage, replyWith("", write("b", "b.txt", "x"))), replyWith("never")))
			in := b.request(everything)
			in.Limits.Tokens = c.limit
			view := b.ask(in)
			expect(t, view, regie.EndLimit, "SUCCEEDED", "NOT_RUN OVER_LIMIT")
			if view.Round.Tokens < c.limit || view.Round.Tokens > 2*c.limit || !view.Exchanges[0].Reply.Usage.Estimated {
				t.Errorf("%d tokens, %+v", view.Round.Tokens, view.Exchanges[0].Reply.Usage)
			}
		})
	}
	t.Run("time, while the model is asked", func(t *testing.T) {
		silence := make(chan struct{})
		defer close(silence)
		b := newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "x")), func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-silence:
			}
		}))
		in := b.request(everything)
		in.Limits.Seconds = 1
		view := b.ask(in)
		expect(t, view, regie.EndLimit, "SUCCEEDED")
		all := messages(b.events(view.Session.ID))
		if last := all[len(all)-1].System; last == nil || !strings.Contains(last.Summary, "seconds (1)") || !strings.Contains(last.Summary, "Done: files.write_file (1)") {
			t.Errorf("people are told %+v", last)
		}
	})
	t.Run("time, while a query runs", func(t *testing.T) {
		endless, err := tool.New(regie.ToolDefinition{Name: "x.wait", Description: "waits", Kind: regie.KindQuery, Class: regie.ClassRead, Risk: regie.RiskInternal},
			tool.Handler[nameArgs]{Run: func(ctx context.Context, _ *tool.Invocation, _ nameArgs) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, context.Cause(ctx)
			}})
		fatal(t, err)
		b := newHarness(t, newModel(t, replyWith("", call{"a", "x__wait", `{}`}, write("b", "b.txt", "x"))), endless)
		in := b.request(everything)
		in.Limits.Seconds = 1
		expect(t, b.ask(in), regie.EndLimit, "NOT_RUN OVER_LIMIT", "NOT_RUN OVER_LIMIT")
	})
}

// TestLastChat has an automation that worked after a chat not be taken for the last chat.
func TestLastChat(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("Hello."), replyWith("Done.")))
	chatted := b.run(everything)
	b.ask(b.unattended(""))
	past, err := chat.Open(t.Context(), b.connect().Client, b.request(everything).Root, "last", 5)
	if err != nil || past.View.ID != chatted.Session.ID {
		t.Errorf("%s, %v; want %s", past.View.ID, err, chatted.Session.ID)
	}
}
