package dialect

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// InstructionsID is the heading under which a model is told how to reply.
const InstructionsID = "replies"

// Instructions is what a model reads of how to reply and which commands it has: a part of level 1 (spec 6.1). The same tools and options
// give the same bytes.
func (j *JSON) Instructions() string {
	var b strings.Builder
	b.WriteString("## " + InstructionsID + "\nYour whole reply is exactly one JSON object, with no text before or after it and no code fence. Its JSON Schema:\n")
	b.Write(j.Schema())
	b.WriteString("\nA reply is one of these; anything else is sent back to you, and nothing of it is run:\n")
	for _, line := range j.patterns() {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("A command is {\"type\": its name, \"params\": an object that fits its schema}. Commands run in the order in which they stand. ")
	if n := j.options.CallsInReply; n > 0 {
		fmt.Fprintf(&b, "Of one reply at most %d run. ", n)
	}
	b.WriteString("The next message brings one result for each, in that order. ")
	b.WriteString("Inside strings write line breaks as \\n and quotation marks as \\\".\n")
	for _, list := range []struct {
		title string
		kind  regie.CallKind
	}{{"Queries, for data_commands:", regie.KindQuery}, {"Actions, for action_commands:", regie.KindAction}} {
		j.writeList(&b, list.title, list.kind)
	}
	return b.String()
}

func (j *JSON) patterns() []string {
	out := []string{
		`the answer: {"pre_text": "…"}; it ends your turn`,
		`queries: {"pre_text": "…", "data_commands": [{"type": "…", "params": {…}}]}; you go on when you have read the results`,
	}
	actions := `actions: {"pre_text": "…", "action_commands": [{"type": "…", "params": {…}}]}, never beside queries. "validation_request": true has a person check them before they run. `
	if j.options.Automation {
		actions += `You go on when you have read the results.`
	} else {
		actions += `When all of them succeed the person reads "post_text" and your turn ends, unless "keep_control" is true: then you read the results and go on. When one fails you always go on.`
	}
	out = append(out, actions)
	if slices.Contains(j.offered(), "communication_module") {
		out = append(out, `a question: {"pre_text": "…", "communication_module": {"type": "…", "data": {…}}}; the next message brings the person's answer`)
	}
	if slices.Contains(j.offered(), "completed") {
		out = append(out, `the end of the work: {"pre_text": what was done and what came of it, "completed": true}, never beside commands`)
	}
	if slices.Contains(j.offered(), "plan") {
		out = append(out, `"plan" may stand beside any of them: what you mean to do and how far you are, the whole of it each time`)
	}
	return out
}

// offered are the fields that a reply may have here.
func (j *JSON) offered() []string {
	var out []string
	for _, field := range fields {
		switch field {
		case "communication_module":
			if j.byRole[regie.RoleQuestion] == nil || !j.options.Questions {
				continue
			}
		case "completed":
			if j.byRole[regie.RoleComplete] == nil {
				continue
			}
		case "plan":
			if j.byRole[regie.RolePlan] == nil {
				continue
			}
		}
		out = append(out, field)
	}
	return out
}

func (j *JSON) writeList(b *strings.Builder, title string, kind regie.CallKind) {
	b.WriteString("\n" + title + "\n")
	none := true
	for i := range j.definitions {
		d := &j.definitions[i]
		if d.Kind != kind || fieldOf(d.Role) != "" {
			continue
		}
		none = false
		b.WriteString("- " + d.Name)
		if len(d.Aliases) > 0 {
			b.WriteString(" (also " + strings.Join(d.Aliases, ", ") + ")")
		}
		// A description of several lines is indented, so that each line is seen to belong to its command.
		b.WriteString(": " + strings.ReplaceAll(strings.TrimSpace(d.Description), "\n", "\n  ") + "\n  params: ")
		b.Write(compact(d.Parameters))
		b.WriteByte('\n')
	}
	if none {
		b.WriteString("(none)\n")
	}
}

// commandList is the schema of both lists: which names there are, and what they take, stands below it once.
const commandList = `{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"params":{"type":"object"}},"required":["type"],"additionalProperties":false}}`

// moduleSchema is what is published of the communication modules (spec 4.5).
const moduleSchema = `{"oneOf":[` +
	`{"type":"object","properties":{"type":{"const":"MultipleChoice"},"data":{"type":"object","properties":{"question":{"type":"string"},` +
	`"options":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":20},"allow_multiple":{"type":"boolean"},"allow_free_text":{"type":"boolean"}},` +
	`"required":["question","options"],"additionalProperties":false}},"required":["type","data"],"additionalProperties":false},` +
	`{"type":"object","properties":{"type":{"const":"Validation"},"data":{"type":"object","properties":{"message":{"type":"string",` +
	`"description":"a question that is answered with yes or no"}},"required":["message"],"additionalProperties":false}},"required":["type","data"],"additionalProperties":false}]}`

// Schema is the JSON Schema of a reply, for the instructions and for servers that can hold a model to one. What goes together is not in
// it, because such servers take no alternatives at the top.
func (j *JSON) Schema() json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	for i, field := range j.offered() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, field), ':')
		switch field {
		case "pre_text":
			b = append(b, `{"type":"string","description":"what the person reads"}`...)
		case "post_text":
			b = append(b, `{"type":"string","description":"what the person reads once all actions succeeded"}`...)
		case "data_commands", "action_commands":
			b = append(b, commandList...)
		case "communication_module":
			b = append(b, moduleSchema...)
		case "plan":
			b = append(b, compact(j.byRole[regie.RolePlan].Parameters)...)
		default:
			b = append(b, `{"type":"boolean"}`...)
		}
	}
	return append(b, `},"required":["pre_text"],"additionalProperties":false}`...)
}

// compact writes a schema on one line.
func compact(schema json.RawMessage) []byte {
	if len(schema) == 0 {
		return []byte(`{"type":"object"}`)
	}
	value := jsontext.Value(slices.Clone(schema))
	if value.Compact(jsonv2.Deterministic(true)) != nil { // a registry takes no such schema
		return []byte(`{"type":"object"}`)
	}
	return value
}
