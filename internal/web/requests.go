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
	Path      string // of its diff
	Reasons   []string
	Warnings  []string
	Diff      []diffLine
	Added     int
	Removed   int
	Arguments string
	Decided   string
}

// diffLine is a line of a diff.
type diffLine struct{ Class, Old, New, Mark, Text string }

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
	for _, warning := range r.Preview.Warnings {
		part.Warnings = append(part.Warnings, sanitize.Line(v.text.Sentence(warning)))
	}
	part.Path = sanitize.Line(store.About(&regie.Call{Arguments: string(r.Arguments)}))
	part.Diff, part.Added, part.Removed = parseDiff(r.Preview.Diff)
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

// parseDiff reads a unified diff.
func parseDiff(diff string) (lines []diffLine, added, removed int) {
	before, after := 0, 0
	for text := range strings.SplitSeq(strings.TrimRight(sanitize.Strip(diff), "\n"), "\n") {
		switch {
		case diff == "", strings.HasPrefix(text, "--- "), strings.HasPrefix(text, "+++ "), strings.HasPrefix(text, `\`):
		case strings.HasPrefix(text, "@@"):
			before, after = hunkStart(text)
			if len(lines) > 0 {
				lines = append(lines, diffLine{Class: "hunk", Text: "…"})
			}
		case strings.HasPrefix(text, "+"):
			lines = append(lines, diffLine{"add", "", strconv.Itoa(after), "+", text[1:]})
			after, added = after+1, added+1
		case strings.HasPrefix(text, "-"):
			lines = append(lines, diffLine{"del", strconv.Itoa(before), "", "−", text[1:]})
			before, removed = before+1, removed+1
		default:
			lines = append(lines, diffLine{"", strconv.Itoa(before), strconv.Itoa(after), "", strings.TrimPrefix(text, " ")})
			before, after = before+1, after+1
		}
	}
	return lines, added, removed
}

// hunkStart reads the line numbers of a hunk's head.
func hunkStart(head string) (before, after int) {
	for field := range strings.FieldsSeq(head) {
		number, _, _ := strings.Cut(field[1:], ",")
		n, _ := strconv.Atoi(number) // 0 for what is no number
		switch field[0] {
		case '-':
			before = n
		case '+':
			after = n
		}
	}
	return before, after
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
