package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/dialect"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// closed is what a settled batch is stored with: the message that brings its results, perhaps one
// for the person, and what follows.
type closed struct {
	message *regie.Message
	post    *regie.Message
	advance store.Advance
}

// closing is what follows a settled batch: back to the model, or the end (spec 3.1).
func (r *run) closing(reply *regie.Message, calls []regie.Call, counters regie.Counters) closed {
	v := r.conclude(calls)
	if r.commanded() {
		return r.commandDone(calls, v)
	}
	b := batchOf(calls, r.round.Dialect, r.role, v.refused != "")
	counters, limit := afterBatch(counters, r.round.Limits, b)
	switch {
	case r.policyFails(calls):
		return closed{message: r.results(calls, ""), advance: r.ended(counters, regie.EndDenied, failNote)}
	case v.completed:
		return closed{message: r.results(calls, ""), advance: r.ended(counters, r.completed(), quietly)}
	case v.ends:
		return closed{
			message: r.noted(r.told(v.refused, v.why), calls),
			advance: r.ended(counters, regie.EndDenied, v.why),
		}
	case r.json != nil && b.final: // the answer, with the plan as it stands at the end
		message, advance := r.said(calls, counters)
		if message == nil {
			message = r.results(calls, "")
		}
		return closed{message: message, advance: advance}
	case r.actsLast(reply, b):
		return closed{
			message: r.results(calls, ""), post: r.post(reply),
			advance: r.ended(counters, regie.EndAnswered, quietly),
		}
	}
	if limit.IsZero() {
		limit = spent(counters, r.used, r.round.Limits)
	}
	if !limit.IsZero() {
		return closed{message: r.limitMessage(limit, calls), advance: r.ended(counters, regie.EndLimit, limit)}
	}
	if v.refused != "" {
		return closed{
			message: r.noted(r.told(v.refused, v.why), calls),
			advance: r.nextModel(counters, r.relaunch(calls), r.wants(reply, calls)),
		}
	}
	if g := r.thread.guard; g != nil && len(calls) > 0 {
		if circles := g.goesInCircles(calls); !circles.IsZero() {
			return closed{
				message: r.circlesMessage(circles, calls),
				advance: r.ended(counters, regie.EndEarlyStop, circles),
			}
		}
	}
	return closed{message: r.results(calls, ""), advance: r.nextModel(counters,
		r.relaunch(calls), r.wants(reply, calls))}
}

// actsLast reports whether actions that all succeeded end the round: in the JSON dialect, unless
// the model keeps control or nobody is there (spec 3.1, decision 40).
func (r *run) actsLast(reply *regie.Message, b batch) bool {
	return r.json != nil && !r.automation() && b.acts && !b.failed && !reply.AI.KeepControl
}

// post is what the model had to say once its actions had succeeded, as a message of its own that no
// model reads (spec 2.2).
func (r *run) post(reply *regie.Message) *regie.Message {
	if strings.TrimSpace(reply.AI.PostText) == "" {
		return nil
	}
	return &regie.Message{
		ID: regie.NewID(), SessionID: r.session.ID, Sender: regie.SenderAI, Author: reply.Author,
		RoundID: r.round.ID, Exchange: r.exchange.Number,
		TraceID: r.round.TraceID, Text: reply.AI.PostText, ExcludeFromPrompt: true,
	}
}

// results is the message that brings a batch's results to the model (decision 41).
func (r *run) results(calls []regie.Call, note string) *regie.Message {
	kind := regie.SystemDataAdded
	if hasAction(calls) {
		kind = regie.SystemActionsExecuted
	}
	return r.noted(r.system(kind, note), calls)
}

// noted has a message bring the results of calls.
func (r *run) noted(message *regie.Message, calls []regie.Call) *regie.Message {
	message.System.CallIDs = ids(calls)
	return message
}

// relaunch says what the model is asked for next: an answer alone, where the round's policy says so
// and all calls succeeded, or whatever it thinks fit (spec 3.3). An automation always goes on.
func (r *run) relaunch(calls []regie.Call) regie.ExchangeReason {
	switch {
	case r.policy.Relaunch != approval.RelaunchAnswer || r.automation():
		return regie.ExchangeData
	case r.withheld(): // what it proposed all the same was refused, and is no reason to offer it again
		return regie.ExchangeAnswer
	}
	did := false
	for i := range calls {
		c := &calls[i]
		switch {
		case c.State != regie.CallSucceeded && c.NotRun != regie.NotRunDuplicateInBatch &&
			c.NotRun != regie.NotRunCached:
			return regie.ExchangeData
		case r.role(c) == "": // after a plan or a person's answer the work begins
			did = true
		}
	}
	if !did {
		return regie.ExchangeData
	}
	return regie.ExchangeAnswer
}

// withheld reports whether the model may only answer now. What a person has said since is a new
// reason to act.
func (r *run) withheld() bool { return r.exchange.Reason == regie.ExchangeAnswer && !r.thread.spoken }

// tail is what the next request says behind the thread (spec 6.2).
func (r *run) tail() provider.Tail {
	out := provider.Tail{Withheld: r.withheld()}
	if r.restitutes() {
		out.Guidance = prompt.Restitution{
			Dialect: r.round.Dialect, Withheld: out.Withheld,
			French: r.policy.French,
		}.Text()
	}
	return out
}

