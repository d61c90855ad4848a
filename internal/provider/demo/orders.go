package demo

import (
	"slices"
	"strings"
)

// between are the words between what is to go and what takes its place.
var between = words("by with to into for par en avec → ->")

// edits understands “replace X by Y in a.md” and "change X to Y". A whole file that is replaced
// by one text is a write.
func (s *step) edits(list []token, places []place) bool {
	verb := slices.IndexFunc(list, func(t token) bool { return !t.quoted && editing[t.word] })
	middle := -1
	for i := verb + 2; i < len(list)-1; i++ {
		if !list[i].quoted && between[list[i].word] {
			middle = i
			break
		}
	}
	if verb < 0 || middle < 0 {
		return false
	}
	if list[verb].word == "turn" && list[middle].word != "into" {
		return false
	}
	old, file := piece(list[verb+1:middle], places, verb+1)
	replacement, after := piece(list[middle+1:], places, middle+1)
	if file == "" {
		file = after
	}
	if old == "" || replacement == "" && !quotedEmpty(list[middle+1:]) {
		return false
	}
	if file == "" && len(places) > 0 { // "in a.md, replace X by Y"
		file = places[0].path
	}
	s.verb, s.old, s.new, s.all = wantsEdit, old, replacement,
		has(wordsOf(list), words("all every everywhere each partout tous toutes tout"))
	if file != "" {
		s.paths = []string{file}
	}
	s.it = s.it || file == ""
	return true
}

func wordsOf(list []token) (out []string) {
	for _, t := range list {
		if !t.quoted {
			out = append(out, t.word)
		}
	}
	return out
}

func quotedEmpty(list []token) bool { return len(list) > 0 && list[0].quoted && list[0].text == "" }

// piece is the text that begins a list of tokens, and the file that stands behind it after in, of
// or dans; from is the place of its first token in the clause.
func piece(list []token, places []place, from int) (text, file string) {
	isPlace := func(i int) string {
		for _, p := range places {
			if p.at == from+i {
				return p.path
			}
		}
		return ""
	}
	var said []string
	for i, t := range list {
		switch {
		case t.quoted && isPlace(i) == "":
			return t.text, fileBehind(list[i+1:], places, from+i+1)
		case isPlace(i) != "" && (i == 0 || isFile(isPlace(i)) || source[list[i-1].word]):
			return tidy(said), isPlace(i)
		case i > 0 && source[t.word] && fileBehind(list[i:], places, from+i) != "", i > 0 &&
			source[t.word] && refers(list[i:]):
			return tidy(said), fileBehind(list[i:], places, from+i)
		}
		said = append(said, t.text)
	}
	return tidy(said), ""
}

// tidy drops the words before a text that only say what it is: "the word garden".
func tidy(said []string) string {
	for len(said) > 1 &&
		words("the word words text every all of le la les l mot mots texte chaque tous toutes each")[strings.ToLower(
			said[0])] {
		said = said[1:]
	}
	return strings.Join(said, " ")
}

func fileBehind(list []token, places []place, from int) string {
	for _, p := range places {
		if p.at >= from && p.at < from+len(list) {
			return p.path
		}
	}
	return ""
}

// deletes understands "delete a.md", "remove it", “delete the line "X" from a.md”.
func (s *step) deletes(list []token, places []place) bool {
	at := map[int]bool{}
	for _, p := range places {
		at[p.at] = true
	}
	for i, t := range list {
		if t.quoted && !at[i] && (len(places) > 0 || s.it) { // a text out of a file
			s.verb, s.old, s.whole, s.paths = wantsEdit, t.text, has(wordsOf(list), lineWord), pathsOf(places)
			s.all = has(wordsOf(list), words("all every everywhere each partout tous toutes"))
			return true
		}
	}
	if text, file := outOf(list, places); text != "" {
		s.verb, s.old, s.paths = wantsEdit, text, []string{file}
		return true
	}
	s.verb, s.paths = wantsDelete, pathsOf(places)
	if len(places) == 0 && s.pattern == "" && !s.it && !s.remembers(list) {
		s.verb = unclear
		return false
	}
	return true
}

// outOf recognises a text that is to go out of a file, "remove the word foo from a.md": the file
// itself must stay.
func outOf(list []token, places []place) (text, file string) {
	verb := slices.IndexFunc(list, func(t token) bool { return !t.quoted && deleting[t.word] })
	for _, p := range places {
		if p.at < verb+3 || !isFile(p.path) || !source[list[p.at-1].word] {
			continue
		}
		var said []string
		for i := verb + 1; i < p.at-1; i++ {
			if slices.ContainsFunc(places, func(other place) bool { return other.at == i }) {
				return "", ""
			}
			said = append(said, list[i].text)
		}
		if text = tidy(said); fillers[strings.ToLower(text)] || files[strings.ToLower(text)] {
			return "", ""
		}
		return text, p.path
	}
	return "", ""
}

// counts understands "how many files are in notes/" and "count the words of a.md".
func (s *step) counts(verbs []string, places []place) bool {
	switch {
	case has(verbs, wordWord):
		s.unit = "words"
	case has(verbs, lineWord):
		s.unit = "lines"
	case has(verbs, files) || len(places) > 0 && !namesFile(places) || s.pattern != "" ||
		has(verbs, words("notes texts textes documents")):
		s.unit = "files"
	case namesFile(places):
		s.unit = "lines"
	default:
		return false
	}
	s.verb, s.paths = wantsCount, pathsOf(places)
	s.recursive = s.recursive || s.unit == "files" // a file in a directory is a file too
	if s.unit != "files" && len(places) == 0 {
		s.it = true
	}
	return true
}

