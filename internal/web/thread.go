package web

import (
	"encoding/json"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// item is a part of a page with its id in the page.
type item struct {
	ID   string
	HTML template.HTML
}

const (
	// maxShown bounds the bytes of a result in a page, and headLines the lines that show at once.
	maxShown  = 64 << 10
	headLines = 20
	// shownMessages is how many messages of a chat a page shows.
	shownMessages = 300
	updatePlan    = "session.update_plan"
)

// thread turns the messages of a chat into the items of its page.
type thread struct {
	v         *visit
	rounds    map[regie.ID]*store.RoundSummary
	approvals map[regie.ID]*regie.Approval // by their calls
	questions map[regie.ID]*regie.Question
	shown     map[regie.ID]bool // approvals
	problem   string            // of a form, about the item with this id
	about     string
	next      string
	chat      string // its path

	items   []item
	undone  bool // what is added is no longer part of the conversation
	group   *callGroup
	plan    []planStep
	needs   []need
	changes []string // paths of files that calls changed
	err     error
}

// planStep is a step of the agent's plan.
type planStep struct {
	Text   string `json:"text"`
	Status string `json:"status"`
}

// callGroup is calls in a row.
type callGroup struct {
	ID, Title, Meta string
	Calls           []callRow
	Open            bool
	Duration        int64 // in microseconds
}

// callRow is one call.
type callRow struct {
	ID, Run                         regie.ID
	Chip                            chip
	Tool, Sentence, Meta            string
	Arguments, Executed, Head, Rest string
	Error, Stale                    string
	Decided                         string // by whom, after an approval
	Hidden                          int    // lines of Rest
}

// bubble is a message.
type bubble struct {
	ID         string
	Message    *store.MessageView
	Text, Chat string // Chat is its path
	Blocks     []template.HTML
	Pending    bool
	Form       formOf
}

// formOf is what a form in an item needs.
type formOf struct{ Token, Next, Problem string }

func (b *thread) form(about string) formOf {
	f := formOf{Token: b.v.token, Next: b.next}
	if about == b.about {
		f.Problem = b.problem
	}
	return f
}

// add renders an item.
func (b *thread) add(id, name string, data any) {
	html, err := b.v.fragment(name, data)
	if err != nil && b.err == nil {
		b.err = err
	}
	b.items = append(b.items, item{id, html})
}

// build makes the items of messages in their order.
func (b *thread) build(messages []store.MessageView) {
	undone := -1 // the first item that an undo took out of the conversation
	for i := range messages {
		m := &messages[i]
		if m.Superseded != (undone >= 0) {
			b.endGroup()
			if m.Superseded {
				undone = len(b.items)
			} else {
				undone = b.fold(undone)
			}
		}
		b.undone = m.Superseded
		b.message(m)
		round := m.Message.RoundID
		if i+1 == len(messages) || messages[i+1].Message.RoundID != round {
			b.endGroup()
			if r := b.rounds[round]; r != nil && r.Round.State == regie.RoundEnded {
				b.footer(r)
			}
		}
	}
	b.endGroup()
	if undone >= 0 {
		b.fold(undone)
	}
}

// fold makes one item of those that an undo took out of the conversation.
func (b *thread) fold(from int) int {
	items := slices.Clone(b.items[from:])
	if b.items = b.items[:from]; len(items) > 0 {
		b.add("s-"+items[0].ID, "item-fold", struct {
			ID    string
			Items []item
		}{"s-" + items[0].ID, items})
	}
	return -1
}

func (b *thread) message(m *store.MessageView) {
	id := "m-" + strconv.FormatInt(m.Seq, 10)
	switch {
	case m.Message.Sender == regie.SenderUser:
		b.endGroup()
		b.person(id, m, false)
	case m.Message.AI != nil:
		b.answer(id, m, m.Message.AI.Text())
		b.calls(id, m.Calls)
		b.answer(id+"-post", m, m.Message.AI.PostText)
	case m.Message.Text != "":
		b.answer(id, m, m.Message.Text)
	case m.Message.System != nil:
		b.system(id, m)
	}
}

// person adds a message of the person; pending: it waits for its turn.
func (b *thread) person(id string, m *store.MessageView, pending bool) {
	b.add(id, "item-person", bubble{
		ID: id, Message: m, Text: personText(&m.Message), Chat: b.chat, Pending: pending, Form: b.form(id),
	})
}

// answer adds text of an agent, where there is some.
func (b *thread) answer(id string, m *store.MessageView, text string) {
	if strings.TrimSpace(text) != "" {
		b.endGroup()
		b.add(id, "item-agent", bubble{ID: id, Message: m, Blocks: renderBlocks(text, 0)})
	}
}

// personText returns the text of a person's message, without the images that it holds besides.
func personText(m *regie.Message) string {
	segments := slices.DeleteFunc(slices.Clone(m.Rich), func(s regie.Segment) bool { return s.Attachment != nil })
	return strings.TrimSpace(sanitize.Strip(m.Text + regie.LinearText(segments)))
}

// system shows what the system says to people; results stand at their calls.
func (b *thread) system(id string, m *store.MessageView) {
	s := m.Message.System
	var title string
	switch s.Type {
	case regie.SystemContextSummary:
		title = b.v.text.T("Earlier messages were summarised")
	case regie.SystemLimitReached:
		title = b.v.text.T("A limit was reached")
	case regie.SystemUndone:
		title = b.v.text.T("Files were put back")
	default:
		b.calls(id, m.Calls)
		return
	}
	b.endGroup()
	undo := ""
	if s.Undone != nil && s.Undone.Superseded != nil {
		undo = b.chat + "/undo?target=" + s.Undone.UndoID.String()
	}
	b.add(id, "item-note", struct{ ID, Title, Text, Undo string }{id, title, sanitize.Strip(s.Summary), undo})
}

// calls adds calls to the group at the end, and what they ask of the person behind it.
func (b *thread) calls(id string, calls []regie.Call) {
	for i := range calls {
		c := &calls[i]
		if c.Tool == updatePlan {
			var plan struct{ Steps []planStep }
			if json.Unmarshal([]byte(c.Arguments), &plan) == nil {
				b.plan = plan.Steps
			}
		}
		changed := c.Kind == regie.KindAction && c.State == regie.CallSucceeded && strings.HasPrefix(c.Tool, "files.")
		if path := sanitize.Line(store.About(c)); changed && !b.undone && !slices.Contains(b.changes, path) {
			b.changes = append(b.changes, path)
		}
		a := b.approvals[c.ID]
		asks := a != nil && a.State == regie.ApprovalOpen && c.State == regie.CallAwaitingApproval
		if b.questions[c.ID] == nil && !asks { // the card says it
			if b.group == nil {
				b.group = &callGroup{ID: "g-" + id}
			}
			row := b.v.callRow(c, a)
			b.group.Calls = append(b.group.Calls, row)
			b.group.Duration += c.DurationUS
			b.group.Open = b.group.Open || row.Chip.Class != "done" && row.Chip.Class != "open"
		}
	}
	for i := range calls {
		b.requests(&calls[i])
	}
}

// need lists a card that waits for the person.
func (b *thread) need(icon string, c *card) {
	if c.Open {
		b.needs = append(b.needs, need{c.ID, icon, c.Title})
	}
}

// requests adds what one call asks of the person.
func (b *thread) requests(c *regie.Call) {
	if a := b.approvals[c.ID]; a != nil && !b.shown[a.ID] {
		b.shown[a.ID] = true
		b.endGroup()
		asked := b.v.approvalCard(a)
		b.need("warn", &asked.card)
		if asked.Form = b.form(asked.ID); a.State != regie.ApprovalDecided || asked.Form.Problem != "" {
			b.add(asked.ID, "item-approval", asked) // else its calls say who decided
		}
	}
	if q := b.questions[c.ID]; q != nil {
		b.endGroup()
		asked := b.v.questionCard(q)
		b.need("ask", &asked.card)
		asked.Form = b.form(asked.ID)
		b.add(asked.ID, "item-question", asked)
	}
	if c.State == regie.CallUnknown && c.Resolution == nil {
		b.endGroup()
		asked := b.v.unknownCard(c)
		asked.Form = b.form(asked.ID)
		b.add(asked.ID, "item-unknown", asked)
	}
}

func (b *thread) endGroup() {
	if b.group == nil {
		return
	}
	g := b.group
	b.group = nil
	if g.Title = countCalls(b.v.text, len(g.Calls)); g.Duration >= 1000 {
		g.Meta = formatMicros(b.v.text, g.Duration)
	}
	b.add(g.ID, "item-calls", g)
}

// callRow makes the row of a call; its approval has its sentence.
func (v *visit) callRow(c *regie.Call, asked *regie.Approval) callRow {
	row := callRow{
		ID: c.ID, Tool: sanitize.Line(c.Tool), Sentence: callSentence(v.text, c), Chip: callChip(v.text, c),
		Run: c.RoundID, Arguments: showArguments([]byte(c.Arguments)),
	}
	if c.Error != nil {
		row.Error = sanitize.Strip(string(c.Error.Code) + ": " + c.Error.Message)
	}
	if asked != nil {
		for i := range asked.Reviews {
			if r := &asked.Reviews[i]; r.CallID == c.ID && !r.Preview.Sentence.IsZero() {
				row.Sentence = capitalize(v.sayLine(r.Preview.Sentence))
				if r.Decision != nil {
					row.Decided = v.decisionWords(r.Decision)
				}
			}
		}
	}
	if c.Error != nil && c.Error.Code == regie.CodeStalePreview {
		row.Stale = v.text.T("It is not what you saw any more. Nothing was done.")
		if strings.HasPrefix(c.Tool, "files.") {
			row.Stale = v.text.T("The file changed since you saw it. Nothing was written.")
		}
	}
	if len(c.Executed) > 0 {
		row.Executed = showArguments(c.Executed)
	}
	result := sanitize.Strip(sanitize.Clip(c.Result, maxShown))
	lines := strings.Split(strings.TrimRight(result, "\n"), "\n")
	row.Head = strings.Join(lines[:min(len(lines), headLines)], "\n")
	if len(lines) > headLines {
		row.Rest, row.Hidden = strings.Join(lines[headLines:], "\n"), len(lines)-headLines
	}
	if c.DurationUS >= 1000 {
		row.Meta = formatMicros(v.text, c.DurationUS)
	}
	if c.Attempts > 1 {
		row.Meta = v.text.T("%s attempts", strconv.Itoa(c.Attempts)) + " · " + row.Meta
	}
	return row
}

// showArguments shows an object of plain values as lines, and else indented JSON.
func showArguments(arguments []byte) string {
	var fields map[string]any
	if json.Unmarshal(arguments, &fields) != nil {
		return sanitize.Strip(sanitize.Clip(string(arguments), maxShown))
	}
	var lines []string
	for name, value := range fields {
		said, isText := value.(string)
		if !isText {
			data, _ := json.Marshal(value) // it came from JSON
			said = string(data)
		}
		if strings.Contains(said, "\n") {
			said = "\n  " + strings.ReplaceAll(said, "\n", "\n  ")
		}
		lines = append(lines, name+": "+said)
	}
	slices.Sort(lines)
	return sanitize.Strip(sanitize.Clip(strings.Join(lines, "\n"), maxShown))
}

// roundFooter is the end of a round.
type roundFooter struct {
	*store.RoundSummary
	ID, Took, Cost, CallWords, Note string
	End                             chip
	Ended                           bool   // with its answer
	Chat                            string // its path; empty: the round was undone
	Form                            formOf
}

// footer adds the end of a round: when, how long, what it cost, and why where it did not answer.
func (b *thread) footer(r *store.RoundSummary) {
	end := roundFooter{
		RoundSummary: r, ID: "r-" + r.Round.ID.String(),
		End: endChip(b.v.text, r.Round.End), Ended: hasAnswered(r.Round.End),
		Took: formatSpan(b.v.text, r.Round.EndedAt.Sub(r.Round.StartedAt)), Cost: formatCost(b.v.text, r.Spent),
		Note: b.v.sayLine(r.Round.EndNote), Form: b.form(""),
	}
	if r.Calls > 0 {
		end.CallWords = countCalls(b.v.text, r.Calls)
	}
	if !b.undone {
		end.Chat = b.chat
	}
	b.add(end.ID, "item-footer", end)
}
