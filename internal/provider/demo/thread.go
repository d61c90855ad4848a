package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// The tools that the rules drive, by their names on the wire (decision 27).
const (
	toolList  = "files__list_files"
	toolRead  = "files__read_file"
	toolWrite = "files__write_file"
)

// batch is how many calls the rules make in one reply: the default limit of a round (spec 3.2).
const batch = 10

// reaction is a reply before it becomes one.
type reaction struct {
	text  string
	calls []provider.Call
}

// arguments are those of all three tools; what a call does not need stays away.
type arguments struct {
	Path      string `json:"path,omitempty"`
	Recursive bool   `json:"recursive,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
	StartLine int    `json:"start_line,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	Content   string `json:"content,omitempty"`
	Mode      string `json:"mode,omitempty"`
}

// outcome is a past call of the current request with its one result.
type outcome struct {
	tool    string
	args    arguments
	content string
	failed  bool
	state   regie.CallState // of a failed call, where the result tells
	code    regie.Code
}

// thread is what the rules need to know of the conversation.
type thread struct {
	request request
	words   *phrases
	tools   map[string]bool
	past    []outcome // since the request
	calls   int       // the highest number of a call id so far
	replies int       // in the whole thread
	answers int       // replies without calls
}

// notice matches what the system adds to a thread: LIMIT_REACHED and the like ask for nothing.
var notice = regexp.MustCompile(`^\[[A-Z_]+\] `)

// react is the whole provider: the next reply to a thread, given the wire names of the declared tools.
func react(tools map[string]bool, turns []provider.Turn) reaction {
	t := observe(tools, turns)
	r := t.next()
	// The first reply says who speaks, and so does the first answer, which is all that some people see.
	if t.replies == 0 || t.answers == 0 && len(r.calls) == 0 {
		r.text = strings.TrimSpace(t.words.intro + " " + r.text)
	}
	return r
}

// observe finds the current request and what was done for it.
func observe(tools map[string]bool, turns []provider.Turn) *thread {
	t := &thread{tools: tools}
	message, open := "", map[string]outcome{}
	for i := range turns {
		turn := &turns[i]
		switch turn.Role {
		case provider.RoleUser:
			if text := textOf(turn); !notice.MatchString(text) {
				message, t.past = text, nil
			}
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
	t.request = understand(message)
	t.words = &englishPhrases
	if t.request.french {
		t.words = &frenchPhrases
	}
	return t
}

func textOf(turn *provider.Turn) string {
	var text strings.Builder
	for _, part := range turn.Parts {
		text.WriteString(part.Text)
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
		_ = json.Unmarshal([]byte(part.Call.Arguments), &o.args) // another model's arguments may be anything: then there are none
		open[part.Call.ID] = o
		if number, err := strconv.Atoi(strings.TrimPrefix(part.Call.ID, "demo_")); err == nil {
			t.calls = max(t.calls, number)
		}
	}
	if made == 0 {
		t.answers++
	}
}

// settled adds a call's result. A failed one tells its state and code as JSON (spec 3.3, 4.3); whatever else it says is shown as it is.
func (o outcome) settled(result provider.Result) outcome {
	o.content, o.failed = result.Content, result.IsError
	if !o.failed {
		return o
	}
	o.state = regie.CallFailed
	var told struct {
		Status regie.CallState  `json:"status"`
		Error  *regie.CallError `json:"error"`
	}
	if json.Unmarshal([]byte(result.Content), &told) == nil && told.Error != nil {
		o.state, o.code, o.content = told.Status, told.Error.Code, told.Error.Message
	}
	return o
}

// did returns the past calls of a tool.
func (t *thread) did(tool string) []outcome {
	var out []outcome
	for i := range t.past {
		if t.past[i].tool == tool {
			out = append(out, t.past[i])
		}
	}
	return out
}

// ask replies with calls of a tool, at most batch of them; the text says what is about to happen.
func (t *thread) ask(text, tool string, wanted []arguments) reaction {
	if !t.tools[tool] {
		return t.withdrawn(tool)
	}
	r := reaction{text: text}
	for _, args := range wanted[:min(batch, len(wanted))] {
		t.calls++
		data, err := json.Marshal(args)
		if err != nil { // strings, numbers and booleans always encode
			data = []byte("{}")
		}
		r.calls = append(r.calls, provider.Call{ID: fmt.Sprintf("demo_%d", t.calls), Name: tool, Arguments: string(data)})
	}
	return r
}

// withdrawn answers where the tool for the next step is not in scope, with what was done before.
func (t *thread) withdrawn(tool string) reaction {
	text := fmt.Sprintf(t.words.noTool, tool)
	if done := t.did(toolWrite); len(done) > 0 {
		text += "\n\n" + t.report()
	}
	return reaction{text: text}
}

// problem tells what became of a call that did not succeed.
func (t *thread) problem(o *outcome) string {
	what := t.words.failed
	switch o.state {
	case regie.CallUnknown:
		what = t.words.unknown
	case regie.CallNotRun:
		what = t.words.notRun
	}
	if o.code != "" {
		what += " (" + string(o.code) + ")"
	}
	return fmt.Sprintf("%s: %s: %s", o.args.Path, what, strings.Join(strings.Fields(o.content), " "))
}
