package tui

import (
	"context"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// questioning puts a question of the agent to the person (spec 4.5).
type questioning struct {
	asked   regie.Question
	picked  int
	chosen  map[int]bool // where several may be
	numbers numbers
	text    editor // an answer in their own words
	writes  bool
	busy    bool
}

func (q *questioning) begin(m *model) {
	m.Page.QuestionHead(&q.asked)
	m.Page.Question(&q.asked)
	q.writes = q.asked.Module.Kind != regie.ModuleValidation && len(q.asked.Module.Options) == 0
}

func (q *questioning) key(m *model, name, typed string) {
	module := &q.asked.Module
	switch {
	case q.busy:
	case q.writes:
		q.write(m, name, typed)
	case name == "esc", typed == "l":
		q.putOff(m)
	case module.Kind == regie.ModuleValidation:
		switch strings.ToLower(typed) {
		case "y", "o":
			q.reply(m, chat.YesNo(true))
		case "n":
			q.reply(m, chat.YesNo(false))
		}
	case q.number(typed):
	case name == "up":
		q.picked = max(0, q.picked-1)
	case name == "down":
		q.picked = min(len(module.Options)-1, q.picked+1)
	case typed == "t" && module.AllowFreeText:
		q.writes = true
	case name == "enter":
		q.choose(m)
	}
}

// putOff leaves the question in the inbox; Up has what was written of an answer.
func (q *questioning) putOff(m *model) {
	m.history.add(q.text.value())
	m.putOff(q.asked.ID)
}

// ticked are the numbers of the options that are chosen, of several.
func (q *questioning) ticked() []string {
	var numbers []string
	for i := range q.asked.Module.Options {
		if q.chosen[i] {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	return numbers
}

func (q *questioning) choose(m *model) {
	numbers := q.ticked()
	if len(numbers) == 0 {
		numbers = []string{fmt.Sprint(q.picked + 1)}
	}
	reply, err := chat.Choose(&q.asked.Module, strings.Join(numbers, ","))
	if err != nil {
		m.hint = m.Text.Error(err)
		return
	}
	m.history.add(q.text.value()) // words that are not sent
	q.reply(m, reply)
}

func (q *questioning) write(m *model, name, typed string) {
	switch name {
	case "esc":
		if len(q.asked.Module.Options) == 0 {
			q.putOff(m)
			return
		}
		q.writes = false
	case "enter":
		if text := strings.TrimSpace(q.text.value()); text != "" {
			var reply regie.QuestionReply
			if numbers := q.ticked(); len(numbers) > 0 { // the words stand beside what is chosen
				var err error
				if reply, err = chat.Choose(&q.asked.Module, strings.Join(numbers, ",")); err != nil {
					m.hint = m.Text.Error(err)
					return
				}
			}
			reply.Text = text
			q.reply(m, reply)
			return
		}
	default:
		if !q.text.key(name) {
			m.fits(q.text.insert(typed))
		}
	}
}

func (q *questioning) paste(s string) (writes, fits bool) {
	if !q.writes && (q.busy || !q.asked.Module.AllowFreeText) {
		return false, true
	}
	q.writes = true
	return true, q.text.paste(s)
}

func (q *questioning) reply(m *model, reply regie.QuestionReply) {
	q.busy = true
	in := dispatch.AnswerRequest{QuestionID: q.asked.ID, Request: regie.NewID().String(), Reply: reply}
	m.Do(chat.Held, func(ctx context.Context) func() {
		_, err := m.Control.Answer(ctx, in)
		return func() {
			q.busy = false
			m.ShowError(err)
			switch regie.CodeOf(err) {
			case "":
				m.Note("     → " + chat.ReplyWords(m.Text, &reply))
			case regie.CodeConflict, regie.CodeExpired, regie.CodeNotFound:
			default:
				return
			}
			if m.dialog != dialog(q) {
				return
			}
			if err != nil {
				m.overtaken(q)
			} else {
				m.closeDialog()
			}
			m.Due = m.Waiting()
			m.Later[q.asked.ID] = true // it is answered; what else waits is asked
		}
	})
}

func (q *questioning) view(m *model) [][]span {
	width, t, module := m.screen.width-2, m.Text, &q.asked.Module
	first, _, _ := strings.Cut(strings.TrimSpace(module.Text), "\n")
	lines := [][]span{{{"? ", style{fg: yellow, bold: true}}, {cut(plain.Line(first), width-2), style{bold: true}}}}
	switch {
	case q.writes:
		if chosen := q.ticked(); len(chosen) > 0 {
			lines = append(lines, []span{{text: "  " + cut(t.T("beside %s:", strings.Join(chosen, ", ")), width-2)}})
		}
		lines = m.field(lines, &q.text, span{"  " + promptMark, style{fg: cyan}})
		return append(lines, m.screen.keyLines(len(lines), t.T("[Enter] answer"), t.T("[Esc] back"))...)
	case module.Kind == regie.ModuleValidation:
		return append(lines, m.screen.keyLines(len(lines), t.T("[y] yes"), t.T("[n] no"), t.T("[l] later"))...)
	}
	most := m.screen.choices(max(3, m.screen.height/2))
	from := min(max(0, q.picked-most/2), max(0, len(module.Options)-most))
	for i := from; i < min(len(module.Options), from+most); i++ {
		box := ""
		if module.AllowMultiple {
			box = "☐ "
			if q.chosen[i] {
				box = "☑ "
			}
		}
		number, option := fmt.Sprintf("%d  ", i+1), plain.Line(module.Options[i])
		lines = m.screen.choice(lines, i == q.picked, box, number, option, width)
	}
	list := []string{t.T("[Enter] answer")}
	if n := len(module.Options); n > 9 {
		list = append(list, t.T("[1-%d] by number (a space ends one)", n))
	}
	if module.AllowMultiple {
		list = append(list, t.T("[Space] choose"))
	}
	if module.AllowFreeText {
		list = append(list, t.T("[t] in your own words"))
	}
	return append(lines, m.screen.keyLines(len(lines), append(list, t.T("[l] later"))...)...)
}
