package skill

import (
	"bytes"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Command is a slash command of a workspace: a message that a person sends by its name.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Body is the message, with $ARGUMENTS for what is typed behind the name and $1 to $9 for its
	// words.
	Body string `json:"-"`
}

var commandName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// ParseCommand reads the file of a command; ok is false for any other file. A front matter
// that cannot be read is part of the message.
func ParseCommand(file string, data []byte) (c Command, ok bool) {
	name, isText := strings.CutSuffix(path.Base(file), ".md")
	if !isText || !commandName.MatchString(name) || len(data) > MaxFile || !utf8.Valid(data) ||
		bytes.IndexByte(data, 0) >= 0 {
		return c, false
	}
	c = Command{Name: name, Body: strings.TrimPrefix(string(data), "\uFEFF")}
	if front, body, err := SplitFrontMatter(file, c.Body); err == nil {
		fields, _, err := decode(front)
		if n := fields["description"]; err == nil && n != nil {
			c.Description, _ = line("description", n, maxDescription)
		}
		c.Body = body
	}
	c.Body = strings.TrimSpace(c.Body)
	return c, c.Body != ""
}

var placeholder = regexp.MustCompile(`\$(ARGUMENTS|[1-9])\b`)

// Expand returns the message for what was typed behind the command's name. Words in double quotes
// are one. A body without a place for the arguments gets them at its end.
func (c *Command) Expand(typed string) string {
	var words []string
	for i, part := range strings.Split(typed, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	if typed != "" && !placeholder.MatchString(c.Body) {
		return c.Body + "\n\n" + typed
	}
	return placeholder.ReplaceAllStringFunc(c.Body, func(found string) string {
		n, err := strconv.Atoi(found[1:])
		switch {
		case err != nil:
			return typed
		case n <= len(words):
			return words[n-1]
		default:
			return ""
		}
	})
}
