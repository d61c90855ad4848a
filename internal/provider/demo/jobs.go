package demo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
)

func (t *thread) list(s *step) (string, bool, *reaction) {
	got, wait := t.listed(s)
	if wait != nil || t.lost {
		return "", false, wait
	}
	if len(got) == 1 && len(s.paths) == 1 && (got[0].code == regie.CodeNotADirectory ||
		got[0].code == regie.CodeFileNotFound) && s.pattern == "" {
		found := s.paths[0] // "what is in travel?"
		if got[0].code == regie.CodeFileNotFound {
			if found, wait = t.find(strings.TrimSuffix(s.paths[0], "/")); wait != nil || t.lost {
				return "", false, wait
			}
		}
		if found != "" {
			return t.read(&step{verb: wantsRead, paths: []string{found}})
		}
	}
	text, ok := t.shown(got, "In %s:", "Dans %s :")
	return text, ok, nil
}

// listed lists what a step names, or the workspace.
func (t *thread) listed(s *step) ([]outcome, *reaction) {
	paths := s.paths
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var wanted []arguments
	for _, p := range paths {
		wanted = append(wanted, arguments{Path: strings.TrimSuffix(p, "/"), Recursive: s.recursive, Pattern: s.pattern})
	}
	return t.do(t.say("I look at %s.", "Je regarde %s.", orHere(t, strings.Join(paths, ", "))), toolList, wanted)
}

// shown is an answer that shows results as they came, each under its heading; a later step can use
// them.
func (t *thread) shown(done []outcome, english, french string) (text string, ok bool) {
	var out []string
	t.result, ok = "", true
	for i := range done {
		if done[i].failed {
			out, ok = append(out, t.problem(&done[i])), false
			continue
		}
		content := strings.TrimRight(done[i].content, "\n")
		t.result += bare(content) + "\n"
		out = append(out, t.say(english, french, done[i].args.Path)+"\n\n"+content)
	}
	return strings.Join(out, "\n\n"), ok
}

