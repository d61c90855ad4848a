package tui

import (
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// maxHighlight bounds the code that is coloured at once, in bytes; more of it is shown as it is.
const maxHighlight = 64 << 10

// patienceWithCode is how long a piece may take: expressions of a language can be slow on what was
// written to make them so.
const patienceWithCode = 100 * time.Millisecond

// highlight are the lines of a piece of code in colours. context is what stands before it in the
// same block: it says whether the piece begins inside a comment or a text.
func highlight(source, lang, context string) [][]span {
	before := 0
	if context != "" {
		before = strings.Count(context, "\n") + 1
		context += "\n"
	}
	lexer := lexerOf(lang)
	if lexer == nil || len(context)+len(source) > maxHighlight {
		return uncoloured(source)
	}
	tokens, err := lexer.Tokenise(nil, context+source)
	if err != nil {
		return uncoloured(source)
	}
	var out [][]span
	var line []span
	begun := time.Now()
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if time.Since(begun) > patienceWithCode {
			return uncoloured(source)
		}
		s := tokenStyle(token.Type)
		for i, piece := range strings.Split(token.Value, "\n") {
			if i > 0 {
				out, line = append(out, line), nil
			}
			if piece != "" {
				line = push(line, tabs(piece), s)
			}
		}
	}
	out = append(out, line)
	// A lexer may add a line feed at the end.
	wanted := before + strings.Count(source, "\n") + 1
	for len(out) < wanted {
		out = append(out, nil)
	}
	return out[before:wanted]
}

func uncoloured(source string) [][]span {
	var out [][]span
	for line := range strings.SplitSeq(source, "\n") {
		out = append(out, []span{{text: tabs(line)}})
	}
	return out
}

// tabs are shown as spaces: a terminal's own would not be counted.
func tabs(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

func lexerOf(lang string) chroma.Lexer {
	if lang == "" {
		return nil
	}
	lexer := lexers.Get(lang)
	if lexer == nil || lexer.Config().Name == "plaintext" {
		return nil
	}
	return lexer
}

func tokenStyle(t chroma.TokenType) style {
	switch {
	case t.InCategory(chroma.Comment):
		if t.InSubCategory(chroma.CommentPreproc) {
			return style{fg: magenta}
		}
		return style{faint: true, italic: true}
	case t == chroma.KeywordType:
		return style{fg: cyan}
	case t.InCategory(chroma.Keyword):
		return style{fg: magenta}
	case t.InSubCategory(chroma.LiteralString):
		return style{fg: green}
	case t.InSubCategory(chroma.LiteralNumber):
		return style{fg: yellow}
	case t.InSubCategory(chroma.NameFunction), t == chroma.NameClass:
		return style{fg: blue}
	case t == chroma.NameTag, t.InSubCategory(chroma.NameBuiltin), t == chroma.NameDecorator:
		return style{fg: cyan}
	case t == chroma.NameAttribute:
		return style{fg: yellow}
	case t == chroma.GenericDeleted:
		return style{fg: red}
	case t == chroma.GenericInserted:
		return style{fg: green}
	case t == chroma.GenericHeading, t == chroma.GenericSubheading:
		return style{bold: true}
	default:
		return style{}
	}
}
