package demo

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// Wire names of the tools that the rules drive.
const (
	toolList  = "files__list_files"
	toolRead  = "files__read_file"
	toolWrite = "files__write_file"
	// batch bounds the calls of one reply below the engine's own limit of 10.
	batch = 10
)

// reaction is a reply before it becomes one.
type reaction struct {
	text  string
	calls []provider.Call
}

// exchange is a past call of the current request with its result.
type exchange struct {
	tool    string
	args    arguments
	content string
	failed  bool
}

type arguments struct {
	Path      string `json:"path,omitempty"`
	Recursive bool   `json:"recursive,omitempty"`
	Content   string `json:"content,omitempty"`
	Mode      string `json:"mode,omitempty"`
}

// thread is what the rules need to know of the conversation.
type thread struct {
	tools   map[string]bool
	request string
	past    []exchange // since the request
	calls   int        // in the whole thread, for ids that never repeat
	words   phrases
}

var (
	listing   = regexp.MustCompile(`(?i)\b(list|ls|show me what is|what (?:files|is there)|liste[rz]?|quels fichiers|montre[rz]? les fichiers)\b`)
	reading   = regexp.MustCompile(`(?i)\b(read|show|open|cat|print|lis|lire|lisez|montre[rz]?|ouvre[rz]?|affiche[rz]?)\b`)
	writing   = regexp.MustCompile(`(?i)\b(write|append|add|put|écri[st]|écrire|ecri[st]|ajoute[rz]?|mets)\b`)
	appending = regexp.MustCompile(`(?i)\b(append|add|ajoute[rz]?)\b`)
	digesting = regexp.MustCompile(`(?i)(summar|résum|resum)`)
	quoted    = regexp.MustCompile("[\"“«'`]\\s*([^\"”»'`]+?)\\s*[\"”»'`]")
	pathLike  = regexp.MustCompile(`(?:[\p{L}\p{N}_.-]+/)+[\p{L}\p{N}_.-]*|[\p{L}\p{N}_-]+\.[a-zA-Z][a-zA-Z0-9]{0,7}`)
	french    = regexp.MustCompile(`(?i)\b(le|la|les|dans|chaque|fichiers?|lis|écri[st]|liste|résumé?|bonjour|merci|que|peux|tu|une?|des|et|montre|ajoute)\b`)
	english   = regexp.MustCompile(`(?i)\b(the|in|each|files?|read|write|list|summar\w+|hello|thanks|what|can|you|an?|and|show|append|add|every)\b`)
)

// react is the whole provider: the next reply to a thread.
func react(tools map[string]bool, turns []provider.Turn) reaction {
	t := observe(tools, turns)
	if !tools[toolList] || !tools[toolRead] || !tools[toolWrite] {
		return reaction{text: t.words.intro + t.words.noTools}
	}
	paths := pathLike.FindAllString(withoutQuotes(t.request), -1)
	switch {
	case digesting.MatchString(t.request) && len(paths) >= 2:
		return t.digest(strings.TrimSuffix(paths[0], "/"), strings.TrimSuffix(paths[1], "/"))
	case writing.MatchString(t.request) && quoted.MatchString(t.request) && len(paths) >= 1:
		return t.write(paths[len(paths)-1])
	case listing.MatchString(t.request):
		return t.list(paths)
	case reading.MatchString(t.request) && len(paths) >= 1:
		return t.read(paths)
	default:
		return reaction{text: t.words.intro + t.words.help}
	}
}

func withoutQuotes(s string) string { return quoted.ReplaceAllString(s, " ") }

