package gitruns

import (
	"errors"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknown stands in a word for what a shell puts there.
const unknown = '\x00'

// maxNested bounds commands in commands.
const maxNested = 10

// maxCommand bounds a command that is parsed, in bytes: what nests deeply costs much of the stack.
const maxCommand = 16 << 10

var errTooLong = errors.New("a command that is too long to be parsed")

// before are programs that run the command behind them, with the options of theirs that take a
// value.
var before = map[string][]string{
	"time": nil, "exec": {"-a"}, "command": nil, "builtin": nil, "nohup": nil, "setsid": nil, "stdbuf": nil,
	"chronic": nil, "winpty": nil, "nice": {"-n"}, "ionice": {"-c", "-n"}, "env": {"-u", "-C"}, "sudo": {"-u", "-g"},
	"doas": {"-u"}, "timeout": {"-s", "-k"}, "xargs": {"-I", "-P", "-n", "-L", "-d", "-a"},
}

// interpreters are programs that run a file which is named to them, with the letters of the option
// behind which code stands.
var interpreters = map[string]string{
	"sh": "c", "bash": "c", "dash": "c", "zsh": "c", "ksh": "c", "ash": "c", "fish": "c", ".": "", "source": "",
	"python": "c", "pypy": "c", "node": "ep", "nodejs": "ep", "bun": "ep", "deno": "", "tsx": "ep", "ts-node": "ep",
	"perl": "eE", "ruby": "e", "php": "r", "lua": "e", "tclsh": "", "Rscript": "e", "pwsh": "", "uv": "",
}

// shells are those of them whose code is read as a command.
var shells = []string{"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}

// programs are the files that a command runs, as far as it names them by a path: not what it hands
// to them, which are files like any other, nor what a shell looks for along PATH. there reports
// whether a word names a file.
func programs(command string, there func(word string) bool) []string {
	r := &reader{there: there}
	if strings.Contains(command, "/") && there(command) { // some are run without a shell, and may have spaces in them
		r.take(command)
	}
	r.command(strings.TrimPrefix(command, "!"))
	return r.found
}

// reader reads a command.
type reader struct {
	there func(word string) bool
	found []string
	deep  int
}

// take takes in a program. Of one whose beginning a shell puts there, most often the top of the
// work tree, it takes the rest as one below that.
func (r *reader) take(word string) {
	if i := strings.LastIndexByte(word, unknown); i >= 0 {
		if word = "." + word[i+1:]; !strings.HasPrefix(word, "./") {
			return
		}
	}
	r.found = append(r.found, word)
}

// command reads one as a shell does. In what a shell would refuse each word that is a path counts:
// it may run what comes before its fault.
func (r *reader) command(command string) {
	if r.deep++; r.deep <= maxNested {
		var file *syntax.File
		err := errTooLong
		if len(command) <= maxCommand {
			file, err = syntax.NewParser().Parse(strings.NewReader(command), "")
		}
		if err != nil {
			r.paths(command, func(word string) bool { return strings.Contains(word, "/") || r.there(word) })
		} else {
			syntax.Walk(file, r.visit)
		}
	}
	r.deep--
}

// visit reads one simple command of those that a file holds, at any depth, and what it is fed.
func (r *reader) visit(node syntax.Node) bool {
	stmt, is := node.(*syntax.Stmt)
	if !is {
		return true
	}
	var words []string
	if call, is := stmt.Cmd.(*syntax.CallExpr); is {
		for _, arg := range call.Args {
			words = append(words, textOf(arg.Parts))
		}
	}
	for _, redirect := range stmt.Redirs {
		switch {
		case redirect.Hdoc != nil:
			r.command(textOf(redirect.Hdoc.Parts))
		case redirect.Op == syntax.WordHdoc:
			r.command(textOf(redirect.Word.Parts))
		case strings.HasPrefix(redirect.Op.String(), "<"): // what is read may be a script
			words = append(words, textOf(redirect.Word.Parts))
		}
	}
	r.simple(words)
	return true
}

// textOf is a word as a program gets it, with unknown for what a shell finds out.
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
				continue
			}
			text.WriteByte(unknown)
		default:
			text.WriteByte(unknown)
		}
	}
	return text.String()
}

