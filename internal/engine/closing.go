package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/store"
)

// closer decides what follows a settled batch or an answer.
type closer struct{ *run }

// closed is what a settled batch is stored with: the message that brings its results, perhaps one
// for the person, and what follows.
type closed struct {
	message *regie.Message
	post    *regie.Message
	advance store.Advance
}

// closeBatch returns what follows a settled batch: back to the model, or the end (spec 3.1).
func (cl *closer) closeBatch(reply *regie.Message, calls []regie.Call, counters regie.Counters) closed {
	v := cl.concludeBatch(calls)
	if cl.isCommand() {
		return cl.commandDone(calls, v)
	}
	b := batchOf(calls, cl.round.Dialect, cl.roleOf, v.refused != "")
	counters, limit := afterBatch(counters, cl.round.Limits, b)
	switch {
	case cl.policyFails(calls):
		return closed{message: cl.resultsMessage(calls, ""), advance: cl.endRound(counters, regie.EndDenied, failNote)}
	case v.completed:
		return closed{message: cl.resultsMessage(calls, ""), advance: cl.endRound(counters, cl.completedEnd(), quietly)}
	case v.ends:
		return closed{
			message: cl.withCalls(cl.noticeMessage(v.refused, v.why), calls),
			advance: cl.endRound(counters, regie.EndDenied, v.why),
		}
	case cl.json != nil && b.final: // the answer, with the plan as it is at the end
		message, advance := cl.afterAnswer(calls, counters)
		if message == nil {
			message = cl.resultsMessage(calls, "")
		}
		return closed{message: message, advance: advance}
	case cl.actsLast(reply, b):
		return closed{
			message: cl.resultsMessage(calls, ""), post: cl.postMessage(reply),
			advance: cl.endRound(counters, regie.EndAnswered, quietly),
		}
	}
	if limit.IsZero() {
		limit = spent(counters, cl.used, cl.round.Limits)
	}
	if !limit.IsZero() {
		return closed{message: cl.limitMessage(limit, calls), advance: cl.endRound(counters, regie.EndLimit, limit)}
	}
	if v.refused != "" {
		message := cl.withCalls(cl.noticeMessage(v.refused, v.why), calls)
		if v.explains {
			message.System.Summary = denialNote(cl.policy.French)
		}
		return closed{
			message: message,
			advance: cl.targets.nextExchange(counters, cl.nextReason(calls), cl.money.nextReservation(reply, calls)),
		}
	}
	if g := cl.budget.thread.guard; g != nil && len(calls) > 0 {
		if circles := g.goesInCircles(calls); !circles.IsZero() {
			return closed{
				message: cl.circlesMessage(circles, calls),
				advance: cl.endRound(counters, regie.EndEarlyStop, circles),
			}
		}
	}
	return closed{message: cl.resultsMessage(calls, ""), advance: cl.targets.nextExchange(counters,
		cl.nextReason(calls), cl.money.nextReservation(reply, calls))}
}

// conclusion is the effect of a settled batch on its round, apart from its results.
type conclusion struct {
	completed bool             // the model's own word, and all else succeeded (decision 13)
	refused   regie.SystemType // the message's type where nothing went on as the model wanted
	why       regie.Sentence
	ends      bool // the round ends DENIED
	explains  bool // the model is to say why it asked
}

// concludeBatch reads a settled batch.
func (cl *closer) concludeBatch(calls []regie.Call) conclusion {
	var refused, questions, acted, final, silent int
	for i := range calls {
		c := &calls[i]
		role := cl.roleOf(c)
		switch {
		case role == regie.RoleComplete && c.State == regie.CallSucceeded:
			return conclusion{completed: true}
		case role == regie.RoleComplete && c.State == regie.CallFailed:
			return conclusion{refused: regie.SystemCompleteRefused}
		case isCancelled(c):
			refused++
			if role == regie.RoleQuestion {
				questions++
			}
			if cl.isFinal(c) {
				final++
			}
			if isSilent(c) {
				silent++
			}
		case c.Kind == regie.KindAction && c.State != regie.CallNotRun:
			acted++
		}
	}
	if refused == 0 || acted > 0 {
		return conclusion{}
	}
	out := conclusion{refused: regie.SystemValidationCancelled, ends: final == refused &&
		(cl.session.Type == regie.SessionChat || cl.policy.OnDeny != "")}
	out.explains = silent > 0 && !out.ends
	if questions == refused {
		out.refused = regie.SystemCommunicationCancelled
	}
	if out.ends {
		out.why = regie.Say("The person denied it, or did not answer in time. None of it was run.")
	}
	return out
}

