package demo

import (
	"regexp"
	"slices"
	"strings"
)

// What a request says beside what is to be done: that it is not to be done, that it is only asked
// about, and what is dictated.

var (
	negations = words("don't dont don’t never not doesn't shouldn't mustn't without ne n sans jamais")
	// What changes files, by the words that say so and little else.
	changing = func() set {
		out := words(`deleting removing erasing writing changing replacing editing overwriting adding supprimant effaçant changeant modifiant
			deleted removed erased written wrote changed replaced edited added created supprimé effacé écrit changé modifié remplacé ajouté créé`)
		for _, s := range []set{writing, appending, overwriting, editing, deleting} {
			for word := range s {
				if !common[word] {
					out[word] = true
				}
			}
		}
		return out
	}()
	// The beginnings of questions: of what was done, and of what would be.
	past    = regexp.MustCompile(`^(?:and |but |so |et |mais )?(?:did|have|has|had|was|were) |^(?:et |mais )?(?:est-ce que )?(?:as-tu|avez-vous|tu as|a-t-il|vous avez|ont-ils) `)
	whether = regexp.MustCompile(`^(?:and |but |so |et |mais )?(?:should|shall|must|may|might|would (?:i|it|that)|if|is|are|does|do you|what if|what happens|when) |^(?:et |mais )?(?:dois-je|devrais-je|faut-il|faudrait-il|et si|si|est-ce que je (?:dois|devrais)|que se passe) `)
)

// heeds recognises what must not be done, and what is only asked about: "do not delete a.md", "did
// you delete a.md?". What is to be done before a ban is left in the list.
func (s *step) heeds(list []token) (rest []token, talk bool) {
	changes := slices.ContainsFunc(list[:spoken(list)], func(t token) bool {
		return !t.quoted && changing[verbOf(t.word)]
	})
	text := strings.ToLower(said(list))
	switch {
	case changes && past.MatchString(text):
		s.verb, s.talk = wantsTalk, talkChanged
		return list, true
	case changes && whether.MatchString(text):
		s.verb, s.talk = wantsTalk, talkWhether
		return list, true
	}
	ban := banned(list)
	switch {
	case ban < 0 && !ordered(list):
		s.verb, s.talk = wantsTalk, talkWhether
		return list, true
	case ban < 0 && spares(list):
		s.verb, s.talk = wantsTalk, talkAll
		return list, true
	case ban < 0:
		return list, false
	case !slices.ContainsFunc(list[:ban], func(t token) bool { return !t.quoted && begin(t.word) }):
		s.verb, s.talk = wantsTalk, talkNot
		return list, true
	default:
		return trimJoining(list[:ban]), false
	}
}

var (
	// What may stand before a verb that changes files, so that it is an order and no question,
	// report or part of another sentence.
	polite = words(`please can could would will you i i'd want need like to let's let us just now then ok okay yes yeah so and also go ahead hey hi hello regie first
		finally next kindly thanks well the a an my for on
		s'il s il te vous plaît plait tu peux pouvez peux-tu pouvez-vous veux-tu voulez-vous pourrais-tu pourriez-vous je j veux voudrais aimerais que faut maintenant
		puis ensuite alors oui d'accord d accord et aussi bonjour salut merci stp svp pour en y vas-y le la les`)
	permission = regexp.MustCompile(`\b(?:can|may|could|should|must|do|did) i\b|\bje (?:peux|dois|pourrais|devrais)\b|\bj'ai\b`)
	sparing    = words("except excepting but save sauf excepté excepte hormis besides unless")
)

// ordered reports whether what changes files is plainly asked for: the verb comes first, behind a
// place or words of politeness at most.
func ordered(list []token) bool {
	list = list[:spoken(list)]
	first := slices.IndexFunc(list, func(t token) bool { return !t.quoted && changing[verbOf(t.word)] })
	// "read each note and write a summary of it"
	if first < 0 || slices.ContainsFunc(list, func(t token) bool { return !t.quoted && isDigest(t.word) }) {
		return true
	}
	for i := range list[:first] {
		t := &list[i]
		if !t.quoted && !isPath(t.text) && !polite[t.word] && !source[t.word] && !target[t.word] &&
			(i == 0 || !source[list[i-1].word] && !target[list[i-1].word]) {
			return false
		}
	}
	return !permission.MatchString(strings.ToLower(said(list[:first+1])))
}

// spares reports whether something is to be deleted but for what is named: nobody wants just that
// deleted.
func spares(list []token) bool {
	deletes := slices.ContainsFunc(list, func(t token) bool { return !t.quoted && deleting[verbOf(t.word)] })
	return deletes && slices.ContainsFunc(list, func(t token) bool { return !t.quoted && sparing[t.word] })
}

