package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// recording is a file that was read.
type recording struct {
	first  speaker
	texts  map[string]bool // "level1 3f9a6e0b12cd", of the shared texts
	calls  []*call
	hashes []links // of calls
}

// links are the hashes of a call's thread, and of it with its answer; the second is zero for a call
// that failed.
type links struct{ asked, answered regie.Hash }

// thread is all that a call was asked, from the beginning.
func (r *recording) thread(number int) []provider.Turn {
	var chain []*call
	for again := true; number > 0; {
		c := r.calls[number-1]
		if !again {
			chain = append(chain, &call{asked: []provider.Turn{answerTurn(c.reply)}})
		}
		chain = append(chain, c)
		number, again = c.base, c.again
	}
	var turns []provider.Turn
	for _, c := range slices.Backward(chain) {
		turns = append(turns, c.asked...)
	}
	return turns
}

// add appends a call that is whole. It returns an error where its thread goes on with what there is
// not.
func (r *recording) add(c *call) error {
	var hash regie.Hash
	if c.base > 0 {
		if c.base > len(r.calls) {
			return fmt.Errorf("call %d goes on with call %d, which does not stand before it", c.number, c.base)
		}
		base := r.hashes[c.base-1]
		if hash = base.answered; c.again {
			hash = base.asked
		}
		if hash.IsZero() {
			return fmt.Errorf("call %d goes on with the answer of call %d, which failed", c.number, c.base)
		}
	}
	for i := range c.asked {
		hash = after(hash, &c.asked[i])
	}
	link := links{asked: hash}
	if c.reply != nil {
		link.answered = answered(hash, c.reply)
	}
	r.calls, r.hashes = append(r.calls, c), append(r.hashes, link)
	return nil
}

func mismatch(format string, values ...any) error {
	return regie.Errorf(regie.CodeReplayMismatch, format, values...)
}

// reader reads a recording line by line.
type reader struct {
	rest   []byte
	number int      // of the line
	words  []string // of the line
	err    error    // the first one
	out    *recording
}

// parse reads a recording. Its errors name the line.
func parse(data []byte) (*recording, error) {
	if len(data) > maxRecording {
		return nil, mismatch("it is larger than %d MiB", maxRecording>>20)
	}
	r := &reader{rest: data, out: &recording{texts: map[string]bool{}}}
	if bytes.HasPrefix(data, []byte(`{"format":"regie-recording-1"}`)) {
		return nil, mismatch("it was made by an older version, which did not write down what was asked: record it anew")
	}
	if first, _, _ := bytes.Cut(data, []byte{'\n'}); string(first) != firstLine && len(data) > 0 {
		return nil, mismatch("line 1 is not the header of a recording, %q", firstLine)
	}
	r.rest, r.number = bytes.TrimPrefix(r.rest, []byte(firstLine)), 0
	r.next() // which is behind the first line
	if len(data) > 0 {
		r.out.first = speaker{
			provider: r.field("provider"), model: r.field("model"),
			dialect: regie.Dialect(r.field("dialect")),
		}
		r.known(r.out.first.dialect)
	}
	for r.err == nil && r.words != nil {
		if name := r.words[0]; slices.Contains(textKinds[:], name) {
			r.shared(name)
		} else if c := r.call(); r.err == nil {
			if err := r.out.add(c); err != nil {
				return nil, mismatch("line %d: %v", r.number, err)
			}
		}
	}
	if r.err == nil && len(r.out.calls) == 0 {
		return nil, mismatch("it holds no model call")
	}
	return r.out, r.err
}

func (r *reader) fail(format string, values ...any) {
	if r.err == nil {
		r.err = mismatch("line %d: %v", r.number, fmt.Errorf(format, values...))
	}
	r.words = nil
}

// next goes to the next line that is not empty; words is nil at the end.
func (r *reader) next() {
	if r.words = nil; r.err != nil {
		return
	}
	for len(r.rest) > 0 {
		line, rest, whole := bytes.Cut(r.rest, []byte{'\n'})
		r.rest = rest
		r.number++
		if !whole {
			r.fail("it is cut off: the recording was not finished")
			return
		}
		if len(line) == 0 {
			continue
		}
		if r.words = split(string(line)); r.words == nil {
			r.fail("%.60q is no line of a recording", line)
		}
		return
	}
}

// split returns the words of a line, or nil if they are none.
func split(line string) (words []string) {
	for {
		var word string
		switch quote, err := strconv.QuotedPrefix(line); {
		case err == nil && quote[0] == '"':
			if word, err = strconv.Unquote(quote); err != nil {
				return nil
			}
			line = line[len(quote):]
		default:
			end := strings.IndexByte(line, ' ')
			if end < 0 {
				end = len(line)
			}
			if word = line[:end]; quoted(word) != word {
				return nil
			}
			line = line[end:]
		}
		words = append(words, word)
		if line == "" {
			return words
		}
		var more bool
		if line, more = strings.CutPrefix(line, " "); !more {
			return nil
		}
	}
}

