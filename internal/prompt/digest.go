package prompt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

const (
	maxDigest     = 8000 // bytes of a list that stands for a summary
	maxDigestLine = 240
)

func digestBytes(room Room) int { return max(800, min(maxDigest, room.Thread()*4/5)) }

func digestTokens(room Room) int { return digestBytes(room) / 4 }

// Digest lists what the hidden pieces were about where no model could summarise them: what an
// earlier summary says, what was asked, what was called. Of what is too much for it the oldest goes
// first. What is shown word for word behind it is not in it. w is the window that the pieces come
// from.
func (v View) Digest(pieces []Piece, w Window, c *regie.Compaction, room Room, why string) string {
	words := v.digestWords()
	left := digestBytes(room)
	opening := words.opening + shorten(oneLine(cmp.Or(words.faults[why], why)), maxDigestLine) + words.list + "\n"
	left -= len(opening)
	var before string
	if len(pieces) > 0 && pieces[0].Place < 0 && pieces[0].Message.System != nil {
		earlier := pieces[0].Message.System.Summary
		if strings.HasPrefix(earlier, words.opening) { // a list too
			_, earlier, _ = strings.Cut(earlier, "\n")
			earlier = strings.TrimPrefix(earlier, words.before+"\n")
		}
		before = words.before + "\n" + words.shortenEarlier(earlier, left/2) + "\n"
		left -= len(before)
	}
	var lines []string
	for i := len(pieces) - 1; i >= 0 && left > 0; i-- {
		if slices.Contains(c.Requests, w.placeOf(&pieces[i])+1) {
			continue
		}
		for _, line := range words.digestLines(&pieces[i]) {
			if left -= len(line) + 1; left < 0 {
				break
			}
			lines = append(lines, line)
		}
	}
	var b strings.Builder
	b.WriteString(opening)
	b.WriteString(before)
	for _, line := range slices.Backward(lines) {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// digestWords are the words of a list in one language.
type digestWords struct {
	opening, list, before, asked, said string
	faults                             map[string]string
}

var digestEnglish = digestWords{
	opening: "No summary could be made (", list: "). This is a list of what was asked and done.",
	before: "Before that:", asked: "- asked: ", said: "- said: ",
}

var digestFrench = digestWords{
	opening: "Aucun résumé n'a pu être fait (", list: "). Voici la liste de ce qui a été demandé et fait.",
	before: "Avant cela :", asked: "- demandé : ", said: "- dit : ",
	faults: map[string]string{
		summaryNone:  "le modèle n'a pas écrit de résumé",
		summaryCalls: "le modèle a appelé des outils au lieu d'écrire un résumé",
		summaryShort: "le résumé du modèle est trop court pour ce qu'il doit remplacer",
	},
}

func (v View) digestWords() *digestWords {
	if v.French {
		return &digestFrench
	}
	return &digestEnglish
}

// shortenEarlier bounds what an earlier summary says. Of a list the oldest lines go; what a model
// said before them keeps its opening.
func (w *digestWords) shortenEarlier(earlier string, most int) string {
	if len(earlier) <= most {
		return earlier
	}
	lines := strings.Split(earlier, "\n")
	first := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, w.asked) || strings.HasPrefix(line, w.said)
	})
	if first < 0 {
		return shorten(earlier, most)
	}
	kept := ""
	if first > 0 {
		kept = shorten(strings.Join(lines[:first], "\n"), most/2) + "\n"
	}
	left, from := most-len(kept), len(lines)
	for from > first && len(lines[from-1]) < left {
		from--
		left -= len(lines[from]) + 1
	}
	return kept + strings.Join(lines[from:], "\n")
}

// digestLines returns what a digest says of one message, the last line first.
func (w *digestWords) digestLines(p *Piece) (lines []string) {
	m := p.Message
	switch {
	case p.Place < 0 && m.System != nil, m.System != nil:
		return nil
	case m.Sender == regie.SenderUser:
		return []string{w.asked + shorten(oneLine(personText(m)), maxDigestLine)}
	case m.AI == nil:
		return []string{w.said + shorten(oneLine(m.Text), maxDigestLine)}
	}
	for i := len(p.Calls) - 1; i >= 0; i-- {
		c := &p.Calls[i]
		lines = append(lines, "- "+oneLine(jsonSafe(c.Tool))+" "+shorten(oneLine(jsonSafe(c.Arguments)),
			maxDigestLine)+": "+string(c.Status()))
	}
	if text := oneLine(m.AI.Text()); text != "" {
		lines = append(lines, w.said+shorten(text, maxDigestLine))
	}
	return lines
}

func oneLine(s string) string { return strings.Join(strings.Fields(jsonSafe(s)), " ") }