// observe finds the current request and what was done for it.
func observe(tools map[string]bool, turns []provider.Turn) thread {
	t := thread{tools: tools}
	open := map[string]exchange{}
	for i := range turns {
		turn := &turns[i]
		switch turn.Role {
		case provider.RoleUser:
			text := ""
			for _, part := range turn.Parts {
				text += part.Text
			}
			if !strings.HasPrefix(text, "[") { // notices of the system are not requests
				t.request, t.past = text, nil
			}
		case provider.RoleAssistant:
			for _, part := range turn.Parts {
				if part.Type == regie.PartCall {
					t.calls++
					e := exchange{tool: part.Call.Name}
					_ = json.Unmarshal([]byte(part.Call.Arguments), &e.args) // what we wrote ourselves
					open[part.Call.ID] = e
				}
			}
		case provider.RoleTool:
			for _, result := range turn.Results {
				e := open[result.CallID]
				e.content, e.failed = result.Content, result.IsError
				t.past = append(t.past, e)
			}
		}
	}
	t.words = englishPhrases
	if len(french.FindAllString(t.request, -1)) > len(english.FindAllString(t.request, -1)) {
		t.words = frenchPhrases
	}
	return t
}

// did returns the past calls of a tool.
func (t *thread) did(tool string) []exchange {
	var out []exchange
	for _, e := range t.past {
		if e.tool == tool {
			out = append(out, e)
		}
	}
	return out
}

func (t *thread) call(tool string, args arguments) provider.Call {
	t.calls++
	data, err := json.Marshal(args)
	if err != nil { // strings and booleans always encode
		data = []byte("{}")
	}
	return provider.Call{ID: fmt.Sprintf("demo_%d", t.calls), Name: tool, Arguments: string(data)}
}

func (t *thread) list(paths []string) reaction {
	if done := t.did(toolList); len(done) > 0 {
		return t.shown(done[0])
	}
	where := "."
	if len(paths) > 0 {
		where = paths[0]
	}
	return reaction{text: t.words.intro + fmt.Sprintf(t.words.lookAt, where), calls: []provider.Call{t.call(toolList, arguments{Path: where})}}
}

func (t *thread) shown(e exchange) reaction {
	if e.failed {
		return reaction{text: fmt.Sprintf(t.words.failed, e.content)}
	}
	return reaction{text: fmt.Sprintf(t.words.found, e.args.Path) + "\n\n" + e.content}
}

func (t *thread) read(paths []string) reaction {
	if done := t.did(toolRead); len(done) > 0 {
		var texts []string
		for _, e := range done {
			texts = append(texts, t.shown(e).text)
		}
		return reaction{text: strings.Join(texts, "\n\n")}
	}
	r := reaction{text: t.words.intro + fmt.Sprintf(t.words.lookAt, strings.Join(paths, ", "))}
	for _, p := range paths[:min(batch, len(paths))] {
		r.calls = append(r.calls, t.call(toolRead, arguments{Path: p}))
	}
	return r
}

func (t *thread) write(target string) reaction {
	if done := t.did(toolWrite); len(done) > 0 {
		if done[0].failed {
			return reaction{text: fmt.Sprintf(t.words.failed, done[0].content)}
		}
		return reaction{text: fmt.Sprintf(t.words.wrote, done[0].content)}
	}
	content := quoted.FindStringSubmatch(t.request)[1] + "\n"
	mode := "create"
	if appending.MatchString(t.request) {
		mode = "append"
	}
	return reaction{text: t.words.intro + fmt.Sprintf(t.words.willWrite, target), calls: []provider.Call{t.call(toolWrite, arguments{Path: target, Content: content, Mode: mode})}}
}

// digest is the main job: list a directory, read each text in it, write one summary of each and one line of each into an index.
func (t *thread) digest(from, to string) reaction {
	listed := t.did(toolList)
	if len(listed) == 0 {
		return reaction{text: t.words.intro + fmt.Sprintf(t.words.lookAt, from), calls: []provider.Call{t.call(toolList, arguments{Path: from})}}
	}
	if listed[0].failed {
		return reaction{text: fmt.Sprintf(t.words.failed, listed[0].content)}
	}
	texts := textFiles(listed[0].content)
	if len(texts) == 0 {
		return reaction{text: fmt.Sprintf(t.words.nothing, from)}
	}
	read := t.did(toolRead)
	if len(read) < len(texts) {
		next := texts[len(read):min(len(texts), len(read)+batch)]
		r := reaction{text: fmt.Sprintf(t.words.willRead, len(next))}
		for _, p := range next {
			r.calls = append(r.calls, t.call(toolRead, arguments{Path: p}))
		}
		return r
	}
	writes := t.summaries(read, to)
	done := len(t.did(toolWrite))
	if done < len(writes) {
		next := writes[done:min(len(writes), done+batch)]
		r := reaction{text: fmt.Sprintf(t.words.willSummarise, len(next), to)}
		for _, w := range next {
			r.calls = append(r.calls, t.call(toolWrite, w))
		}
		return r
	}
	return t.report(to)
}

