package demo

import (
	"cmp"
	"path"
	"regexp"
	"strings"

	"github.com/regie-run/regie"
)

func (t *thread) listFiles(asked parts) reply {
	name := t.placeName(asked)
	return t.callAndShow(toolList, arguments{Path: asked["path"]}, t.say("I look at %s.", "Je regarde %s.", name),
		t.say("In %s:", "Dans %s :", name))
}

func (t *thread) placeName(asked parts) string {
	if asked["path"] == "." {
		return t.say("the workspace", "l'espace de travail")
	}
	return asked["path"]
}

func (t *thread) readFile(asked parts) reply {
	return t.callAndShow(toolRead, arguments{Path: asked["path"]}, t.say("I read %s.", "Je lis %s.", asked["path"]),
		t.say("This is %s:", "Voici %s :", asked["path"]))
}

func (t *thread) runCommand(asked parts) reply {
	return t.callAndShow(toolShell, arguments{Command: asked["text"]}, t.say("I run `%s`.", "J'exécute `%s`.", asked["text"]),
		t.say("This is what `%s` gives:", "Voici ce que donne `%s` :", asked["text"]))
}

// lineNumber matches the number before each line of a file, and the number of all lines in the
// remark that not all are shown.
var lineNumber = regexp.MustCompile(`(?m)^(?: *|\[lines \d+ to \d+ of )(\d+)(?:\t|; go on with)`)

func (t *thread) countLines(asked parts) reply {
	o, stop := t.callOne(toolRead, arguments{Path: asked["path"]}, t.say("I read %s.", "Je lis %s.", asked["path"]))
	if stop != nil {
		return *stop
	}
	numbers := lineNumber.FindAllStringSubmatch(o.content, -1)
	if numbers == nil { // it is empty, or no text
		return reply{text: o.content}
	}
	return reply{text: t.say("Lines in %s: %s.", "Lignes dans %s : %s.", asked["path"], numbers[len(numbers)-1][1])}
}

// searchText shows the search results, and writes them to a file on request.
func (t *thread) searchText(asked parts) reply {
	text := asked["text"]
	o, stop := t.callOne(toolSearch, arguments{Query: text, Path: asked["path"]},
		t.say("I search for %q.", "Je cherche « %s ».", text))
	if stop != nil {
		return *stop
	}
	found := t.say("What I find for “%s” in %s:", "Ce que je trouve pour « %s » dans %s :", text, t.placeName(asked)) +
		"\n\n" + o.content
	lines, _, _ := strings.Cut("\n"+o.content, "\n[") // the remarks of the tool come last
	if asked["to"] == "" || lines == "" {
		return reply{text: found}
	}
	written := t.writeFile(path.Clean(asked["to"]), strings.TrimSpace(lines), "create")
	if len(written.calls) == 0 {
		written.text = found + "\n\n" + written.text
	}
	return written
}

func (t *thread) createFile(asked parts) reply {
	return t.writeFile(asked["path"], asked["text"], "create")
}

func (t *thread) appendText(asked parts) reply {
	return t.writeFile(asked["path"], asked["text"], "append")
}

// writeFile writes a file. If the file exists, the person decides.
func (t *thread) writeFile(name, text, mode string) reply {
	args := arguments{Path: name, Content: text + "\n", Mode: mode}
	said := t.say("I write to %s.", "J'écris dans %s.", name)
	o, stop := t.callOne(toolWrite, args, said)
	if o != nil && o.code == regie.CodeFileExists && t.tools[toolAsk].Name != "" {
		if args.Mode, stop = t.askMode(name); stop == nil {
			o, stop = t.callOne(toolWrite, args, said)
		}
	}
	if stop != nil {
		return *stop
	}
	return reply{text: t.say("Done: %s is written.", "C'est fait : %s est écrit.", o.args.Path)}
}

// askMode asks how to write to an existing file; wait may be the reply that leaves it unchanged.
func (t *thread) askMode(name string) (mode string, wait *reply) {
	replace, add := t.say("replace what is there", "remplacer ce qui y est"),
		t.say("add it at the end", "l'ajouter à la fin")
	question := t.say("%s exists already. What shall I do?", "%s existe déjà. Que faire ?", name)
	answer, wait := t.callTool(question, toolAsk, arguments{
		Question: question, Options: []string{replace, add, t.say("leave it as it is", "le laisser tel quel")},
	})
	switch {
	case wait != nil:
		return "", wait
	case answer[0].content == "Chosen: "+replace:
		return "overwrite", nil
	case answer[0].content == "Chosen: "+add:
		return "append", nil
	}
	return "", &reply{text: t.say("I left %s as it is.", "J'ai laissé %s tel quel.", name)}
}

func (t *thread) replaceText(asked parts) reply {
	name, old, replacement := asked["path"], asked["old"], asked["new"]
	o, stop := t.callOne(toolEdit, arguments{Path: name, Edits: []edit{{Old: old, New: replacement, All: true}}},
		t.say("I replace “%s” by “%s” in %s.", "Je remplace « %s » par « %s » dans %s.", old, replacement, name))
	if stop != nil {
		return *stop
	}
	return reply{text: t.say("Done: %s is changed.", "C'est fait : %s est modifié.", o.args.Path)}
}

func (t *thread) deleteFile(asked parts) reply {
	o, stop := t.callOne(toolDelete, arguments{Path: asked["path"]},
		t.say("I delete %s.", "Je supprime %s.", asked["path"]))
	if stop != nil {
		return *stop
	}
	return reply{text: t.say("Done: %s is deleted; `regie undo` brings it back.",
		"C'est fait : %s est supprimé ; `regie undo` le rétablit.", o.args.Path)}
}

// callAndShow answers with a call's result, under a heading.
func (t *thread) callAndShow(tool string, args arguments, said, heading string) reply {
	o, stop := t.callOne(tool, args, said)
	if stop != nil {
		return *stop
	}
	return reply{text: heading + "\n\n" + o.content}
}

// callOne makes one call; stop is the reply that makes it, or says why it failed.
func (t *thread) callOne(tool string, args arguments, said string) (o *outcome, stop *reply) {
	done, wait := t.callTool(said, tool, args)
	if wait != nil {
		return nil, wait
	}
	if done[0].failed {
		stop = &reply{text: t.describeFailure(&done[0])}
	}
	return &done[0], stop
}

// describeFailure describes the outcome of a call that did not succeed.
func (t *thread) describeFailure(o *outcome) string {
	what, target := t.say("failed", "échec"), cmp.Or(o.args.Path, o.args.Command)
	switch {
	case o.code == regie.CodeUserRejected:
		if _, reason, given := strings.Cut(o.content, "denied this call: "); given {
			return t.say("%s: you said no: “%s”. I left it.", "%s : vous avez dit non : « %s ». Je n'y ai pas touché.",
				target, reason)
		}
		return t.say("%s: you said no, so I left it.", "%s : vous avez dit non, je n'y ai donc pas touché.", target)
	case o.state == regie.CallUnknown:
		what = t.say("the outcome is not known, look before you try again",
			"résultat inconnu, vérifiez avant de recommencer")
	}
	return t.say("%s: %s (%s): %s", "%s : %s (%s) : %s", target, what, string(o.code),
		strings.Join(strings.Fields(o.content), " "))
}
