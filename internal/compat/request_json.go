package compat

import (
	"errors"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// decode reads strict JSON: one value, each key once, UTF-8. What keys there may be says the caller
// (strays).
func decode(data []byte, into any) error {
	if err := jsonv2.Unmarshal(data, into); err != nil {
		return decodeError(err)
	}
	return nil
}

// decodeError says where a request is no JSON, or not of the types that it has to be.
func decodeError(err error) error {
	param := ""
	if meaning, ok := errors.AsType[*jsonv2.SemanticError](err); ok {
		param = pointer(meaning.JSONPointer)
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		param = pointer(syntax.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return refused(param, "the key %s stands twice", truncate(param))
		}
		return refused("", "the request is no JSON from byte %d on", syntax.ByteOffset)
	}
	if param == "" {
		return refused("", "the request is not a JSON object")
	}
	return refused(param, "%s is not of the type that it has to be", truncate(param))
}

// pointer writes a JSON pointer as OpenAI names parameters: messages[0].content.
func pointer(at jsontext.Pointer) string {
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
