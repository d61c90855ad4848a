package tui

import (
	"context"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// questioning puts a question of the agent to the person (spec 4.5).
type questioning struct {
	asked  regie.Question
	picked int
	chosen map[int]bool // where several may be
	text   editor       // an answer in their own words
	writes bool
	busy   bool
}

func (q *questioning) beginAnswer(m *model) {
	m.Page.QuestionHead(&q.asked)
	m.Page.Question(&q.asked)
	q.writes = q.asked.Module.Kind != regie.ModuleValidation && len(q.asked.Module.Options) == 0
}

func (q *questioning) inputField() *editor {
	if q.writes {
		return &q.text
	}
	return nil
}

// takesWords reports whether the typed text answers in the person's own words. Commands go to the
// prompt.
func (q *questioning) takesWords(typed string) bool {
	return !q.busy && q.asked.Module.AllowFreeText && !strings.HasPrefix(typed, "/") &&
		!strings.HasPrefix(typed, regie.CommandMark)
}

func (q *questioning) dialogKeys(m *model) ([]chat.Key, bool) {
	t, module := m.Text, &q.asked.Module
	answer := chat.Key{Names: "enter", Label: t.T("[Enter] answer"), Do: func() { q.submitAnswer(m) }}
	later := chat.Key{Names: "l esc", Label: t.T("[l] later"), Do: func() {
		m.history.addEntry(q.text.fullText()) // Up has what was written of an answer
		m.putOff(q.asked.ID)
	}}
	back := chat.Key{Names: "esc", Label: t.T("[Esc] back"), Do: func() { q.writes = false }}
	switch {
	case q.writes && len(module.Options) == 0:
		back.Do = later.Do
		return []chat.Key{answer, back}, q.busy
	case q.writes:
		return []chat.Key{answer, back}, q.busy
	case module.Kind == regie.ModuleValidation && len(module.Options) == 0:
		return []chat.Key{
			{Names: "y o Y O", Label: t.T("[y] yes"), Do: func() { q.sendReply(m, chat.YesNo(true)) }},
			{Names: "n N", Label: t.T("[n] no"), Do: func() { q.sendReply(m, chat.YesNo(false)) }},
			later,
		}, q.busy
	}
	toggle := func() { q.chosen[q.picked] = module.AllowMultiple && !q.chosen[q.picked] }
	list := append(pickKeys(&q.picked, len(module.Options), toggle), answer)
	if module.AllowMultiple {
		list = append(list, chat.Key{Names: "space", Label: t.T("[Space] choose"), Do: toggle})
	}
	if module.Kind == regie.ModuleValidation {
		no := chat.Key{Names: "n N", Label: t.T("[n] no"), Do: func() { q.sendReply(m, chat.YesNo(false)) }}
		because := chat.Key{Names: "t", Label: t.T("[t] no, because…"), Do: func() { q.writes = true }}
		return append(list, no, because, later), q.busy
	}
	if module.AllowFreeText {
		list = append(list, chat.Key{Names: "t", Label: t.T("[t] in your own words"), Do: func() { q.writes = true }})
	}
	return append(list, later), q.busy
}

// tickedOptions returns the numbers of the options that are chosen, of several.
func (q *questioning) tickedOptions() []string {
	var numbers []string
	for i := range q.asked.Module.Options {
		if q.chosen[i] {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	return numbers
}

// submitAnswer sends the chosen options, the written text, or both for a question with several
// choices.
func (q *questioning) submitAnswer(m *model) {
	words := strings.TrimSpace(q.text.fullText())
	numbers := q.tickedOptions()
	switch {
	case q.writes && words == "":
		return
	case !q.writes && len(numbers) == 0:
		numbers = []string{fmt.Sprint(q.picked + 1)}
	}
	var reply regie.QuestionReply
	if len(numbers) > 0 {
		var err error
		if reply, err = chat.Choose(&q.asked.Module, strings.Join(numbers, ",")); err != nil {
			m.hint = m.Text.Error(err)
			return
		}
	}
	if q.writes {
		reply.Text = words
	} else {
		m.history.addEntry(words) // that are not sent
	}
	q.sendReply(m, reply)
}

func (q *questioning) sendReply(m *model, reply regie.QuestionReply) {
	q.busy = true
	in := dispatch.AnswerRequest{QuestionID: q.asked.ID, Request: regie.NewID().String(), Reply: reply}
	m.Do(chat.InOrder, func(ctx context.Context) func() {
		_, err := m.Control.Answer(ctx, in)
		return func() {
			q.busy = false
			m.ShowError(err)
			switch regie.CodeOf(err) {
			case "":
				m.Note("     → " + chat.ReplyWords(m.Text, &reply))
				q.writes = false
			case regie.CodeConflict, regie.CodeExpired, regie.CodeNotFound:
			default:
				return
			}
			if m.dialog == dialog(q) {
				m.closeOvertaken()
				m.Due = m.Waiting()
				m.Later[q.asked.ID] = true // answered; the next request follows
			}
		}
	})
}

// noteAnswered handles an answer from another surface, or an expired question.
func (q *questioning) noteAnswered(m *model, body *chat.Body) {
	if body.QuestionID != q.asked.ID || body.State == string(regie.WaitOpen) || q.busy {
		return
	}
	if body.Reply != nil {
		said := chat.ReplyWords(m.Text, body.Reply)
		m.Note("     → " + m.Text.T("elsewhere, by %s: %s", sanitize.Line(body.Reply.By), said))
	}
	m.closeOvertaken()
	m.Due = m.Waiting()
}

func (q *questioning) render(m *model) [][]span {
	module := &q.asked.Module
	first, _, _ := strings.Cut(strings.TrimSpace(module.Text), "\n")
	lines := m.screen.renderQuestion(sanitize.Line(first))
	switch chosen := q.tickedOptions(); {
	case q.writes && len(chosen) > 0:
		lines = append(lines, []span{{text: "  " + m.Text.T("beside %s:", strings.Join(chosen, ", "))}})
		fallthrough
	case q.writes:
		return append(lines, m.renderWritten(&q.text, span{"  " + promptMark, style{fg: cyan}})...)
	case module.Kind == regie.ModuleValidation && len(module.Options) == 0:
		return lines
	}
	options := make([]string, len(module.Options))
	for i, option := range module.Options {
		box := ""
		if module.AllowMultiple {
			box = "☐ "
			if q.chosen[i] {
				box = "☑ "
			}
		}
		options[i] = fmt.Sprintf("%s%d  %s", box, i+1, sanitize.Line(option))
	}
	return append(lines, m.screen.renderChoices(options, q.picked)...)
}
