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

// InstructionsID is the heading of the instructions for replies.
const InstructionsID = "replies"

// Instructions is what a model reads of how to reply and which commands it has: a part of level 1
// (spec 6.1). The same tools and options give the same bytes.
func (j *JSON) Instructions() string {
	var b strings.Builder
	b.WriteString("## " + InstructionsID + "\n" + j.say(
		"Your whole reply is exactly one JSON object, with no text before or after it and no code fence. Its JSON Schema:\n",
		"Toute ta réponse est exactement un objet JSON, sans texte avant ni après et sans bloc de code. Son JSON Schema :\n"))
	b.Write(j.Schema())
	b.WriteString(j.say("\nA reply is one of these; anything else is sent back to you, and nothing of it is run:\n",
		"\nUne réponse est l'une de celles-ci ; toute autre t'est renvoyée, et rien n'en est exécuté :\n"))
	for _, line := range j.patterns() {
		b.WriteString("- " + line + "\n")
	}
	b.WriteString(j.say(
		"A command is {\"type\": its name, \"params\": an object that fits its schema}. Commands run in the order in which they stand. ",
		"Une commande est {\"type\": son nom, \"params\": un objet conforme à son schéma}. Les commandes s'exécutent dans l'ordre où elles sont écrites. "))
	if n := j.options.CallsInReply; n > 0 {
		fmt.Fprintf(&b, j.say("Of one reply at most %d run. ", "D'une même réponse, %d au plus sont exécutées. "), n)
	}
	b.WriteString(j.say(
		"The next message brings one result for each, in that order. Inside strings write line breaks as \\n and quotation marks as \\\".\n",
		"Le message suivant apporte un résultat pour chacune, dans cet ordre. Dans les chaînes, écris les sauts de ligne \\n et les guillemets \\\".\n"))
	j.writeList(&b, j.say("Queries, for data_commands:", "Requêtes, pour data_commands :"), regie.KindQuery)
	j.writeList(&b, j.say("Actions, for action_commands:", "Actions, pour action_commands :"), regie.KindAction)
	return b.String()
}

// say picks the language of the instructions.
func (j *JSON) say(english, french string) string {
	if j.options.French {
		return french
	}
	return english
}

func (j *JSON) patterns() []string {
	out := []string{
		j.say(`the answer: {"pre_text": "…"}; it ends your turn`,
			`la réponse : {"pre_text": "…"} ; elle termine ton tour`),
		j.say(
			`queries: {"pre_text": "…", "data_commands": [{"type": "…", "params": {…}}]}; you go on when you have read the results`,
			`des requêtes : {"pre_text": "…", "data_commands": [{"type": "…", "params": {…}}]} ; tu continues après avoir lu les résultats`),
	}
	actions := j.say(
		`actions: {"pre_text": "…", "action_commands": [{"type": "…", "params": {…}}]}, never beside queries. "validation_request": true has a person check them before they run. `,
		`des actions : {"pre_text": "…", "action_commands": [{"type": "…", "params": {…}}]}, jamais à côté de requêtes. "validation_request": true les fait vérifier par une personne avant leur exécution. `)
	if j.options.Automation {
		actions += j.say(`You go on when you have read the results.`, `Tu continues après avoir lu les résultats.`)
	} else {
		actions += j.say(
			`When all of them succeed the person reads "post_text" and your turn ends, unless "keep_control" is true: then you read the results and go on. When one fails you always go on.`,
			`Quand toutes réussissent, la personne lit "post_text" et ton tour se termine, sauf si "keep_control" est true : alors tu lis les résultats et tu continues. Quand l'une échoue, tu continues toujours.`)
	}
	out = append(out, actions)
	if slices.Contains(j.offered(), "communication_module") {
		out = append(out,
			j.say(
				`a question: {"pre_text": "…", "communication_module": {"type": "…", "data": {…}}}; the next message brings the person's answer`,
				`une question : {"pre_text": "…", "communication_module": {"type": "…", "data": {…}}} ; le message suivant apporte la réponse de la personne`))
	}
	if slices.Contains(j.offered(), "completed") {
		out = append(out,
			j.say(
				`the end of the work: {"pre_text": what was done and what came of it, "completed": true}, never beside commands`,
				`la fin du travail : {"pre_text": ce qui a été fait et ce qui en est sorti, "completed": true}, jamais à côté de commandes`))
	}
	if slices.Contains(j.offered(), "plan") {
		out = append(out,
			j.say(
				`"plan" may stand beside any of them: what you mean to do and how far you are, the whole of it each time`,
				`"plan" peut accompagner chacune d'elles : ce que tu veux faire et où tu en es, en entier chaque fois`))
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
			b.WriteString(j.say(" (also ", " (aussi ") + strings.Join(d.Aliases, ", ") + ")")
		}
		// A description of several lines is indented, so that each line is seen to belong to its
		// command.
		b.WriteString(j.say(": ", " : ") + strings.ReplaceAll(strings.TrimSpace(d.Description), "\n", "\n  ") +
			j.say("\n  params: ", "\n  params : "))
		b.Write(compact(d.Parameters))
		b.WriteByte('\n')
	}
	if none {
		b.WriteString(j.say("(none)\n", "(aucune)\n"))
	}
}

// commandList is the schema of both lists; the names and their parameters follow once, below it.
const commandList = `{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"params":{"type":"object"}},"required":["type"],"additionalProperties":false}}`

// moduleSchema is what is published of the communication modules (spec 4.5), with a place for the
// description of a question.
const moduleSchema = `{"oneOf":[` +
	`{"type":"object","properties":{"type":{"const":"MultipleChoice"},"data":{"type":"object","properties":{"question":{"type":"string"},` +
	`"options":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":20},"allow_multiple":{"type":"boolean"},"allow_free_text":{"type":"boolean"}},` +
	`"required":["question","options"],"additionalProperties":false}},"required":["type","data"],"additionalProperties":false},` +
	`{"type":"object","properties":{"type":{"const":"Validation"},"data":{"type":"object","properties":{"message":{"type":"string",` +
	`"description":%s}},"required":["message"],"additionalProperties":false}},"required":["type","data"],"additionalProperties":false}]}`

// Schema is the JSON Schema of a reply, for the instructions and for servers that can hold a model
// to one. What goes together is not in it, because such servers take no alternatives at the top.
func (j *JSON) Schema() json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	for i, field := range j.offered() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, field), ':')
		switch field {
		case "pre_text":
			b = append(b, j.text("what the person reads", "ce que la personne lit")...)
		case "post_text":
			b = append(b, j.text("what the person reads once all actions succeeded",
				"ce que la personne lit quand toutes les actions ont réussi")...)
		case "data_commands", "action_commands":
			b = append(b, commandList...)
		case "communication_module":
			asked := appendString(nil, j.say("a question that is answered with yes or no",
				"une question à laquelle on répond par oui ou non"))
			b = fmt.Appendf(b, moduleSchema, asked)
		case "plan":
			b = append(b, compact(j.byRole[regie.RolePlan].Parameters)...)
		default:
			b = append(b, `{"type":"boolean"}`...)
		}
	}
	return append(b, `},"required":["pre_text"],"additionalProperties":false}`...)
}

// text is the schema of a text with its description.
func (j *JSON) text(english, french string) []byte {
	return append(appendString([]byte(`{"type":"string","description":`), j.say(english, french)), '}')
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
