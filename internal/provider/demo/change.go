package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// maxTries bounds how often a change is proposed again after its file changed or a person said how
// they want it.
const maxTries = 3

// write writes what a person said, or what the step before found. Where something is in the way the
// person decides.
func (t *thread) write(s *step) (string, bool, *reaction) {
	args := arguments{Path: s.to, Content: s.content, Mode: s.mode}
	if args.Path == "" {
		args.Path = t.last
	}
	if s.result {
		if args.Content = strings.Trim(t.result, "\n"); args.Content == "" {
			return t.say("I have found nothing that I could write.", "Je n'ai rien trouvé que je puisse écrire."),
				false, nil
		}
		args.Content += "\n"
		if strings.HasSuffix(args.Path, "/") {
			args.Path += "result.md"
		}
	}
	switch {
	case args.Path == "":
		return t.say("Which file do you mean? Name it, please.",
			"De quel fichier parlez-vous ? Nommez-le, s'il vous plaît."), false, nil
	case args.Content == "":
		return t.say("What shall stand in %[1]s? Say it like this: write \"…\" to %[1]s.",
			"Que faut-il écrire dans %[1]s ? Dites-le ainsi : écris « … » dans %[1]s.", args.Path), false, nil
	}
	said := t.say("I write to %s.", "J'écris dans %s.", args.Path)
	for range maxTries {
		got, wait := t.do(said, toolWrite, []arguments{args})
		if wait != nil || t.lost {
			return "", false, wait
		}
		o := &got[0]
		t.last = o.args.Path
		if !o.failed {
			return t.done(o), true, nil
		}
		again, text, wait := t.inTheWay(&args, o)
		if wait != nil || t.lost {
			return "", false, wait
		}
		if !again {
			return strings.TrimSpace(t.say("It is not done.", "Ce n'est pas fait.") + " " + t.problem(o) + text), false,
				nil
		}
		said = text
	}
	return t.say("It is not done: %s kept changing.", "Ce n'est pas fait : %s change sans cesse.", args.Path), false,
		nil
}

// done says that a change happened, in the tool's own words.
func (t *thread) done(o *outcome) string {
	text := t.say("Done: %s.", "C'est fait : %s.", t.words(strings.TrimRight(strings.TrimSpace(o.content), ".")))
	if o.edited {
		text += " " + t.say("You had changed it before it ran.", "Vous l'aviez modifié avant qu'il ne s'exécute.")
	}
	return text
}

// inTheWay decides whether a write that did not happen is tried again, and how.
func (t *thread) inTheWay(args *arguments, o *outcome) (again bool, text string, wait *reaction) {
	switch o.code {
	case regie.CodeFileExists:
		return t.exists(args)
	case regie.CodeStalePreview, regie.CodeFileChanged:
		return true, t.say("%s has changed meanwhile: I propose it again, on what is there now.",
			"%s a changé entre-temps : je le propose de nouveau, sur ce qui y est maintenant.", args.Path), nil
	case regie.CodeUserRejected:
		return t.otherwise(args, reasonOf(o))
	}
	return false, "", nil
}

func (t *thread) exists(args *arguments) (again bool, text string, wait *reaction) {
	replace, behind := t.say("replace what is there", "remplacer ce qui y est"),
		t.say("add it at the end", "l'ajouter à la fin")
	leave := t.say("leave it as it is", "le laisser tel quel")
	if !t.has(toolAsk) {
		return false, " " + t.say("Say \"append\" to add to it, or \"overwrite\" to replace it.",
			"Dites « ajoute » pour compléter, ou « écrase » pour remplacer."), nil
	}
	answer, wait := t.choose(t.say("%s exists already. What shall I do?", "%s existe déjà. Que faire ?", args.Path),
		[]string{replace, behind, leave})
	switch answer {
	case replace:
		args.Mode = "overwrite"
	case behind:
		args.Mode = "append"
	default:
		return false, "", wait
	}
	return true, t.say("As you say, I write to %s.", "Comme vous dites, j'écris dans %s.", args.Path), nil
}

