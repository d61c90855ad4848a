package web

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// card asks something of a person, or says what became of that.
type card struct {
	ID, Title, Outcome, Session string
	Open                        bool
	Brief                       bool // without its chat around it
	Form                        formOf
}

// approvalCard is an approval as people see it.
type approvalCard struct {
	card
	Approval *regie.Approval
	Reviews  []reviewPart
	Scopes   []string
}

// reviewPart is one call of an approval.
type reviewPart struct {
	CallID                             regie.ID
	Sentence, Tool, Arguments, Decided string
	Scope                              string // what an answer for longer covers, next to other calls
	Icon                               string // of what was decided
	Reasons, Warnings                  []string
	Edit                               string // the page on which its arguments are edited
	fileDiff
}

func (v *visit) approvalCard(a *regie.Approval) *approvalCard {
	out := &approvalCard{Approval: a, card: card{
		ID: "a-" + a.ID.String(), Open: a.State == regie.ApprovalOpen, Session: v.sessionName(a.SessionName),
		Title: v.text.T("Allow %s calls?", strconv.Itoa(len(a.Reviews))),
	}}
	for i := range a.Reviews {
		part := v.reviewPart(&a.Reviews[i])
		part.Edit = "/approvals/" + a.ID.String() + "/edit?call=" + part.CallID.String()
		if scopes := a.Reviews[i].Preview.Scopes; part.Decided == "" && len(scopes) > 0 {
			part.Scope = v.sayLine(scopes[0].Sentence)
		}
		out.Reviews = append(out.Reviews, part)
	}
	if len(out.Reviews) == 1 {
		out.Title = out.Reviews[0].Sentence
		for _, scope := range a.Reviews[0].Preview.Scopes {
			out.Scopes = append(out.Scopes, v.sayLine(scope.Sentence))
		}
	}
	switch a.State {
	case regie.ApprovalExpired:
		out.Outcome = v.text.T("Expired. Nothing was done.")
	case regie.ApprovalWithdrawn:
		out.Outcome = v.text.T("Withdrawn. Nothing was done.")
	}
	return out
}

func (v *visit) reviewPart(r *regie.Review) reviewPart {
	part := reviewPart{
		CallID: r.CallID, Tool: sanitize.Line(r.Tool),
		Sentence:  capitalize(v.sayLine(r.Preview.Sentence)),
		Arguments: showArguments(r.Arguments), Warnings: sentences(v, r.Preview.Warnings),
	}
	part.Sentence = cmp.Or(part.Sentence, part.Tool)
	for _, ground := range r.Grounds {
		part.Reasons = append(part.Reasons, v.sayLine(ground.Sentence))
	}
	if strings.Contains(r.Preview.Diff, "\n@@ ") {
		about := store.About(&regie.Call{Arguments: string(r.Arguments)})
		part.fileDiff = parseFileDiff("f-"+r.CallID.String(), about, r.Preview.Diff)
	} else if r.Preview.Diff != "" { // a command, or an address
		part.Arguments = sanitize.Strip(sanitize.Clip(strings.TrimRight(r.Preview.Diff, "\n"), maxShown))
	}
	part.Icon = "cross"
	if d := r.Decision; d != nil {
		part.Decided = v.decisionWords(d)
		if d.Answer != regie.AnswerDeny {
			part.Icon = "tick"
		}
	}
	return part
}

// decisionWords says who decided what, and when.
func (v *visit) decisionWords(d *regie.Decision) string {
	by, at := sanitize.Line(d.By), formatClock(d.At)
	said := v.text.Sentence(map[regie.Answer]regie.Sentence{
		regie.AnswerAllow:   regie.Say("Allowed once by %s, %s", by, at),
		regie.AnswerSession: regie.Say("Allowed for this session by %s, %s", by, at),
		regie.AnswerAlways:  regie.Say("Always allowed by %s, %s", by, at),
		regie.AnswerDeny:    regie.Say("Denied by %s, %s", by, at),
	}[d.Answer])
	if d.Scope != nil {
		said += ": " + v.sayLine(d.Scope.Sentence)
	}
	if d.Reason != "" {
		said += " (" + sanitize.Line(d.Reason) + ")"
	}
	return said
}

// questionCard is a question as people see it.
type questionCard struct {
	card
	Question *regie.Question
	Body     string
}

func (v *visit) questionCard(q *regie.Question) *questionCard {
	out := &questionCard{Question: q, card: card{
		ID: "q-" + q.ID.String(), Open: q.State == regie.WaitOpen, Session: v.sessionName(q.SessionName),
	}}
	text := strings.TrimSpace(sanitize.Strip(q.Module.Text))
	if out.Title, out.Body, _ = strings.Cut(text, "\n"); q.Module.Kind == regie.ModuleValidation && out.Body != "" {
		out.Title, out.Body = v.text.T("Carry out this plan?"), text
	}
	switch {
	case q.Reply != nil:
		out.Outcome = v.text.T("%s answered: %s", sanitize.Line(q.Reply.By), chat.ReplyWords(v.text, q.Reply))
	case q.State == regie.WaitExpired:
		out.Outcome = v.text.T("Expired without an answer.")
	case q.State == regie.WaitWithdrawn:
		out.Outcome = v.text.T("Withdrawn.")
	}
	return out
}

// unknownCard is a call without a known outcome as people see it.
type unknownCard struct {
	card
	Call callRow
}

func (v *visit) unknownCard(c *regie.Call) *unknownCard {
	title := v.text.T("Did this happen: %s?", callSentence(v.text, c))
	return &unknownCard{card{ID: "u-" + c.ID.String(), Title: title}, v.callRow(c, nil)}
}
