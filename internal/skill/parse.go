package skill

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

// FileName is the file that makes a directory a skill.
const FileName = "SKILL.md"

// The bounds of a skill. Those of the fields are the format's, in characters; the others are
// Regie's, in bytes.
const (
	MaxFile        = 256 << 10 // of SKILL.md
	maxFront       = 16 << 10  // of its front matter
	maxName        = 64
	maxDescription = 1024
	maxCompatible  = 500
	maxNodes       = 400 // of the front matter
	maxDepth       = 4
	maxBrackets    = 100
)

// Skill is a parsed front matter with its body.
type Skill struct {
	Name string `json:"name"`
	// Description says what the skill is for, on one line without hidden characters.
	Description   string `json:"description"`
	Compatibility string `json:"compatibility,omitempty"`
	Origin        Origin `json:"origin"`
	// Dir is the skill's directory, as people find it.
	Dir string `json:"dir"`
	// Files are the other files of its directory, by their paths in it, with their sizes in bytes.
	Files []BundledFile `json:"files,omitempty"`
	// Body is what SKILL.md says behind its front matter.
	Body string `json:"-"`

	place *Place
	below string // of the place
}

// BundledFile is a file of a skill besides SKILL.md.
type BundledFile struct {
	Path string `json:"path"`
	Size int64  `json:"bytes"`
}

// Parse reads a SKILL.md that lies in a directory of a name. notes are what is odd about it and
// harmless. The error says in a sentence why it is no skill: CodeNotText, CodeFileTooLarge or
// CodeBadRequest.
func Parse(dir string, data []byte) (s Skill, notes []regie.Sentence, err error) {
	switch {
	case len(data) > MaxFile:
		return s, nil, regie.Errorf(regie.CodeFileTooLarge,
			"SKILL.md has more than %d bytes: put what is for reading into further files", MaxFile)
	case !utf8.Valid(data):
		return s, nil, regie.Errorf(regie.CodeNotText, "SKILL.md is not written in UTF-8")
	case bytes.IndexByte(data, 0) >= 0:
		return s, nil, regie.Errorf(regie.CodeNotText, "SKILL.md is not text")
	}
	front, body, err := SplitFrontMatter(FileName, string(bytes.TrimPrefix(data, []byte("\uFEFF"))))
	if err != nil {
		return s, nil, err
	}
	fields, notes, err := decode(front)
	if err != nil {
		return s, nil, err
	}
	s.Body = strings.TrimSpace(body)
	if err := s.fill(fields); err != nil {
		return Skill{}, nil, err
	}
	if s.Name != dir {
		return Skill{}, nil, bad("the skill is called %q but is in a directory %q: use the same name", s.Name,
			sanitize.Line(dir))
	}
	return s, notes, nil
}

func bad(format string, args ...any) error {
	return regie.Errorf(regie.CodeBadRequest, format, args...)
}

// SplitFrontMatter separates the front matter of a Markdown file from its body. what is how people
// find the file. It returns CodeBadRequest for a file without one.
func SplitFrontMatter(what, text string) (front, body string, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", "", bad("%s does not begin with a line --- and a front matter", what)
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\r\n") == "---" {
			return rest[:at], rest[at+len(line):], nil
		}
		if at += len(line); at > maxFront {
			return "", "", regie.Errorf(regie.CodeFileTooLarge,
				"the front matter of %s has more than %d bytes, or no line --- at its end", what, maxFront)
		}
	}
	return "", "", bad("the front matter of %s has no line --- at its end", what)
}

// known are the keys of the format.
var known = map[string]bool{
	"name": true, "description": true, "license": true, "compatibility": true,
	"metadata": true, "allowed-tools": true,
}

