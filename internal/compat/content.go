package compat

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// part is a part of a content, in any of the formats.
type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`

	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID string         `json:"tool_use_id"`
	ToolName  string         `json:"tool_name"`
	Content   jsontext.Value `json:"content"`
	IsError   bool           `json:"is_error"`
}

// partsOf reads the parts of a content; a text is one.
func partsOf(content jsontext.Value, param string) (out []part, err error) {
	switch content.Kind() {
	case 0, 'n':
		return nil, nil
	case '"':
		out = []part{{Type: "text"}}
		err = decodeStrict(content, &out[0].Text)
	case '[':
		err = decodeStrict(content, &out)
	default:
		return nil, noContent(param)
	}
	if err != nil {
		return nil, noContent(param)
	}
	return out, nil
}

// textOf reads a content with only text parts: of the given types, or refusals.
func textOf(content jsontext.Value, param string, types ...string) (string, error) {
	parts, err := partsOf(content, param)
	var texts []string
	for i := range parts {
		p, at := &parts[i], indexName(param, i)
		if !slices.Contains(types, p.Type) && p.Type != "refusal" && p.Type != "text" {
			return "", noPart(at, p.Type)
		}
		texts = append(texts, p.Text+p.Refusal)
	}
	return strings.Join(texts, "\n"), err
}

// noPart is the error of a part that is no text.
func noPart(param, kind string) error {
	return badParameter(param+".type",
		"parts of type %q are not supported here: send text, or put the content into a file and name the file", truncate(kind))
}

func noContent(param string) error {
	return badParameter(param, "a content is a text or an array of parts")
}
