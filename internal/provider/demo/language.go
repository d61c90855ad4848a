package demo

import (
	"fmt"
	"regexp"
	"strconv"
)

// Words that stand in one of the two languages only, and the letters of French.
var (
	englishWord = regexp.MustCompile(`(?i)\b(?:the|of|and|is|are|you|your|me|my|what|who|how|why|please|can|` +
		`could|this|that|it|with|for|from|in|to|tell|give|write|read|show|do|does|did|thanks)\b`)
	frenchWord = regexp.MustCompile(`(?i)\b(?:le|la|les|un|une|des|du|de|et|est|tu|vous|moi|mon|ma|mes|que|quel|qui|` +
		`quelle|comment|pourquoi|peux|ce|cette|dans|pour|avec|sur|merci|dis|donne|fais|lis|il|je)\b|[àâçèéêîôùû]`)
)

// isFrench compares how many words of each language a message has; a tie keeps the language of the
// conversation so far.
func isFrench(message string, before bool) bool {
	french, english := len(frenchWord.FindAllString(message, -1)), len(englishWord.FindAllString(message, -1))
	return french > english || french == english && before
}

// say returns a sentence in the language of the request.
func (t *thread) say(english, french string, args ...any) string {
	if t.french {
		english = french
	}
	return fmt.Sprintf(english, args...)
}

// countNoun returns an amount with its noun.
func (t *thread) countNoun(n int, english, french string) string {
	noun := t.say(english, french)
	if n > 1 || n == 0 && !t.french {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