// textFiles picks the texts from a listing: one entry a line, the path first.
func textFiles(listing string) []string {
	var out []string
	for _, line := range strings.Split(listing, "\n") {
		name, size, _ := strings.Cut(line, "\t")
		if !strings.HasSuffix(size, "bytes") {
			continue
		}
		switch strings.ToLower(path.Ext(name)) {
		case ".md", ".txt", ".markdown", ".text":
			out = append(out, name)
		}
	}
	return out
}

func (t *thread) summaries(read []exchange, to string) []arguments {
	var out []arguments
	for _, e := range read {
		if e.failed {
			continue
		}
		name := strings.TrimSuffix(path.Base(e.args.Path), path.Ext(e.args.Path))
		title, sentence, words := extract(e.content)
		if title == "" {
			title = name
		}
		summary := fmt.Sprintf("# %s\n\n%s\n\n%s\n", title, sentence, fmt.Sprintf(t.words.source, e.args.Path, words))
		out = append(out, arguments{Path: path.Join(to, name+".md"), Content: summary, Mode: "create"})
		out = append(out, arguments{Path: path.Join(to, "index.md"), Content: fmt.Sprintf("- %s: %s (%s)\n", title, sentence, e.args.Path), Mode: "append"})
	}
	return out
}

var (
	lineNumber = regexp.MustCompile(`(?m)^ *\d+\t`)
	sentenceOf = regexp.MustCompile(`(?s)^(.+?[.!?])(?:\s|$)`)
)

// extract takes a text's first heading, its first sentence, and counts its words.
func extract(numbered string) (title, sentence string, words int) {
	text := lineNumber.ReplaceAllString(numbered, "")
	words = len(strings.Fields(text))
	for _, paragraph := range strings.Split(text, "\n\n") {
		paragraph = strings.TrimSpace(paragraph)
		switch {
		case paragraph == "":
		case strings.HasPrefix(paragraph, "#") && title == "":
			heading, rest, _ := strings.Cut(paragraph, "\n")
			title = strings.TrimSpace(strings.TrimLeft(heading, "#"))
			if rest = strings.TrimSpace(rest); rest != "" && sentence == "" {
				sentence = firstSentence(rest)
			}
		case sentence == "":
			sentence = firstSentence(paragraph)
		}
	}
	return title, sentence, words
}

func firstSentence(paragraph string) string {
	paragraph = strings.Join(strings.Fields(paragraph), " ")
	if found := sentenceOf.FindStringSubmatch(paragraph); found != nil {
		return found[1]
	}
	return paragraph
}

// report says what was done, from the results alone.
func (t *thread) report(to string) reaction {
	made, lines := 0, 0
	var problems []string
	for _, e := range t.did(toolWrite) {
		switch {
		case e.failed:
			problems = append(problems, e.args.Path+": "+e.content)
		case e.args.Mode == "append":
			lines++
		default:
			made++
		}
	}
	for _, e := range t.did(toolRead) {
		if e.failed {
			problems = append(problems, e.args.Path+": "+e.content)
		}
	}
	text := fmt.Sprintf(t.words.summarised, made, to, lines, path.Join(to, "index.md"))
	if len(problems) > 0 {
		text += "\n\n" + t.words.problems + "\n- " + strings.Join(problems, "\n- ")
	}
	return reaction{text: text}
}
