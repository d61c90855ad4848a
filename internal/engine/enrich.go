package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/fault"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// named are the messages of a thread with unread enrichments, in order. It follows from the
// messages alone, so that the next holder of a round finds what is missing (decision 46).
type named []*regie.Message

// seeMessage takes the next stored message of the thread.
func (n *named) seeMessage(m *regie.Message) {
	switch {
	case m.Sender == regie.SenderUser && len(m.Enrichments()) > 0:
		*n = append((*n)[:len(*n):len(*n)], m)
	case m.Enriching():
		var left named
		for _, waits := range *n {
			if waits.ID != m.System.Enriches {
				left = append(left, waits)
			}
		}
		*n = left
	}
}

// endsWithPerson reports whether a thread ends with what a person said, once a message has come:
// what theirs names belongs to it.
func endsWithPerson(before bool, m *regie.Message) bool {
	return m.Sender == regie.SenderUser || before && m.Enriching()
}

// enricher reads what messages name.
type enricher struct{ *run }

// enrichThread reads the unread enrichments of the round's messages before the model call (spec 3,
// decision 46). Those of an earlier round that was stopped before stay unread. If a signal cuts it
// nothing is stored: the next holder reads anew.
func (e *enricher) enrichThread(ctx context.Context) error {
	for _, m := range e.budget.thread.named {
		if m.RoundID != e.round.ID {
			continue
		}
		if err := e.judge.readRules(); err != nil {
			return err
		}
		in := e.mentionQueries(m)
		if e.readAll(ctx, in.Calls); ctx.Err() != nil {
			return nil //nolint:nilerr // the loop sees why
		}
		e.noteFlow(in.Calls)
		fault.Point(fault.EnrichBefore)
		out, err := e.cfg.Store.Enrich(e.commit, e.fence, in)
		if err != nil {
			return err
		}
		fault.Point(fault.EnrichAfter)
		in.Message.RoundID, in.Message.Seq = e.round.ID, out.Seq
		e.budget.appendMessage(&in.Message, in.Calls)
		e.resumed = false // nobody has asked the model before this was stored
	}
	return nil
}

// mentionQueries returns the calls of a message's enrichments, with the message that is to bring
// their results. They belong to no exchange, so they count for no limit.
func (e *enricher) mentionQueries(m *regie.Message) store.Enrichment {
	blocks := m.Enrichments()
	message := e.systemMessage(regie.SystemDataAdded, "")
	message.Exchange, message.System.Enriches = 0, m.ID
	out := store.Enrichment{Calls: make([]regie.Call, len(blocks))}
	labels := make([]string, len(blocks))
	for i, block := range blocks {
		command := block.Command()
		checked := e.mentionable.Check(command.Type, string(command.Params))
		call := regie.Call{
			ID: regie.NewID(), SessionID: e.session.ID, RoundID: e.round.ID, Ordinal: i, MessageID: message.ID,
			Origin: regie.OriginUser, Tool: checked.Name,
			Kind: regie.KindQuery, Class: regie.ClassRead, Signature: checked.Signature, Definition: checked.Definition,
			Arguments: string(command.Params),
			State:     regie.CallProposed,
		}
		e.mayRead(&call, &checked)
		out.Calls[i] = call
		labels[i] = fmt.Sprintf("%d. %s", i+1, block.Label())
		message.System.Queries = append(message.System.Queries, regie.Part{
			Type: regie.PartCall, Text: block.Label(), CallID: call.ID, Tool: call.Tool,
			Arguments: regie.HashOf([]byte(call.Arguments)),
		})
	}
	message.System.CallIDs = idsOf(out.Calls)
	message.System.Summary = "What the person named in their message, read for you: " + strings.Join(labels, ", ")
	out.Message = *message
	return out
}

// mayRead settles a query that is not to run. That a person names a file is their word on what only
// they are asked about, but for secrets: who names one may not think of it that the model's
// provider gets it, so they are refused and can be asked about in the way that shows that.
func (e *enricher) mayRead(call *regie.Call, checked *tool.Checked) {
	switch {
	case checked.Error != nil && checked.NotRun == "":
		settleCall(call, regie.CallFailed, "", checked.Error)
		return
	case checked.Error != nil:
		settleNotRun(call, checked.NotRun, *checked.Error)
		return
	case checked.Tool.Definition().Kind != regie.KindQuery:
		settleNotRun(call, regie.NotRunInvalid, regie.CallError{
			Code:    regie.CodeBadArguments,
			Message: "only what reads can be named in a message",
		})
		return
	}
	if judged := e.judge.judgeCall(call, checked.Tool.Definition()); judged.Verdict == regie.VerdictForbid {
		e.judge.applyVerdict(call, judged)
		return
	}
	target, inv := e.runner.newInvocation(call)
	if sentences := tool.MustAsk(e.commit, target, inv); len(sentences) > 0 {
		whys := make([]string, len(sentences))
		for i := range sentences {
			whys[i] = sentences[i].String()
		}
		settleCall(call, regie.CallFailed, "", &regie.CallError{
			Code: regie.CodePathProtected, Message: strings.Join(whys, "; ") +
				". A mention does not read it, because the model's provider would get it",
			Hint: "if it is needed, read it with a call: the person is asked then",
		})
	}
}

// readAll runs what is left of the queries, until ctx ends.
func (e *enricher) readAll(ctx context.Context, calls []regie.Call) {
	for i := range calls {
		if call := &calls[i]; !call.State.Settled() && ctx.Err() == nil {
			target, inv := e.runner.newInvocation(call)
			e.runner.settleQuery(call, e.runner.attempt(ctx, target, inv))
		}
	}
}
