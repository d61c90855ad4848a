package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// Parse reads what a model wrote (spec 3.3). It returns a reply or what is wrong, never both.
func (j *JSON) Parse(raw string) (*Reply, *FormatErrors) {
	reply, _, errs := j.parse(raw)
	return reply, errs
}

// parse also says whether anything else stood around the object.
func (j *JSON) parse(raw string) (reply *Reply, around bool, errs *FormatErrors) {
	at, problem := extract(raw)
	if problem == nil && at.depth > maxDepth {
		problem = &FormatError{
			Expected: fmt.Sprintf("objects and lists at most %d deep", maxDepth),
			Found:    fmt.Sprintf("%d", at.depth),
		}
	}
	if problem != nil {
		return nil, at.around, &FormatErrors{List: []FormatError{*problem}}
	}
	members, problem := read(at.object)
	if problem != nil {
		return nil, at.around, &FormatErrors{List: []FormatError{*problem}}
	}
	p := parsing{dialect: j, members: members}
	p.reply()
	if len(p.errs.List) > 0 {
		return nil, at.around, &p.errs
	}
	return &p.out, at.around, nil
}

// member is one member of an object, as it was written.
type member struct {
	name  string
	value jsontext.Value
}

// read takes an object apart. Keys that stand twice are refused anywhere in it, because what counts
// would be a guess.
func read(object []byte) ([]member, *FormatError) {
	decoder := jsontext.NewDecoder(bytes.NewReader(object))
	var out []member
	_, err := decoder.ReadToken()
	for err == nil && decoder.PeekKind() != '}' {
		var name jsontext.Token
		if name, err = decoder.ReadToken(); err != nil {
			break
		}
		m := member{name: name.String()}
		if m.value, err = decoder.ReadValue(); err == nil {
			m.value = m.value.Clone() // the decoder's own bytes are written over
			out = append(out, m)
		}
	}
	if err == nil {
		if _, err = decoder.ReadToken(); err == nil {
			if _, err = decoder.ReadToken(); errors.Is(err, io.EOF) {
				return out, nil
			}
		}
	}
	return nil, syntax(err)
}

func syntax(err error) *FormatError {
	out := &FormatError{Expected: "strict JSON", Found: "something else"}
	var bad *jsontext.SyntacticError
	if !errors.As(err, &bad) {
		return out
	}
	out.Path = path(string(bad.JSONPointer))
	if errors.Is(bad.Err, jsontext.ErrDuplicateName) {
		out.Expected, out.Found = "each key once", "it stands twice in its object"
		return out
	}
	if bad.Err != nil {
		out.Found = clip(bad.Err.Error(), 200)
	}
	out.Found += " at byte " + strconv.FormatInt(bad.ByteOffset, 10) + " of the object"
	return out
}

var index = regexp.MustCompile(`^[0-9]+$`)

// path turns a JSON pointer into the way paths are written here: /action_commands/0/params is
// action_commands[0].params.
func path(pointer string) string {
	var b strings.Builder
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch {
		case index.MatchString(step) && b.Len() > 0:
			b.WriteString("[" + step + "]")
		case b.Len() > 0:
			b.WriteString("." + clip(step, 60))
		default:
			b.WriteString(clip(step, 60))
		}
		if b.Len() > 300 {
			b.WriteString("…")
			break
		}
	}
	return b.String()
}

// parsing is a reply while it is read.
type parsing struct {
	dialect *JSON
	members []member
	out     Reply
	errs    FormatErrors
	plan    []Call
	data    []Call
	actions []Call
	module  []Call
	done    bool
}

// reply reads every field, then holds what is there to the patterns of spec 2.2.
func (p *parsing) reply() {
	seen := false
	for i := range p.members {
		m := &p.members[i]
		switch m.name {
		case "pre_text":
			seen = true
			p.out.PreText = p.text(m, true)
		case "post_text":
			p.out.PostText = p.text(m, false)
		case "validation_request":
			p.out.ValidationRequest = p.boolean(m.name, m.value)
		case "keep_control":
			p.out.KeepControl = p.boolean(m.name, m.value)
		case "data_commands":
			p.data = p.commands(m, regie.KindQuery)
		case "action_commands":
			p.actions = p.commands(m, regie.KindAction)
		case "communication_module":
			p.readModule(m)
		case "completed":
			p.readCompleted(m)
		case "plan":
			p.readPlan(m)
		default:
			p.errs.add(clip(m.name, 60), "one of the fields "+strings.Join(p.dialect.offered(), ", "),
				"a field that does not exist", meant(m.name, fields))
		}
	}
	if !seen {
		p.errs.add("pre_text", "a text: what the person reads", "nothing", "")
	}
	p.patterns()
	p.out.Calls = append(append(append(p.plan, p.data...), p.actions...), p.module...)
	if p.done {
		p.out.Calls = append(p.out.Calls, p.dialect.completed(p.out.PreText))
	}
}