// bare is a result without the numbers of its lines, and without what the tool says of it.
func bare(content string) string {
	var out []string
	for line := range strings.SplitSeq(content, "\n") {
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			continue
		}
		if found := numbered.FindStringSubmatch(line); found != nil {
			line = found[1]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func (t *thread) read(s *step) (string, bool, *reaction) {
	var got []outcome
	if s.all {
		return t.readAll(s)
	}
	names, wait := t.known(s)
	if wait != nil || t.lost {
		return "", false, wait
	}
	if len(names) == 0 { // no file is called so: perhaps it stands in one
		return t.search(&step{verb: wantsSearch, query: s.paths[0]})
	}
	if len(names) == 1 {
		o, wait := t.opened(names[0], s.from, s.upto)
		if wait != nil || t.lost {
			return "", false, wait
		}
		if o.code == regie.CodeNotAFile {
			return t.list(&step{verb: wantsList, paths: []string{names[0]}})
		}
		got = []outcome{o}
	} else {
		var wanted []arguments
		for _, p := range names {
			wanted = append(wanted, arguments{Path: p, StartLine: s.from, EndLine: s.upto})
		}
		if got, wait = t.do(t.say("I read %s.", "Je lis %s.", t.n(min(batch, len(wanted)), "text", "texte")), toolRead,
			wanted); wait != nil || t.lost {
			return "", false, wait
		}
	}
	for i := range got {
		if !got[i].failed {
			t.last = got[i].args.Path
		}
	}
	text, ok := t.shown(got, "This is %s:", "Voici %s :")
	return text, ok, nil
}

// known are the files that a read is about; none where it names only one, which cannot be found but
// could be searched for.
func (t *thread) known(s *step) (names []string, wait *reaction) {
	if !s.loose || len(s.paths) != 1 || !t.has(toolSearch) {
		return t.files(s)
	}
	found, wait := t.find(s.paths[0])
	if wait == nil && found == "" && t.none {
		wait = &reaction{text: t.unfound(s.paths[0])}
	}
	if wait != nil || t.lost || found == "" {
		return nil, wait
	}
	return []string{found}, nil
}

// readAll reads the texts of directories, as many as one reply may.
func (t *thread) readAll(s *step) (string, bool, *reaction) {
	got, wait := t.listed(s)
	if wait != nil || t.lost {
		return "", false, wait
	}
	var texts []string
	for i := range got {
		if got[i].failed {
			return t.problem(&got[i]), false, nil
		}
		texts = append(texts, textFiles(got[i].content, "")...)
	}
	if len(texts) == 0 {
		return t.say("There is no text file in %s.", "Il n'y a aucun texte dans %s.", strings.Join(s.paths, ", ")),
			true, nil
	}
	left := ""
	if n := len(texts) - batch; n > 0 {
		left, texts = "\n\n"+t.say("And %d more, which I did not read.", "Et %d autres, que je n'ai pas lus.", n),
			texts[:batch]
	}
	text, ok, wait := t.read(&step{verb: wantsRead, paths: texts})
	return text + left, ok, wait
}

// onward is the end of a text of which the tool has shown a part.
var onward = regexp.MustCompile(`(?m)^\[lines \d+ to \d+(?: of \d+)?; go on with start_line (\d+)\]\n?`)

// text reads a whole file, as its lines are; whole says whether all of it was read.
func (t *thread) text(name string) (o outcome, text string, whole bool, wait *reaction) {
	o, wait = t.opened(name, 0, 0)
	if wait != nil || t.lost || o.failed {
		return o, "", false, wait
	}
	content := o.content
	for range maxParts {
		found := onward.FindStringSubmatch(content)
		if found == nil {
			break
		}
		line, _ := strconv.Atoi(found[1])
		more, wait := t.opened(o.args.Path, line, 0)
		if wait != nil || t.lost || more.failed {
			return o, "", false, wait
		}
		content = onward.ReplaceAllString(content, "") + "\n" + more.content
	}
	var lines []string
	for line := range strings.SplitSeq(content, "\n") {
		if found := numbered.FindStringSubmatch(line); found != nil {
			lines = append(lines, found[1])
		}
	}
	o.content = content
	return o, strings.Join(lines, "\n"), !onward.MatchString(content) && len(lines) > 0 &&
		!strings.Contains(content, "… [the line has "), nil
}

// count counts files by a listing, and lines and words by a text.
func (t *thread) count(s *step) (string, bool, *reaction) {
	if s.unit == "files" {
		got, wait := t.listed(s)
		if wait != nil || t.lost {
			return "", false, wait
		}
		var out []string
		for i := range got {
			if got[i].failed {
				out = append(out, t.problem(&got[i]))
				continue
			}
			more := ""
			if strings.Contains(got[i].content, "\n[") {
				more = t.say(" (as far as I was shown)", " (autant qu'on m'en a montré)")
			}
			where := got[i].args.Path
			if where == "" || where == "." {
				where = t.say("the workspace", "l'espace de travail")
			}
			out = append(out, t.say("There are %s in %s%s.", "Il y a %s dans %s%s.",
				t.n(len(entries(got[i].content)), "file", "fichier"), where, more))
		}
		t.result = strings.Join(out, "\n")
		return t.result, true, nil
	}
	name, wait := t.file(s)
	if wait != nil || t.lost {
		return "", false, wait
	}
	o, text, whole, wait := t.text(name)
	if wait != nil || t.lost {
		return "", false, wait
	}
	if o.failed {
		return t.problem(&o), false, nil
	}
	t.last = o.args.Path
	amount := t.n(extract(o.args.Path, o.content).words, "word", "mot")
	if s.unit == "lines" {
		n := 0
		if text != "" {
			n = strings.Count(text, "\n") + 1
		}
		amount = t.n(n, "line", "ligne")
	}
	least := ""
	if !whole && text != "" {
		least = t.say("at least ", "au moins ")
	}
	t.result = t.say("%s has %s%s.", "%s a %s%s.", o.args.Path, least, amount)
	return t.result, true, nil
}

func (t *thread) search(s *step) (string, bool, *reaction) {
	paths := s.paths
	if len(paths) == 0 {
		paths = []string{""}
	}
	var wanted []arguments
	for _, p := range paths {
		wanted = append(wanted, arguments{Path: strings.TrimSuffix(p, "/"), Query: s.query})
	}
	got, wait := t.do(t.say("I search for %q.", "Je cherche « %s ».", s.query), toolSearch, wanted)
	if wait != nil || t.lost {
		return "", false, wait
	}
	if len(got) == 1 && got[0].code == regie.CodeFileNotFound { // "in the garden note"
		found, wait := t.find(got[0].args.Path)
		if wait != nil || t.lost {
			return "", false, wait
		}
		if found != "" && found != got[0].args.Path {
			return t.search(&step{verb: wantsSearch, query: s.query, paths: []string{found}})
		}
	}
	for i := range got {
		if got[i].args.Path == "" {
			got[i].args.Path = "."
		}
	}
	query := strings.ReplaceAll(s.query, "%", "%%") // it stands in a format
	text, ok := t.shown(got, "What I find for “"+query+"” in %s:", "Ce que je trouve pour « "+query+" » dans %s :")
	return text, ok, nil
}

// problem tells what became of a call that did not succeed.
func (t *thread) problem(o *outcome) string {
	what := t.say("failed", "échec")
	switch o.state {
	case regie.CallUnknown:
		what = t.say("the outcome is not known, look before you try again",
			"résultat inconnu, vérifiez avant de recommencer")
	case regie.CallNotRun:
		what = t.say("was not run", "pas exécuté")
	}
	if o.code == regie.CodeUserRejected {
		if reason := reasonOf(o); reason != "" {
			return t.say("%s: you said no: “%s”. I left it.", "%s : vous avez dit non : « %s ». Je n'y ai pas touché.",
				o.args.Path, reason)
		}
		return t.say("%s: you said no, so I left it.", "%s : vous avez dit non, je n'y ai donc pas touché.",
			o.args.Path)
	}
	if o.code != "" {
		what += " (" + string(o.code) + ")"
	}
	return fmt.Sprintf("%s: %s: %s", o.args.Path, what, strings.Join(strings.Fields(o.content), " "))
}

// reasonOf is why a person said no, "" where they did not say.
func reasonOf(o *outcome) string {
	reason, ok := strings.CutPrefix(o.content, "the person denied this call: ")
	if !ok {
		return ""
	}
	return reason
}
