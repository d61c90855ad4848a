package gitruns

import (
	"path"
	"slices"
	"strings"
)

// unknown stands in a word for what a shell puts there.
const unknown = '\x00'

// maxNested bounds commands in commands.
const maxNested = 10

// before are words that come before a command, and programs that run the command behind them, with
// the options of theirs that take a value.
var before = map[string][]string{
	"if": nil, "then": nil, "else": nil, "elif": nil, "do": nil, "while": nil, "until": nil, "!": nil, "{": nil,
	"}": nil, "time": nil, "exec": {"-a"}, "command": nil, "builtin": nil, "nohup": nil, "setsid": nil, "stdbuf": nil,
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

// command reads one as a shell does.
func (r *reader) command(command string) {
	if r.deep++; r.deep <= maxNested {
		s := shellWords{rest: command, nested: r.command}
		for _, segment := range s.segments() {
			r.simple(segment)
		}
	}
	r.deep--
}

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
	for _, word := range strings.FieldsFunc(code, func(c rune) bool {
		return strings.ContainsRune(" \t\n'\"`;|&()<>$={}!", c)
	}) {
		if strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../") ||
			strings.Contains(word, "/") && r.there(word) {
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

// shellWords divides a command as a shell does. What that would refuse is divided somehow.
type shellWords struct {
	rest   string
	nested func(command string) // is handed the commands whose output stands in a word

	word    strings.Builder
	begun   bool
	drop    bool // the next word is where output goes
	segment []string
	all     [][]string
}

// segments are the words of each command.
func (s *shellWords) segments() [][]string {
	double := false
	for s.rest != "" {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '\\' && s.rest != "":
			if s.rest[0] != '\n' {
				s.put(s.rest[0])
			}
			s.rest = s.rest[1:]
		case c == '"':
			double, s.begun = !double, true
		case c == '$':
			s.variable()
		case c == '`':
			inside, rest, _ := strings.Cut(s.rest, "`")
			s.rest = rest
			s.nested(inside)
			s.put(unknown)
		case double:
			s.put(c)
		default:
			s.plain(c)
		}
	}
	s.end()
	return s.all
}

// plain takes in a letter that stands in no quotes.
func (s *shellWords) plain(c byte) {
	switch c {
	case '\'':
		inside, rest, _ := strings.Cut(s.rest, "'")
		s.rest, s.begun = rest, true
		s.word.WriteString(inside)
	case ' ', '\t', '\r':
		s.close()
	case ';', '&', '|', '\n', '(', ')':
		s.end()
	case '<', '>':
		if strings.Trim(s.word.String(), "0123456789") == "" {
			s.word.Reset()
			s.begun = false
		}
		s.close()
		s.rest = strings.TrimLeft(s.rest, "<>&|")
		s.drop = c == '>' // what is read may be a script
	case '#':
		if s.begun {
			s.put(c)
			return
		}
		_, s.rest, _ = strings.Cut(s.rest, "\n")
		s.end()
	default:
		s.put(c)
	}
}

// put adds to the word.
func (s *shellWords) put(c byte) {
	s.begun = true
	s.word.WriteByte(c)
}

// variable takes in what a dollar stands for.
func (s *shellWords) variable() {
	name := ""
	switch {
	case strings.HasPrefix(s.rest, "("):
		end := 1
		for open := 1; end < len(s.rest) && open > 0; end++ {
			switch s.rest[end] {
			case '(':
				open++
			case ')':
				open--
			}
		}
		s.nested(strings.TrimSuffix(s.rest[1:end], ")"))
		s.rest = s.rest[end:]
	case strings.HasPrefix(s.rest, "{"):
		name, s.rest, _ = strings.Cut(s.rest[1:], "}")
	default:
		end := 0
		for end < len(s.rest) && (isName(s.rest[end]) && s.rest[end] != '-' || s.rest[end] == '_') {
			end++
		}
		if end == 0 && s.rest != "" && strings.IndexByte("@*#?$!-", s.rest[0]) >= 0 {
			end = 1
		}
		name, s.rest = s.rest[:end], s.rest[end:]
	}
	if name == "HOME" && s.word.Len() == 0 {
		s.put('~')
		return
	}
	s.put(unknown)
}

// close ends a word.
func (s *shellWords) close() {
	if !s.begun {
		return
	}
	if !s.drop {
		s.segment = append(s.segment, s.word.String())
	}
	s.word.Reset()
	s.begun, s.drop = false, false
}

// end ends a command.
func (s *shellWords) end() {
	s.close()
	s.drop = false
	if len(s.segment) > 0 {
		s.all = append(s.all, s.segment)
	}
	s.segment = nil
}