// isCancelled reports whether a person's word, or their silence, kept a call from running.
func isCancelled(c *regie.Call) bool {
	if c.State != regie.CallNotRun {
		return false
	}
	switch c.NotRun {
	case regie.NotRunExpired, regie.NotRunSuperseded:
		return true
	case regie.NotRunDenied:
		return c.Error != nil && c.Error.Code == regie.CodeUserRejected
	default:
		return false
	}
}

// isFinal reports whether a refusal can end the round: the approval expired, or the person gave no
// reason and the agent ends then, or had refused the same call before (decision 65).
func (cl *closer) isFinal(c *regie.Call) bool {
	return c.NotRun == regie.NotRunExpired ||
		isSilent(c) && (cl.policy.OnDeny == approval.OnDenyEnd || cl.deniedBefore(c))
}

// isSilent reports whether the person refused a call without a reason.
func isSilent(c *regie.Call) bool { return c.NotRun == regie.NotRunDenied && c.Error.Hint != "" }

// deniedBefore reports whether the person has refused a call with this signature in the round.
func (cl *closer) deniedBefore(call *regie.Call) bool {
	stored, err := cl.cfg.Store.Thread(cl.commit, cl.session.ID, 0)
	if err != nil {
		return false
	}
	for _, calls := range stored.Calls {
		for i := range calls {
			c := &calls[i]
			if c.RoundID == cl.round.ID && c.ID != call.ID && c.Signature == call.Signature &&
				c.NotRun == regie.NotRunDenied && isCancelled(c) {
				return true
			}
		}
	}
	return false
}

// denialNote returns what the model reads of a refusal without a reason.
func denialNote(french bool) string {
	if french {
		return "La personne a refusé sans donner de raison. Dis-lui en une ou deux phrases pourquoi tu le demandais, et propose une autre voie. Ne propose pas de nouveau le même appel."
	}
	return "The person refused without a reason. Say in one or two sentences why you asked for it, and offer another way. Do not propose the same call again."
}

// actsLast reports whether successful actions end the round: in the JSON dialect, unless the model
// keeps control or the run is unattended (spec 3.1, decision 40).
func (cl *closer) actsLast(reply *regie.Message, b batch) bool {
	return cl.json != nil && !cl.isAutomation() && b.acts && !b.failed && !reply.AI.KeepControl
}

// nextReason returns the reason of the next exchange: only an answer, if the round's policy demands
// it and all calls succeeded, else anything (spec 3.3). An automation always goes on.
func (cl *closer) nextReason(calls []regie.Call) regie.ExchangeReason {
	switch {
	case cl.policy.Relaunch != approval.RelaunchAnswer || cl.isAutomation():
		return regie.ExchangeData
	case cl.budget.toolsWithheld(): // what it proposed all the same was refused, and is no reason to offer it again
		return regie.ExchangeAnswer
	}
	did := false
	for i := range calls {
		c := &calls[i]
		switch {
		case c.State != regie.CallSucceeded && c.NotRun != regie.NotRunDuplicateInBatch &&
			c.NotRun != regie.NotRunCached:
			return regie.ExchangeData
		case cl.roleOf(c) == "": // after a plan or a person's answer the work begins
			did = true
		}
	}
	if !did {
		return regie.ExchangeData
	}
	return regie.ExchangeAnswer
}

// afterAnswer returns what follows an answer: the end, or one nudge in an unattended run. calls are
// those of the same reply.
func (cl *closer) afterAnswer(calls []regie.Call, counters regie.Counters) (*regie.Message, store.Advance) {
	switch {
	case !cl.isAutomation():
		return nil, cl.endRound(counters, regie.EndAnswered, quietly)
	case cl.exchange.Reason == regie.ExchangeNudge:
		return nil, cl.endRound(counters, regie.EndAnswered,
			regie.Say("the agent stopped without declaring its work done"))
	}
	counters, limit := afterFailure(counters, cl.round.Limits) // an end that is none (decision 41)
	if used := spent(counters, cl.used, cl.round.Limits); !used.IsZero() {
		limit = used
	}
	if !limit.IsZero() {
		return cl.limitMessage(limit, calls), cl.endRound(counters, regie.EndLimit, limit)
	}
	nudge := cl.systemMessage(regie.SystemCompleteRefused, nudgeNote(cl.json != nil, cl.policy.French))
	nudge.System.CallIDs = idsOf(calls)
	return nudge, cl.targets.nextExchange(counters, regie.ExchangeNudge, cl.money.nextReservation(cl.reply, calls))
}