// banned is the word by which something is forbidden, or -1. What is dictated forbids nothing.
func banned(list []token) int {
	end := spoken(list)
	for i := range list[:end] {
		if list[i].quoted || !negations[list[i].word] {
			continue
		}
		for k := i + 1; k < min(end, i+4); k++ {
			if !list[k].quoted && begin(list[k].word) {
				if i > 0 && list[i-1].word == "do" {
					return i - 1
				}
				return i
			}
		}
	}
	return -1
}

// verbOf is a word without the pronoun that French hangs on it.
func verbOf(word string) string {
	return strings.TrimSuffix(strings.TrimSuffix(word, "-le"), "-la")
}

// begin reports whether a word says that something is to be done.
func begin(word string) bool {
	word = verbOf(word)
	for _, verbs := range []set{listing, reading, changing, searching, counting} {
		if verbs[word] {
			return true
		}
	}
	return isDigest(word)
}

// saying are words behind which stands what is to be written.
var saying = words("containing contenant saying disant that que qu")

// spoken is how many words of a request say what to do. What follows is dictated, whatever words
// are in it: in "add to todo.txt: delete the old branch" nothing is to be deleted.
func spoken(list []token) int {
	verb := slices.IndexFunc(list, func(t token) bool { return !t.quoted && begin(t.word) || t.word == "note" })
	if verb < 0 || !writing[list[verb].word] && !appending[list[verb].word] {
		return len(list)
	}
	named := false
	for i := verb; i < len(list)-1; i++ {
		t := &list[i]
		if t.quoted {
			continue
		}
		named = named || isPath(t.text)
		switch {
		case t.colon:
			return i + 1
		case named && saying[t.word]:
			return i
		}
	}
	return len(list)
}

// notesFile is where notes go that name no file.
const notesFile = "notes.md"

var (
	// noting is how a note begins that names no file; what follows is the note.
	noting = regexp.MustCompile(`^(?:please |can you |could you |peux-tu |pouvez-vous )?(?:` +
		`(?:make|take|write|add|leave)(?: me)?(?: down)? (?:a|another)(?: quick)? note(?: down)?(?: of| that| to|:)?|` +
		`note(?: down)?(?: that|:)|jot down(?: that|:)?|remember(?: that| to|:)?|remind me (?:that|to)|don't forget (?:that|to)|` +
		`(?:fais|écris|ajoute|crée)(?:-moi)? une note(?: que|:)?|prends?(?:-moi)?(?: une| en)? note(?: que| qu'| de| d'|:)?|` +
		`note(?:-moi)?(?: bien)?(?: que| qu'|:)|notez(?: que| qu'|:)|` +
		`(?:souviens-toi|rappelle-toi|retiens|rappelle-moi|n'oublie pas)(?: que| qu'| de| d'|:)?)$`)
	myNotes = regexp.MustCompile(`^(?:please )?(?:what are|what is in|show|read|list|open)(?: me)?(?: all)? my notes$|` +
		`^(?:montre|montre-moi|lis|lis-moi|affiche|ouvre|relis|quelles sont)(?: toutes)? mes notes$`)
)

// noted is the word with which the text of a note begins that names no file, or 0.
func noted(list []token) (at int) {
	var head strings.Builder
	for i := range list[:min(len(list), maxNoting)] {
		if list[i].quoted || isPath(list[i].text) {
			break
		}
		if i > 0 && !elision(list[i-1].word) {
			head.WriteByte(' ')
		}
		head.WriteString(strings.ReplaceAll(list[i].word, "’", "'"))
		if elision(list[i].word) {
			head.WriteByte('\'')
		}
		if list[i].colon {
			head.WriteByte(':')
		}
		if i+1 < len(list) && noting.MatchString(head.String()) {
			at = i + 1
		}
		if list[i].colon {
			break
		}
	}
	return at
}

// maxNoting is how many words a note may begin with.
const maxNoting = 10

// notes understands a note that names no file, "remember that the key is under the mat", and the
// wish to read them again.
func (s *step) notes(list []token) bool {
	if myNotes.MatchString(strings.ToLower(said(list))) {
		s.verb, s.paths = wantsRead, []string{notesFile}
		return true
	}
	at := noted(list)
	if at == 0 || slices.ContainsFunc(list[:at], func(t token) bool { return isPath(t.text) }) ||
		!list[at-1].colon && intoFile(list[at:]) {
		return false
	}
	s.verb, s.mode, s.to = wantsWrite, "append", notesFile
	if s.content = textOfTokens(list[at:]) + "\n"; list[at].quoted {
		s.content = list[at].text + "\n"
	}
	return true
}

// intoFile recognises "add a note to notes/garden.md: water": the file is named.
func intoFile(list []token) bool {
	for i := range list[:min(len(list), 4)] {
		if isPath(list[i].text) && (i == 0 || target[list[i-1].word] ||
			source[list[i-1].word] || fillers[list[i-1].word]) {
			return true
		}
	}
	return false
}

// dictated is how many words of a request say what to do, with those of a note that names no file.
func dictated(list []token) int {
	if at := noted(list); at > 0 {
		return at
	}
	return spoken(list)
}
