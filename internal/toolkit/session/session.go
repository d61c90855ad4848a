// Package session is the toolkit of what a model does with its own session (spec 3.3): ask the
// person, end the run, show a plan, read what a shortened result left out. The first three are the
// native form of reply fields; the loop handles them by their roles, and the pure functions here
// (ParseModule, CheckReply, ReplyText) are what it and the surfaces need for that.
//
// The package keeps nothing and starts nothing of its own: it has no goroutine.
package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tool"
)

// The canonical names of the tools (decision 27).
const (
	AskUser    = "session.ask_user"
	Complete   = "session.complete"
	UpdatePlan = "session.update_plan"
	ReadResult = tool.ReadResult
)

const maxSummary = 4000 // characters of what complete says

// Tools returns the toolkit's tools (spec 3.3): session.ask_user, which is a tool.Tool with a
// method Module, session.complete, session.update_plan and session.read_result. read returns the
// whole result of a call of a session; for a call that is not one of that session, or has no
// result, it returns CodeNotFound. It may be nil where the tools are only described.
func Tools(read func(ctx context.Context, session, call regie.ID) (string, error)) ([]tool.Tool, error) {
	var out []tool.Tool
	for _, build := range []func() (tool.Tool, error){
		askTool, completeTool, planTool, func() (tool.Tool, error) { return readTool(read) },
	} {
		t, err := build()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// definition describes a tool that changes nothing outside its session: a query, which is repeated
// freely.
func definition(name, description string, role regie.ToolRole) regie.ToolDefinition {
	return regie.ToolDefinition{
		Name: name, Description: description, Role: role, Kind: regie.KindQuery,
		Class: regie.ClassRead, Risk: regie.RiskInternal,
	}
}

type completeArgs struct {
	Summary string `json:"summary" jsonschema:"what was done and what came of it, for the person"`
}

func completeTool() (tool.Tool, error) {
	return tool.New(
		definition(Complete,
			"Say that the whole task is done. It takes effect after the other calls of the same reply, and only if all of them succeeded.", regie.RoleComplete),
		tool.Handler[completeArgs]{
			Run: func(context.Context, *tool.Invocation, completeArgs) (tool.Result, error) {
				return tool.Result{}, notRun(Complete)
			},
			Schema: func(s *jsonschema.Schema) { lengths(s.Properties["summary"], maxSummary) },
		})
}

// notRun is the error of a tool whose calls the loop settles: nothing happened.
func notRun(name string) error {
	return tool.NotDone{Err: regie.Errorf(regie.CodeConflict, "%s is no call to be run: the round itself answers it",
		name)}
}

// strict reads arguments and refuses what the type does not have: unknown members, members that
// stand twice, bytes that are not UTF-8.
func strict(arguments json.RawMessage, into any) error {
	if err := jsonv2.Unmarshal(arguments, into, jsonv2.RejectUnknownMembers(true)); err != nil {
		why := sanitize.Clip(err.Error(), 300)
		return bad("", "", regie.Errorf(regie.CodeBadArguments, "the arguments do not fit: %s", why))
	}
	return nil
}

// bad says which parameter an error is about and what would help.
func bad(param, hint string, err error) error {
	return tool.Advice{Err: err, Param: param, Hint: hint}
}

// checkText validates a text that people see: its length, and no character that acts or hides.
// Texts of several lines may have line feeds and tabs.
func checkText(param, text string, most int, lines bool) error {
	if strings.Trim(text, " \n\t\u200c\u200d") == "" {
		return bad(param, "", regie.Errorf(regie.CodeBadArguments, "%s: the text is empty", param))
	}
	if n := utf8.RuneCountInString(text); n > most {
		return bad(param, "", regie.Errorf(regie.CodeBadArguments,
			"%s: the text has %d characters, at most %d are allowed", param, n, most))
	}
	for _, r := range text {
		switch {
		case !lines && r == '\n':
			return bad(param, "", regie.Errorf(regie.CodeBadArguments, "%s: the text must stay on one line", param))
		case hidden(r):
			return bad(param, "", regie.Errorf(regie.CodeBadArguments,
				"%s: the text holds the character %s, which cannot be shown", param, fmt.Sprintf("U+%04X", r)))
		}
	}
	return nil
}

// hidden reports whether a character does something to a screen or hides from a reader. The two
// joiners are not among them, because writing systems and pictures are spelt with them.
func hidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == 0x200c, r == 0x200d, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	default:
		return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
	}
}

// lengths sets the bounds of a text parameter that must not be empty, in characters.
func lengths(s *jsonschema.Schema, most int) {
	least := 1
	s.MinLength, s.MaxLength = &least, &most
}
