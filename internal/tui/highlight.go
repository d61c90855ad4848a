package tui

import (
	"strings"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

// patienceWithCode is how long a piece may take: expressions of a language can be slow on what was
// written to make them so.
var patienceWithCode = 100 * time.Millisecond

// highlightCode returns the lines of a piece of code, in colours where its language is known.
func highlightCode(source, lang string) (out [][]span) {
	lexer := lexers.Get(lang)
	if lang == "" || lexer == nil {
		lexer = lexers.Fallback
	}
	tokens, err := lexer.Tokenise(nil, source)
	if err != nil {
		return plainCode(source)
	}
	var line []span
	begun := time.Now()
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if time.Since(begun) > patienceWithCode {
			return plainCode(source)
		}
		for i, piece := range strings.Split(token.Value, "\n") {
			if i > 0 {
				out, line = append(out, line), nil
			}
			if piece != "" {
				line = appendSpan(line, expandTabs(piece), tokenStyle(token.Type))
			}
		}
	}
	out = append(out, line)
	// a lexer may add a line feed at the end, or take some away
	wanted := strings.Count(source, "\n") + 1
	return append(out, make([][]span, max(0, wanted-len(out)))...)[:wanted]
}

func plainCode(source string) (out [][]span) {
	for line := range strings.SplitSeq(source, "\n") {
		out = append(out, []span{{text: expandTabs(line)}})
	}
	return out
}

// expandTabs returns shown as spaces: a terminal's own would not be counted.
func expandTabs(s string) string { return strings.ReplaceAll(s, "\t", "    ") }

// tokenStyles are the colours of code, by type, else by what the type is a part of.
var tokenStyles = map[chroma.TokenType]style{
	chroma.CommentPreproc:    {fg: magenta},
	chroma.Comment:           {faint: true, italic: true},
	chroma.KeywordType:       {fg: cyan},
	chroma.Keyword:           {fg: magenta},
	chroma.LiteralString:     {fg: green},
	chroma.LiteralNumber:     {fg: yellow},
	chroma.NameFunction:      {fg: blue},
	chroma.NameClass:         {fg: blue},
	chroma.NameTag:           {fg: cyan},
	chroma.NameBuiltin:       {fg: cyan},
	chroma.NameAttribute:     {fg: yellow},
	chroma.GenericDeleted:    {fg: red},
	chroma.GenericInserted:   {fg: green},
	chroma.GenericHeading:    {bold: true},
	chroma.GenericSubheading: {bold: true},
}

func tokenStyle(t chroma.TokenType) style {
	for _, one := range []chroma.TokenType{t, t.SubCategory(), t.Category()} {
		if s, ok := tokenStyles[one]; ok {
			return s
		}
	}
	return style{}
}