// otherwise takes from a refusal how it would be right: another file, or another text.
func (t *thread) otherwise(args *arguments, reason string) (again bool, text string, wait *reaction) {
	s := step{}
	list := tokens(reason)
	places, _ := survey(list, &s)
	changed := false
	for _, p := range places {
		if !p.bare && isFile(p.path) && p.path != args.Path {
			args.Path, changed = p.path, true
		}
	}
	for i, token := range list {
		if token.quoted && token.text != "" && !slices.ContainsFunc(places, func(p place) bool { return p.at == i }) {
			args.Content, changed = token.text+"\n", true
		}
	}
	if !changed {
		return false, "", nil
	}
	return true, t.say("As you say: I write to %s.", "Comme vous dites : j'écris dans %s.", args.Path), nil
}

// edit replaces a text in a file. It reads the file first, as it must be known where the text
// stands.
func (t *thread) edit(s *step) (string, bool, *reaction) {
	name, wait := t.file(s)
	if wait != nil || t.lost {
		return "", false, wait
	}
	for range maxTries {
		o, text, whole, wait := t.text(name)
		if wait != nil || t.lost {
			return "", false, wait
		}
		if o.failed {
			return t.problem(&o), false, nil
		}
		name, t.last = o.args.Path, o.args.Path
		change, said, wait := t.planned(s, name, text)
		if wait != nil || t.lost || change == nil {
			return said, false, wait
		}
		tool, args, why := t.applied(change, name, text, whole)
		if why != "" {
			return why, false, nil
		}
		got, wait := t.do(said, tool, []arguments{args})
		if wait != nil || t.lost {
			return "", false, wait
		}
		if !got[0].failed {
			return t.done(&got[0]), true, nil
		}
		if code := got[0].code; code != regie.CodeStalePreview && code != regie.CodeFileChanged {
			return t.say("It is not done.", "Ce n'est pas fait.") + " " + t.problem(&got[0]), false, nil
		}
	}
	return t.say("It is not done: %s kept changing.", "Ce n'est pas fait : %s change sans cesse.", name), false, nil
}

// replacement is one exact replacement; all means wherever it stands.
type replacement struct {
	old, new string
	all      bool
}

// planned decides what exactly is replaced. Where a text stands several times the person says
// which; change is nil where nothing is.
func (t *thread) planned(s *step, name, text string) (change *replacement, said string, wait *reaction) {
	old := s.old
	n := strings.Count(text, old)
	if n == 0 {
		if old = inOtherCase(text, s.old); old == "" {
			return nil, t.say("“%s” does not stand in %s, so I changed nothing.",
				"« %s » n'est pas dans %s, je n'ai donc rien changé.", s.old, name), nil
		}
		n = strings.Count(text, old)
	}
	said = t.say("I replace “%s” by “%s” in %s.", "Je remplace « %s » par « %s » dans %s.", old, s.new, name)
	if s.new == "" {
		said = t.say("I take “%s” out of %s.", "J'enlève « %s » de %s.", old, name)
	}
	if n == 1 || s.all {
		c := &replacement{old: old, new: s.new, all: n > 1}
		if line := lineAround(text, old); n == 1 && (s.whole || s.new == "" && strings.Trim(line, "\n") == old) {
			c.old = line
		}
		return c, said, nil
	}
	lines := strings.Split(text, "\n")
	all := t.say("all %d", "les %d", n)
	options, at := []string{all}, []int{-1}
	for i, line := range lines {
		if strings.Contains(line, old) && len(options) < 12 {
			options, at = append(options, shorten(t.say("line %d: %s", "ligne %d : %s", i+1, line), 150)), append(at, i)
		}
	}
	answer, wait := t.choose(t.say("“%s” stands %d times in %s. Which one do you mean?",
		"« %s » est %d fois dans %s. Lequel ?", old, n, name), options)
	if wait != nil || t.lost {
		return nil, "", wait
	}
	switch chosen := slices.Index(options, answer); {
	case chosen == 0:
		return &replacement{old: old, new: s.new, all: true}, said, nil
	case chosen > 0:
		around := unique(lines, at[chosen])
		return &replacement{old: around, new: strings.Replace(around, lines[at[chosen]],
			strings.ReplaceAll(lines[at[chosen]], old, s.new), 1)}, said, nil
	}
	return nil, t.say("So I changed nothing.", "Je n'ai donc rien changé."), nil
}

