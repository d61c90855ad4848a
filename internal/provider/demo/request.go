package demo

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// verb is what a step asks for.
type verb int

const (
	unclear verb = iota
	wantsTalk
	wantsList
	wantsRead
	wantsWrite
	wantsDigest
	wantsCount
	wantsSearch
	wantsEdit
	wantsDelete
)

// step is one thing that a person asks for, as far as the rules understand it.
type step struct {
	verb       verb
	french     bool
	talk       string   // of talk: what about
	paths      []string // cleaned, directories with a slash at the end where they were written so; names where loose
	loose      bool     // paths are names that somebody remembers
	it         bool     // the file that was last spoken of is meant
	to         string   // of write and digest
	content    string   // of write
	result     bool     // of write: the content is what the step before found
	mode       string   // of write
	pattern    string   // of list and delete
	recursive  bool     // of list and digest
	from, upto int      // lines of read
	old, new   string   // of edit
	all        bool     // of edit: wherever it stands
	whole      bool     // of edit: the whole line goes
	query      string   // of search
	unit       string   // of count: files, lines, words
	guess      string   // a word that was misspelt, and what it was taken for
}

// maxInstruction bounds how much of a message is looked at for what it asks.
const (
	maxInstruction = 4 << 10 // bytes
	maxWords       = 300
)

// place is a path in a request, with what stands before it.
type place struct {
	path string
	at   int  // its token
	to   bool // "to X", "into X"
	bare bool // a word that only its place makes a path: "in notes"
}

// parse reads one clause.
func parse(list []token, data string) step {
	s := step{}
	if s.talks(list[:dictated(list)]) || s.notes(list) {
		return s
	}
	list, talk := s.heeds(list)
	if talk {
		return s
	}
	asked := list[:spoken(list)]
	places, verbs := survey(asked, &s)
	if !hasVerb(verbs) && len(asked) > 0 {
		if asked, s.guess = mended(asked); s.guess != "" {
			list = append(asked, list[len(asked):]...)
			places, verbs = survey(asked, &s)
		}
	}
	s.it = len(places) == 0 && refers(asked)
	switch {
	case s.digests(verbs, places):
	case has(verbs, reading) && has(verbs, whole) && len(places) > 0 && !namesFile(places):
		s.verb, s.all, s.paths = wantsRead, true, pathsOf(places)
	case has(verbs, editing) && s.edits(list, places):
	case has(verbs, deleting) && s.deletes(list, places):
	case has(verbs, counting) && s.counts(verbs, places):
	case has(verbs, searching) && s.searches(list, places):
	case (has(verbs, writing) || has(verbs, appending) || has(verbs, overwriting)) &&
		s.writes(verbs, list, places, data):
	case has(verbs, listing), (has(verbs, asking) || has(verbs, reading)) && !s.it && !namesFile(places) &&
		(has(verbs, files) || len(places) > 0) &&
		!s.named(verbs, list, places):
		s.verb, s.paths = wantsList, pathsOf(places)
		if last := list[len(list)-1]; len(places) == 0 && len(list) == 2 && !last.quoted &&
			(last.word == "notes" || !known(last.word) && !french[last.word] && !english[last.word]) &&
			s.pattern == "" {
			s.paths = []string{clean(last.text)} // ls notes
		}
	case has(verbs, asking) && len(places) == 0 && len(list) < 6 && has(verbs, words("here there ici")):
		// what is here?
		s.verb, s.it = wantsList, false
	case (has(verbs, asking) || has(verbs, reading)) && (len(places) > 0 || s.it):
		s.reads(places, list)
	case has(verbs, reading) && s.remembers(list):
		s.verb = wantsRead
	case has(verbs, words("rename renomme renommer renommez")):
		s.verb, s.talk, s.it = wantsTalk, talkUnable, false
	default:
		s.it = false
	}
	return s
}

// mended takes misspelt words for what was probably meant.
func mended(list []token) (out []token, guess string) {
	out = slices.Clone(list)
	for i := range out {
		if out[i].quoted || isPath(out[i].text) {
			continue
		}
		if meant := mend(out[i].word); meant != "" {
			guess = out[i].text + " → " + meant
			out[i].word = meant
			return out, guess
		}
	}
	return list, ""
}

func hasVerb(verbs []string) bool {
	for _, known := range []set{
		listing, reading, writing, appending, overwriting, editing, deleting,
		searching, counting, asking, undoing,
	} {
		if has(verbs, known) {
			return true
		}
	}
	return slices.ContainsFunc(verbs, isDigest)
}

// survey finds the places of a clause and the words that are none.
func survey(list []token, s *step) (places []place, verbs []string) {
	before := token{} // the last token that is no filler
	for i, t := range list {
		switch {
		case t.quoted && t.text == "":
		case t.quoted:
			if target[before.word] || source[before.word] || isPath(t.text) && !strings.ContainsAny(t.text, " \n") ||
				i > 0 && files[list[i-1].word] {
				places = append(places, place{path: clean(t.text), at: i, to: target[before.word]})
			}
		case strings.Contains(t.text, "*"):
			s.pattern = t.text
		case isPath(t.text), t.text == ".":
			places = append(places, place{path: clean(t.text), at: i, to: target[before.word]})
		case !known(t.word) && (source[before.word] || target[before.word] && i == len(list)-1):
			places = append(places, place{path: clean(t.text), at: i, to: target[before.word], bare: true})
		default:
			verbs = append(verbs, t.word)
			s.recursive = s.recursive || recursive[t.word]
		}
		if !fillers[t.word] || source[t.word] || target[t.word] {
			before = t
		}
	}
	return certain(places), verbs
}