func nudgeNote(json, french bool) string {
	if french {
		how := "appelle l'outil qui termine l'exécution"
		if json {
			how = `réponds avec "completed": true`
		}
		return "Personne ne lit cette exécution : un texte seul ne fait ni avancer ni finir le travail. S'il reste du travail, fais maintenant l'étape suivante. Si tout est fait, " + how + "."
	}
	how := "call the tool that completes the run"
	if json {
		how = `reply with "completed": true`
	}
	return "Nobody reads along in this run, so a text alone neither goes on with the work nor ends it. If work is left, take the next step now. If all of it is done, " + how + "."
}

// maxRewrites is how often an answer is sent back.
const maxRewrites = 2

// judgeAnswer checks an answer after results (decision 63). It returns the correction with which an
// unfit one is sent back, or, where there were enough of them, puts the results in plain language
// in its place.
func (cl *closer) judgeAnswer(message *regie.Message) (again *regie.Message) {
	asked := cl.budget.thread.asked
	if !cl.policy.Restitution.Checks() || len(asked.Calls) == 0 {
		return nil
	}
	answer := prompt.Answer{
		Asked: asked, Text: message.AI.Text(), Strict: cl.policy.Restitution == approval.RestitutionStrict,
		Wrote: cl.personWrote,
	}
	fault := answer.Check()
	if fault == prompt.FaultNone {
		return nil
	}
	if _, limit := afterFormatError(cl.round.Counters, cl.used, cl.round.Limits); limit.IsZero() &&
		asked.Rewrites < maxRewrites {
		again = cl.systemMessage(regie.SystemFormatError, fault.Correction(cl.policy.French))
		again.System.Said = []regie.Sentence{fault.Notice()}
		return again
	}
	var lines []string
	for _, said := range prompt.PlainResults(asked.Calls) {
		switch {
		case said.IsZero():
			lines = append(lines, "")
		case cl.cfg.Translate != nil:
			lines = append(lines, cl.cfg.Translate(cl.policy.French, said))
		default:
			lines = append(lines, said.String())
		}
	}
	message.AI.Verbatim = cmp.Or(message.AI.Verbatim, answer.Text)
	message.AI.Parts = []regie.Part{{Type: regie.PartText, Text: strings.Join(lines, "\n")}}
	return nil
}

// personWrote reports whether a message of the person has a text.
func (cl *closer) personWrote(text string) bool {
	stored, err := cl.cfg.Store.Thread(cl.commit, cl.session.ID, 0)
	return err != nil || slices.ContainsFunc(stored.Messages, func(m regie.Message) bool {
		return m.Sender == regie.SenderUser && strings.Contains(cmp.Or(m.Text, m.LinearText()), text)
	})
}

// commandDone returns what follows a person's command: the end. The model reads the result with the
// person's next message.
func (cl *closer) commandDone(calls []regie.Call, v conclusion) closed {
	message, end := cl.resultsMessage(calls, ownCommandNote(cl.policy.French)), regie.EndCompleted
	for i := range calls {
		if calls[i].NotRun == regie.NotRunDenied || isCancelled(&calls[i]) {
			end = regie.EndDenied
		}
	}
	if v.refused != "" {
		message.System.Type = v.refused
	}
	note := quietly
	if end == regie.EndDenied {
		note = regie.Say("the command was not run")
	}
	return closed{message: message, advance: cl.endRound(cl.round.Counters, end, note)}
}

// ownCommandNote returns what the model reads above the result.
func ownCommandNote(french bool) string {
	if french {
		return "La personne a donné elle-même cette commande dans l'espace de travail ; ce n'est pas une demande. Voici ce qui en est sorti :"
	}
	return "The person gave this command in the workspace themselves; it is no request. This is what came of it:"
}
