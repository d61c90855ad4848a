package demo

import (
	"regexp"
	"strconv"
	"strings"
)

const (
	space     = `(?:[\s\p{Z}]+)`
	quotation = "\"[^\"]*\"|'[^']*'|“[^”]*”|‘[^’]*’|«[^»]*»|`[^`]*`"
	unquoted  = `[^"“”«»]+?`
	// word is a path that is not quoted. It does not end with a full stop or an apostrophe.
	inner = "[^\\s\\p{Z}\"“”«»`,;:!?…]*"
	word  = inner + "[^\\s\\p{Z}\"“”«»`,;:!?….'’]"
	// filePath looks like a path rather than like a word: notes/a.md, hello.txt.
	filePath = inner + "[./]" + word
	pronoun  = "it|that file|this file|ce fichier"
	article  = "(?:(?:the|my|le|la|mon|ma) )?(?:l['’])?(?:(?:file|folder|directory|fichier|dossier|répertoire) )?@?"
)

// spokenOf matches words that refer to the last file of the conversation.
var spokenOf = regexp.MustCompile("(?i)^(?:" + pronoun + ")$")

// blocks are the building blocks of the patterns. Text that is not quoted has no quotation marks,
// so that no second request hides in it.
var blocks = strings.NewReplacer(
	"{text}", "(?P<text>"+quotation+"|"+unquoted+")",
	"{rest}", "(?P<text>.+)",
	"{query}", "(?P<text>"+quotation+`|[^"“”«»,;:!?]+?)`,
	"{command}", "(?P<text>"+quotation+")",
	"{old}", "(?P<old>"+quotation+"|"+unquoted+")",
	"{new}", "(?P<new>"+quotation+"|"+unquoted+")",
	"{file}", article+"(?P<path>"+quotation+"|"+pronoun+"|"+filePath+")",
	"{name}", article+"(?P<path>"+quotation+"|"+pronoun+"|"+filePath+"|(?-i:[A-Z])(?:"+word+")?)",
	"{place}", article+"(?P<path>"+quotation+"|"+pronoun+"|"+word+`|\.{1,2})`,
	"{folder}", article+"(?P<path>[^\\s\\p{Z}.?!\"'“”’«»]+)",
	"{to}", article+"(?P<to>"+quotation+"|"+word+")",
	"'", "['’]",
	" ", space,
)

// What may stand around a request.
const (
	before = `(?:(?:hello|hi|hey|ok|now|please|can you|could you|would you|bonjour|salut|maintenant|` +
		`peux-tu|pouvez-vous|tu peux|s'il te plaît|s'il vous plaît),? )*`
	after = `(?:,? (?:please|thanks|merci|s'il te plaît|s'il vous plaît|stp|svp))?[\s\p{Z}.!?…]*`
)

// group matches the beginning of a named group.
var group = regexp.MustCompile(`\(\?P<\w+`)

// compilePattern makes the regular expression of a pattern, which must match a request as a whole.
// It numbers the groups, because a name can be given once.
func compilePattern(pattern string) *regexp.Regexp {
	n := 0
	pattern = group.ReplaceAllStringFunc(blocks.Replace(before+"(?:"+pattern+")"+after), func(name string) string {
		n++
		return name + strconv.Itoa(n)
	})
	return regexp.MustCompile("(?is)^" + pattern + "$")
}

var whole = regexp.MustCompile("(?s)^(?:" + quotation + ")$")

func trimQuotes(text string) string {
	text = strings.TrimSpace(text)
	if whole.MatchString(text) {
		runes := []rune(text)
		text = strings.TrimSpace(string(runes[1 : len(runes)-1]))
	}
	return text
}
