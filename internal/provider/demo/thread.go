package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// The tools that the rules can drive, by their names on the wire (decision 27).
const (
	toolList     = "files__list_files"
	toolRead     = "files__read_file"
	toolWrite    = "files__write_file"
	toolEdit     = "files__edit_file"
	toolDelete   = "files__delete_file"
	toolSearch   = "files__search_text"
	toolShell    = "shell__shell_exec"
	toolAsk      = "session__ask_user"
	toolComplete = "session__complete"
)

// reply is the text and the calls of one reply; introduced says that the text names the speaker.
type reply struct {
	text       string
	calls      []provider.Call
	introduced bool
}

// arguments are those of all tools; each call leaves out the ones it does not use.
type arguments struct {
	Path     string   `json:"path,omitempty"`
	Content  string   `json:"content,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	Edits    []edit   `json:"edits,omitempty"`
	Query    string   `json:"query,omitempty"`
	Command  string   `json:"command,omitempty"`
	Question string   `json:"question,omitempty"`
	Options  []string `json:"options,omitempty"`
	Summary  string   `json:"summary,omitempty"`
}

type edit struct {
	Old string `json:"old"`
	New string `json:"new"`
	All bool   `json:"all"`
}

// outcome is a call of the thread with its result.
type outcome struct {
	tool    string
	args    arguments
	content string
	failed  bool
	state   regie.CallState // of a failed call
	code    regie.Code      // of a failed call
}

// thread is the current request of a conversation, with the calls made for it.
type thread struct {
	tools    map[string]provider.Tool
	french   bool
	message  string
	outcomes []outcome // since the request
	used     int       // how many outcomes the plan has taken
	lastFile string    // the last file mentioned before the request
	calls    int       // the highest number of a call so far
	answers  int       // replies without calls
}

// notice matches the system's notices, LIMIT_REACHED and the like: they request nothing.
var notice = regexp.MustCompile(`^\[[A-Z_]+\] `)

// nextReply returns the next reply to a thread, given the declared tools by their wire names.
func nextReply(tools map[string]provider.Tool, turns []provider.Turn) reply {
	if r, ok := completeRun(tools, turns); ok {
		return r
	}
	t := readThread(tools, turns)
	started := t.calls > 0
	r := t.runPlan()
	// The first reply names the speaker, and so does the first answer, because some people see only
	// that.
	if !r.introduced && t.answers == 0 && (!started || len(r.calls) == 0) {
		r.text = t.say("(This is the demo: a few rules, not a model.)",
			"(Ceci est la démonstration : quelques règles, pas un modèle.)") + " " + r.text
	}
	return r
}

// runPlan runs the plan for the request from its beginning.
func (t *thread) runPlan() reply {
	plan, asked, french := findIntent(t.message)
	if plan == nil {
		return t.decline(asked)
	}
	t.french = french
	if spokenOf.MatchString(asked["path"]) {
		asked["path"] = t.lastFile
	}
	if asked["path"] == "" {
		return reply{text: t.say("Which file do you mean? Name it, please.",
			"De quel fichier parlez-vous ? Nommez-le, s'il vous plaît.")}
	}
	return plan(t, asked)
}

// completeRun ends an unattended run: an answer does not end it, and a notice says so.
func completeRun(tools map[string]provider.Tool, turns []provider.Turn) (reply, bool) {
	n := len(turns)
	if n < 2 || tools[toolComplete].Name == "" || !strings.HasPrefix(textOf(&turns[n-1]), "[COMPLETE_REFUSED] ") {
		return reply{}, false
	}
	summary := arguments{Summary: textOf(&turns[n-2])}
	return reply{calls: []provider.Call{newCall(fmt.Sprintf("demo_end_%d", n), toolComplete, summary)}}, true
}

func newCall(id, tool string, args arguments) provider.Call {
	data, _ := json.Marshal(args) // strings and booleans always encode
	return provider.Call{ID: id, Name: tool, Arguments: string(data)}
}

// readThread finds the current request, the calls made for it, and the file last spoken of.
func readThread(tools map[string]provider.Tool, turns []provider.Turn) *thread {
	t := &thread{tools: tools}
	open := map[string]outcome{}
	for i := range turns {
		turn := &turns[i]
		switch turn.Role {
		case provider.RoleUser:
			if text := textOf(turn); !notice.MatchString(text) {
				t.startRequest(text)
			}
		case provider.RoleAssistant:
			t.addReply(turn, open)
		case provider.RoleTool:
			for _, result := range turn.Results {
				if call, ours := open[result.CallID]; ours {
					t.outcomes = append(t.outcomes, call.withResult(result))
				}
			}
		}
	}
	return t
}

func (t *thread) startRequest(message string) {
	for i := range t.outcomes {
		o := &t.outcomes[i]
		if o.args.Path != "" && o.tool != toolList && o.tool != toolSearch {
			t.lastFile = o.args.Path
		}
	}
	t.message, t.outcomes = message, nil
	t.french = isFrench(firstParagraph(message), t.french)
}

// addReply notes a reply and the calls that it opened. Another model's calls are no part of a plan.
func (t *thread) addReply(turn *provider.Turn, open map[string]outcome) {
	made := 0
	for _, part := range turn.Parts {
		if part.Type != regie.PartCall || part.Call == nil {
			continue
		}
		made++
		id, ours := strings.CutPrefix(part.Call.ID, "demo_")
		number, err := strconv.Atoi(id)
		o := outcome{tool: part.Call.Name}
		if ours && err == nil && json.Unmarshal([]byte(part.Call.Arguments), &o.args) == nil {
			t.calls = max(t.calls, number)
			open[part.Call.ID] = o
		}
	}
	if made == 0 {
		t.answers++
	}
}

// textOf returns the text of a turn, without the opening's date and user name.
func textOf(turn *provider.Turn) string {
	var text strings.Builder
	for i := range turn.Parts {
		if !turn.Parts[i].Opening {
			text.WriteString(turn.Parts[i].Text)
		}
	}
	return text.String()
}

// withResult adds a call's result: its outcome as JSON, with a text below it (spec 3.3, 4.3).
func (o outcome) withResult(result provider.Result) outcome {
	o.failed = result.IsError
	var came struct {
		Status   regie.CallState  `json:"status"`
		Result   json.RawMessage  `json:"result"`
		Error    *regie.CallError `json:"error"`
		Executed json.RawMessage  `json:"executed_params"`
	}
	head, content, _ := strings.Cut(result.Content, "\n")
	if json.Unmarshal([]byte(head), &came) != nil {
		content = result.Content
	}
	o.content = strings.TrimRight(cmp.Or(content, string(came.Result)), "\n")
	var now arguments
	if len(came.Executed) > 0 && json.Unmarshal(came.Executed, &now) == nil {
		o.args = now
	}
	if came.Error != nil {
		o.state, o.code, o.content = came.Status, came.Error.Code, came.Error.Message
	}
	return o
}

// callTool returns the results of calls that an earlier reply made; without results wait is the
// reply that makes them.
func (t *thread) callTool(said, tool string, wanted ...arguments) (done []outcome, wait *reply) {
	if t.used < len(t.outcomes) {
		done = t.outcomes[t.used:min(len(t.outcomes), t.used+len(wanted))]
		t.used += len(done)
		for i := range done {
			if done[i].tool != tool || dropped.MatchString(done[i].content) {
				return nil, &reply{text: t.say("I have lost the thread of this request: please say it again.",
					"J'ai perdu le fil de cette demande : redites-la, s'il vous plaît.")}
			}
		}
		return done, nil
	}
	if _, declared := t.tools[tool]; !declared {
		return nil, &reply{text: t.say("I have no tool for that: %s is not in my scope, so I cannot go on.",
			"Je n'ai pas d'outil pour cela : %s n'est pas à ma portée, je ne peux pas continuer.",
			strings.ReplaceAll(tool, "__", "."))}
	}
	wait = &reply{text: said}
	for _, args := range wanted {
		t.calls++
		wait.calls = append(wait.calls, newCall(fmt.Sprintf("demo_%d", t.calls), tool, args))
	}
	return nil, wait
}

// dropped matches a result that the prompt leaves out to make room.
var dropped = regexp.MustCompile(`^\[this result of \d+ bytes is left out to make room`)
