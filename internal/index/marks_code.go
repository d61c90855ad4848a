package index

import (
	"bytes"
	"regexp"
	"strings"
)

// declares finds the name in a line that declares something, in the words of many languages: what
// comes before them says how, not what.
var declares = regexp.MustCompile(`^\s*(?:@\w+\s+|#\[[^\]]*\]\s*)*` +
	`(?:(?:export|default|declare|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async|unsafe|extern(?:\s+"[^"]*")?|` +
	`inline|constexpr|const|local|data|case|partial|readonly|suspend|mutating|implicit|lazy|template\s*<[^>]*>)\s+)*` +
	`(class|struct|interface|enum|union|trait|impl(?:<[^>]*>)?|fn|func|function\*?|fun|def|defp|defmodule|defmacro|namespace|module|package|type|typedef|record|object|` +
	`protocol|extension|mixin|message|service|rpc|contract|library|macro_rules!|sub|proc|theorem|lemma|create\s+(?:or\s+replace\s+)?(?:table|view|function|index|trigger|procedure))` +
	`\s+(?:if\s+not\s+exists\s+)?([\p{L}_$"<][\p{L}\p{N}_$.:<>,"'?!=-]*)`)

// declaresUpper is declares for languages whose words are often written in capitals.
var declaresUpper = regexp.MustCompile(`(?i)` + declares.String())

// assigned finds a function that is given a name: const f = (x) => …
var assigned = regexp.MustCompile(`^\s*(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+([\p{L}_$][\p{L}\p{N}_$]*)\s*(?::[^=]*)?=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]*)?=>|[\p{L}_$][\p{L}\p{N}_$]*\s*=>)`)

// called finds what a function in the manner of C is called: the name before its bracket.
var called = regexp.MustCompile(`^[\p{L}_~][\p{L}\p{N}_\s*&:<>,\[\].~@$]*?[\s*&:]?([\p{L}_~$][\p{L}\p{N}_:~$]*)\s*\(`)

// method finds what a function in a class is called, in languages that have no word for it.
var method = regexp.MustCompile(`^\s+(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async|readonly|synchronized|native|inline|get|set|const)\s+)*` +
	`(?:[\p{L}_][\p{L}\p{N}_<>,.?\[\]]*[\s*&]+)*([\p{L}_$#~][\p{L}\p{N}_$]*)\s*\([^;]*$`)

// notNames are words that look like a name before a bracket.
var notNames = map[string]bool{
	"if": true, "for": true, "while": true, "switch": true, "return": true, "else": true, "catch": true, "sizeof": true,
	"do": true, "new": true, "throw": true,
	"defined": true, "assert": true, "elif": true, "foreach": true, "using": true, "lock": true, "await": true,
	"typeof": true, "when": true, "match": true, "super": true,
}

// scope is a declaration that is open.
type scope struct {
	depth int // of brackets, or of indentation
	name  string
}

// names joins what is open with what begins.
func names(scopes []scope, name string) string {
	var out strings.Builder
	for _, s := range scopes {
		out.WriteString(s.name)
		out.WriteByte('.')
	}
	out.WriteString(name)
	return clipText(out.String(), maxSymbol)
}

// Bounds of what a hostile file could make costly: how deep declarations stand in each other, and
// how many lines of comments over one belong to it.
const (
	maxScopes  = 4
	maxComment = 200
)

// maxLine is how much of a line is looked at for what it declares, in bytes.
const maxLine = 400

// braceMarks finds the declarations of a language with braces: at the top, and in what holds
// others, as classes do. It follows braces, strings and comments well enough for code that people
// write; where it is wrong a chunk begins at another line, and nothing is lost.
func braceMarks(src *source) []mark {
	var out []mark
	var open []scope
	var at bracket
	for n := range src.count() {
		line := src.line(n)
		depth, quiet := at.depth, at.inside()
		at.line(line)
		for len(open) > 0 && depth <= open[len(open)-1].depth && !quiet {
			if depth == open[len(open)-1].depth && len(bytes.TrimSpace(line)) > 0 && bytes.TrimSpace(line)[0] == '{' {
				break // its brace stands in a line of its own
			}
			open = open[:len(open)-1]
		}
		if quiet || depth > len(open) || len(line) == 0 {
			continue
		}
		name, holds := declared(line, depth)
		if name == "" {
			continue
		}
		out = append(out, mark{line: over(src, n), symbol: names(open, name)})
		if holds && len(open) < maxScopes {
			open = append(open, scope{depth: depth, name: name})
		}
	}
	return out
}

// holders are the words for what holds declarations of its own.
var holders = map[string]bool{
	"class": true, "struct": true, "interface": true, "trait": true, "impl": true, "namespace": true, "module": true,
	"object": true, "extension": true, "protocol": true,
	"mixin": true, "service": true, "record": true, "enum": true, "defmodule": true, "contract": true, "library": true,
}

// declared is the name of what a line declares, "" where it declares nothing, and whether that
// holds declarations.
func declared(line []byte, depth int) (name string, holds bool) {
	line = line[:min(len(line), maxLine)]
	if m := declares.FindSubmatch(line); m != nil {
		word, _, _ := strings.Cut(string(m[1]), "<")
		name = strings.Trim(string(m[2]), `"<>,:=`)
		if word == "impl" { // impl Trait for Type
			if _, of, ok := strings.Cut(string(line), " for "); ok {
				name = strings.TrimRight(strings.TrimSpace(of), "{ ")
			}
		}
		if at := strings.IndexByte(name, '<'); at > 0 { // its parameters
			name = name[:at]
		}
		return name, holders[word] && !bytes.HasSuffix(bytes.TrimSpace(line), []byte(";"))
	}
	if m := assigned.FindSubmatch(line); m != nil {
		return string(m[1]), false
	}
	reads := called
	if depth > 0 {
		reads = method
	}
	m := reads.FindSubmatch(line)
	if len(m) == 0 || notNames[string(m[1])] || bytes.HasSuffix(bytes.TrimSpace(line), []byte(";")) ||
		bytes.IndexByte(line[:bytes.IndexByte(line, '(')], '=') >= 0 {
		return "", false
	}
	return string(m[1]), false
}

