package demo

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/spell"
)

// The steps of a request are run from its beginning in each reply: what was done already is taken
// from the thread in its order, and what is still to be done is the reply. So nothing need be
// remembered between two replies, and a run that was killed goes on as if nothing had been.

// next makes the next reply: the first calls that have no result yet, or the answer.
func (t *thread) next() reaction {
	if slices.ContainsFunc(t.past, func(o outcome) bool { return dropped.MatchString(o.content) }) {
		return reaction{text: t.say(
			"What I found out was left out of this conversation to make room, so I stop here. Ask again for what is missing.",
			"Ce que j'avais trouvé a été retiré de cette conversation pour faire de la place : je m'arrête ici. Redemandez ce qui manque.")}
	}
	var answers []string
	for i := range t.steps {
		s := &t.steps[i]
		text, ok, wait := t.run(s)
		if t.lost {
			return reaction{text: t.say("I have lost the thread of this request: please say it again.",
				"J'ai perdu le fil de cette demande : redites-la, s'il vous plaît.")}
		}
		if s.guess != "" && wait != nil {
			wait.text = t.say("(I take %s.) ", "(Je comprends %s.) ", s.guess) + wait.text
		}
		if wait != nil {
			if len(answers) > 0 && len(wait.calls) == 0 {
				wait.text = strings.Join(append(answers, wait.text), "\n\n")
			}
			return *wait
		}
		if text != "" {
			answers = append(answers, text)
		}
		if left := len(t.steps) - i - 1; !ok && left > 0 {
			answers = append(answers, t.say("So I left out the rest: %s.",
				"J'ai donc laissé le reste : %s.", t.described(t.steps[i+1:])))
			break
		}
	}
	return reaction{text: strings.Join(answers, "\n\n")}
}

// run makes one step: its answer and whether what follows may be done, or the reply that it needs
// first.
func (t *thread) run(s *step) (text string, ok bool, wait *reaction) {
	switch s.verb {
	case wantsTalk:
		return t.talk(s), true, nil
	case wantsDigest:
		return t.digest(s)
	case wantsWrite:
		return t.write(s)
	case wantsEdit:
		return t.edit(s)
	case wantsDelete:
		return t.remove(s)
	case wantsList:
		return t.list(s)
	case wantsRead:
		return t.read(s)
	case wantsCount:
		return t.count(s)
	case wantsSearch:
		return t.search(s)
	default:
		return t.puzzled(), false, nil
	}
}

// do returns the outcomes of calls of a tool, in their order; where some have none yet, wait is the
// reply that makes them, at most batch at once; said says what is about to happen. What the calls
// came to in part, before a refusal of all, is returned with it.
func (t *thread) do(said, tool string, wanted []arguments) (got []outcome, wait *reaction) {
	for len(got) < len(wanted) && t.at < len(t.past) {
		if t.past[t.at].tool != tool {
			t.lost = true
			return got, nil
		}
		got = append(got, t.past[t.at])
		t.at++
	}
	if len(got) < len(wanted) {
		wait = t.ask(said, tool, wanted[len(got):])
		return got, wait
	}
	for i := range got {
		if wait = t.complement(&got[i]); wait != nil {
			return got, wait
		}
	}
	return got, nil
}

// shortened is the end of a result of which the thread shows a part.
var shortened = regexp.MustCompile(`\n\[shortened: \d+ of \d+ bytes shown; read on with \S+, call_id "([^"]+)", offset (\d+)\]$`)

// part is the end of such a part that was read on.
var part = regexp.MustCompile(`\n\[bytes \d+ to \d+ of \d+(?:; go on with offset (\d+)|; this is its end)\]$`)

// maxParts is how many more parts of a result are looked at.
const maxParts = 4

