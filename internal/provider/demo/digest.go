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

// digest is the main job: list the directories, read each text in them, then write one summary of each and one line of each into an
// index. A line is appended, so a write that happened twice would show as a line that stands there twice.
func (t *thread) digest() reaction {
	directories, texts := t.sources()
	listed := t.did(toolList)
	if len(listed) < len(directories) {
		var wanted []arguments
		for _, p := range directories[len(listed):] {
			wanted = append(wanted, arguments{Path: strings.TrimSuffix(p, "/"), Recursive: t.request.recursive})
		}
		return t.ask(fmt.Sprintf(t.words.willList, strings.Join(directories, ", ")), toolList, wanted)
	}
	for i := range listed {
		if !listed[i].failed {
			texts = append(texts, textFiles(listed[i].content, t.request.to)...)
		}
	}
	texts = unique(texts)
	if read := t.did(toolRead); len(read) < len(texts) {
		var wanted []arguments
		for _, p := range texts[len(read):] {
			wanted = append(wanted, arguments{Path: p})
		}
		return t.ask(fmt.Sprintf(t.words.willRead, min(batch, len(wanted))), toolRead, wanted)
	}
	if t.request.to == "" {
		return reaction{text: t.report()}
	}
	writes, done := t.writes(), t.did(toolWrite)
	if len(done) < len(writes) && !refused(done) {
		return t.ask(fmt.Sprintf(t.words.willSummarise, min(batch, len(writes)-len(done)), t.request.to), toolWrite, writes[len(done):])
	}
	return reaction{text: t.report()}
}

// sources splits the request's paths into directories to list and files to read.
func (t *thread) sources() (directories, texts []string) {
	for _, p := range t.request.paths {
		if isFile(p) {
			texts = append(texts, p)
		} else {
			directories = append(directories, p)
		}
	}
	return directories, texts
}

// refused reports whether none of the writes so far was run at all: another batch would fare no better.
func refused(done []outcome) bool {
	return len(done) > 0 && !slices.ContainsFunc(done, func(o outcome) bool { return o.state != regie.CallNotRun })
}

// textFiles picks the texts from a listing: one entry a line, the path first, a tab before what else is said of it. What lies in the
// target is no source.
func textFiles(listing, target string) []string {
	var out []string
	for line := range strings.SplitSeq(listing, "\n") {
		name, detail, _ := strings.Cut(strings.TrimRight(line, "\r"), "\t")
		switch {
		case detail == "" && strings.Contains(name, " "): // a note of the tool, such as "notes is empty"
			continue
		case detail == "link" || detail == "special" || detail == "gone":
			continue
		case target != "" && strings.HasPrefix(name, target+"/") && path.Dir(name) == target:
			continue
		}
		switch strings.ToLower(path.Ext(name)) {
		case ".md", ".txt", ".markdown", ".text":
			out = append(out, name)
		}
	}
	return out
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// writes are all writes of the job, text by text: the summary, then its line of the index.
func (t *thread) writes() []arguments {
	var out []arguments
	taken := set{indexName: true}
	index := path.Join(t.request.to, indexName)
	read := t.did(toolRead)
	for i := range read {
		if read[i].failed {
			continue
		}
		from := read[i].args.Path
		s := extract(from, read[i].content)
		summary := fmt.Sprintf("# %s\n\n%s\n\n%s\n", s.title, s.line(t.words), fmt.Sprintf(t.words.source, from, s.count(t.words)))
		line := fmt.Sprintf("- %s: %s (%s)\n", s.title, s.line(t.words), from)
		out = append(out,
			arguments{Path: path.Join(t.request.to, fileName(from, taken)), Content: summary, Mode: "create"},
			arguments{Path: index, Content: line, Mode: "append"})
	}
	return out
}

// fileName names a summary after its text. Two texts of one name (a.md and a.txt, x/a.md and y/a.md) get two summaries.
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

// report says what was done, from the results alone: what did not succeed is named, with the reason.
func (t *thread) report() string {
	read, problems := t.seen()
	var made []string
	lines := 0
	done := t.did(toolWrite)
	for i := range done {
		switch o := &done[i]; {
		case o.failed:
			problems = append(problems, t.problem(o))
		case o.args.Mode == "append":
			lines++
		default:
			made = append(made, path.Base(o.args.Path))
		}
	}
	var text string
	switch {
	case len(read) == 0 && len(problems) == 0:
		return fmt.Sprintf(t.words.nothing, strings.Join(t.request.paths, ", "))
	case t.request.to == "" && len(read) > 0:
		text = fmt.Sprintf(t.words.told, len(read)) + "\n\n- " + strings.Join(read, "\n- ")
	case len(made)+lines == 0:
		text = fmt.Sprintf(t.words.wroteNothing, len(read))
	default:
		text = fmt.Sprintf(t.words.summarised, len(read), len(made), t.request.to, strings.Join(made, ", "), lines, path.Join(t.request.to, indexName))
	}
	if missing := t.unwritten(len(done)); missing > 0 {
		problems = append(problems, fmt.Sprintf(t.words.missing, missing))
	}
	if len(problems) > 0 {
		text += "\n\n" + t.words.problems + "\n- " + strings.Join(problems, "\n- ")
	}
	return text
}

// seen returns a line for each text that was read, and what could not be listed or read.
func (t *thread) seen() (lines, problems []string) {
	for i := range t.past {
		switch o := &t.past[i]; {
		case o.tool == toolWrite:
		case o.failed:
			problems = append(problems, t.problem(o))
		case o.tool == toolRead:
			s := extract(o.args.Path, o.content)
			lines = append(lines, fmt.Sprintf("%s: %s (%s)", s.title, s.line(t.words), o.args.Path))
		}
	}
	return lines, problems
}

// unwritten counts the writes of the job that were never asked for.
func (t *thread) unwritten(done int) int {
	if t.request.to == "" {
		return 0
	}
	return max(0, len(t.writes())-done)
}
