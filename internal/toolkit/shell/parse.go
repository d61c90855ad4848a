package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/regie-run/regie/internal/sanitize"
)

// MaxCommand bounds a command in bytes (spec 11.3).
const MaxCommand = 64 << 10

// bare are the characters of a word that mean themselves without quotes, in every shell and at
// every place. A letter is one of ASCII: others look like them.
const bare = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,=-"

// shellOnly are words that a shell handles itself, or differently from the program of that name:
// run as programs they would fail, or mean something else. The shell runs them.
var shellOnly = []string{
	".", ":", "[[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command", "compgen", "complete",
	"compopt", "continue", "coproc",
	"declare", "dirs", "disown", "do", "done", "elif", "else", "enable", "esac", "eval", "exec", "exit", "export", "fc",
	"fg", "fi", "for", "function", "getopts",
	"hash", "help", "history", "if", "in", "jobs", "let", "local", "logout", "mapfile", "popd", "pushd", "read",
	"readarray", "readonly", "return", "select", "set",
	"shift", "shopt", "source", "suspend", "then", "time", "times", "trap", "type", "typeset", "ulimit", "umask",
	"unalias", "unset", "until", "wait", "while",
}

// filters are programs that only read their input as data: only these may stand behind
// a pipe in what a rule allows. A rule for sh, python or xargs alone says nothing of what another
// command feeds them.
var filters = []string{
	"base64", "cat", "column", "comm", "cut", "diff", "egrep", "fgrep", "fmt", "fold", "grep", "head", "hexdump", "jq",
	"md5sum", "nl", "od", "paste", "rev", "rg", "sha1sum", "sha256sum", "sort", "tac", "tail", "tr", "uniq", "wc",
}

// line is a command that consists of simple commands alone.
type line struct {
	parts     [][]string // each of words that hold no character with a meaning of its own
	operators []string   // between the parts: |, &&, || or ;
}

// literal returns the program and the arguments of a command that is one simple command (spec 4.4,
// 8.2). It is run without a shell, so that what was read here is what runs.
func literal(command string) ([]string, bool) {
	l, ok := parseLine(command)
	if !ok || len(l.parts) != 1 {
		return nil, false
	}
	return l.parts[0], true
}

// parseLine reads a command that is simple commands, joined by pipes, &&, || and ; and nothing
// else. Nothing is guessed: what is not surely such a command is none.
func parseLine(command string) (l line, ok bool) {
	odd := func(r rune) bool { return r < 0x20 || sanitize.Hidden(r) || r == utf8.RuneError }
	if len(command) > MaxCommand || !utf8.ValidString(command) || strings.ContainsFunc(command, odd) {
		return l, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash),
		syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) == 0 || len(file.Last) > 0 {
		return l, false
	}
	for i, stmt := range file.Stmts {
		if last := i == len(file.Stmts)-1; stmt.Semicolon.IsValid() == last || !l.addStatement(stmt) {
			return line{}, false
		}
		if i < len(file.Stmts)-1 {
			l.operators = append(l.operators, ";")
		}
	}
	return l, true
}

// addStatement adds the simple commands of a statement in their order, and reports whether it
// consists of such alone.
func (l *line) addStatement(stmt *syntax.Stmt) bool {
	if stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || len(stmt.Redirs) > 0 ||
		len(stmt.Comments) > 0 {
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.PipeAll || cmd.X.Semicolon.IsValid() || !l.addStatement(cmd.X) {
			return false
		}
		l.operators = append(l.operators, cmd.Op.String())
		return l.addStatement(cmd.Y)
	case *syntax.CallExpr:
		return len(cmd.Assigns) == 0 && l.addCommand(cmd.Args)
	default:
		return false
	}
}

func (l *line) addCommand(words []*syntax.Word) bool {
	var argv []string
	for _, word := range words {
		arg, ok := literalWord(word)
		if !ok {
			return false
		}
		argv = append(argv, arg)
	}
	if len(argv) == 0 || !literalName(argv[0]) {
		return false
	}
	piped := len(l.operators) > 0 && l.operators[len(l.operators)-1] == "|"
	l.parts = append(l.parts, argv)
	return !piped || slices.Contains(filters, argv[0])
}

// script writes the line for a shell, each word quoted where it needs to be: what was read is what
// runs.
func (l *line) script() string {
	var b strings.Builder
	for i, argv := range l.parts {
		if i > 0 {
			b.WriteString(" " + l.operators[i-1] + " ")
		}
		b.WriteString(quoted(argv))
	}
	return b.String()
}

// literalName reports whether a word names a program: by plain letters, because a person must be
// able to read which.
func literalName(name string) bool {
	odd := strings.Trim(name, bare) != "" || strings.Trim(name, "./") == "" || strings.HasPrefix(name, "-") ||
		strings.ContainsAny(name, "=%")
	return !odd && !slices.Contains(shellOnly, name)
}

func literalWord(word *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, part := range word.Parts {
		text, ok := literalPart(part)
		if !ok {
			return "", false
		}
		b.WriteString(text)
	}
	return b.String(), true
}

func literalPart(part syntax.WordPart) (string, bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		return part.Value, strings.Trim(part.Value, bare) == ""
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar
	case *syntax.DblQuoted:
		var b strings.Builder
		for _, inner := range part.Parts {
			text, is := inner.(*syntax.Lit)
			if !is || strings.ContainsAny(text.Value, "\\`$!\"") {
				return "", false
			}
			b.WriteString(text.Value)
		}
		return b.String(), !part.Dollar
	default:
		return "", false
	}
}
