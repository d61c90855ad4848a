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

// literal returns the program and the arguments of a command that is nothing but these: one simple
// command, of words that hold no character with a meaning of its own (spec 4.4, 8.2). Such a
// command is run without a shell, so that what was read here is what runs; nothing is guessed: what
// is not surely literal is not.
func literal(command string) ([]string, bool) {
	odd := func(r rune) bool { return r < 0x20 || sanitize.Hidden(r) || r == utf8.RuneError }
	if len(command) > MaxCommand || !utf8.ValidString(command) || strings.ContainsFunc(command, odd) {
		return nil, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash),
		syntax.KeepComments(true)).Parse(strings.NewReader(command), "")
	if err != nil || len(file.Stmts) != 1 || len(file.Last) > 0 {
		return nil, false
	}
	stmt := file.Stmts[0]
	call, simple := stmt.Cmd.(*syntax.CallExpr)
	if !simple || stmt.Negated || stmt.Background || stmt.Coprocess || stmt.Disown || stmt.Semicolon.IsValid() ||
		len(stmt.Redirs) > 0 || len(stmt.Comments) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, false
	}
	argv := make([]string, 0, len(call.Args))
	for _, word := range call.Args {
		arg, ok := literalWord(word)
		if !ok {
			return nil, false
		}
		argv = append(argv, arg)
	}
	if !literalName(argv[0]) {
		return nil, false
	}
	return argv, true
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
