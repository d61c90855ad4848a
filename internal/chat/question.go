package chat

import (
	"context"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/text"
)

// question puts one question to the person until they have answered or put it off.
func (a *Asker) question(ctx context.Context, asked *regie.Question) error {
	if err := a.Settle(ctx); err != nil {
		return err
	}
	a.Page.QuestionHead(asked)
	a.Page.Question(asked)
	if err := a.Page.Err(); err != nil {
		return err
	}
	for {
		line, err := a.Next(ctx, a.ways(&asked.Module))
		if err != nil {
			return err
		}
		line = strings.TrimSpace(line)
		if line == "l" {
			a.putOff(asked.ID)
			return nil
		}
		reply, err := Read(&asked.Module, line)
		if err == nil {
			_, err = a.Control.Answer(ctx, dispatch.AnswerRequest{
				QuestionID: asked.ID,
				Request:    regie.NewID().String(), Reply: reply,
			})
		}
		switch regie.CodeOf(err) {
		case "":
			return nil
		case regie.CodeConflict, regie.CodeExpired, regie.CodeNotFound:
			a.Page.line("     " + a.Page.Text.Error(err))
			return nil
		}
		if err := a.told(ctx, err); err != nil {
			return err
		}
	}
}

// ways is the prompt below a question.
func (a *Asker) ways(m *regie.Module) string {
	t := a.Page.Text
	var prompt string
	switch {
	case m.Kind == regie.ModuleValidation:
		prompt = t.T("[y] yes  [n] no  [l] later")
	case m.AllowMultiple && m.AllowFreeText:
		prompt = t.T("numbers such as 1,3, a text, or both (1,3: text)  [l] later")
	case m.AllowMultiple:
		prompt = t.T("numbers such as 1,3  [l] later")
	case m.AllowFreeText:
		prompt = t.T("a number, or a text  [l] later")
	default:
		prompt = t.T("a number  [l] later")
	}
	return prompt + " > "
}

// AnswerWith is what regie answer takes as the answer to a question: only that, since all else is
// refused.
func AnswerWith(t *text.Printer, m *regie.Module) string {
	switch {
	case m.Kind == regie.ModuleValidation:
		return t.T("--yes or --no")
	case len(m.Options) == 0:
		return t.T("\"a text\"")
	case m.AllowMultiple && m.AllowFreeText:
		return t.T("--choice 1,2 or \"a text\"")
	case m.AllowFreeText:
		return t.T("--choice 1 or \"a text\"")
	case m.AllowMultiple:
		return "--choice 1,2"
	default:
		return "--choice 1"
	}
}

// Read reads an answer as a person types it. It returns CodeBadRequest for what is none.
func Read(m *regie.Module, line string) (regie.QuestionReply, error) {
	if m.Kind == regie.ModuleValidation {
		switch strings.ToLower(line) {
		case "y", "yes", "o", "oui":
			return YesNo(true), nil
		case "n", "no", "non":
			return YesNo(false), nil
		}
		return regie.QuestionReply{}, regie.Errorf(regie.CodeBadRequest, "answer y or n")
	}
	if strings.Trim(line, "0123456789, ") == "" {
		return Choose(m, line)
	}
	// options, with words beside them
	if numbers, beside, ok := strings.Cut(line, ": "); ok && m.AllowMultiple && m.AllowFreeText {
		if reply, err := Choose(m, numbers); err == nil {
			reply.Text = strings.TrimSpace(beside)
			return reply, nil
		}
	}
	if !m.AllowFreeText {
		return regie.QuestionReply{}, regie.Errorf(regie.CodeBadRequest,
			"choose by number, from 1 to %d", len(m.Options))
	}
	return regie.QuestionReply{Text: line}, nil
}

// YesNo is the answer to a Validation.
func YesNo(yes bool) regie.QuestionReply { return regie.QuestionReply{Yes: &yes} }

// Choose is the answer that names options by their numbers, such as "1,3". It returns
// CodeBadRequest for numbers that are none of them and for several where one is asked for.
func Choose(m *regie.Module, numbers string) (regie.QuestionReply, error) {
	var reply regie.QuestionReply
	seen := map[int]bool{}
	for _, field := range strings.FieldsFunc(numbers, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || n > len(m.Options) {
			return reply, regie.Errorf(regie.CodeBadRequest, "choose by number, from 1 to %d", len(m.Options))
		}
		if !seen[n] {
			reply.Choices = append(reply.Choices, m.Options[n-1])
		}
		seen[n] = true
	}
	switch {
	case len(reply.Choices) == 0:
		return reply, regie.Errorf(regie.CodeBadRequest, "choose by number, from 1 to %d", len(m.Options))
	case len(reply.Choices) > 1 && !m.AllowMultiple:
		return reply, regie.Errorf(regie.CodeBadRequest, "choose one of them")
	}
	return reply, nil
}
