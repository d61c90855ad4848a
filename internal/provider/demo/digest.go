package demo

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

const (
	// batch is how many calls one reply makes: the default limit of a round (spec 3.2).
	batch = 10
	// indexFile gets one line for each text.
	indexFile = "index.md"
)

// summariseTexts returns the main job: it lists a directory, reads each text in it, and shows a
// summary of each. Or it writes them into a directory with an index. Each summary appends a line to
// the index, so a repeated write would show as two equal lines.
func (t *thread) summariseTexts(asked parts) reply {
	reads, stop := t.findTexts(asked)
	if stop != nil {
		return *stop
	}
	read, wait := t.callInBatches(t.say("I read the texts.", "Je lis les textes."), toolRead, reads)
	if wait != nil {
		return *wait
	}
	var lines []string
	var writes []arguments
	to := path.Clean(asked["to"])
	for i := range read {
		if read[i].failed {
			continue
		}
		page, line := t.summariseText(read[i].args.Path, read[i].content)
		lines = append(lines, line)
		// A text that is no .md keeps its ending, so that a.md and a.txt get two summaries.
		name := strings.TrimSuffix(path.Base(read[i].args.Path), ".md") + ".md"
		writes = append(writes,
			arguments{Path: path.Join(to, name), Content: page, Mode: "create"},
			arguments{Path: path.Join(to, indexFile), Content: line, Mode: "append"})
	}
	texts := t.countNoun(len(lines), "text", "texte")
	text := t.say("I read %s. The first headings and sentences are below; a model would do better.",
		"J'ai lu %s. Voici les premiers titres et les premières phrases ; un modèle ferait mieux.", texts) +
		"\n\n" + strings.Join(lines, "")
	if asked["to"] != "" {
		wrote, wait := t.callInBatches(t.say("I write into %s.", "J'écris dans %s.", to), toolWrite, writes)
		if wait != nil {
			return *wait
		}
		text = t.reportWrites(texts, to, wrote)
		read = append(read, wrote...)
	}
	return reply{text: text + t.listFailures(read)}
}

// findTexts returns the files to read: the one that the request names, or the texts of a directory.
func (t *thread) findTexts(asked parts) (reads []arguments, stop *reply) {
	name := asked["path"]
	if path.Ext(name) != "" && name != "." {
		return []arguments{{Path: name}}, nil
	}
	place := t.placeName(asked)
	listed, stop := t.callOne(toolList, arguments{Path: name}, t.say("I look at %s.", "Je regarde %s.", place))
	if stop != nil {
		return nil, stop
	}
	for line := range strings.SplitSeq(listed.content, "\n") {
		file, detail, _ := strings.Cut(line, "\t")
		if ext := path.Ext(file); strings.HasSuffix(detail, " bytes") && (ext == ".md" || ext == ".txt") {
			reads = append(reads, arguments{Path: file})
		}
	}
	if len(reads) == 0 {
		stop = &reply{text: t.say("There is no text file in %s, so there is nothing to summarise.",
			"Il n'y a aucun texte dans %s, donc rien à résumer.", place)}
	}
	return reads, stop
}

// callInBatches makes calls, a batch in each reply. It stops after a batch without a call that was
// run: another one would fare no better.
func (t *thread) callInBatches(said, tool string, wanted []arguments) (done []outcome, wait *reply) {
	for chunk := range slices.Chunk(wanted, batch) {
		got, wait := t.callTool(said, tool, chunk...)
		if wait != nil {
			return nil, wait
		}
		done = append(done, got...)
		if !slices.ContainsFunc(got, func(o outcome) bool { return o.state != regie.CallNotRun }) {
			break
		}
	}
	return done, nil
}

// reportWrites reports the written files from the results only.
func (t *thread) reportWrites(texts, to string, wrote []outcome) string {
	var made []string
	lines := 0
	for i := range wrote {
		switch o := &wrote[i]; {
		case o.failed:
		case o.args.Mode == "append":
			lines++
		default:
			made = append(made, path.Base(o.args.Path))
		}
	}
	if len(made)+lines == 0 {
		return t.say("I read %s and wrote nothing.", "J'ai lu %s et n'ai rien écrit.", texts)
	}
	return t.say("I read %s and wrote %s into %s (%s) and %s into %s. "+
		"Each takes the first heading and the first sentence of its text; a model would do better.",
		"J'ai lu %s et écrit %s dans %s (%s) et %s dans %s. "+
			"Chacun reprend le premier titre et la première phrase de son texte ; un modèle ferait mieux.",
		texts, t.countNoun(len(made), "file", "fichier"), to, strings.Join(made, ", "),
		t.countNoun(lines, "line", "ligne"), path.Join(to, indexFile))
}

// listFailures names the calls that did not succeed.
func (t *thread) listFailures(done []outcome) (text string) {
	for i := range done {
		if done[i].failed {
			text += "\n- " + t.describeFailure(&done[i])
		}
	}
	if text != "" {
		text = "\n\n" + t.say("Not everything worked:", "Tout n'a pas marché :") + text
	}
	return text
}

var (
	// numberedLine matches a line of a file as the tool shows it.
	numberedLine = regexp.MustCompile(`(?m)^ *\d+\t(.*)$`)
	// sentence matches the first sentence of a paragraph: up to a mark that a capital letter
	// follows, and at most 240 characters.
	sentence = regexp.MustCompile(`^(?:(.{0,239}?[.!?…]["'”»’)]*)(?:\s+["'“«(]*\p{Lu}|$)|(.{0,240}))`)
)

// summariseText takes a text's first heading, or its file's name, and the first sentence of its
// first paragraph. It follows nothing that the text says.
func (t *thread) summariseText(source, content string) (page, line string) {
	var title string
	var prose []string
	ended := false
	for _, found := range numberedLine.FindAllStringSubmatch(content, -1) {
		line := strings.TrimSpace(found[1])
		switch heading := strings.HasPrefix(line, "#"); {
		case heading || line == "":
			title, ended = cmp.Or(title, strings.Trim(line, "# ")), len(prose) > 0
		case !ended:
			prose = append(prose, strings.TrimLeft(line, "-*> "))
		}
	}
	title = cmp.Or(title, strings.TrimSuffix(path.Base(source), path.Ext(source)))
	found := sentence.FindStringSubmatch(strings.Join(prose, " "))
	first := cmp.Or(found[1]+found[2], t.say("(no text)", "(pas de texte)"))
	return fmt.Sprintf("# %s\n\n%s\n\n%s\n", title, first, t.say("Source: %s.", "Source : %s.", source)),
		fmt.Sprintf("- %s: %s (%s)\n", title, first, source)
}