// patterns refuses what does not go together (spec 2.2, decisions 7 and 13). A field that says
// nothing is no field.
func (p *parsing) patterns() {
	commands := len(p.data) > 0 || len(p.actions) > 0
	if len(p.data) > 0 && len(p.actions) > 0 {
		p.errs.add("action_commands", "either data_commands or action_commands", "both",
			"ask first, and act when the results are here")
	}
	if len(p.module) > 0 && commands {
		p.errs.add("communication_module", "a question in a reply without commands", "one beside commands",
			"ask first, or run the commands first")
	}
	if p.done && commands {
		p.errs.add("completed", "completed in a reply without commands", "it beside commands",
			"say it when their results are here")
	}
	if p.done && len(p.module) > 0 {
		p.errs.add("completed", "completed in a reply without a question",
			"it beside communication_module", "wait for the answer first")
	}
	if len(p.actions) > 0 {
		return
	}
	for _, field := range []struct {
		name string
		used bool
	}{
		{"validation_request", p.out.ValidationRequest},
		{"post_text", p.out.PostText != ""},
		{"keep_control", p.out.KeepControl},
	} {
		if field.used {
			p.errs.add(field.name, "it only beside action_commands", "it without them", "")
		}
	}
}

// text reads a string for people.
func (p *parsing) text(m *member, required bool) string {
	text, ok := stringOf(m.value)
	switch {
	case ok && strings.TrimSpace(text) != "":
		return text
	case ok && required:
		p.errs.add(m.name, "a text that is not empty", "an empty one", "")
	case !ok && (required || m.value.Kind() != 'n'):
		p.errs.add(m.name, "a text", describe(m.value), "")
	}
	return ""
}

func (p *parsing) boolean(at string, value jsontext.Value) bool {
	switch value.Kind() {
	case 't', 'f':
		return value.Kind() == 't'
	case 'n':
	default:
		p.errs.add(at, "true or false", describe(value), "")
	}
	return false
}

func (p *parsing) readCompleted(m *member) {
	p.done = p.boolean(m.name, m.value)
	if p.done && p.dialect.byRole[regie.RoleComplete] == nil {
		p.done = false
		p.errs.add(m.name, "no completed here", "it", "your answer ends the work")
	}
}

func (p *parsing) readPlan(m *member) {
	tool := p.dialect.byRole[regie.RolePlan]
	switch {
	case m.value.Kind() == 'n':
	case tool == nil:
		p.errs.add(m.name, "no plan here", "it", "")
	case m.value.Kind() != '{':
		p.errs.add(m.name, `an object {"steps": […]}`, describe(m.value), "")
	default:
		p.plan = []Call{{Tool: tool.Name, Kind: tool.Kind, Role: regie.RolePlan, Arguments: string(m.value)}}
	}
}

// completed is the call that completed is: its summary is what the person reads anyway.
func (j *JSON) completed(text string) Call {
	tool := j.byRole[regie.RoleComplete]
	if utf8.RuneCountInString(text) > maxSummary {
		text = string([]rune(text)[:maxSummary-1]) + "…"
	}
	arguments := append(appendString([]byte(`{"summary":`), text), '}')
	return Call{Tool: tool.Name, Kind: tool.Kind, Role: regie.RoleComplete, Arguments: string(arguments)}
}

// stringOf returns a JSON string as every store takes it: without NUL.
func stringOf(value jsontext.Value) (string, bool) {
	if value.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return "", false
	}
	return strings.ReplaceAll(string(text), "\x00", "\uFFFD"), true
}

// describe says what a value is, for a model that wrote another than it should have.
func describe(value jsontext.Value) string {
	switch value.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return string(value)
	case '"':
		if text, ok := stringOf(value); ok {
			return "the text " + quoted(text)
		}
		return "a text"
	case '0':
		return "the number " + clip(string(value), 40)
	case '[':
		return "a list"
	case '{':
		return "an object"
	default:
		return "something else"
	}
}

// meant names the known word that a model nearly wrote: in another case, with other signs between.
func meant(name string, known []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	if len(name) > 60 {
		return ""
	}
	for _, word := range known {
		if plain(word) == plain(name) {
			return "write " + word
		}
	}
	return ""
}
