package prompt

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// Asked is what an answer is about: what the person wrote last, and what tools have brought since.
// The zero value is ready.
type Asked struct {
	Request  string
	Calls    []regie.Call
	Rewrites int // how often an answer was sent back since
}

// Observe takes the next message of the thread, with the calls that are its own or that it brings.
func (a *Asked) Observe(e Entry) {
	switch m := e.Message; {
	case m.Superseded || m.ExcludeFromPrompt:
	case m.Sender == regie.SenderUser:
		*a = Asked{Request: cmp.Or(m.Text, m.LinearText())}
	case e.bringsResults() && !m.Enriching():
		for i := range e.Calls {
			if !strings.HasPrefix(e.Calls[i].Tool, sessionTools) { // a plan or a person's answer is no result
				a.Calls = append(a.Calls, e.Calls[i])
			}
		}
	case m.System != nil && m.System.Type == regie.SystemFormatError && len(m.System.Said) > 0:
		a.Rewrites++
	}
}

// Answer is an answer after results, with what it is judged by (decision 63).
type Answer struct {
	Asked
	Text   string
	Strict bool // it has four parts, too
	// Wrote reports whether the person wrote a text at some time. It is called only for what looks
	// like an id.
	Wrote func(text string) bool
}

// Fault is what is wrong with an answer.
type Fault string

// The faults that an answer is sent back for.
const (
	FaultNone  Fault = ""
	FaultRaw   Fault = "raw JSON"
	FaultID    Fault = "an id"
	FaultSorry Fault = "an apology"
	FaultForm  Fault = "other than four parts"
)

// Check looks for what a person should not get, outside code fences: the JSON of a result as the
// whole answer, an id that the person did not write, an opening apology although everything
// succeeded. A person who asks for JSON or for ids gets them.
func (a *Answer) Check() Fault {
	text := strings.TrimSpace(outsideFences(a.Text))
	switch {
	case !asksForJSON.MatchString(a.Request) && a.isResult(text):
		return FaultRaw
	case !asksForIDs.MatchString(a.Request) && a.namesID(text):
		return FaultID
	case a.allSucceeded() && apology.MatchString(beginningOf(text)):
		return FaultSorry
	case a.Strict && !hasFourParts(a.Text):
		return FaultForm
	default:
		return FaultNone
	}
}

var (
	asksForJSON = regexp.MustCompile(`(?i)json`)
	asksForIDs  = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:ids?|uuids?|identifiers?|identifiants?)(?:[^\pL]|$)`)
)

// Correction is the model's correction for a fault.
func (f Fault) Correction(french bool) string {
	said := map[Fault][2]string{
		FaultRaw: {
			"Your answer is the raw JSON of a result. The person cannot read that: say in plain words what it means, and show of the result only what matters.",
			"Ta réponse est le JSON brut d'un résultat. La personne ne peut pas le lire : dis avec des mots simples ce qu'il signifie, et ne montre du résultat que ce qui compte.",
		},
		FaultID: {
			"Your answer names an internal id that the person never wrote. Call the thing by its name.",
			"Ta réponse cite un identifiant interne que la personne n'a jamais écrit. Désigne la chose par son nom.",
		},
		FaultSorry: {
			"Your answer apologises, but every step succeeded. Say what was done and what came of it, without an apology.",
			"Ta réponse s'excuse, mais chaque étape a réussi. Dis ce qui a été fait et ce qui en est sorti, sans excuse.",
		},
		FaultForm: {fourParts[0], fourParts[1]},
	}[f]
	if french {
		return said[1] + " Écris la réponse de nouveau, entière."
	}
	return said[0] + " Write the answer again, whole."
}

// Notice is the message about it for people.
func (f Fault) Notice() regie.Sentence {
	switch f {
	case FaultRaw:
		return regie.Say("the answer is raw JSON; the model is asked again for plain words")
	case FaultID:
		return regie.Say("the answer names an internal id; the model is asked again")
	case FaultSorry:
		return regie.Say("the answer apologises for an action that succeeded; the model is asked again")
	default:
		return regie.Say("the answer does not have the four parts that the agent wants; the model is asked again")
	}
}

// apology matches the writer's own apology, not "No file was found, unfortunately".
var apology = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:i(?:'|’)?m (?:so |very |really )?sorry|i am (?:so |very |really )?sorry|sorry,? (?:but|for|about|that)|` +
	`apolog(?:y|ies|i[sz]e)|je suis (?:vraiment |sincèrement )?désolée?|désolée?,? (?:pour|de|mais|que)|je m(?:'|’)excuse|excuse[zs]?[- ]moi|mes excuses)`)

