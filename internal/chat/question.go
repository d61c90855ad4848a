package chat

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

// askQuestion puts one question to the person until they have answered or put it off.
func (a *Asker) askQuestion(ctx context.Context, asked *regie.Question) error {
	a.Page.QuestionHead(asked)
	a.Page.Question(asked)
	t, prompt := a.Page.Text, a.Page.Text.T("[y] yes  [n] no")
	switch validation := asked.Module.Kind == regie.ModuleValidation; {
	case validation && len(asked.Module.Options) > 0:
		prompt = t.T("a number for yes, [n] no, or a text: no, because…")
	case !validation:
		prompt = t.T("a number (several as 1,3), or a text")
	}
	for {
		line, err := a.Next(ctx, prompt+t.T("  [l] later")+" > ")
		if err != nil {
			return err
		}
		if line = strings.TrimSpace(line); line == "l" {
			a.putOff(asked.ID)
			return nil
		}
		reply, err := parseReply(&asked.Module, line)
		if err == nil {
			_, err = a.Control.Answer(ctx, dispatch.AnswerRequest{
				QuestionID: asked.ID, Request: regie.NewID().String(), Reply: reply,
			})
		}
		if err == nil {
			return nil
		}
		if err := a.showOrReturn(ctx, err); err != nil {
			return err
		}
		if slices.Contains([]regie.Code{regie.CodeConflict, regie.CodeExpired, regie.CodeNotFound}, regie.CodeOf(err)) {
			return nil
		}
	}
}

// AnswerWith is what regie answer takes as the answer to a question: only that, since all else is
// refused.
func AnswerWith(t *i18n.Printer, m *regie.Module) string {
	choice := "--choice 1"
	if m.AllowMultiple {
		choice += ",2"
	}
	switch {
	case m.Kind == regie.ModuleValidation && len(m.Options) > 0:
		return t.T("--choice 1, --no or \"a reason for no\"")
	case m.Kind == regie.ModuleValidation:
		return t.T("--yes or --no")
	case len(m.Options) == 0:
		return t.T("\"a text\"")
	case m.AllowFreeText:
		return t.T("%s or \"a text\"", choice)
	}
	return choice
}

// parseReply parses a typed answer. It returns CodeBadRequest for an invalid one.
func parseReply(m *regie.Module, line string) (regie.QuestionReply, error) {
	no := slices.Contains(strings.Fields(noNames), line)
	switch {
	case m.Kind == regie.ModuleValidation && (no || isYes(line)):
		return YesNo(!no), nil
	case m.Kind == regie.ModuleValidation && len(m.Options) == 0 && !m.AllowFreeText:
		return regie.QuestionReply{}, regie.Errorf(regie.CodeBadRequest, "answer y or n")
	case strings.Trim(line, "0123456789, ") == "" && len(m.Options) > 0 || !m.AllowFreeText:
		return Choose(m, line)
	}
	return regie.QuestionReply{Text: line}, nil
}

// YesNo is the answer to a Validation.
func YesNo(yes bool) regie.QuestionReply { return regie.QuestionReply{Yes: &yes} }

// Choose parses option numbers such as "1,3". It returns CodeBadRequest for a number without an
// option, and for several where the question takes one.
func Choose(m *regie.Module, numbers string) (reply regie.QuestionReply, err error) {
	for _, field := range strings.FieldsFunc(numbers, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || n > len(m.Options) {
			reply.Choices = nil
			break
		}
		if !slices.Contains(reply.Choices, m.Options[n-1]) {
			reply.Choices = append(reply.Choices, m.Options[n-1])
		}
	}
	switch {
	case len(reply.Choices) == 0:
		err = regie.Errorf(regie.CodeBadRequest, "choose by number, from 1 to %d", len(m.Options))
	case len(reply.Choices) > 1 && !m.AllowMultiple:
		err = regie.Errorf(regie.CodeBadRequest, "choose one of them")
	}
	return reply, err
}