// over is the line at which the comments and attributes begin that stand right over a declaration.
func over(src *source, n int) int {
	for least := max(0, n-maxComment); n > least; {
		line := bytes.TrimSpace(src.line(n - 1))
		if len(line) == 0 || !bytes.HasPrefix(line, []byte("//")) && !bytes.HasPrefix(line, []byte("/*")) &&
			line[0] != '*' && line[0] != '#' && line[0] != '@' &&
			!bytes.HasPrefix(line, []byte("--")) && !bytes.HasSuffix(line, []byte("*/")) &&
			!bytes.HasPrefix(line, []byte("template")) {
			break
		}
		if line[0] == '#' && (bytes.HasPrefix(line, []byte("#include")) || bytes.HasPrefix(line, []byte("#endif"))) {
			break
		}
		n--
	}
	return n
}

// bracket follows braces through a text, past strings and comments.
type bracket struct {
	depth   int
	comment bool // in one that ends with */
	quote   byte // of a text that goes on over lines; 0: in none
}

func (b *bracket) inside() bool { return b.comment || b.quote != 0 }

func (b *bracket) line(line []byte) {
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case b.comment:
			if c == '*' && i+1 < len(line) && line[i+1] == '/' {
				b.comment = false
				i++
			}
		case b.quote != 0:
			switch c {
			case '\\':
				i++
			case b.quote:
				b.quote = 0
			}
		case c == '/' && i+1 < len(line) && line[i+1] == '*':
			b.comment = true
			i++
		case c == '/' && i+1 < len(line) && line[i+1] == '/':
			return
		case c == '"', c == '`':
			b.quote = c
		case c == '\'' && i+2 < len(line) && (line[i+1] == '\\' || line[i+2] == '\''):
			// a character, where a lifetime of Rust looks like its beginning
			if end := bytes.IndexByte(line[i+2:], '\''); end >= 0 {
				i += 2 + end
			}
		case c == '{':
			b.depth++
		case c == '}':
			b.depth = max(0, b.depth-1)
		}
	}
	if b.quote == '"' { // only ` goes on
		b.quote = 0
	}
}

var assemblyLabel = regexp.MustCompile(`^[\p{L}_][\p{L}\p{N}_.$·]*:`)

// assemblyMarks finds the functions and labels of an assembler, Go's or another.
func assemblyMarks(src *source) []mark {
	var out []mark
	for n := range src.count() {
		line := src.line(n)
		var name []byte
		if text, ok := bytes.CutPrefix(line, []byte("TEXT ")); ok {
			name, _, _ = bytes.Cut(text, []byte("("))
			name, _, _ = bytes.Cut(name, []byte("<"))
			name = bytes.TrimLeft(bytes.TrimSpace(name), "·")
		} else if label := assemblyLabel.Find(line); label != nil {
			name = label[:len(label)-1]
		}
		if len(name) > 0 {
			out = append(out, mark{line: over(src, n), symbol: clipText(string(name), maxSymbol)})
		}
	}
	return out
}

// shellFunction finds a function of a shell.
var shellFunction = regexp.MustCompile(`^\s*([\p{L}_][\p{L}\p{N}_:.-]*)\s*\(\)\s*\{?`)

// indentMarks finds the declarations of a language in which the indentation shows what belongs
// together: those that stand no deeper than in one or two others.
func indentMarks(src *source) []mark {
	var out []mark
	var open []scope
	quote := ""
	for n := range src.count() {
		line := src.line(n)
		if text := quote != ""; text || len(bytes.TrimSpace(line)) == 0 {
			quote = tripled(line, quote)
			continue
		}
		quote = tripled(line, quote)
		depth := indentOf(line)
		for len(open) > 0 && depth <= open[len(open)-1].depth {
			open = open[:len(open)-1]
		}
		short := line[:min(len(line), maxLine)]
		name, holds := "", false
		if m := declaresUpper.FindSubmatch(short); m != nil {
			name, holds = strings.Trim(string(m[2]), `"<>,:=`), true
		} else if m := shellFunction.FindSubmatch(short); m != nil {
			name = string(m[1])
		}
		if name == "" || len(open) == maxScopes {
			continue
		}
		out = append(out, mark{line: over(src, n), symbol: names(open, name)})
		if holds {
			open = append(open, scope{depth: depth, name: name})
		}
	}
	return out
}

// tripled follows texts between three quotes: it returns the quotes of the one that is open at the
// end of a line.
func tripled(line []byte, open string) string {
	for {
		if open != "" {
			end := bytes.Index(line, []byte(open))
			if end < 0 {
				return open
			}
			line = line[end+len(open):]
		}
		double, single := bytes.Index(line, []byte(`"""`)), bytes.Index(line, []byte(`'''`))
		switch {
		case double < 0 && single < 0:
			return ""
		case single < 0 || double >= 0 && double < single:
			line, open = line[double+3:], `"""`
		default:
			line, open = line[single+3:], `'''`
		}
	}
}
