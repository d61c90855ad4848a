package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// systemMessage makes a system message of this round.
func (s *roundState) systemMessage(kind regie.SystemType, summary string) *regie.Message {
	return &regie.Message{
		ID: regie.NewID(), SessionID: s.session.ID, Sender: regie.SenderSystem,
		Author:  regie.Author{Kind: regie.AuthorComponent, ID: "engine"},
		RoundID: s.round.ID, Exchange: s.exchange.Number, TraceID: s.round.TraceID,
		System: &regie.SystemContent{Type: kind, Summary: summary},
	}
}

// noticeMessage makes a system message that people read too, each in their language.
func (s *roundState) noticeMessage(kind regie.SystemType, said ...regie.Sentence) *regie.Message {
	said = slices.DeleteFunc(said, regie.Sentence.IsZero)
	english := make([]string, len(said))
	for i, sentence := range said {
		english[i] = sentence.String()
	}
	message := s.systemMessage(kind, strings.Join(english, " "))
	message.System.Said = said
	return message
}

// resultsMessage returns the message that brings a batch's results to the model (decision 41).
func (s *roundState) resultsMessage(calls []regie.Call, note string) *regie.Message {
	kind := regie.SystemDataAdded
	if anyCall(calls, isAction) {
		kind = regie.SystemActionsExecuted
	}
	return s.withCalls(s.systemMessage(kind, note), calls)
}

// withCalls has a message bring the results of calls.
func (s *roundState) withCalls(message *regie.Message, calls []regie.Call) *regie.Message {
	message.System.CallIDs = idsOf(calls)
	return message
}

// postMessage returns what the model had to say once its actions had succeeded, as a message of its
// own that no model reads (spec 2.2).
func (s *roundState) postMessage(reply *regie.Message) *regie.Message {
	if strings.TrimSpace(reply.AI.PostText) == "" {
		return nil
	}
	return &regie.Message{
		ID: regie.NewID(), SessionID: s.session.ID, Sender: regie.SenderAI, Author: reply.Author,
		RoundID: s.round.ID, Exchange: s.exchange.Number,
		TraceID: s.round.TraceID, Text: reply.AI.PostText, ExcludeFromPrompt: true,
	}
}

// timeoutMessage returns the audit message of a round that the watchdog ends, which no model reads
// (spec 5.1); nil for any other end.
func (s *roundState) timeoutMessage(reason regie.RoundEnd, note regie.Sentence) *regie.Message {
	if reason != regie.EndWatchdog {
		return nil
	}
	message := s.noticeMessage(regie.SystemSessionTimeout, regie.SayOf("The run was stopped: %s.", note))
	message.ExcludeFromPrompt = true
	return message
}

// toolNotice returns a message for the audit about tools that are away. It is no part of a prompt:
// what a model calls all the same gets its own answer.
func (s *roundState) toolNotice(notice regie.ToolNotice) *regie.Message {
	whys := make([]string, 0, len(notice.Missing)+1)
	for _, m := range notice.Missing {
		whys = append(whys, m.Why)
	}
	if !notice.Document.IsZero() {
		whys = append(whys, notice.Document.String())
	}
	for i := range notice.Hooks {
		if h := &notice.Hooks[i]; h.Verdict != "" {
			whys = append(whys, h.Objection().String())
		} else {
			whys = append(whys, "the hook "+h.Hook+" has run")
		}
	}
	message := s.systemMessage(regie.SystemNetworkError, strings.Join(whys, "; "))
	message.Author.ID, message.ExcludeFromPrompt = regie.ComponentTools, true
	message.ExecutionMetadata, _ = json.Marshal(notice) // of strings and an id
	return message
}

// noteHooks stores what came of hooks, for the audit.
func (s *roundState) noteHooks(ran []regie.HookRun) error {
	if len(ran) == 0 {
		return nil
	}
	_, err := s.cfg.Store.Note(s.commit, s.fence, store.Note{Message: s.toolNotice(regie.ToolNotice{Hooks: ran})})
	return err
}

func (s *roundState) stoppedMessage(why regie.Sentence, calls []regie.Call) *regie.Message {
	last := regie.Say("Write again to go on.")
	if s.isAutomation() {
		last = regie.Say("Its session is closed.")
	}
	said := append(append([]regie.Sentence{why}, s.describeWork(calls)...), last)
	return s.withCalls(s.noticeMessage(regie.SystemLimitReached, said...), calls)
}

// limitMessage says in plain words which limit stopped the round, what was done in it and what was
// not (spec 3.2).
func (s *roundState) limitMessage(limit regie.Sentence, calls []regie.Call) *regie.Message {
	return s.stoppedMessage(regie.SayOf("The run stopped because %s was reached.", limit), calls)
}

func (s *roundState) circlesMessage(why regie.Sentence, calls []regie.Call) *regie.Message {
	return s.stoppedMessage(regie.SayOf("The run stopped early: %s.", why), calls)
}

// describeWork says what a round has done and what it has not. calls are those of the present
// exchange; those before it are read from the store, once in a round's life. Where they cannot be
// read it is silent about them.
func (s *roundState) describeWork(calls []regie.Call) []regie.Sentence {
	var all []regie.Call
	if stored, err := s.cfg.Store.Thread(s.commit, s.session.ID, 0); err == nil {
		for i := range stored.Messages {
			m := &stored.Messages[i]
			// not what the person had read
			if m.RoundID == s.round.ID && m.Exchange != s.exchange.Number && m.AI != nil {
				all = append(all, stored.Calls[m.ID]...)
			}
		}
	}
	return accountOf(append(all, calls...))
}

const (
	maxListed  = 5  // calls that are named one by one
	maxSnippet = 80 // bytes of a call's arguments
)

// accountOf returns pure.
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
			unknown = append(unknown, describeCall(c))
		case c.NotRun == regie.NotRunOverLimit:
			left = append(left, describeCall(c))
		case c.State == regie.CallFailed && c.Kind == regie.KindAction:
			failed = append(failed, describeCall(c))
		}
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, done[name])
	}
	out := []regie.Sentence{regie.Say("Done: nothing.")}
	if len(names) > 0 {
		out[0] = regie.Say("Done: %s.", strings.Join(names, ", "))
	}
	out = addListed(out, "Not done: %s.", left)
	out = addListed(out, "Failed: %s.", failed)
	return addListed(out, "Outcome unknown: %s.", unknown)
}

// addListed adds a sentence that names calls, if there are any.
func addListed(out []regie.Sentence, format string, calls []string) []regie.Sentence {
	if len(calls) == 0 {
		return out
	}
	if more := len(calls) - maxListed; more > 0 {
		calls = append(calls[:maxListed:maxListed], "… +"+strconv.Itoa(more))
	}
	return append(out, regie.Say(format, strings.Join(calls, "; ")))
}

// describeCall names a call.
func describeCall(c *regie.Call) string {
	arguments := string(c.Executed)
	if arguments == "" {
		arguments = c.Arguments
	}
	arguments = strings.Join(strings.Fields(sanitizeText(arguments)), " ")
	if len(arguments) > maxSnippet {
		end := maxSnippet
		for !utf8.RuneStart(arguments[end]) {
			end--
		}
		arguments = arguments[:end] + "…"
	}
	return strings.ToValidUTF8(regie.ToolNameOf(c.Tool), "\uFFFD") + " " + arguments
}
