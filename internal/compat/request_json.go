package compat

import (
	"errors"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decodeStrict reads strict JSON: one value, each key once, UTF-8. What keys there may be says the
// caller (strays).
func decodeStrict(data []byte, into any) error {
	if err := jsonv2.Unmarshal(data, into); err != nil {
		return decodeError(err)
	}
	return nil
}

// decodeError says where a request is no JSON, or not of the types that it has to be.
func decodeError(err error) error {
	param := ""
	if meaning, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		param = formatPointer(meaning.JSONPointer)
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		param = formatPointer(syntax.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return badParameter(param, "the key %s is repeated", truncate(param))
		}
		return badParameter("", "the request is not JSON from byte %d on", syntax.ByteOffset)
	}
	if param == "" {
		return badParameter("", "the request is not a JSON object")
	}
	return badParameter(param, "%s has the wrong type", truncate(param))
}

// formatPointer writes a JSON pointer as OpenAI names parameters: messages[0].content.
func formatPointer(at jsontext.Pointer) string {
	var out strings.Builder
	for token := range at.Tokens() {
		if strings.Trim(token, "0123456789") == "" && out.Len() > 0 {
			out.WriteString("[" + token + "]")
			continue
		}
		if out.Len() > 0 {
			out.WriteByte('.')
		}
		out.WriteString(token)
	}
	return out.String()
}