// known reports whether a word has a meaning of its own, so that it is not the name of a place.
func known(word string) bool {
	for _, s := range []set{
		nowhere, fillers, files, lineWord, wordWord, recursive, listing, reading, writing,
		appending, overwriting, asking, source, target,
	} {
		if s[word] && word != "notes" && word != "text" {
			return true
		}
	}
	return isDigest(word) && !strings.HasSuffix(word, "s") // summaries is a good name for a directory
}

// isDigest recognises summary, summarise, résumé, résume.
func isDigest(word string) bool {
	return strings.HasPrefix(word, "summar") || strings.HasPrefix(word, "résum") || strings.HasPrefix(word, "resum")
}

// certain drops words that only look like places where others surely are: in "the summary of
// letters in docs/", docs/ is meant.
func certain(places []place) []place {
	sure := slices.ContainsFunc(places, func(p place) bool { return !p.bare && !p.to })
	return slices.DeleteFunc(places, func(p place) bool { return sure && p.bare && !p.to })
}

// refers reports whether a clause speaks of a file without naming it: it, that file, le fichier,
// ouvre-le.
func refers(list []token) bool {
	for i, t := range list {
		switch {
		case t.quoted:
		case t.word == "it" || t.word == "lui" || t.word == "celui-ci" || t.word == "celle-ci":
			return true
		case strings.HasSuffix(t.word, "-le"), strings.HasSuffix(t.word, "-la"):
			return true
		case t.word == "l" && i > 0 && (joining[list[i-1].word] || i == 1): // puis l'efface
			return true
		case (t.word == "file" || t.word == "fichier" || t.word == "note") && i > 0 &&
			(pronouns[list[i-1].word] || list[i-1].word == "the"):
			return i+1 >= len(list) || t.ends || !list[i+1].quoted && known(list[i+1].word) &&
				!named[list[i+1].word] || joining[list[i+1].word]
		case (t.word == "that" || t.word == "this" || t.word == "ça" || t.word == "cela") && i == len(list)-1:
			return true
		case t.word == "le" && i > 0 && i+1 < len(list) && begins(list, i+1): // puis le supprime
			return true
		}
	}
	return false
}

// named are words behind which a file's name stands.
var named = words("named called nommé appelé")

// clean makes a path of what was written; a slash at its end stays, because it says that a
// directory is meant.
func clean(text string) string {
	out := path.Clean(text)
	if strings.HasSuffix(text, "/") && out != "/" && out != "." {
		out += "/"
	}
	return out
}

func has(list []string, wanted set) bool {
	return slices.ContainsFunc(list, func(word string) bool {
		return wanted[word] || wanted[strings.TrimSuffix(strings.TrimSuffix(word, "-le"), "-la")]
	})
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

// named reports whether a file is meant by a name that somebody remembers: "show the boiler note",
// "open the file budget".
func (s *step) named(verbs []string, list []token, places []place) bool {
	return len(places) == 0 && has(verbs, reading) && !has(verbs, words("files fichiers")) && s.remembers(list)
}

// remembers takes the words that mean nothing else for the names of files.
func (s *step) remembers(list []token) bool {
	var names []string
	var name []string
	next := func() {
		if len(name) > 0 {
			names, name = append(names, strings.Join(name, " ")), nil
		}
	}
	for _, t := range list {
		switch {
		case t.quoted:
			next()
			names = append(names, t.text)
		case t.word == "and" || t.word == "et":
			next()
		case strings.Contains(t.text, "://"): // nothing here reaches the network
			return false
		case !english[t.word] && !french[t.word] && !known(t.word) && !joining[t.word] && !deleting[t.word] &&
			len(t.word) > 2 && strings.ContainsFunc(t.word, letter):
			name = append(name, t.text)
		}
		if t.ends {
			next()
		}
	}
	next()
	if len(names) == 0 || len(names) > 5 || strings.Count(strings.Join(names, " "), " ") > 6 {
		return false
	}
	s.paths, s.loose, s.it = names, true, false
	return true
}

// digests understands "summarise every text of notes/ into summaries/". Without a target the
// summaries go into the answer.
func (s *step) digests(verbs []string, places []place) bool {
	if !slices.ContainsFunc(verbs, isDigest) {
		return false
	}
	if len(places) == 0 && !s.it {
		switch {
		case has(verbs, words("notes")): // "summarise the notes"
			s.verb, s.paths = wantsDigest, []string{"notes/"}
		case has(verbs,
			words("everything tout here ici workspace project projet directory folder dossier répertoire")) ||
			has(verbs, files) && has(verbs, whole):
			s.verb, s.paths = wantsDigest, []string{"."}
		}
		return s.verb == wantsDigest
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
		s.to = strings.TrimSuffix(places[goal].path, "/")
		places = append(places[:goal:goal], places[goal+1:]...)
	}
	s.verb, s.paths = wantsDigest, pathsOf(places)
	return true
}

var lineRange = regexp.MustCompile(`(?i)\b(?:lines?|lignes?)\s+(\d{1,9})(?:\s*(?:-|–|to|à|through)\s*(\d{1,9}))?`)

// reads understands "read notes/a.md" and "show lines 10 to 20 of notes/a.md".
func (s *step) reads(places []place, list []token) {
	s.verb, s.paths = wantsRead, pathsOf(places)
	found := lineRange.FindStringSubmatch(plainly(list))
	if found == nil {
		return
	}
	s.from, _ = strconv.Atoi(found[1]) // nine digits at most
	s.upto = s.from
	if found[2] != "" {
		s.upto, _ = strconv.Atoi(found[2])
	}
	if s.from < 1 || s.upto < s.from {
		s.from, s.upto = 0, 0
	}
}

// plainly is a clause's words, without what is quoted.
func plainly(list []token) string {
	var out []string
	for _, t := range list {
		if !t.quoted {
			out = append(out, t.text)
		}
	}
	return strings.Join(out, " ")
}
