package prompt

import (
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
	Earlier []Exchanged  // what was asked and answered before in the thread
}

// Exchanged is a message of the person and its answer.
type Exchanged struct{ Request, Answer string }

// Fault is what is wrong with an answer.
type Fault string

// The faults that an answer is sent back for.
const (
	FaultNone  Fault = ""
	FaultRaw   Fault = "raw JSON"
	FaultSorry Fault = "an apology"
	FaultOlder Fault = "an older answer"
)

// minRepeated is how long an answer is at least that is taken for a repetition, in bytes: "Done."
// fits many requests.
const minRepeated = 40

// Check looks for what a person should not get (spec 6.2): results as raw JSON, unless they asked
// for that; an apology although everything succeeded; the answer to an older message word for word.
func (a *Answer) Check() Fault {
	switch {
	case !strings.Contains(strings.ToLower(a.Request), "json") && hasRawJSON(a.Text):
		return FaultRaw
	case a.allSucceeded() && apology.MatchString(beginningOf(a.Text)):
		return FaultSorry
	case a.repeats():
		return FaultOlder
	default:
		return FaultNone
	}
}

// Correction is what the model is told about a fault, once.
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
		FaultOlder: {
			"Your answer repeats the answer to an older message. Answer the newest request of the person.",
			"Ta réponse répète celle d'un message plus ancien. Réponds à la dernière demande de la personne.",
		},
	}[f]
	if french {
		return said[1] + " Écris la réponse de nouveau, entière."
	}
	return said[0] + " Write the answer again, whole."
}

// Notice is what people are told about it.
func (f Fault) Notice() regie.Sentence {
	switch f {
	case FaultRaw:
		return regie.Say("the answer shows raw JSON; it is asked for again in plain words")
	case FaultSorry:
		return regie.Say("the answer apologises for what succeeded; it is asked for again")
	default:
		return regie.Say("the answer is that of an older message; it is asked for again")
	}
}

// AnswerTo makes what an answer is judged by from the thread before it.
func AnswerTo(thread []Entry, text string) Answer {
	out := Answer{Text: text}
	var last *regie.Message // the answer of the model that nothing has followed yet
	asked := ""
	keep := func() {
		if last != nil {
			out.Earlier = append(out.Earlier, Exchanged{Request: asked, Answer: last.AI.Text()})
		}
		last = nil
	}
	for i := range thread {
		switch e, m := &thread[i], thread[i].Message; {
		case m.Superseded || m.ExcludeFromPrompt:
		case m.Sender == regie.SenderUser:
			keep()
			asked, out.Calls = m.Text, nil
			if m.Text == "" {
				asked = m.LinearText()
			}
		case m.AI != nil && len(e.Calls) == 0:
			last = m
		case m.System != nil && m.System.Type == regie.SystemFormatError: // what was sent back is no answer
			last = nil
		case e.bringsResults() && !m.Enriching():
			out.Calls = e.Calls
		}
	}
	keep()
	out.Request = asked
	return out
}

// apology is a word of apology for what the writer did. "No file was found, unfortunately" is none.
var apology = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:i(?:'|’)?m (?:so |very |really )?sorry|i am (?:so |very |really )?sorry|sorry,? (?:but|for|about|that)|` +
	`apolog(?:y|ies|i[sz]e)|je suis (?:vraiment |sincèrement )?désolée?|désolée?,? (?:pour|de|mais|que)|je m(?:'|’)excuse|excuse[zs]?[- ]moi|mes excuses)`)

// beginningOf is where an apology stands that is one: behind it the text speaks of other things.
func beginningOf(text string) string {
	text = strings.TrimSpace(text)
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// hasRawJSON reports whether a text is a JSON object or list, or has a paragraph or a fenced block
// that is one. A list of two numbers, or an empty object, is no result that anybody dumped.
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
	return saysJSON(text)
}

// quoted is what a text shows as code: a name, a file's content, an example.
var quoted = regexp.MustCompile("(?s)```.*?(?:```|$)|`[^`\n]*`")

// maxObjects bounds how many places of a text are looked at where an object could begin.
const maxObjects = 100

// saysJSON reports whether a text has a JSON object with members within its sentences, not shown as
// code.
func saysJSON(text string) bool {
	text = quoted.ReplaceAllString(text, " ")
	for range maxObjects {
		_, rest, found := strings.Cut(text, "{")
		if !found {
			return false
		}
		value, err := jsontext.NewDecoder(strings.NewReader("{" + rest)).ReadValue()
		if err == nil && strings.Contains(string(value), `"`) { // the name of a member
			return true
		}
		text = rest
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

func (a *Answer) repeats() bool {
	text := strings.Join(strings.Fields(a.Text), " ")
	if len(text) < minRepeated {
		return false
	}
	for _, e := range a.Earlier {
		if strings.Join(strings.Fields(e.Answer), " ") == text &&
			strings.TrimSpace(e.Request) != strings.TrimSpace(a.Request) {
			return true
		}
	}
	return false
}
