package index

import (
	"bytes"
	"regexp"
	"strings"
)

// declares finds the name in a line that declares something, in the words of many languages: what
// comes before them says how, not what.
var declares = regexp.MustCompile(`(?i)^\s*(?:@\w+\s+|#\[[^\]]*\]\s*)*` +
	`(?:(?:export|default|declare|pub(?:\([^)]*\))?|public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async|unsafe|extern(?:\s+"[^"]*")?|` +
	`inline|constexpr|const|local|data|case|partial|readonly|suspend|mutating|implicit|lazy|template\s*<[^>]*>)\s+)*` +
	`(class|struct|interface|enum|union|trait|impl(?:<[^>]*>)?|fn|func|function\*?|fun|def|defp|defmodule|defmacro|namespace|module|package|type|typedef|record|object|` +
	`protocol|extension|mixin|message|service|rpc|contract|library|macro_rules!|sub|proc|theorem|lemma|create\s+(?:or\s+replace\s+)?(?:table|view|function|index|trigger|procedure))` +
	`\s+(?:if\s+not\s+exists\s+)?([\p{L}_$"<][\p{L}\p{N}_$.:<>,"'?!=-]*)`)

// assigned matches a function that is assigned to a name: const f = (x) => …
var assigned = regexp.MustCompile(`^\s*(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+([\p{L}_$][\p{L}\p{N}_$]*)\s*(?::[^=]*)?=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]*)?=>|[\p{L}_$][\p{L}\p{N}_$]*\s*=>)`)

// called matches the name of a C-like function: the name before its bracket.
var called = regexp.MustCompile(`^[\p{L}_~][\p{L}\p{N}_\s*&:<>,\[\].~@$]*?[\s*&:]?([\p{L}_~$][\p{L}\p{N}_:~$]*)\s*\(`)

// method matches the name of a method in languages without a keyword for functions.
var method = regexp.MustCompile(`^\s+(?:(?:public|private|protected|internal|static|final|abstract|override|virtual|async|readonly|synchronized|native|inline|get|set|const)\s+)*` +
	`(?:[\p{L}_][\p{L}\p{N}_<>,.?\[\]]*[\s*&]+)*([\p{L}_$#~][\p{L}\p{N}_$]*)\s*\([^;]*$`)

// notNames are words that look like a name before a bracket.
var notNames = map[string]bool{
	"if": true, "for": true, "while": true, "switch": true, "return": true, "else": true, "catch": true, "sizeof": true,
	"do": true, "new": true, "throw": true,
	"defined": true, "assert": true, "elif": true, "foreach": true, "using": true, "lock": true, "await": true,
	"typeof": true, "when": true, "match": true, "super": true,
}

// Limits against hostile files: how many comment lines above a declaration belong to it, and how
// much of a line is read.
const (
	maxComment = 200
	maxLine    = 400
)

// braceMarks finds the declarations of a language with braces.
func braceMarks(src *source) []mark { return codeMarks(src, true) }

// indentMarks finds those of a language without.
func indentMarks(src *source) []mark { return codeMarks(src, false) }

// codeMarks finds declarations at the left edge, and one level below it, as the methods of classes
// are. It goes by single lines; where it is wrong a chunk begins at another line, and nothing is
// lost.
func codeMarks(src *source, braces bool) []mark {
	var out []mark
	outer := ""
	for n := range src.lineCount() {
		line := src.lineAt(n)
		depth := indentOf(line)
		if depth > tabWidth || src.isBlank(n) {
			continue
		}
		name := declaredName(line[:min(len(line), maxLine)], depth, braces)
		switch {
		case name == "":
			continue
		case depth == 0:
			outer = name
		case outer != "":
			name = outer + "." + name
		}
		out = append(out, mark{line: commentStart(src, n), symbol: clipText(name, maxSymbol)})
	}
	return out
}

// declaredName returns the name that a line declares, or "".
func declaredName(line []byte, depth int, braces bool) string {
	if m := declares.FindSubmatch(line); m != nil {
		name, _, _ := strings.Cut(strings.TrimLeft(string(m[2]), "\"<"), "<")
		return strings.Trim(name, `"<>,:=`)
	}
	if !braces {
		if m := shellFunction.FindSubmatch(line); m != nil {
			return string(m[1])
		}
		return ""
	}
	if m := assigned.FindSubmatch(line); m != nil {
		return string(m[1])
	}
	reads := called
	if depth > 0 {
		reads = method
	}
	m := reads.FindSubmatch(line)
	if len(m) == 0 || notNames[string(m[1])] || bytes.HasSuffix(bytes.TrimSpace(line), []byte(";")) ||
		bytes.IndexByte(line[:bytes.IndexByte(line, '(')], '=') >= 0 {
		return ""
	}
	return string(m[1])
}

// commentStart returns the line at which the comments and attributes begin that stand right over a
// declaration.
func commentStart(src *source, n int) int {
	for least := max(0, n-maxComment); n > least; {
		line := bytes.TrimSpace(src.lineAt(n - 1))
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
