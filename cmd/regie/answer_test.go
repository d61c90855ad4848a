package main

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/i18n"
)

// TestAnswerWith: what is advised as an answer to a question is taken, and what is not advised is
// not.
func TestAnswerWith(t *testing.T) {
	options := []string{"red", "green"}
	for _, m := range []regie.Module{
		{Kind: regie.ModuleValidation},
		{Kind: regie.ModuleChoice, Options: options},
		{Kind: regie.ModuleChoice, Options: options, AllowMultiple: true},
		{Kind: regie.ModuleChoice, Options: options, AllowFreeText: true},
		{Kind: regie.ModuleChoice, Options: options, AllowMultiple: true, AllowFreeText: true},
		{Kind: regie.ModuleChoice, AllowFreeText: true},
	} {
		advised := chat.AnswerWith(i18n.New("en"), &m)
		for way, taken := range map[string]error{
			"--yes":      answered(&m, nil, "", true),
			"--no":       answered(&m, nil, "", true),
			"--choice 1": answered(&m, nil, "1", false),
			"1,2":        answered(&m, nil, "1,2", false),
			"a text":     answered(&m, []string{"a text"}, "", false),
		} {
			if strings.Contains(advised, way) != (taken == nil) {
				t.Errorf("of %+v is advised %q; %s: %v", m, advised, way, taken)
			}
		}
		lines := strings.Join((&awaited{Kind: "question", Command: "regie answer x", module: &m}).describeLines(i18n.New("en")), "\n")
		if !strings.Contains(lines, "regie answer x "+advised) {
			t.Errorf("of %+v is said %q", m, lines)
		}
	}
}

func answered(m *regie.Module, said []string, choice string, yesNo bool) error {
	_, err := replyTo(m, said, choice, yesNo, true)
	return err
}