// inOtherCase finds a text whatever the case of its letters; "" where it is not there.
func inOtherCase(text, old string) string {
	at := strings.Index(strings.ToLower(text), strings.ToLower(old))
	// letters whose forms have other lengths
	if at < 0 || len(strings.ToLower(text)) != len(text) || len(strings.ToLower(old)) != len(old) {
		return ""
	}
	return text[at : at+len(old)]
}

// lineAround is the line that a text stands in, with its end.
func lineAround(text, old string) string {
	at := strings.Index(text, old)
	from := strings.LastIndexByte(text[:at], '\n') + 1
	rest := text[at:]
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		return text[from : at+end+1]
	}
	return text[max(0, from-1):] // the last line goes with the end of the line before
}

// unique is a line with as many of the lines before it as it takes to be there once.
func unique(lines []string, at int) string {
	text := "\n" + strings.Join(lines, "\n") + "\n"
	for from := at; from >= 0; from-- {
		around := strings.Join(lines[from:at+1], "\n")
		if strings.Count(text, around) == 1 {
			return around
		}
	}
	return strings.Join(lines[:at+1], "\n")
}

// applied turns a replacement into a call of the tool that is there: an edit, or else a write of
// the whole file.
func (t *thread) applied(c *replacement, name, text string, whole bool) (tool string, args arguments, why string) {
	if t.has(toolEdit) {
		if edits := t.edits(c); edits != nil {
			return toolEdit, arguments{Path: name, Edits: edits}, ""
		}
	}
	switch {
	case !t.has(toolWrite):
		return "", arguments{}, t.cannot(toolEdit)
	case !whole:
		return "", arguments{}, t.say("%s is too long for me to write it as a whole, so I changed nothing.",
			"%s est trop long pour que je l'écrive en entier, je n'ai donc rien changé.", name)
	}
	times := 1
	if c.all {
		times = -1
	}
	return toolWrite, arguments{Path: name, Content: strings.TrimRight(strings.Replace(text+"\n", c.old, c.new, times),
		"\n") + "\n", Mode: "overwrite"}, ""
}