// beginningOf returns the part of a text where an apology counts as one: later the text has other
// subjects.
func beginningOf(text string) string {
	const most = 200
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// outsideFences returns a text without its fenced blocks.
func outsideFences(text string) string {
	var out strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// isResult reports whether a text is the JSON of a result: the results hold all its texts.
func (a *Answer) isResult(text string) bool {
	var value any
	if !isJSON(text) || !strings.Contains(text, `":`) || json.Unmarshal([]byte(text), &value) != nil {
		return false
	}
	return strings.Contains(text, `"duration_ms":`) || a.resultsSay(value)
}

// resultsSay reports whether all texts of a JSON value stand in the results.
func (a *Answer) resultsSay(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if !a.resultsSay(item) {
				return false
			}
		}
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !a.resultsSay(item) })
	case string:
		quoted, _ := json.Marshal(v) // a text always encodes
		return slices.ContainsFunc(a.Calls, func(c regie.Call) bool {
			return strings.Contains(c.Result, v) || strings.Contains(c.Result, string(quoted[1:len(quoted)-1]))
		})
	}
	return true
}

// idLike matches what may be an id: a word with three digits in a row or sixteen characters, and no
// name of a file.
var (
	uuid   = regexp.MustCompile(`(?i)^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$`)
	isPath = regexp.MustCompile(`^(?:/|\.\w)`)
	idLike = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_-]*(?:[0-9]{3}|[A-Za-z0-9_-]{15})[A-Za-z0-9_-]*`)
)

// namesID reports whether a text names an id that the person did not write.
func (a *Answer) namesID(text string) bool {
	for _, at := range idLike.FindAllStringIndex(text, -1) {
		word, before, behind := text[at[0]:at[1]], text[:at[0]], text[at[1]:]
		if strings.HasSuffix(before, "/") || isPath.MatchString(behind) {
			continue
		}
		if (uuid.MatchString(word) || a.callsID(word)) && !a.Wrote(word) {
			return true
		}
	}
	return false
}

// callsID reports whether a result has a word as the value of a key such as id, note_id or noteId.
func (a *Answer) callsID(word string) bool {
	if !strings.ContainsAny(word, "0123456789") {
		return false
	}
	for i := range a.Calls {
		before, _, found := strings.Cut(a.Calls[i].Result, `"`+word+`"`)
		if found && idKey.MatchString(before[max(0, len(before)-60):]) {
			return true
		}
	}
	return false
}

var idKey = regexp.MustCompile(`(?:["_-](?:id|ID|uuid)|[a-z]I[dD])"\s*:\s*$`)

func (a *Answer) allSucceeded() bool {
	for i := range a.Calls {
		if c := &a.Calls[i]; c.State != regie.CallSucceeded && c.NotRun != regie.NotRunDuplicateInBatch &&
			c.NotRun != regie.NotRunCached {
			return false
		}
	}
	return len(a.Calls) > 0
}

// fourParts asks for the form that hasFourParts looks for.
var fourParts = [2]string{
	"Answer in 4 to 6 sentences: first what you did (\"I …\"), then what it means for the person, then the result, and last one offer or question about the next step.",
	"Réponds en 4 à 6 phrases : d'abord ce que tu as fait (« J'ai … »), puis ce que cela signifie pour la personne, puis le résultat, et enfin une proposition ou une question sur la suite.",
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?…]+["'»”)*_]*(?:\s+|$)|\n\s*\n`)
	listed      = regexp.MustCompile(`(?m)^[ \t]*(?:[-*+•]\s|[|>#]|\d+[.)]\s).*$`)
	firstPerson = regexp.MustCompile(`(?i)(?:^|[^\pL])(?:i|we|j['’]|je|nous)(?:[^\pL]|ai\b|$)`)
	nextStep    = regexp.MustCompile(`(?i)\?|next step|i can|you can|let me know|étape|je peux|tu peux|vous pouvez|(?:dis|dites)-moi`)
)

// hasFourParts reports whether an answer has 4 to 6 sentences, begins with what the model did and
// ends with what can follow. Blocks, lists and tables are together the sentence that shows the
// result. It knows English and French.
func hasFourParts(text string) bool {
	prose := outsideFences(text)
	shows := len(prose) < len(text) || listed.MatchString(prose)
	var sentences []string
	for _, s := range sentenceEnd.Split(listed.ReplaceAllString(prose, "\n\n"), -1) {
		if s = strings.TrimSpace(s); s != "" && (!shows || !strings.HasSuffix(s, ":")) {
			sentences = append(sentences, s)
		}
	}
	n := len(sentences)
	if n == 0 {
		return false
	}
	last := prose[max(0, strings.LastIndex(prose, sentences[n-1])):] // with its mark
	if shows {
		n++
	}
	return n >= 4 && n <= 6 && firstPerson.MatchString(sentences[0]) && nextStep.MatchString(last)
}