// decode reads a front matter into the nodes of its keys. It refuses constructs by which little
// text expands (anchors, aliases, tags, depth) before building anything of them.
func decode(front string) (fields map[string]*yaml.Node, notes []regie.Sentence, err error) {
	// a parser takes long over those that lie in each other
	if strings.Count(front, "[")+strings.Count(front, "{") > maxBrackets {
		return nil, nil, bad("the front matter of SKILL.md has more than %d brackets", maxBrackets)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(front), &doc); err != nil {
		return nil, nil,
			bad("the front matter of SKILL.md is not YAML (put a text with a colon in quotes): %s",
				sanitize.Line(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil, bad("the front matter of SKILL.md is not a list of keys with values")
	}
	left := maxNodes
	if err := simple(doc.Content[0], 1, &left); err != nil {
		return nil, nil, err
	}
	fields = map[string]*yaml.Node{}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		key := pairs[i].Value
		switch {
		case fields[key] != nil:
			return nil, nil, bad("line %d of SKILL.md: the key %s is repeated", pairs[i].Line+1, sanitize.Line(key))
		case !known[key]:
			notes = append(notes, regie.Say("line %s of SKILL.md: the key %s is not part of the format and is ignored",
				fmt.Sprint(pairs[i].Line+1), sanitize.Line(sanitize.Clip(key, 60))))
		case key == "allowed-tools":
			notes = append(notes, regie.Say("allowed-tools has no effect in Regie: approvals apply as usual"))
		}
		fields[key] = pairs[i+1]
	}
	return fields, notes, nil
}

// simple refuses nodes that are more than they look.
func simple(n *yaml.Node, depth int, left *int) error {
	switch *left--; {
	case *left < 0:
		return bad("the front matter of SKILL.md has more than %d parts", maxNodes)
	case depth > maxDepth:
		return bad("line %d of SKILL.md: the front matter is nested deeper than %d levels", n.Line+1, maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!merge":
		return bad("line %d of SKILL.md: anchors, aliases and tags are not supported in a front matter", n.Line+1)
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Kind != yaml.ScalarNode {
			return bad("line %d of SKILL.md: a key must be a word", child.Line+1)
		}
		if err := simple(child, depth+1, left); err != nil {
			return err
		}
	}
	return nil
}

// fill takes the fields that the format knows.
func (s *Skill) fill(fields map[string]*yaml.Node) (err error) {
	text := func(key string, most int, into *string) {
		if n := fields[key]; n != nil && err == nil {
			*into, err = line(key, n, most)
		}
	}
	text("name", maxName, &s.Name)
	text("description", maxDescription, &s.Description)
	text("compatibility", maxCompatible, &s.Compatibility)
	if err != nil {
		return err
	}
	switch {
	case s.Name == "":
		return bad("the front matter of SKILL.md has no name")
	case !ValidName(s.Name):
		return bad(
			"%q is not a valid skill name: use small letters, digits and single hyphens, at most 64, as in pdf-forms",
			s.Name)
	case s.Description == "":
		return bad("the front matter of SKILL.md has no description, which tells a model when to use the skill")
	}
	return nil
}

// line reads a text that people see on one line.
func line(key string, n *yaml.Node, most int) (string, error) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return "", bad("line %d of SKILL.md: %s is not text", n.Line+1, sanitize.Line(sanitize.Clip(key, 60)))
	}
	text := strings.Join(strings.Fields(n.Value), " ")
	if size := utf8.RuneCountInString(text); size > most {
		return "", bad("line %d of SKILL.md: %s has %d characters, at most %d are allowed", n.Line+1,
			sanitize.Line(sanitize.Clip(key, 60)), size, most)
	}
	for _, r := range text {
		if sanitize.Hidden(r) {
			return "", bad("line %d of SKILL.md: %s contains the control or invisible character %s", n.Line+1,
				sanitize.Line(sanitize.Clip(key, 60)), fmt.Sprintf("U+%04X", r))
		}
	}
	return text, nil
}

// ValidName reports whether a name is one of the format.
func ValidName(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return false
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return false
		}
	}
	return true
}