// edits are the arguments of an edit under the names that the declared tool has for them; nil where
// it cannot replace all.
func (t *thread) edits(c *replacement) json.RawMessage {
	var schema struct {
		Properties struct {
			Edits struct {
				Items struct {
					Properties map[string]json.RawMessage `json:"properties"`
				} `json:"items"`
			} `json:"edits"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(t.tools[toolEdit].Parameters, &schema) // a tool without a schema has the usual names
	old, replacement, all := "old_text", "new_text", ""
	for name := range schema.Properties.Edits.Items.Properties {
		switch {
		case strings.HasPrefix(name, "old"):
			old = name
		case strings.HasPrefix(name, "new"):
			replacement = name
		case strings.Contains(name, "all"):
			all = name
		}
	}
	edit := map[string]any{old: c.old, replacement: c.new}
	if c.all {
		if all == "" {
			return nil
		}
		edit[all] = true
	}
	data, err := json.Marshal([]map[string]any{edit})
	if err != nil {
		return nil
	}
	return data
}

// remove deletes files.
func (t *thread) remove(s *step) (string, bool, *reaction) {
	if !t.has(toolDelete) {
		return t.cannot(toolDelete), false, nil
	}
	names, text, wait := t.doomed(s)
	if wait != nil || t.lost || len(names) == 0 {
		return text, false, wait
	}
	said := t.say("I delete %s.", "Je supprime %s.", strings.Join(names[:min(len(names), batch)], ", "))
	var wanted []arguments
	for _, name := range names {
		wanted = append(wanted, arguments{Path: name})
	}
	got, wait := t.do(said, toolDelete, wanted)
	if wait != nil || t.lost {
		return "", false, wait
	}
	var out []string
	ok := true
	for i := range got {
		o := &got[i]
		if o.code == regie.CodeFileNotFound && len(got) == 1 {
			found, wait := t.find(o.args.Path)
			if wait != nil || t.lost {
				return "", false, wait
			}
			if found != "" && found != o.args.Path {
				return t.remove(&step{verb: wantsDelete, paths: []string{found}})
			}
		}
		if o.failed {
			out, ok = append(out, t.problem(o)), false
			continue
		}
		t.last = o.args.Path
		out = append(out, t.done(o))
	}
	return strings.Join(out, "\n"), ok, nil
}

// doomed are the files that a step wants to be deleted.
func (t *thread) doomed(s *step) (names []string, text string, wait *reaction) {
	if s.pattern == "" {
		names, wait := t.files(s)
		return names, "", wait
	}
	got, wait := t.listed(s)
	if wait != nil || t.lost {
		return nil, "", wait
	}
	for i := range got {
		if got[i].failed {
			return nil, t.problem(&got[i]), nil
		}
		names = append(names, entries(got[i].content)...)
	}
	if len(names) == 0 {
		return nil, t.say("Nothing matches %s, so there is nothing to delete.",
			"Rien ne correspond à %s, il n'y a donc rien à supprimer.", s.pattern), nil
	}
	return names, "", nil
}

// changes are the outcomes that changed something.
func changes(past []outcome) (out []outcome) {
	for i := range past {
		if o := past[i]; !o.failed && (o.tool == toolWrite || o.tool == toolEdit || o.tool == toolDelete) {
			out = append(out, o)
		}
	}
	return out
}

// account sums up what was done.
func (t *thread) account(past []outcome) string {
	var out []string
	for _, kind := range []struct{ tool, noun, french string }{
		{toolList, "directory listed", "répertoire parcouru"},
		{toolSearch, "search made", "recherche faite"},
		{toolRead, "file read", "fichier lu"},
		{toolWrite, "file written", "fichier écrit"},
		{toolEdit, "file edited", "fichier modifié"},
		{toolDelete, "file deleted", "fichier supprimé"},
		{toolAsk, "question asked", "question posée"},
	} {
		var names []string
		n := 0
		for i := range past {
			if o := &past[i]; o.tool == kind.tool && !o.failed {
				n++
				if o.args.Path != "" && o.args.Path != "." && !slices.Contains(names, o.args.Path) {
					names = append(names, o.args.Path)
				}
			}
		}
		if n == 0 {
			continue
		}
		if kind.tool == toolRead || kind.tool == toolWrite || kind.tool == toolEdit {
			n = len(names)
		}
		text := t.plural(n, kind.noun, kind.french)
		if len(names) > 0 {
			text += " (" + some(names) + ")"
		}
		out = append(out, text)
	}
	failed := 0
	for i := range past {
		if past[i].failed {
			failed++
		}
	}
	if failed > 0 {
		out = append(out, t.say("%d not done", "%d pas faits", failed))
	}
	return strings.Join(out, ", ")
}

// plural writes an amount with a noun and what was done to it: both words take the mark of the
// plural in French.
func (t *thread) plural(n int, english, french string) string {
	noun, rest, _ := strings.Cut(t.say(english, french), " ")
	if n > 1 {
		switch {
		case t.french:
			noun, rest = noun+"s", rest+"s"
		case strings.HasSuffix(noun, "y"):
			noun = strings.TrimSuffix(noun, "y") + "ies"
		case strings.HasSuffix(noun, "ch"):
			noun += "es"
		default:
			noun += "s"
		}
	}
	return fmt.Sprintf("%d %s %s", n, noun, rest)
}

// some names the first of a list.
func some(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
