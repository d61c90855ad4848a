package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// The tools that the rules can drive, by their names on the wire (decision 27). They drive those
// that are declared to them.
const (
	toolList     = "files__list_files"
	toolRead     = "files__read_file"
	toolWrite    = "files__write_file"
	toolEdit     = "files__edit_file"
	toolDelete   = "files__delete_file"
	toolSearch   = "files__search_text"
	toolAsk      = "session__ask_user"
	toolMore     = "session__read_result"
	toolComplete = "session__complete"
)

// batch is how many calls the rules make in one reply: the default limit of a round (spec 3.2).
const batch = 10

// reaction is a reply before it becomes one.
type reaction struct {
	text  string
	calls []provider.Call
}

// arguments are those of all tools; what a call does not need stays away.
type arguments struct {
	Path          string          `json:"path,omitempty"`
	Recursive     bool            `json:"recursive,omitempty"`
	Pattern       string          `json:"pattern,omitempty"`
	StartLine     int             `json:"start_line,omitempty"`
	EndLine       int             `json:"end_line,omitempty"`
	Content       string          `json:"content,omitempty"`
	Mode          string          `json:"mode,omitempty"`
	Edits         json.RawMessage `json:"edits,omitempty"`
	Query         string          `json:"query,omitempty"`
	CallID        string          `json:"call_id,omitempty"`
	Offset        int             `json:"offset,omitempty"`
	Question      string          `json:"question,omitempty"`
	Options       []string        `json:"options,omitempty"`
	AllowFreeText bool            `json:"allow_free_text,omitempty"`
}

// outcome is a past call with its one result.
type outcome struct {
	tool    string
	args    arguments
	content string
	failed  bool
	edited  bool            // a person changed the arguments before it ran
	state   regie.CallState // of a failed call, where the result tells
	code    regie.Code
}

// asked is an earlier request of the thread with what was done for it.
type asked struct {
	message string
	past    []outcome
}

// thread is what the rules need to know of the conversation.
type thread struct {
	message string
	steps   []step
	french  bool
	tools   map[string]provider.Tool
	earlier []asked
	past    []outcome // since the request
	at      int       // of past, what the steps so far account for
	lost    bool      // past is not what the steps would have made
	none    bool      // of several files that could be meant, none was chosen
	last    string    // the file that was last spoken of
	result  string    // what the step before found
	calls   int       // the highest number of a call id so far
	replies int       // in the whole thread
	answers int       // replies without calls
}

// notice matches what the system adds to a thread: LIMIT_REACHED and the like ask for nothing.
var notice = regexp.MustCompile(`^\[[A-Z_]+\] `)

// dropped matches a result that was left out of the prompt to make room.
var dropped = regexp.MustCompile(`^\[this result of \d+ bytes is left out to make room`)

// react is the whole provider: the next reply to a thread, given the declared tools by their wire
// names.
func react(tools map[string]provider.Tool, turns []provider.Turn) reaction {
	if r, ok := complete(tools, turns); ok {
		return r
	}
	t := observe(tools, turns)
	r := t.next()
	// The first reply says who speaks, and so does the first answer, which is all that some people
	// see.
	if t.replies == 0 || t.answers == 0 && len(r.calls) == 0 {
		r.text = strings.TrimSpace(t.say("(This is the demo: a few rules, not a model.)",
			"(Ceci est la démonstration : quelques règles, pas un modèle.)") + " " + r.text)
	}
	return r
}

// complete ends a run that nobody watches: there an answer is no end, and a notice says so.
func complete(tools map[string]provider.Tool, turns []provider.Turn) (reaction, bool) {
	n := len(turns)
	if _, can := tools[toolComplete]; n < 2 || !can || turns[n-1].Role != provider.RoleUser ||
		!strings.HasPrefix(textOf(&turns[n-1]), "[COMPLETE_REFUSED] Nobody reads along") {
		return reaction{}, false
	}
	summary, _ := json.Marshal(map[string]string{"summary": textOf(&turns[n-2])})
	return reaction{calls: []provider.Call{{
		ID: fmt.Sprintf("demo_end_%d", n), Name: toolComplete,
		Arguments: string(summary),
	}}}, true
}

