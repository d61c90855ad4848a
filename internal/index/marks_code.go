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

// scope is a declaration that holds others, and is open.
type scope struct {
	depth   int // indentation
	members int // that of what it holds; 0 until there is a line
	name    string
}

// qualify joins what is open with what begins.
func qualify(open []scope, name string) string {
	var out strings.Builder
	for _, s := range open {
		out.WriteString(s.name + ".")
	}
	return clipText(out.String()+name, maxSymbol)
}

// Bounds of what a hostile file could make costly: how deep declarations stand in each other, how
// many lines of comments over one belong to it, and how much of a line is looked at.
const (
	maxScopes  = 4
	maxComment = 200
	maxLine    = 400
)

// braceMarks finds the declarations of a language with braces.
func braceMarks(src *source) []mark { return codeMarks(src, true) }

// indentMarks finds those of a language without.
func indentMarks(src *source) []mark { return codeMarks(src, false) }

// codeMarks finds declarations at the left edge, and in what holds others, as classes do. It goes
// by the indentation, as people write code; where it is wrong a chunk begins at another line, and
// nothing is lost.
func codeMarks(src *source, braces bool) []mark {
	var out []mark
	var open []scope
	quoted := false
	for n := range src.count() {
		line := src.line(n)
		text := bytes.TrimSpace(line)
		inside := quoted
		quoted = opensText(text, braces, quoted)
		if inside || len(text) == 0 || isAside(text, braces) {
			continue
		}
		depth := indentOf(line)
		for len(open) > 0 && depth <= open[len(open)-1].depth {
			open = open[:len(open)-1]
		}
		members := 0
		if len(open) > 0 {
			last := &open[len(open)-1]
			if last.members == 0 {
				last.members = depth
			}
			members = last.members
		}
		if depth > members {
			continue
		}
		name, holds := declared(line, depth, braces)
		if name == "" {
			continue
		}
		out = append(out, mark{line: over(src, n), symbol: qualify(open, name)})
		if holds && len(open) < maxScopes {
			open = append(open, scope{depth: depth, name: name})
		}
	}
	return out
}

// opensText reports whether a comment or text over several lines is open behind a line, where open
// says the same of the line before.
func opensText(line []byte, braces, open bool) bool {
	if braces {
		return (open || bytes.HasPrefix(line, []byte("/*"))) && !bytes.Contains(line, []byte("*/"))
	}
	quotes := bytes.Count(line, []byte(`"""`)) + bytes.Count(line, []byte(`'''`))
	return open != (quotes%2 == 1)
}

// isAside reports whether a line says nothing about what is open: comments, what a preprocessor
// reads, labels, and a brace in a line of its own.
func isAside(text []byte, braces bool) bool {
	return text[0] == '#' || text[0] == '{' || braces && text[len(text)-1] == ':'
}

// holders are the words for what holds declarations of its own.
var holders = map[string]bool{
	"class": true, "struct": true, "interface": true, "trait": true, "impl": true, "namespace": true, "module": true,
	"object": true, "extension": true, "protocol": true,
	"mixin": true, "service": true, "record": true, "enum": true, "defmodule": true, "contract": true, "library": true,
}

// declared is the name of what a line declares, "" where it declares nothing, and whether that
// holds declarations.
func declared(line []byte, depth int, braces bool) (name string, holds bool) {
	line = line[:min(len(line), maxLine)]
	keyword := declares
	if !braces {
		keyword = declaresUpper
	}
	if m := keyword.FindSubmatch(line); m != nil {
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
		return name, holders[strings.ToLower(word)] && !bytes.HasSuffix(bytes.TrimSpace(line), []byte(";"))
	}
	if !braces {
		if m := shellFunction.FindSubmatch(line); m != nil {
			name = string(m[1])
		}
		return name, false
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

// shellFunction finds a function of a shell.
var shellFunction = regexp.MustCompile(`^\s*([\p{L}_][\p{L}\p{N}_:.-]*)\s*\(\)\s*\{?`)
