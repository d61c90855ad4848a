package web

import (
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// approvalCard is an approval as people see it.
type approvalCard struct {
	ID       string
	Approval *regie.Approval
	Open     bool
	Title    string
	Reviews  []reviewPart
	Waiting  int // calls without a decision
	Scopes   []string
	Outcome  string
	Session  string
	Brief    bool // without its chat around it
	Form     formOf
}

// reviewPart is one call of an approval.
type reviewPart struct {
	CallID    regie.ID
	Sentence  string
	Tool      string
	Reasons   []string
	Warnings  []string
	Arguments string
	Decided   string
	Edit      string // the page on which its arguments are edited
	fileDiff
}

func (b *thread) approval(a *regie.Approval) {
	card := b.v.approvalCard(a)
	if card.Form = b.form(card.ID); a.State == regie.ApprovalDecided && card.Form.Problem == "" {
		return // its calls say who decided
	}
	b.add(card.ID, "item-approval", card)
}

func (v *visit) approvalCard(a *regie.Approval) approvalCard {
	card := approvalCard{
		ID: "a-" + a.ID.String(), Approval: a, Open: a.State == regie.ApprovalOpen,
		Session: v.sessionName(a.SessionName),
	}
	for i := range a.Reviews {
		part := v.reviewPart(&a.Reviews[i])
		part.Edit = "/approvals/" + a.ID.String() + "/edit?call=" + part.CallID.String()
		if a.Reviews[i].Decision == nil {
			card.Waiting++
		}
		card.Reviews = append(card.Reviews, part)
	}
	card.Title = v.text.T("Allow %s calls?", strconv.Itoa(len(card.Reviews)))
	if len(card.Reviews) == 1 {
		card.Title = card.Reviews[0].Sentence
		for _, scope := range a.Reviews[0].Preview.Scopes {
			card.Scopes = append(card.Scopes, sanitize.Line(v.text.Sentence(scope.Sentence)))
		}
	}
	switch a.State {
	case regie.ApprovalExpired:
		card.Outcome = v.text.T("Expired. Nothing was done.")
	case regie.ApprovalWithdrawn:
		card.Outcome = v.text.T("Withdrawn. Nothing was done.")
	}
	return card
}

func (v *visit) reviewPart(r *regie.Review) reviewPart {
	part := reviewPart{
		CallID: r.CallID, Tool: sanitize.Line(r.Tool),
		Sentence:  capitalize(sanitize.Line(v.text.Sentence(r.Preview.Sentence))),
		Arguments: showArguments(r.Arguments),
	}
	if part.Sentence == "" {
		part.Sentence = part.Tool
	}
	for _, ground := range r.Grounds {
		part.Reasons = append(part.Reasons, sanitize.Line(v.text.Sentence(ground.Sentence)))
	}
	part.Warnings = sentences(v, r.Preview.Warnings)
	part.fileDiff = parseFileDiff("f-"+r.CallID.String(), store.About(&regie.Call{Arguments: string(r.Arguments)}),
		r.Preview.Diff)
	if d := r.Decision; d != nil {
		part.Decided = v.decisionWords(d)
	}
	return part
}

// decisionWords says who decided what, and when.
func (v *visit) decisionWords(d *regie.Decision) string {
	by, at := sanitize.Line(d.By), formatClock(d.At)
	var said string
	switch d.Answer {
	case regie.AnswerAllow:
		said = v.text.T("Allowed once by %s, %s", by, at)
	case regie.AnswerSession:
		said = v.text.T("Allowed for this session by %s, %s", by, at)
	case regie.AnswerAlways:
		said = v.text.T("Always allowed by %s, %s", by, at)
	default:
		said = v.text.T("Denied by %s, %s", by, at)
	}
	if d.Scope != nil {
		said += ": " + sanitize.Line(v.text.Sentence(d.Scope.Sentence))
	}
	if d.Reason != "" {
		said += " (" + sanitize.Line(d.Reason) + ")"
	}
	return said
}

// questionCard is a question as people see it.
type questionCard struct {
	ID       string
	Question *regie.Question
	Title    string
	Body     string
	Open     bool
	Outcome  string
	Session  string
	Brief    bool
	Form     formOf
}

func (b *thread) question(q *regie.Question) {
	card := b.v.questionCard(q)
	card.Form = b.form(card.ID)
	b.add(card.ID, "item-question", card)
}

func (v *visit) questionCard(q *regie.Question) questionCard {
	card := questionCard{
		ID: "q-" + q.ID.String(), Question: q, Open: q.State == regie.WaitOpen, Session: v.sessionName(q.SessionName),
	}
	text := strings.TrimSpace(sanitize.Strip(q.Module.Text))
	if card.Title, card.Body, _ = strings.Cut(text, "\n"); q.Module.Kind == regie.ModuleValidation && card.Body != "" {
		card.Title, card.Body = v.text.T("Carry out this plan?"), text
	}
	switch {
	case q.Reply != nil:
		card.Outcome = v.text.T("%s answered: %s", sanitize.Line(q.Reply.By), replyWords(v.text, q.Reply))
	case q.State == regie.WaitExpired:
		card.Outcome = v.text.T("Expired without an answer.")
	case q.State == regie.WaitWithdrawn:
		card.Outcome = v.text.T("Withdrawn.")
	}
	return card
}

// replyWords is an answer in words.
func replyWords(t *i18n.Printer, r *regie.QuestionReply) string {
	said := append([]string{}, r.Choices...)
	if r.Yes != nil && *r.Yes {
		said = append(said, t.T("yes"))
	} else if r.Yes != nil {
		said = append(said, t.T("no"))
	}
	if r.Text != "" {
		said = append(said, r.Text)
	}
	return sanitize.Line(strings.Join(said, ", "))
}