// is reports whether the line begins with a word and has so many more, at least and at most.
func (r *reader) is(name string, least, most int) bool {
	return r.err == nil && len(r.words) > least && r.words[0] == name && len(r.words) <= most+1
}

// field reads a line that must be here and has one word more.
func (r *reader) field(name string) string {
	if !r.is(name, 1, 1) {
		r.fail("%q and a word are wanted here", name)
		return ""
	}
	word := r.words[1]
	r.next()
	return word
}

// text reads the lines of a text, and goes to the line behind it.
func (r *reader) text() string {
	var lines []string
	for r.err == nil {
		line, rest, whole := bytes.Cut(r.rest, []byte{'\n'})
		said, inside := bytes.CutPrefix(line, []byte("  "))
		if !inside {
			break
		}
		r.rest = rest
		r.number++
		switch plain, is := strings.CutPrefix(string(said), "|"); {
		case !whole:
			r.fail("it is cut off: the recording was not finished")
		case is && plain == "":
			lines = append(lines, "")
		case is && plain[0] == ' ':
			lines = append(lines, plain[1:])
		default:
			line, err := strconv.Unquote(string(said))
			if err != nil || said[0] != '"' || strings.Contains(line, "\n") {
				r.fail("a line of a text begins with two spaces and %q, or is quoted", "| ")
			}
			lines = append(lines, line)
		}
	}
	if r.err == nil && lines == nil {
		r.fail("a text is wanted below %q", strings.Join(r.words, " "))
	}
	r.next()
	return strings.Join(lines, "\n")
}

func (r *reader) known(dialect regie.Dialect) {
	if r.err == nil && dialect != regie.DialectNative && dialect != regie.DialectJSON {
		r.fail("%q is not a dialect", string(dialect))
	}
}

func (r *reader) shared(kind string) {
	name := ""
	if r.is(kind, 1, 1) {
		name = kind + " " + r.words[1]
	}
	if name == "" || r.out.texts[name] {
		r.fail("%s wants one name, and each name one text", kind)
		return
	}
	r.out.texts[name] = true
	r.text()
}

// call reads a model call.
func (r *reader) call() *call {
	c := &call{number: len(r.out.calls) + 1, speaker: r.out.first}
	if !r.is("call", 1, 3) || len(r.words) == 3 || r.words[1] != strconv.Itoa(c.number) {
		r.fail("\"call %d\" is wanted here", c.number)
		return c
	}
	if len(r.words) == 4 {
		base, err := strconv.Atoi(r.words[3])
		if c.again = r.words[2] == "again"; err != nil || base < 1 || base >= c.number ||
			!c.again && r.words[2] != "after" {
			r.fail("a call goes on \"after\" or \"again\" with the number of one before it")
		}
		c.base = base
	}
	r.next()
	if r.is("by", 3, 3) {
		c.speaker = speaker{r.words[1], r.words[2], regie.Dialect(r.words[3])}
		r.known(c.dialect)
		r.next()
	}
	if !r.is("settings", 1, 8) {
		r.fail("\"settings\" are wanted here")
		return c
	}
	c.settings = r.words[1:]
	r.next()
	for i, kind := range textKinds {
		if r.is(kind, 1, 1) {
			if c.texts[i] = r.words[1]; !r.out.texts[kind+" "+r.words[1]] {
				r.fail("there is no text %s %s above", kind, r.words[1])
			}
			r.next()
		}
	}
	r.question(c)
	r.answer(c)
	if !r.is("end", 0, 0) {
		r.fail("\"end\" is wanted here, at the end of call %d", c.number)
	}
	r.next()
	return c
}

// question reads what was asked.
func (r *reader) question(c *call) {
	for r.is("asked", 1, 1) {
		turn := provider.Turn{Role: provider.Role(r.words[1])}
		if !slices.Contains([]provider.Role{provider.RoleUser, provider.RoleAssistant, provider.RoleTool}, turn.Role) {
			r.fail("%q is nobody's turn", string(turn.Role))
		}
		r.next()
		turn.Parts = r.parts(false)
		for r.is("result", 1, 2) {
			result := provider.Result{CallID: r.words[1], IsError: len(r.words) == 3}
			if place, err := strconv.Atoi(result.CallID); err != nil || place < 0 ||
				result.IsError && r.words[2] != "failed" {
				r.fail("a result has the place of its call, and may have \"failed\"")
			}
			result.Content = r.text()
			turn.Results = append(turn.Results, result)
		}
		c.asked = append(c.asked, turn)
	}
	if r.is("withheld", 0, 0) {
		c.withheld = true
		r.next()
	}
}