// restitutes reports whether the present model call follows results that a person is waiting for
// (spec 6.2).
func (r *run) restitutes() bool {
	return !r.automation() && !r.thread.spoken && (r.exchange.Reason == regie.ExchangeAnswer ||
		r.exchange.Reason == regie.ExchangeData)
}

// limitMessage says in plain words which limit stopped the round, what was done in it and what was
// not (spec 3.2).
func (r *run) limitMessage(limit regie.Sentence, calls []regie.Call) *regie.Message {
	return r.stopped(regie.SayOf("The run stopped because %s was reached.", scoped(limit, r.session.Type)), calls)
}

func (r *run) circlesMessage(why regie.Sentence, calls []regie.Call) *regie.Message {
	return r.stopped(regie.SayOf("The run stopped early: %s.", why), calls)
}

func (r *run) stopped(why regie.Sentence, calls []regie.Call) *regie.Message {
	last := regie.Say("Write again to go on.")
	if r.automation() {
		last = regie.Say("Its session is closed.")
	}
	said := append(append([]regie.Sentence{why}, r.account(calls)...), last)
	return r.noted(r.told(regie.SystemLimitReached, said...), calls)
}

const (
	maxListed  = 5  // calls that are named one by one
	maxSnippet = 80 // bytes of a call's arguments
)

// account says what a round has done and what it has not. calls are those of the present exchange;
// those before it are read from the store, once in a round's life. Where they cannot be read it is
// silent about them.
func (r *run) account(calls []regie.Call) []regie.Sentence {
	var all []regie.Call
	if stored, err := r.cfg.Store.Thread(r.commit, r.session.ID, 0); err == nil {
		for i := range stored.Messages {
			m := &stored.Messages[i]
			// not what the person had read
			if m.RoundID == r.round.ID && m.Exchange != r.exchange.Number && m.AI != nil {
				all = append(all, stored.Calls[m.ID]...)
			}
		}
	}
	return accountOf(append(all, calls...))
}

// accountOf is pure.
func accountOf(calls []regie.Call) []regie.Sentence {
	done := map[string]int{}
	var names, failed, unknown, left []string
	for i := range calls {
		c := &calls[i]
		switch {
		case c.State == regie.CallSucceeded:
			if done[c.Tool]++; done[c.Tool] == 1 {
				names = append(names, regie.ToolNameOf(c.Tool))
			}
		case c.State == regie.CallUnknown:
			unknown = append(unknown, brief(c))
		case c.NotRun == regie.NotRunOverLimit:
			left = append(left, brief(c))
		case c.State == regie.CallFailed && c.Kind == regie.KindAction:
			failed = append(failed, brief(c))
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, done[name])
	}
	out := []regie.Sentence{regie.Say("Done: nothing.")}
	if len(names) > 0 {
		out[0] = regie.Say("Done: %s.", strings.Join(names, ", "))
	}
	out = listed(out, "Not done: %s.", left)
	out = listed(out, "Failed: %s.", failed)
	return listed(out, "Nobody knows whether this happened: %s.", unknown)
}

// listed adds a sentence that names calls, if there are any.
func listed(out []regie.Sentence, format string, calls []string) []regie.Sentence {
	if len(calls) == 0 {
		return out
	}
	if more := len(calls) - maxListed; more > 0 {
		calls = append(calls[:maxListed:maxListed], "… +"+strconv.Itoa(more))
	}
	return append(out, regie.Say(format, strings.Join(calls, "; ")))
}

// brief names a call.
func brief(c *regie.Call) string {
	arguments := string(c.Executed)
	if arguments == "" {
		arguments = c.Arguments
	}
	arguments = strings.Join(strings.Fields(storable(arguments)), " ")
	if len(arguments) > maxSnippet {
		end := maxSnippet
		for !utf8.RuneStart(arguments[end]) {
			end--
		}
		arguments = arguments[:end] + "…"
	}
	return strings.ToValidUTF8(regie.ToolNameOf(c.Tool), "\uFFFD") + " " + arguments
}

// completed is how a round ends by the model's own word. To say that the work is done is a matter
// of automations (spec 2.2); in a chat it is the answer (decision 51).
func (r *run) completed() regie.RoundEnd {
	if r.automation() {
		return regie.EndCompleted
	}
	return regie.EndAnswered
}

// dialect is the JSON dialect over the round's tools (spec 3.3). Whether a model may say that the
// run is completed is a matter of automations (spec 2.2).
func (r *run) dialect() *dialect.JSON { return r.dialectOf(r.tools.Definitions()) }

// dialectOf is that dialect over the tools of these definitions, which may be those of another
// time.
func (r *run) dialectOf(definitions []regie.ToolDefinition) *dialect.JSON {
	if !r.automation() {
		definitions = slices.DeleteFunc(definitions, func(d regie.ToolDefinition) bool {
			return d.Role == regie.RoleComplete
		})
	}
	options := dialect.Options{
		Questions: r.policy.Questions, Automation: r.automation(),
		CallsInReply: r.round.Limits.CallsInReply, French: r.policy.French,
	}
	for i := range definitions {
		if definitions[i].Role != regie.RoleQuestion {
			continue
		}
		if target, _, ok := r.tools.Lookup(definitions[i].Name); ok {
			if asker, ok := target.(tool.Asker); ok {
				options.Module = asker.Module
			}
		}
	}
	return dialect.New(definitions, options)
}
