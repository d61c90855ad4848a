package demo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// indexName is the file of the target directory that gets one line for each text.
const indexName = "index.md"

// job is a digest under way: what was found, read and written.
type job struct {
	step  *step
	lists []outcome
	read  []outcome
	wrote []outcome
}

// digest is the main job: list the directories, read each text in them, then write one summary of
// each and one line of each into an index. A line is appended, so a write that happened twice would
// show as a line that stands there twice.
func (t *thread) digest(s *step) (string, bool, *reaction) {
	if len(s.paths) == 0 {
		if t.last == "" {
			return t.say("Which file do you mean? Name it, please.",
				"De quel fichier parlez-vous ? Nommez-le, s'il vous plaît."), false, nil
		}
		s.paths = []string{t.last}
	}
	j := &job{step: s}
	directories, texts := s.sources()
	var wanted []arguments
	for _, p := range directories {
		wanted = append(wanted, arguments{Path: strings.TrimSuffix(p, "/"), Recursive: s.recursive})
	}
	var wait *reaction
	if j.lists, wait = t.do(t.say("I look at %s.", "Je regarde %s.", strings.Join(directories, ", ")), toolList,
		wanted); wait != nil || t.lost {
		return "", false, wait
	}
	for i := range j.lists {
		if !j.lists[i].failed {
			texts = append(texts, textFiles(j.lists[i].content, s.to)...)
		}
	}
	texts = once(texts)
	if wait := t.reads(j, texts); wait != nil || t.lost {
		return "", false, wait
	}
	if s.to == "" {
		return t.report(j), true, nil
	}
	writes := t.writes(j)
	for len(j.wrote) < len(writes) && !refused(j.wrote) {
		next := writes[len(j.wrote):min(len(writes), len(j.wrote)+batch)]
		got, wait := t.do(t.say("I make %s into %s.", "Je fais %s dans %s.", t.n(len(next), "write", "écriture"), s.to),
			toolWrite, next)
		j.wrote = append(j.wrote, got...)
		if wait != nil && len(wait.calls) == 0 && len(j.wrote) > 0 { // the tool was taken away meanwhile
			wait.text += "\n\n" + t.report(j)
		}
		if wait != nil || t.lost {
			return "", false, wait
		}
	}
	return t.report(j), !slices.ContainsFunc(j.wrote, func(o outcome) bool { return o.failed }), nil
}

// reads reads the texts, a batch at a time.
func (t *thread) reads(j *job, texts []string) *reaction {
	for len(j.read) < len(texts) {
		var wanted []arguments
		for _, p := range texts[len(j.read):min(len(texts), len(j.read)+batch)] {
			wanted = append(wanted, arguments{Path: p})
		}
		got, wait := t.do(t.say("I read %s.", "Je lis %s.", t.n(len(wanted), "text", "texte")), toolRead, wanted)
		j.read = append(j.read, got...)
		if wait != nil || t.lost {
			return wait
		}
	}
	return nil
}

// sources splits the paths into directories to list and files to read.
func (s *step) sources() (directories, texts []string) {
	for _, p := range s.paths {
		if isFile(p) {
			texts = append(texts, p)
		} else {
			directories = append(directories, p)
		}
	}
	return directories, texts
}

// refused reports whether none of the writes so far was run at all: another batch would fare no
// better.
func refused(done []outcome) bool {
	return len(done) > 0 && !slices.ContainsFunc(done, func(o outcome) bool { return o.state != regie.CallNotRun })
}

// textFiles picks the texts from a listing: one entry a line, the path first, a tab before what
// else is said of it. What lies in the target is no source.
func textFiles(listing, target string) []string {
	var out []string
	for line := range strings.SplitSeq(listing, "\n") {
		name, detail, _ := strings.Cut(strings.TrimRight(line, "\r"), "\t")
		switch {
		case detail == "" && strings.Contains(name, " "): // a note of the tool, such as "notes is empty"
			continue
		case strings.HasPrefix(detail, "link") || detail == "special" || detail == "gone":
			continue
		case target != "" && (name == target || strings.HasPrefix(name, target+"/") && path.Dir(name) == target):
			continue
		}
		switch strings.ToLower(path.Ext(name)) {
		case ".md", ".txt", ".markdown", ".text":
			out = append(out, name)
		}
	}
	return out
}

