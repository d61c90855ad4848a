package demo

import (
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a summary takes from its text, in characters.
const (
	maxTitle    = 120
	maxSentence = 240
)

// summary is what the rules know of a text without understanding it.
type summary struct {
	title    string
	sentence string // "" for a text without one
	words    int
	partial  bool // the file is longer than what was read
}

// numbered matches a line of a text as read_file shows it; what else stands in the result is said
// by the tool.
var numbered = regexp.MustCompile(`^ *\d+\t(.*)$`)

// extract takes a text's first heading, or its file's name, and its first sentence, and counts its
// words. It follows nothing that the text says.
func extract(from, content string) summary {
	var lines []string
	s := summary{}
	for line := range strings.SplitSeq(content, "\n") {
		if found := numbered.FindStringSubmatch(line); found != nil {
			lines = append(lines, strings.TrimSpace(found[1]))
		} else if strings.HasPrefix(line, "[") {
			s.partial = true
		}
	}
	for _, line := range lines {
		for word := range strings.FieldsSeq(line) {
			if strings.ContainsFunc(word, letter) { // a dash is no word
				s.words++
			}
		}
	}
	var paragraph string
	s.title, paragraph = opening(lines)
	if s.title == "" {
		s.title = strings.TrimSuffix(path.Base(from), path.Ext(from))
	}
	s.title, s.sentence = shorten(s.title, maxTitle), shorten(firstSentence(paragraph), maxSentence)
	return s
}

// opening finds the first heading and the first paragraph of prose; front matter, code and rules
// are neither.
func opening(lines []string) (title, paragraph string) {
	var prose []string
	fence := ""
	for i, line := range lines {
		switch {
		case fence != "":
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
		case i == 0 && line == "---":
			fence = "---"
		case strings.HasPrefix(line, "```"), strings.HasPrefix(line, "~~~"):
			fence = line[:3]
		case ruler(line) && len(prose) == 1 && title == "" && paragraph == "": // a heading that is underlined
			title, prose = prose[0], nil
		case strings.HasPrefix(line, "#") || line == "" || ruler(line):
			if title == "" {
				title = strings.Trim(line, "#=-* ")
			}
			if paragraph == "" {
				paragraph = strings.Join(prose, " ")
			}
		default:
			prose = append(prose, strings.TrimLeft(line, "-*+> "))
		}
	}
	if paragraph == "" {
		paragraph = strings.Join(prose, " ")
	}
	return title, paragraph
}

func ruler(line string) bool {
	return len(line) >= 3 && (strings.Trim(line, "=") == "" || strings.Trim(line, "-") == "" ||
		strings.Trim(line, "*") == "")
}

// abbreviations end in a full stop that ends no sentence.
var abbreviations = words("mr mrs ms dr st no vs cf p ex e.g i.e mme m etc env")

// firstSentence ends at the first mark that a new sentence, or nothing, follows.
func firstSentence(paragraph string) string {
	fields := strings.Fields(paragraph)
	for i, word := range fields {
		bare := strings.TrimRight(word, `"'”»)`)
		if !strings.HasSuffix(bare, ".") && !strings.HasSuffix(bare, "!") && !strings.HasSuffix(bare, "?") &&
			!strings.HasSuffix(bare, "…") {
			continue
		}
		if i+1 < len(fields) {
			next, _ := utf8.DecodeRuneInString(fields[i+1])
			if unicode.IsLower(next) || abbreviations[strings.ToLower(strings.TrimSuffix(bare, "."))] {
				continue
			}
		}
		return strings.Join(fields[:i+1], " ")
	}
	return strings.Join(fields, " ")
}

func shorten(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return s
}

// line is the summary on one line.
func (s summary) line(t *thread) string {
	if s.sentence == "" {
		return t.say("(no text)", "(pas de texte)")
	}
	return s.sentence
}

// count is the number of words, as far as they were read.
func (s summary) count(t *thread) string {
	if s.partial {
		return t.say("more than %d words", "plus de %d mots", s.words)
	}
	return t.n(s.words, "word", "mot")
}
