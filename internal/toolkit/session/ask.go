package session

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/tool"
)

// The bounds of a module and of its answer (spec 4.5), in characters.
const (
	minOptions  = 2
	maxOptions  = 20
	maxQuestion = 2000
	maxOption   = 200
	maxFreeText = 10_000
)

// askArgs are both modules in one shape: with options it is a MultipleChoice, without them a
// Validation.
type askArgs struct {
	Question      string   `json:"question" jsonschema:"what the person is asked, complete in itself: they may read it hours later, without the conversation"`
	Options       []string `json:"options,omitempty" jsonschema:"the answers to choose from, each a few words, all different; leave out for a question that is answered with yes or no"`
	AllowMultiple bool     `json:"allow_multiple,omitempty" jsonschema:"the person may choose several options"`
	AllowFreeText bool     `json:"allow_free_text,omitempty" jsonschema:"the person may write an answer of their own instead of, or beside, an option"`
}

// asker is the tool with what the loop asks it for.
type asker struct{ tool.Tool }

// Module reads the module out of a call's arguments: see ParseModule.
func (asker) Module(arguments json.RawMessage) (regie.Module, error) { return ParseModule(arguments) }

func askTool() (tool.Tool, error) {
	made, err := tool.New(
		definition(AskUser, "Ask the person a question and wait for the answer, which is the result of this call. "+
			"Give options to have them choose; without options they answer yes or no. "+
			"Ask only what you need in order to go on and cannot find out yourself, one thing at a time.",
			regie.RoleQuestion),
		tool.Handler[askArgs]{
			Run: func(context.Context, *tool.Invocation, askArgs) (tool.Result, error) {
				return tool.Result{}, notRun(AskUser)
			},
			Schema: func(s *jsonschema.Schema) {
				least, most := minOptions, maxOptions
				lengths(s.Properties["question"], maxQuestion)
				options := s.Properties["options"]
				options.Type, options.Types = "array", nil // null is no list
				options.MinItems, options.MaxItems = &least, &most
				lengths(options.Items, maxOption)
			},
		})
	if err != nil {
		return nil, err
	}
	return asker{made}, nil
}

// ParseModule reads a communication module out of the arguments of ask_user (spec 4.5): with
// options a MultipleChoice, without them a Validation. White space around the texts is taken away.
// It returns CodeBadArguments, with advice for the model, for a question or an option that is
// empty, too long or holds what cannot be shown, for fewer than 2 or more than 20 options, for two
// that look the same, and for members that a Validation does not have. It is pure.
func ParseModule(arguments json.RawMessage) (regie.Module, error) {
	var args askArgs
	if err := strict(arguments, &args); err != nil {
		return regie.Module{}, err
	}
	m := regie.Module{Kind: regie.ModuleValidation, Text: strings.TrimSpace(args.Question)}
	if err := checkText("question", m.Text, maxQuestion, true); err != nil {
		return regie.Module{}, err
	}
	if args.Options == nil {
		switch {
		case args.AllowMultiple:
			return regie.Module{}, bad("allow_multiple", "give options, or leave it out",
				regie.Errorf(regie.CodeBadArguments, "there is nothing to choose several of"))
		case args.AllowFreeText:
			return regie.Module{}, bad("allow_free_text",
				"give at least two likely answers as options, or leave it out",
				regie.Errorf(regie.CodeBadArguments, "a question without options is answered with yes or no"))
		}
		return m, nil
	}
	m.Kind, m.AllowMultiple, m.AllowFreeText = regie.ModuleChoice, args.AllowMultiple, args.AllowFreeText
	options, err := checkOptions(args.Options)
	if err != nil {
		return regie.Module{}, err
	}
	m.Options = options
	return m, nil
}

func checkOptions(options []string) ([]string, error) {
	if n := len(options); n < minOptions || n > maxOptions {
		return nil, bad("options", "", regie.Errorf(regie.CodeBadArguments,
			"there are %d options: give %d to %d, or none for a yes or no", n, minOptions, maxOptions))
	}
	out := make([]string, 0, len(options))
	for _, option := range options {
		option = strings.TrimSpace(option)
		if err := checkText("options", option, maxOption, false); err != nil {
			return nil, err
		}
		if find(out, option) >= 0 {
			return nil, bad("options", "", regie.Errorf(regie.CodeBadArguments,
				"the option %q stands twice", sanitize.Clip(option, 100)))
		}
		out = append(out, option)
	}
	return out, nil
}

// find returns the place of an option that looks like this one, ignoring case, white space and
// joiners, or -1.
func find(options []string, option string) int {
	wanted := looks(option)
	return slices.IndexFunc(options, func(o string) bool { return strings.EqualFold(looks(o), wanted) })
}

func looks(option string) string {
	return strings.Join(strings.Fields(strings.NewReplacer("\u200c", "", "\u200d", "").Replace(option)), " ")
}

// CheckReply validates a person's answer to a module and returns it in its normal form: the options
// in the module's spelling and order, each once; the text trimmed, with line feeds only. A text
// that equals an option is that option. By and At are kept. It returns CodeBadRequest, with a
// sentence that lists the possible answers, for an unknown option, for several where one is
// requested, for a free text where none is allowed, and for an empty answer. It is pure.
func CheckReply(module regie.Module, reply regie.QuestionReply) (regie.QuestionReply, error) {
	out := regie.QuestionReply{By: reply.By, At: reply.At}
	text, err := checkFreeText(reply.Text)
	if err != nil {
		return out, err
	}
	if module.Kind == regie.ModuleValidation {
		return checkValidation(module, reply, text)
	}
	if reply.Yes != nil {
		return out, regie.Errorf(regie.CodeBadRequest, "this question is not answered with yes or no: choose from %s",
			list(module.Options))
	}
	choices := reply.Choices
	if len(choices) == 0 && find(module.Options, text) >= 0 {
		choices, text = []string{text}, ""
	}
	if out.Choices, err = chosen(module, choices); err != nil {
		return out, err
	}
	switch {
	case text != "" && !module.AllowFreeText:
		return out, regie.Errorf(regie.CodeBadRequest, "this question takes no answer in other words: choose from %s",
			list(module.Options))
	case text == "" && len(out.Choices) == 0:
		return out, regie.Errorf(regie.CodeBadRequest, "the answer is empty: choose from %s", list(module.Options))
	}
	out.Text = text
	return out, nil
}