// unescaped takes the backslashes away.
var unescaped = strings.NewReplacer("\\\n", "", `\\`, `\`, `\`, "")

// simple reads the words of one command.
func (r *reader) simple(words []string) {
	for len(words) > 0 {
		valued, is := before[path.Base(words[0])]
		if !is && !assigns(words[0]) {
			break
		}
		if is {
			words = r.options(words, valued)
		} else {
			words = words[1:]
		}
	}
	if len(words) == 0 {
		return
	}
	if strings.Contains(words[0], "/") {
		r.take(words[0])
	}
	name := strings.TrimSuffix(path.Base(words[0]), ".exe")
	if _, is := interpreters[name]; !is {
		name = strings.TrimRight(name, "0123456789.")
	}
	if code, is := interpreters[name]; is {
		r.operand(name, code, words[1:])
	}
	if name == "eval" {
		r.command(strings.Join(words[1:], " "))
	}
}

// options leaves out a word that comes before a command, with its own options and numbers.
func (r *reader) options(words, valued []string) []string {
	if strings.Contains(words[0], "/") {
		r.take(words[0])
	}
	words = words[1:]
	for len(words) > 0 && (strings.HasPrefix(words[0], "-") || strings.Trim(words[0], "0123456789.smhd") == "") {
		if split := words[0]; len(words) > 1 && (split == "-S" || split == "--split-string") {
			r.command(words[1])
		}
		if slices.Contains(valued, words[0]) && len(words) > 1 {
			words = words[1:]
		}
		words = words[1:]
	}
	return words
}

// operand finds the file that an interpreter runs, and what its options have it load.
func (r *reader) operand(name, code string, words []string) {
	flag := false
	for i, word := range words {
		next := ""
		if i+1 < len(words) {
			next = words[i+1]
		}
		option, value, _ := strings.Cut(word, "=")
		switch {
		case word == "--", word == "run":
			flag = false
		case isCode(word, code):
			r.code(name, next)
			return
		case option == "-r" || option == "--require" || option == "--import" || option == "--loader" ||
			option == "--rcfile" || option == "--init-file":
			if value == "" {
				value = next
			}
			if strings.HasPrefix(value, "./") || r.there(value) {
				r.take(value)
			}
			flag = true
		case word == "-m":
			for _, file := range []string{".py", "/__main__.py"} {
				if file = strings.ReplaceAll(next, ".", "/") + file; r.there(file) {
					r.take(file)
				}
			}
			return
		case strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+"):
			flag = true
		case flag && slices.Contains(r.found, word): // an option before it has it loaded
			flag = false
		case strings.Contains(word, "/") || r.there(word):
			r.take(word)
			return
		case !flag:
			return
		}
	}
}

// isCode reports whether a word is an option behind which code stands.
func isCode(word, letters string) bool {
	if word == "--eval" || word == "--print" || word == "--command" {
		return true
	}
	return len(word) > 1 && word[0] == '-' && word[1] != '-' && letters != "" && strings.ContainsAny(word[1:], letters)
}

// code finds the files that code names.
func (r *reader) code(name, code string) {
	if slices.Contains(shells, name) {
		r.command(code)
		return
	}
	r.paths(code, func(word string) bool {
		return strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") ||
			strings.Contains(word, "/") && r.there(word)
	})
}

// paths takes the words of a text of any language that are wanted.
func (r *reader) paths(text string, wanted func(word string) bool) {
	for _, word := range strings.FieldsFunc(text, func(c rune) bool {
		return strings.ContainsRune(" \t\n'\"`;|&()<>$={}!\x00", c)
	}) {
		if wanted(word) {
			r.take(word)
		}
	}
}

// assigns reports whether a word sets a variable for the command behind it.
func assigns(word string) bool {
	name, _, is := strings.Cut(word, "=")
	return is && name != "" && strings.Trim(name,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}