// parts reads the parts of a turn; those of an answer are what will be run, and bring what their
// provider wants back.
func (r *reader) parts(answer bool) (parts []provider.Part) {
	for r.err == nil && r.words != nil {
		switch {
		case r.is("call", 1, 1):
			part := provider.Part{Type: regie.PartCall, Call: &provider.Call{Name: r.words[1]}}
			if part.Call.Arguments = r.text(); answer && (!json.Valid([]byte(part.Call.Arguments)) ||
				strings.TrimSpace(part.Call.Arguments)[0] != '{') {
				r.fail("the arguments of the call above are not a JSON object")
			}
			parts = append(parts, part)
		case r.is("text", 0, 0) || r.is("thinking", 0, 0) || r.is("media", 0, 0):
			kind := regie.PartType(r.words[0])
			parts = append(parts, provider.Part{Type: kind, Text: r.text()})
		case answer && len(parts) > 0 && r.is("opaque", 1, 1):
			last := &parts[len(parts)-1]
			last.Provider = r.words[1]
			if data := r.text(); data != "" {
				last.Opaque = []byte(data)
			}
			if len(last.Opaque) > 0 && !json.Valid(last.Opaque) {
				r.fail("what the provider wants back, above, is not JSON")
			}
		default:
			return parts
		}
	}
	return parts
}

// answer reads what came.
func (r *reader) answer(c *call) {
	switch {
	case r.is("answered", 1, 3):
		c.reply = &provider.Reply{StopReason: r.words[1]}
		for _, word := range r.words[2:] {
			if c.reply.Cut = c.reply.Cut || word == "cut"; word == "held_back" {
				c.reply.HeldBack = true
			} else if word != "cut" {
				r.fail("%q is not what an answer can be", word)
				return
			}
		}
		r.next()
		c.reply.Parts = r.parts(true)
		for r.is("source", 1, 1) {
			source := provider.Source{URL: r.words[1]}
			source.Title = r.text()
			c.reply.Sources = append(c.reply.Sources, source)
		}
		c.reply.Usage = r.usage()
	case r.is("failed", 1, 4):
		c.failed = r.failure()
	default:
		r.fail("\"answered\" or \"failed\" is wanted here")
	}
	r.streamed(c)
}

func (r *reader) failure() *provider.Error {
	e := &provider.Error{Code: regie.Code(r.words[1])}
	for _, word := range r.words[2:] {
		status, is := strings.CutPrefix(word, "status=")
		switch number, err := strconv.Atoi(status); {
		case word == "retryable":
			e.Retryable = true
		case word == "offline":
			e.Offline = true
		case is && err == nil && number >= 100 && number <= 999:
			e.Status = number
		default:
			r.fail("%q is not what a failure can be", word)
		}
	}
	r.next()
	if !r.is("message", 0, 0) {
		r.fail("\"message\" is wanted here")
		return e
	}
	e.Message = r.text()
	if r.is("partial", 0, 0) {
		e.Partial = r.text()
	}
	e.Usage = r.usage()
	return e
}

func (r *reader) usage() (u regie.Usage) {
	if !r.is("usage", 0, 6) {
		r.fail("\"usage\" is wanted here")
		return u
	}
	for _, word := range r.words[1:] {
		name, count, _ := strings.Cut(word, "=")
		into := map[string]*int64{
			"input": &u.Input, "output": &u.Output, "cache_creation": &u.CacheCreation,
			"cache_read": &u.CacheRead, "reasoning": &u.Reasoning,
		}[name]
		tokens, err := strconv.ParseInt(count, 10, 64)
		switch {
		case word == "estimated":
			u.Estimated = true
		case into == nil || err != nil || tokens < 0:
			r.fail("%q counts no tokens", word)
			return u
		default:
			*into = tokens
		}
	}
	r.next()
	return u
}

func (r *reader) streamed(c *call) {
	for r.is("streamed", 1, 1) {
		if c.streamed == nil {
			c.streamed = &[]provider.Delta{}
		}
		switch kind := r.words[1]; kind {
		case "nothing":
			r.next()
		case string(regie.PartText):
			*c.streamed = append(*c.streamed, provider.Delta{Text: r.text()})
		case string(regie.PartThinking):
			*c.streamed = append(*c.streamed, provider.Delta{Thinking: r.text()})
		default:
			r.fail("%q is not streamed", kind)
		}
	}
}
