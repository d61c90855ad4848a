package gitconfig

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown replaces the parts of a word that a shell expands.
const unknown = '\x00'

// maxCommand bounds a command that is parsed, in bytes: what nests deeply costs much of the stack.
const maxCommand = 16 << 10

// programs returns the words of a command, quoted parts included, that may name files of the
// workspace that it runs. Arguments of programs count too: their use is unknown. If a shell expands
// the beginning of a word, the rest counts as a path below the work tree's top. there reports
// whether a word names a file.
func programs(command string, there func(word string) bool) (found []string) {
	take := func(word string) {
		if i := strings.LastIndexByte(word, unknown); i >= 0 {
			word = "." + word[i+1:]
		}
		if !strings.HasSuffix(word, "/") && (strings.Contains(word, "/") || there(word)) {
			found = append(found, word)
		}
	}
	command = strings.TrimPrefix(command, "!")
	texts := []string{command}
	if len(command) <= maxCommand {
		if file, err := syntax.NewParser().Parse(strings.NewReader(command), ""); err == nil {
			syntax.Walk(file, func(node syntax.Node) bool {
				if word, is := node.(*syntax.Word); is {
					texts = append(texts, textOf(word.Parts))
				}
				return true
			})
		}
	}
	for i, text := range texts {
		words := strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>$={}!", c) })
		if len(words) == 1 && words[0] == command { // git looks for it along PATH, unless it is a path
			there = func(string) bool { return false }
		}
		if i > 0 || there(text) { // some are run without a shell, and may have spaces in them
			words = append(words, text)
		}
		for _, word := range words {
			take(word)
		}
	}
	return found
}

// textOf returns a word as a program gets it, with unknown for the parts that a shell expands.
func textOf(parts []syntax.WordPart) string {
	var text strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text.WriteString(unescaped.Replace(part.Value))
		case *syntax.SglQuoted:
			text.WriteString(part.Value)
		case *syntax.DblQuoted:
			text.WriteString(textOf(part.Parts))
		case *syntax.ParamExp:
			if part.Param != nil && part.Param.Value == "HOME" && text.Len() == 0 {
				text.WriteByte('~')
			} else {
				text.WriteByte(unknown)
			}
		default:
			text.WriteByte(unknown)
		}
	}
	return text.String()
}

// unescaped takes the backslashes away.
var unescaped = strings.NewReplacer("\\\n", "", `\\`, `\`, `\`, "")
