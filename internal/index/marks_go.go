package index

import (
	"go/scanner"
	"go/token"
	"strings"
)

// goMarks finds the declarations of a Go file, each with the comment that stands over it. It reads
// tokens and not the syntax tree, so that a file in the middle of an edit has its declarations too.
func goMarks(src *source) []mark {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(src.text))
	g := goReader{comment: -1, line: func(pos token.Pos) int { return file.Line(pos) - 1 }}
	g.scan.Init(file, src.text, func(token.Position, string) {}, scanner.ScanComments)
	for {
		pos, tok, lit := g.scan.Scan()
		if tok == token.EOF {
			g.flush()
			return g.marks
		}
		g.token(pos, tok, lit)
	}
}

const maxNames = 6 // of a group of constants that stand for it

// goReader is what is known at a token.
type goReader struct {
	scan    scanner.Scanner
	line    func(token.Pos) int // from 0; asked only where it matters, because each answer is a search
	marks   []mark
	depth   int // of brackets of all kinds
	comment int // the line at which the comments begin that stand right over this one; -1: none do
	next    int // the line that a comment has to stand over

	kind     token.Token // of the declaration at hand; ILLEGAL: none
	at       int         // its line
	first    int         // the line of its first comment, or its own
	names    []string
	receiver string
	inGroup  bool // between the brackets of a group of constants, variables, types
	expects  bool // a name may come
	named    bool // a function has its name
}

func (g *goReader) token(pos token.Pos, tok token.Token, lit string) {
	switch {
	case tok == token.COMMENT:
		if g.depth > 0 {
			return
		}
		line := g.line(pos)
		if g.comment < 0 || line > g.next {
			g.comment = line
		}
		g.next = line + strings.Count(lit, "\n") + 1
		return
	case tok == token.SEMICOLON && lit == "\n":
		if g.inGroup && g.depth == 1 {
			g.expects = true
		}
		return
	case g.depth == 0 && (tok == token.FUNC || tok == token.TYPE || tok == token.CONST || tok == token.VAR ||
		tok == token.PACKAGE || tok == token.IMPORT):
		line := g.line(pos)
		if tok == token.FUNC && g.kind != token.ILLEGAL && g.at == line { // the type of a variable
			return
		}
		g.begin(line, tok)
		return
	}
	g.inside(tok, lit)
}

// begin starts a declaration.
func (g *goReader) begin(line int, tok token.Token) {
	g.flush()
	g.kind, g.at, g.first, g.names, g.receiver, g.inGroup, g.expects, g.named = tok, line,
		line, nil, "", false, true, false
	if g.comment >= 0 && g.next == line {
		g.first = g.comment
	}
	g.comment = -1
}

// inside takes a token of a declaration.
func (g *goReader) inside(tok token.Token, lit string) {
	g.comment = -1
	switch tok {
	case token.LPAREN, token.LBRACE, token.LBRACK:
		if g.depth == 0 && tok == token.LPAREN && g.expects && g.kind != token.FUNC {
			g.inGroup = true
		}
		g.depth++
	case token.RPAREN, token.RBRACE, token.RBRACK:
		g.depth = max(0, g.depth-1)
		if g.depth == 0 {
			g.inGroup = false
		}
	case token.IDENT:
		switch {
		case g.kind == token.FUNC && !g.named && g.depth == 1 && lit != "":
			// the last name before a bracket opens is the receiver's type
			g.receiver = lit
		case g.kind == token.FUNC && !g.named && g.depth == 0:
			g.names, g.named = append(g.names, lit), true
		case g.kind != token.FUNC && g.expects && (g.depth == 0 || g.inGroup && g.depth == 1):
			g.names, g.expects = append(g.names, lit), false
		}
	case token.COMMA:
	default:
	}
}

// flush makes a mark of the declaration at hand.
func (g *goReader) flush() {
	m := mark{line: g.first}
	names := g.names[:min(len(g.names), maxNames)]
	switch g.kind {
	case token.ILLEGAL:
		return
	case token.FUNC:
		if m.symbol = strings.Join(names, ""); g.receiver != "" && m.symbol != "" {
			m.symbol = g.receiver + "." + m.symbol
		}
	case token.PACKAGE:
		m.symbol = "package " + strings.Join(names, "")
	case token.IMPORT:
	default:
		m.symbol = strings.Join(names, ", ")
	}
	g.kind = token.ILLEGAL
	g.marks = append(g.marks, m)
}
