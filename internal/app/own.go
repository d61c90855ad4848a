package app

import (
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/toolkit/shell"
)

// typed is the text that is stored of a request: what is said, or the person's own command behind
// its mark.
func typed(in *dispatch.RunRequest) string {
	if in.Command != "" {
		return regie.CommandMark + in.Command
	}
	return in.Text
}

// validCommand checks a person's own command (spec 10.1). It is never mended, as texts are: what is
// run has to be what was given.
func validCommand(in *dispatch.RunRequest) error {
	if in.Command == "" {
		return nil
	}
	in.Command = strings.TrimSpace(in.Command)
	switch {
	case storable(in.Command) != in.Command:
		return regie.Errorf(regie.CodeBadRequest,
			"the command holds what no shell takes (U+0000, or bytes that are no characters): write it without")
	case in.Text != "" || len(in.Segments) > 0 || answersCalls(in) || len(in.History) > 0:
		return regie.Errorf(regie.CodeBadRequest,
			"a command comes alone: send what else is said as a message of its own")
	case in.Command == "":
		return regie.Errorf(regie.CodeBadRequest, "the command is empty: write it behind the !, as !git status")
	case strings.HasPrefix(in.Command, regie.CommandMark):
		return regie.Errorf(regie.CodeBadRequest,
			"!! repeats nothing here: write the command itself; a message that begins with ! is written with a space before it")
	case len(in.Command) > shell.MaxCommand:
		return regie.Errorf(regie.CodeBadRequest,
			"the command has %d bytes, at most %d are allowed: put it into a file and run that",
			len(in.Command), shell.MaxCommand)
	default:
		return nil
	}
}

// ofPerson refuses a command where a person's has no place: in a session that nobody types in, and
// in place of an answer. asks says that the session waits for one.
func ofPerson(in *dispatch.RunRequest, asks bool) error {
	switch {
	case in.Command == "":
		return nil
	case in.Type != regie.SessionChat:
		return regie.Errorf(regie.CodeBadRequest, "commands are given in chats: this session is of type %s",
			string(in.Type))
	case asks:
		return regie.Errorf(regie.CodeRoundInProgress,
			"the run waits for your answer: give that first, or interrupt the run; a command is not queued")
	default:
		return nil
	}
}