// The words of a message that mean yes or no, not the reason of a no.
var (
	yesWords = []string{"y", "yes", "ok", "okay", "o", "oui"}
	noWords  = []string{"n", "no", "non"}
)

// checkValidation is CheckReply for a yes or no. Options are ways of a yes, the first one where
// none is chosen; a free text is the reason of a no.
func checkValidation(module regie.Module, reply regie.QuestionReply, text string) (regie.QuestionReply, error) {
	out := regie.QuestionReply{By: reply.By, At: reply.At}
	word := strings.Trim(strings.ToLower(text), " .!")
	switch plain := reply.Yes == nil && len(reply.Choices) == 0 && module.AllowFreeText; {
	case plain && find(module.Options, text) >= 0:
		reply.Choices = []string{text}
	case plain && (slices.Contains(yesWords, word) || slices.Contains(noWords, word)):
		yes := slices.Contains(yesWords, word)
		reply.Yes = &yes
	default:
		out.Text = text
	}
	text = out.Text
	var err error
	if len(module.Options) > 0 {
		if out.Choices, err = chosen(module, reply.Choices); err != nil {
			return out, err
		}
	}
	yes := len(out.Choices) > 0
	if reply.Yes != nil {
		yes = *reply.Yes
	}
	switch {
	case reply.Yes == nil && len(out.Choices) == 0 && text == "", !yes && len(out.Choices) > 0,
		len(out.Choices) < len(reply.Choices),
		text != "" && (yes || !module.AllowFreeText):
		return out, regie.Errorf(regie.CodeBadRequest, "this question is answered with yes or no")
	case yes && len(out.Choices) == 0 && len(module.Options) > 0:
		out.Choices = module.Options[:1]
	}
	out.Yes = &yes
	return out, nil
}

// ApprovedMode returns the mode that an answer to the approval of a plan gives the session, as the
// person chose; empty where the answer changes none. Only such a Validation has options.
func ApprovedMode(module regie.Module, reply regie.QuestionReply) regie.Mode {
	switch {
	case module.Kind != regie.ModuleValidation || len(module.Options) == 0 || reply.Yes == nil || !*reply.Yes:
		return ""
	case find(module.Options[:1], reply.Choices[0]) == 0:
		return regie.ModeAsk
	default:
		return regie.ModeAcceptEdits
	}
}

// chosen returns the options that were chosen, as the module spells and orders them.
func chosen(module regie.Module, choices []string) ([]string, error) {
	taken := map[int]bool{}
	for _, choice := range choices {
		at := find(module.Options, choice)
		if at < 0 {
			return nil, regie.Errorf(regie.CodeBadRequest, "%q is not one of the options: choose from %s",
				sanitize.Clip(choice, 100), list(module.Options))
		}
		taken[at] = true
	}
	if len(taken) > 1 && !module.AllowMultiple {
		return nil, regie.Errorf(regie.CodeBadRequest, "only one option can be chosen here, not %d", len(taken))
	}
	var out []string
	for at, option := range module.Options {
		if taken[at] {
			out = append(out, option)
		}
	}
	return out, nil
}

func checkFreeText(text string) (string, error) {
	text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
	switch n := utf8.RuneCountInString(text); {
	case n > maxFreeText:
		return "", regie.Errorf(regie.CodeBadRequest, "the answer has %d characters, at most %d are allowed", n,
			maxFreeText)
	case !utf8.ValidString(text) || strings.ContainsFunc(text,
		func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r == 0x7f }):
		return "", regie.Errorf(regie.CodeBadRequest, "the answer contains control characters or bytes that are not UTF-8")
	}
	return text, nil
}

// list names options for a person, shortened where there are many.
func list(options []string) string {
	return sanitize.Clip(strings.Join(options, ", "), 500)
}

// validationText is ReplyText for a yes or no.
func validationText(module regie.Module, reply regie.QuestionReply) string {
	out := "No."
	if reply.Yes != nil && *reply.Yes {
		out = "Yes."
	}
	if reply.Text != "" {
		out += " Reason: " + reply.Text
	}
	switch ofPlanMode := len(module.Options) > 0; {
	case ofPlanMode && out == "Yes.":
		out += " The plan is approved and plan mode is over: carry it out now. Chosen: " + reply.Choices[0]
	case ofPlanMode:
		out += "\nThe session stays in plan mode: change the plan, and ask again."
	}
	return out
}

// ReplyText is what the model reads as the result of ask_user (decision 40): a checked reply in one
// or more lines. It is pure.
func ReplyText(module regie.Module, reply regie.QuestionReply) string {
	if module.Kind == regie.ModuleValidation {
		return validationText(module, reply)
	}
	var out []string
	switch {
	case module.AllowMultiple && len(reply.Choices) > 0:
		out = append(out, "Chosen:")
		for _, choice := range reply.Choices {
			out = append(out, "- "+choice)
		}
	case len(reply.Choices) > 0:
		out = append(out, "Chosen: "+reply.Choices[0])
	}
	if reply.Text != "" {
		out = append(out, "Written: "+reply.Text)
	}
	return strings.Join(out, "\n")
}