// observe finds the current request, what was done for it, and what was asked and done before.
func observe(tools map[string]provider.Tool, turns []provider.Turn) *thread {
	t := &thread{tools: tools}
	open, begun := map[string]outcome{}, false
	for i := range turns {
		turn := &turns[i]
		switch turn.Role {
		case provider.RoleUser:
			text := textOf(turn)
			if notice.MatchString(text) {
				continue
			}
			if begun {
				t.earlier = append(t.earlier, asked{t.message, t.past})
			}
			begun, t.message, t.past = true, text, nil
			t.french = isFrench(tokens(firstParagraph(text)), t.french)
		case provider.RoleAssistant:
			t.replied(turn, open)
		case provider.RoleTool:
			for _, result := range turn.Results {
				if o, ours := open[result.CallID]; ours {
					t.past = append(t.past, o.settled(result))
				}
			}
		}
	}
	t.steps = understand(t.message, t.french)
	t.last = t.lastFile()
	return t
}

func firstParagraph(message string) string {
	first, _, _ := strings.Cut(strings.ReplaceAll(message, "\r\n", "\n"), "\n\n")
	return first[:min(len(first), maxInstruction)]
}

// lastFile is the file that was last spoken of before the current request.
func (t *thread) lastFile() string {
	for _, one := range slices.Backward(t.earlier) {
		for _, o := range slices.Backward(one.past) {
			if !o.failed && (o.tool == toolRead || o.tool == toolWrite || o.tool == toolEdit || o.tool == toolDelete) {
				return o.args.Path
			}
		}
		for _, s := range understand(one.message, false) {
			for _, p := range append(s.paths, s.to) {
				if isFile(p) {
					return p
				}
			}
		}
	}
	return ""
}

// textOf is what a turn says. The day and the name of who speaks ask for nothing.
func textOf(turn *provider.Turn) string {
	var text strings.Builder
	for i := range turn.Parts {
		if !turn.Parts[i].Opening {
			text.WriteString(turn.Parts[i].Text)
		}
	}
	return text.String()
}

// replied notes a reply and the calls that it opened.
func (t *thread) replied(turn *provider.Turn, open map[string]outcome) {
	t.replies++
	made := 0
	for _, part := range turn.Parts {
		if part.Type != regie.PartCall || part.Call == nil {
			continue
		}
		made++
		o := outcome{tool: part.Call.Name}
		// another model's arguments may be anything: then there are none
		_ = json.Unmarshal([]byte(part.Call.Arguments), &o.args)
		open[part.Call.ID] = o
		if number, err := strconv.Atoi(strings.TrimPrefix(part.Call.ID, "demo_")); err == nil {
			t.calls = max(t.calls, number)
		}
	}
	if made == 0 {
		t.answers++
	}
}

// changedBefore begins the result of a call whose arguments a person has changed.
const changedBefore = "[a person changed the arguments of this call before it ran, to: "

// settled adds a call's result. A failed one tells its state and code as JSON (spec 3.3, 4.3);
// whatever else it says is shown as it is.
func (o outcome) settled(result provider.Result) outcome {
	o.content, o.failed = result.Content, result.IsError
	if rest, ok := strings.CutPrefix(o.content, changedBefore); ok {
		to, after, _ := strings.Cut(rest, "]\n")
		var args arguments
		if json.Unmarshal([]byte(to), &args) == nil {
			o.args = args
		}
		o.edited, o.content = true, after
	}
	if !o.failed {
		return o
	}
	o.state = regie.CallFailed
	var told struct {
		Status regie.CallState  `json:"status"`
		Error  *regie.CallError `json:"error"`
	}
	if json.Unmarshal([]byte(o.content), &told) == nil && told.Error != nil {
		o.state, o.code, o.content = told.Status, told.Error.Code, told.Error.Message
	}
	return o
}

// say is a sentence in the language of the request.
func (t *thread) say(english, french string, args ...any) string {
	if t.french {
		english = french
	}
	if len(args) == 0 {
		return english
	}
	return fmt.Sprintf(english, args...)
}

// n writes an amount with its noun.
func (t *thread) n(n int, english, french string) string {
	noun := t.say(english, french)
	if n != 1 && (!t.french || n > 1) {
		if !t.french && strings.HasSuffix(noun, "y") {
			noun = strings.TrimSuffix(noun, "y") + "ies"
		} else {
			noun += "s"
		}
	}
	return strconv.Itoa(n) + " " + noun
}

func (t *thread) has(tool string) bool {
	_, ok := t.tools[tool]
	return ok
}