// complement reads on in a result that was shortened.
func (t *thread) complement(o *outcome) (wait *reaction) {
	found := shortened.FindStringSubmatchIndex(o.content)
	if found == nil || o.failed || !t.has(toolMore) {
		return nil
	}
	id, offset := o.content[found[2]:found[3]], o.content[found[4]:found[5]]
	var text strings.Builder
	text.WriteString(o.content[:found[0]])
	for range maxParts {
		at, err := strconv.Atoi(offset)
		if err != nil {
			break
		}
		more, wait := t.do(t.say("The result is long: I read on.", "Le résultat est long : je lis la suite."), toolMore,
			[]arguments{{CallID: id, Offset: at}})
		if wait != nil || t.lost {
			return wait
		}
		if more[0].failed {
			break
		}
		end := part.FindStringSubmatch(more[0].content)
		text.WriteString(part.ReplaceAllString(more[0].content, ""))
		if len(end) < 2 || end[1] == "" {
			o.content = text.String()
			return nil
		}
		offset = end[1]
	}
	o.content = text.String() + "\n" + t.say("[and more, which I did not read]", "[et une suite, que je n'ai pas lue]")
	return nil
}

// ask replies with calls of a tool, at most batch of them; the text says what is about to happen.
func (t *thread) ask(text, tool string, wanted []arguments) *reaction {
	if !t.has(tool) {
		return &reaction{text: t.cannot(tool)}
	}
	r := &reaction{text: text}
	for _, args := range wanted[:min(batch, len(wanted))] {
		t.calls++
		data, err := json.Marshal(args)
		if err != nil { // strings, numbers and booleans always encode
			data = []byte("{}")
		}
		r.calls = append(r.calls, provider.Call{
			ID:   fmt.Sprintf("demo_%d", t.calls),
			Name: tool, Arguments: string(data),
		})
	}
	return r
}

// cannot says what is missing for the next step, and what was done before.
func (t *thread) cannot(tool string) string {
	text := t.say("I have no tool for that: %s is not in my scope, so I cannot go on.",
		"Je n'ai pas d'outil pour cela : %s n'est pas à ma portée, je ne peux pas continuer.",
		strings.ReplaceAll(tool, "__", "."))
	if done := changes(t.past); len(done) > 0 {
		text += "\n\n" + t.say("Done before: %s.", "Fait avant : %s.", t.account(t.past))
	}
	return text
}

// choose asks the person for one of several things, or names them where nobody can be asked; the
// answer is "" where there is none.
func (t *thread) choose(question string, options []string) (answer string, wait *reaction) {
	if !t.has(toolAsk) {
		return "", &reaction{text: question + "\n- " + strings.Join(options, "\n- ")}
	}
	got, wait := t.do(question, toolAsk, []arguments{{Question: question, Options: options}})
	if wait != nil || t.lost || got[0].failed {
		return "", wait
	}
	answer = strings.TrimSpace(got[0].content)
	answer = strings.TrimPrefix(strings.TrimPrefix(answer, "Chosen: "), "Written: ")
	return answer, nil
}

// find looks for a file whose name is only nearly known. Where several could be meant the person is
// asked.
func (t *thread) find(name string) (found string, wait *reaction) {
	got, wait := t.do(t.say("I look for %q.", "Je cherche « %s ».", name), toolList,
		[]arguments{{Path: ".", Recursive: true}})
	if wait != nil || t.lost || got[0].failed {
		return "", wait
	}
	like := alike(name, entries(got[0].content))
	if len(like) < 2 {
		return strings.Join(like, ""), nil
	}
	const most = 19
	none := t.say("none of them", "aucun de ceux-là")
	answer, wait := t.choose(t.say("Which file do you mean by %q?", "Quel fichier est « %s » ?", name),
		append(slices.Clone(like[:min(len(like), most)]), none))
	if answer == none {
		answer = ""
	}
	t.none = t.none || answer == ""
	return answer, wait
}

