package prompt

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/regie-run/regie"
)

// Answer is an answer after results, with what it is judged by (spec 6.2).
type Answer struct {
	Text    string
	Request string       // what the person wrote last
	Calls   []regie.Call // whose results the answer is about
}

// Fault is what is wrong with an answer.
type Fault string

// The faults that an answer is sent back for.
const (
	FaultNone  Fault = ""
	FaultRaw   Fault = "raw JSON"
	FaultSorry Fault = "an apology"
)

// Check looks for what a person should not get (spec 6.2): results as raw JSON, unless they asked
// for that; an apology although everything succeeded.
func (a *Answer) Check() Fault {
	switch {
	case !strings.Contains(strings.ToLower(a.Request), "json") && hasRawJSON(a.Text):
		return FaultRaw
	case a.allSucceeded() && apology.MatchString(beginningOf(a.Text)):
		return FaultSorry
	default:
		return FaultNone
	}
}

// Correction is the model's correction for a fault, sent once.
func (f Fault) Correction(french bool) string {
	said := map[Fault][2]string{
		FaultRaw: {
			"Your answer shows raw JSON. The person cannot read that: say in plain words what it means, and show of the result only what matters.",
			"Ta réponse montre du JSON brut. La personne ne peut pas le lire : dis avec des mots simples ce qu'il signifie, et ne montre du résultat que ce qui compte.",
		},
		FaultSorry: {
			"Your answer apologises, but every step succeeded. Say what was done and what came of it, without an apology.",
			"Ta réponse s'excuse, mais chaque étape a réussi. Dis ce qui a été fait et ce qui en est sorti, sans excuse.",
		},
	}[f]
	if french {
		return said[1] + " Écris la réponse de nouveau, entière."
	}
	return said[0] + " Write the answer again, whole."
}

// Notice is the message about it for people.
func (f Fault) Notice() regie.Sentence {
	if f == FaultRaw {
		return regie.Say("the answer shows raw JSON; the model is asked again for plain words")
	}
	return regie.Say("the answer apologises for an action that succeeded; the model is asked again")
}

// AnswerTo makes what an answer is judged by from the thread before it.
func AnswerTo(thread []Entry, text string) Answer {
	out := Answer{Text: text}
	for i := range thread {
		switch e, m := &thread[i], thread[i].Message; {
		case m.Superseded || m.ExcludeFromPrompt:
		case m.Sender == regie.SenderUser:
			out.Request, out.Calls = cmp.Or(m.Text, m.LinearText()), nil
		case e.bringsResults() && !m.Enriching():
			out.Calls = e.Calls
		}
	}
	return out
}

// apology matches the writer's own apology, not "No file was found, unfortunately".
var apology = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:i(?:'|’)?m (?:so |very |really )?sorry|i am (?:so |very |really )?sorry|sorry,? (?:but|for|about|that)|` +
	`apolog(?:y|ies|i[sz]e)|je suis (?:vraiment |sincèrement )?désolée?|désolée?,? (?:pour|de|mais|que)|je m(?:'|’)excuse|excuse[zs]?[- ]moi|mes excuses)`)

// beginningOf returns the part of a text where an apology counts as one: later the text has other
// subjects.
func beginningOf(text string) string {
	text = strings.TrimSpace(text)
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// hasRawJSON reports whether a text is a JSON object or list, or has a paragraph or a fenced block
// that is one. A list of two numbers, or an empty object, is no dumped result.
func hasRawJSON(text string) bool {
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		paragraph = strings.TrimSpace(paragraph)
		if body, fenced := strings.CutPrefix(paragraph, "```"); fenced {
			if line, rest, ok := strings.Cut(body, "\n"); ok && (line == "" || strings.EqualFold(line, "json")) {
				paragraph = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
			}
		}
		value := jsontext.Value(paragraph)
		if kind := value.Kind(); (kind == '{' || kind == '[') && strings.Contains(paragraph, `":`) && value.IsValid() {
			return true
		}
	}
	return false
}

func (a *Answer) allSucceeded() bool {
	for i := range a.Calls {
		if a.Calls[i].State != regie.CallSucceeded {
			return false
		}
	}
	return len(a.Calls) > 0
}