// searches understands “search for X in notes/”, "which files mention X", and "find all *.md",
// which is a list.
func (s *step) searches(list []token, places []place) bool {
	if s.pattern != "" {
		s.verb, s.recursive, s.paths = wantsList, true, pathsOf(places)
		return true
	}
	for _, t := range list {
		if t.quoted && !slices.ContainsFunc(places, func(p place) bool { return list[p.at].text == t.text }) {
			s.query = t.text
		}
	}
	if s.query == "" {
		verb := slices.IndexFunc(list, func(t token) bool { return !t.quoted && searching[t.word] })
		skip := words("notes note about sur texts anything something for the a an word words text le la les l un une mot mots texte is are does do stands stand est se all every any tout tous toutes i we says of about say est-ce que c'est ce qui parle")
		var said []string
		for i := verb + 1; i < len(list); i++ {
			if strings.HasPrefix(list[i].text, "-") && len(said) == 0 { // grep -i
				continue
			}
			if source[list[i].word] && fileBehind(list[i:], places, i) != "" {
				break
			}
			if slices.ContainsFunc(places, func(p place) bool { return p.at == i }) ||
				len(said) == 0 && skip[list[i].word] ||
				words("stand stands appear appears written said here ici everywhere partout trouve apparaît écrit mentioned mentionné files file fichiers fichier")[list[i].word] {
				continue
			}
			said = append(said, list[i].text)
		}
		s.query = strings.Join(said, " ")
	}
	if s.query == "" {
		if namesFile(places) { // "find notes/a.md"
			s.verb, s.recursive, s.pattern = wantsList, true, "**/"+baseOf(places[0].path)
			return true
		}
		return false
	}
	s.verb, s.paths, s.it = wantsSearch, pathsOf(places), false
	return true
}

func baseOf(p string) string { return p[strings.LastIndexByte(p, '/')+1:] }

// writes understands “write "hello" to hello.txt”, "add to list.md: milk" and "note in a.md
// that it rains"; what was appended from standard input can be the content too, and so can what the
// step before found.
func (s *step) writes(verbs []string, list []token, places []place, data string) bool {
	goal := -1
	for i, p := range places {
		if !strings.HasSuffix(p.path, "/") && p.path != "." && (goal < 0 || p.to || !places[goal].to) {
			goal = i
		}
	}
	switch {
	case goal >= 0:
		s.to, s.it = places[goal].path, false
		s.content = content(list, places[goal].at)
	case s.it && (has(verbs, appending) || has(verbs, overwriting)):
		s.content = content(list, -1)
	default:
		return s.writesInto(places, verbs, list)
	}
	if s.content == "" && has(verbs, results) && strings.TrimSpace(data) == "" {
		s.result = true
	}
	if s.content == "" && !s.result {
		s.content = strings.TrimSpace(data)
	}
	if s.content != "" {
		s.content = strings.TrimRight(s.content, "\n") + "\n"
	}
	s.verb, s.mode = wantsWrite, "create"
	switch {
	case has(verbs, appending) || has(verbs, words("note noter notez")):
		s.mode = "append"
	case has(verbs, overwriting):
		s.mode = "overwrite"
	}
	return s.content != "" || s.result || s.it || isFile(s.to)
}

// writesInto is a write whose place is a directory, which only a digest before it can mean.
func (s *step) writesInto(places []place, verbs []string, _ []token) bool {
	if len(places) != 1 || !has(verbs, results) {
		return false
	}
	s.verb, s.result, s.to, s.mode = wantsWrite, true, places[0].path, "create"
	return true
}

// content is the text of a write; goal is the token of its file.
func content(list []token, goal int) string {
	for i, t := range list {
		if t.quoted && i != goal {
			return t.text
		}
	}
	for i, t := range list {
		if t.colon && i+1 < len(list) {
			return textOfTokens(list[i+1:])
		}
		if i > goal && goal >= 0 && saying[t.word] && i+1 < len(list) {
			return textOfTokens(list[i+1:])
		}
	}
	verb := slices.IndexFunc(list, func(t token) bool { return writing[t.word] || appending[t.word] })
	if verb < 0 || goal <= verb+1 || !target[list[goal-1].word] && !source[list[goal-1].word] &&
		!fillers[list[goal-1].word] {
		return ""
	}
	said := list[verb+1 : goal]
	for len(said) > 0 && (target[said[len(said)-1].word] || source[said[len(said)-1].word] ||
		fillers[said[len(said)-1].word]) {
		said = said[:len(said)-1]
	}
	for len(said) > 0 &&
		words("the a an line lines text words word le la les l une un ligne texte mot note that new nouvelle this")[said[0].word] {
		said = said[1:]
	}
	if len(said) > 0 && slices.ContainsFunc(said, func(t token) bool {
		return !results[t.word] && !fillers[t.word] && !pronouns[t.word] && !nowhere[t.word] &&
			!isDigest(t.word) && !source[t.word]
	}) {
		return textOfTokens(said)
	}
	return ""
}

// textOfTokens writes words as they were said; the marks at their ends are lost.
func textOfTokens(list []token) string {
	var out strings.Builder
	for i, t := range list {
		if i > 0 && !elision(list[i-1].word) {
			out.WriteByte(' ')
		}
		out.WriteString(t.text)
		if elision(t.word) {
			out.WriteByte('\'')
		}
		if t.ends && i+1 < len(list) {
			out.WriteByte(',')
		}
	}
	return out.String()
}

func elision(word string) bool { return words("l d qu s j n")[word] }