// alike returns those paths whose name is most like one that somebody remembers.
func alike(name string, paths []string) []string {
	name = strings.ToLower(strings.Trim(name, "/"))
	var ranks [5][]string
	for _, p := range paths {
		low := strings.ToLower(p)
		base := path.Base(low)
		stem := strings.TrimSuffix(base, path.Ext(base))
		wanted := strings.TrimSuffix(path.Base(name), path.Ext(name))
		switch {
		case low == name:
			ranks[0] = append(ranks[0], p)
		case base == path.Base(name) || stem == wanted && path.Ext(name) == "":
			ranks[1] = append(ranks[1], p)
		case stem == wanted:
			ranks[2] = append(ranks[2], p)
		case len(wanted) > 2 && allIn(stem, wanted):
			ranks[3] = append(ranks[3], p)
		case len(wanted) > 3 && spell.Distance(stem, wanted) <= 1+len(wanted)/7:
			ranks[4] = append(ranks[4], p)
		}
	}
	for _, found := range ranks {
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// allIn reports whether each word of a name stands in another.
func allIn(stem, wanted string) bool {
	for word := range strings.FieldsFuncSeq(wanted, func(r rune) bool { return !letter(r) }) {
		if !strings.Contains(stem, word) {
			return false
		}
	}
	return true
}

// entries are the files of a listing: one entry a line, the path first, a tab before what else is
// said of it.
func entries(listing string) (out []string) {
	for line := range strings.SplitSeq(listing, "\n") {
		name, detail, ok := strings.Cut(strings.TrimRight(line, "\r"), "\t")
		if ok && strings.HasSuffix(detail, " bytes") {
			out = append(out, name)
		}
	}
	return out
}

// file returns the file that a step is about: the one that it names, the one that it seems to name,
// or the one that was last spoken of. A reply to wait for may be the answer that there is none.
func (t *thread) file(s *step) (name string, wait *reaction) {
	switch {
	case len(s.paths) == 0 && t.last != "":
		return t.last, nil
	case len(s.paths) == 0:
		return "", &reaction{text: t.say("Which file do you mean? Name it, please.",
			"De quel fichier parlez-vous ? Nommez-le, s'il vous plaît.")}
	case !s.loose && (isFile(s.paths[0]) || strings.Contains(s.paths[0], "/")):
		return s.paths[0], nil
	}
	found, wait := t.find(s.paths[0])
	if wait == nil && found == "" && !t.lost {
		wait = &reaction{text: t.unfound(s.paths[0])}
	}
	return found, wait
}

// files are those that a step names, each as it is found; what cannot be found is the reply to wait
// for.
func (t *thread) files(s *step) (names []string, wait *reaction) {
	if len(s.paths) < 2 {
		name, wait := t.file(s)
		return []string{name}, wait
	}
	for _, p := range s.paths {
		name, wait := t.file(&step{paths: []string{p}, loose: s.loose})
		if wait != nil || t.lost {
			return nil, wait
		}
		names = append(names, name)
	}
	return names, nil
}

func (t *thread) unfound(name string) string {
	if t.none {
		return t.say("Then I leave it: I do not know which file is %q.",
			"Alors je laisse : je ne sais pas quel fichier est « %s ».", name)
	}
	return t.say("I find no file that is called %q or nearly so.",
		"Je ne trouve aucun fichier qui s'appelle « %s », même à peu près.", name)
}

// opened reads a file, and one of nearly that name where it is not there. The outcome's path is the
// file that was read.
func (t *thread) opened(name string, from, upto int) (o outcome, wait *reaction) {
	read := func(name string) (outcome, *reaction) {
		got, wait := t.do(t.say("I read %s.", "Je lis %s.", name), toolRead,
			[]arguments{{Path: name, StartLine: from, EndLine: upto}})
		if wait != nil || t.lost {
			return outcome{}, wait
		}
		return got[0], nil
	}
	if o, wait = read(name); wait != nil || t.lost || o.code != regie.CodeFileNotFound {
		return o, wait
	}
	found, wait := t.find(name)
	if wait != nil || t.lost || found == "" || found == name {
		return o, wait
	}
	return read(found)
}
