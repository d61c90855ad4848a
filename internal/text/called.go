package text

import (
	"regexp"
	"strings"
)

// called has the commands that sentences name carry the flags with which the program was called: a
// hint is there to be copied.
type called struct{ everywhere, here string }

// everywhere are the commands that ask a server as they ask an engine of this machine, here are
// those of this machine alone.
const (
	everywhere = `(?:agents|answer|approvals|approve|cache|chat|deny|models|prompt|rules|run|runs (?:list|replay|resolve|show)|search|sessions|tools|undo|verify)`
	here       = `(?:config|doctor|index|setup|skills|token|trust)`
)

var (
	anyEverywhere = regexp.MustCompile(`\bregie (` + everywhere + `\b)`)
	anyHere       = regexp.MustCompile(`\bregie (` + here + `\b)`)
)

// Called says with which flags commands ask what this one asked: those of commands that ask a
// server too, and those of commands of this machine. It is said before anything is printed beside
// it.
func (p *Printer) Called(everywhere, here []string) {
	p.called = &called{strings.Join(everywhere, " "), strings.Join(here, " ")}
}

// Typed is a command as it is typed to ask what this one asks.
func (p *Printer) Typed(command string) string { return p.called.in(command, command) }

// in puts the flags into a sentence whose format names a command: what people, models and files say
// is left as it is.
func (c *called) in(format, sentence string) string {
	if c == nil {
		return sentence
	}
	put := func(pattern *regexp.Regexp, flags string) {
		if flags != "" && strings.Contains(format, "regie ") && pattern.MatchString(format) {
			sentence = pattern.ReplaceAllString(sentence, "regie "+strings.ReplaceAll(flags, "$", "$$")+" $1")
		}
	}
	put(anyEverywhere, c.everywhere)
	put(anyHere, c.here)
	return sentence
}
