package demo

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// verb is what a request asks for.
type verb int

const (
	unclear verb = iota
	wantsList
	wantsRead
	wantsWrite
	wantsDigest
)

// request is what a person asks for, as far as the rules understand it.
type request struct {
	verb       verb
	french     bool
	paths      []string // of list, read and digest; cleaned, directories with a slash at the end where they were written so
	to         string   // of write and digest
	content    string   // of write
	mode       string   // of write
	pattern    string   // of list
	recursive  bool     // of list and digest
	from, upto int      // lines of read
}

// maxInstruction bounds how much of a message is looked at for what it asks.
const maxInstruction = 4 << 10

// place is a path in a request, with what stands before it.
type place struct {
	path string
	at   int  // its token
	to   bool // "to X", "into X"
	bare bool // a word that only its place makes a path: "in notes"
}

// understand reads a message. Only its first paragraph can ask for something: what follows was appended from standard input and is
// data.
func understand(message string) request {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	instruction, data, _ := strings.Cut(message, "\n\n")
	instruction = instruction[:min(len(instruction), maxInstruction)]
	list := tokens(instruction)
	r := request{french: isFrench(list)}
	places, verbs := survey(list, &r)
	switch {
	case r.digests(verbs, places):
	case (has(verbs, writing) || has(verbs, appending) || has(verbs, overwriting)) && r.writes(verbs, list, places, data):
	case has(verbs, listing), (has(verbs, asking) || has(verbs, reading)) && !namesFile(places) && (has(verbs, files) || len(places) > 0):
		r.verb, r.paths = wantsList, pathsOf(places)
	case (has(verbs, asking) || has(verbs, reading)) && len(places) > 0:
		r.reads(places, instruction)
	}
	return r
}

// survey finds the places of a request and the words that are none.
func survey(list []token, r *request) (places []place, verbs []string) {
	before := token{} // the last token that is no filler
	for i, t := range list {
		switch {
		case t.quoted:
			if target[before.word] || source[before.word] || isPath(t.text) && !strings.ContainsAny(t.text, " \n") {
				places = append(places, place{path: clean(t.text), at: i, to: target[before.word]})
			}
		case strings.Contains(t.text, "*"):
			r.pattern = t.text
		case isPath(t.text), t.text == ".":
			places = append(places, place{path: clean(t.text), at: i, to: target[before.word]})
		case !known(t.word) && (source[before.word] || target[before.word] && i == len(list)-1):
			places = append(places, place{path: clean(t.text), at: i, to: target[before.word], bare: true})
		default:
			verbs = append(verbs, t.word)
			r.recursive = r.recursive || recursive[t.word]
		}
		if !fillers[t.word] || source[t.word] || target[t.word] {
			before = t
		}
	}
	return certain(places), verbs
}

// known reports whether a word has a meaning of its own, so that it is not the name of a place.
func known(word string) bool {
	for _, s := range []set{nowhere, fillers, files, recursive, listing, reading, writing, appending, overwriting, asking, source, target} {
		if s[word] {
			return true
		}
	}
	return isDigest(word) && !strings.HasSuffix(word, "s") // summaries is a good name for a directory
}

// isDigest recognises summary, summarise, résumé, résume.
func isDigest(word string) bool {
	return strings.HasPrefix(word, "summar") || strings.HasPrefix(word, "résum") || strings.HasPrefix(word, "resum")
}

// certain drops words that only look like places where others surely are: in "the summary of letters in docs/", docs/ is meant.
func certain(places []place) []place {
	sure := slices.ContainsFunc(places, func(p place) bool { return !p.bare && !p.to })
	return slices.DeleteFunc(places, func(p place) bool { return sure && p.bare && !p.to })
}

// clean makes a path of what was written; a slash at its end stays, because it says that a directory is meant.
func clean(text string) string {
	out := path.Clean(text)
	if strings.HasSuffix(text, "/") && out != "/" && out != "." {
		out += "/"
	}
	return out
}

func has(list []string, wanted set) bool {
	return slices.ContainsFunc(list, func(word string) bool { return wanted[word] })
}

// namesFile reports whether a place is a file by its name.
func namesFile(places []place) bool {
	return slices.ContainsFunc(places, func(p place) bool { return isFile(p.path) })
}

func isFile(name string) bool {
	return !strings.HasSuffix(name, "/") && path.Ext(path.Base(name)) != "" && name != "."
}

func pathsOf(places []place) []string {
	var out []string
	seen := set{}
	for _, p := range places {
		if key := strings.TrimSuffix(p.path, "/"); !seen[key] {
			seen[key] = true
			out = append(out, p.path)
		}
	}
	return out
}

// digests understands "summarise every text of notes/ into summaries/". Without a target the summaries go into the answer.
func (r *request) digests(verbs []string, places []place) bool {
	if !slices.ContainsFunc(verbs, isDigest) || len(places) == 0 {
		return false
	}
	goal := -1
	for i, p := range places {
		if p.to {
			goal = i
		}
	}
	if goal < 0 && len(places) > 1 && !isFile(places[len(places)-1].path) {
		goal = len(places) - 1
	}
	if goal >= 0 && len(places) > 1 {
		r.to = strings.TrimSuffix(places[goal].path, "/")
		places = append(places[:goal:goal], places[goal+1:]...)
	}
	r.verb, r.paths = wantsDigest, pathsOf(places)
	return true
}

// writes understands “write "hello" to hello.txt”; what was appended from standard input can be the content too.
func (r *request) writes(verbs []string, list []token, places []place, data string) bool {
	goal := -1
	for i, p := range places {
		if !strings.HasSuffix(p.path, "/") && p.path != "." && (goal < 0 || p.to || !places[goal].to) {
			goal = i
		}
	}
	if goal < 0 {
		return false
	}
	for i, t := range list {
		if t.quoted && i != places[goal].at && r.content == "" {
			r.content = t.text
		}
	}
	if r.content == "" {
		r.content = strings.TrimSpace(data)
	}
	if r.content == "" {
		return false
	}
	r.content = strings.TrimRight(r.content, "\n") + "\n"
	r.verb, r.to, r.mode = wantsWrite, places[goal].path, "create"
	switch {
	case has(verbs, appending):
		r.mode = "append"
	case has(verbs, overwriting):
		r.mode = "overwrite"
	}
	return true
}

var lineRange = regexp.MustCompile(`(?i)\b(?:lines?|lignes?)\s+(\d{1,9})(?:\s*(?:-|–|to|à|through)\s*(\d{1,9}))?`)

// reads understands "read notes/a.md" and "show lines 10 to 20 of notes/a.md".
func (r *request) reads(places []place, instruction string) {
	r.verb, r.paths = wantsRead, pathsOf(places)
	found := lineRange.FindStringSubmatch(instruction)
	if found == nil {
		return
	}
	r.from, _ = strconv.Atoi(found[1]) // nine digits at most
	r.upto = r.from
	if found[2] != "" {
		r.upto, _ = strconv.Atoi(found[2])
	}
	if r.from < 1 || r.upto < r.from {
		r.from, r.upto = 0, 0
	}
}