func once(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// writes are all writes of the job, text by text: the summary, then its line of the index. A target
// that is a file gets the lines alone.
func (t *thread) writes(j *job) []arguments {
	var out []arguments
	to, taken := j.step.to, set{indexName: true}
	var lines strings.Builder
	for i := range j.read {
		if j.read[i].failed {
			continue
		}
		from := j.read[i].args.Path
		s := extract(from, j.read[i].content)
		line := fmt.Sprintf("- %s: %s (%s)\n", s.title, s.line(t), from)
		lines.WriteString(line)
		if isFile(to) {
			continue
		}
		source := t.say("Source: %s, %s.", "Source : %s, %s.", from, s.count(t))
		out = append(out,
			arguments{Path: path.Join(to, fileName(from, taken)), Content: fmt.Sprintf("# %s\n\n%s\n\n%s\n", s.title,
				s.line(t), source), Mode: "create"},
			arguments{Path: path.Join(to, indexName), Content: line, Mode: "append"})
	}
	if isFile(to) && lines.Len() > 0 {
		out = append(out, arguments{Path: to, Content: lines.String(), Mode: "create"})
	}
	return out
}

// fileName names a summary after its text. Two texts of one name (a.md and a.txt, x/a.md and
// y/a.md) get two summaries.
func fileName(from string, taken set) string {
	base := path.Base(from)
	stem := strings.TrimSuffix(base, path.Ext(base))
	name := stem + ".md"
	for n := 2; taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d.md", stem, n)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// report says what was done, from the results alone: what did not succeed is named, with the
// reason.
func (t *thread) report(j *job) string {
	read, problems := t.seen(j)
	var made []string
	lines := 0
	for i := range j.wrote {
		switch o := &j.wrote[i]; {
		case o.failed:
			problems = append(problems, t.problem(o))
		case o.args.Mode == "append":
			lines++
		default:
			made = append(made, path.Base(o.args.Path))
		}
	}
	better := t.say("a model would do better.", "un modèle ferait mieux.")
	texts := t.n(len(read), "text", "texte")
	var text string
	switch to := j.step.to; {
	case len(read) == 0 && len(problems) == 0:
		where := strings.Join(j.step.paths, ", ")
		return t.say("There is no text file in %s, so there is nothing to summarise.",
			"Il n'y a aucun texte dans %s, donc rien à résumer.", where)
	case to == "" && len(read) > 0:
		t.result = "- " + strings.Join(read, "\n- ")
		text = t.say("I read %s. These are the first headings and the first sentences; ",
			"J'ai lu %s. Voici les premiers titres et les premières phrases ; ", texts) + better + "\n\n" + t.result
	case len(made)+lines == 0:
		text = t.say("I read %s and wrote nothing.", "J'ai lu %s et n'ai rien écrit.", texts)
	case isFile(to):
		text = t.say("I read %s and wrote a line of each to %s: the first heading and the first sentence; ",
			"J'ai lu %s et écrit une ligne de chacun dans %s : le premier titre et la première phrase ; ", texts, to) +
			better
	default:
		text =
			t.say(
				"I read %s and wrote %s into %s (%s) and %s into %s. Each takes the first heading and the first sentence of its text; ",
				"J'ai lu %s et écrit %s dans %s (%s) et %s dans %s. Chacun reprend le premier titre et la première phrase de son texte ; ",
				texts, t.summaries(len(made)), to, strings.Join(made, ", "), t.n(lines, "line", "ligne"),
				path.Join(to, indexName)) + better
	}
	if missing := t.unwritten(j); missing > 0 {
		problems = append(problems, t.say("%d writes were not tried", "%d écritures n'ont pas été tentées", missing))
	}
	if len(problems) > 0 {
		text += "\n\n" + t.say("Not everything worked:", "Tout n'a pas marché :") + "\n- " +
			strings.Join(problems, "\n- ")
	}
	return text
}

func (t *thread) summaries(n int) string {
	return t.n(n, "summary", "résumé")
}

// seen returns a line for each text that was read, and what could not be listed or read.
func (t *thread) seen(j *job) (lines, problems []string) {
	for i := range j.lists {
		if j.lists[i].failed {
			problems = append(problems, t.problem(&j.lists[i]))
		}
	}
	for i := range j.read {
		o := &j.read[i]
		if o.failed {
			problems = append(problems, t.problem(o))
			continue
		}
		t.last = o.args.Path
		s := extract(o.args.Path, o.content)
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", s.title, s.line(t), o.args.Path))
	}
	return lines, problems
}

// unwritten counts the writes of the job that were never asked for.
func (t *thread) unwritten(j *job) int {
	if j.step.to == "" {
		return 0
	}
	return max(0, len(t.writes(j))-len(j.wrote))
}
