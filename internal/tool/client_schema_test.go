package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestClientSchema: what a client gives as parameters of its tool is a schema of an object, or is
// refused with the tool's own name and the place.
func TestClientSchema(t *testing.T) {
	empty, err := NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	for parameters, at := range map[string]string{
		`"str"`:                             "(at /)",
		`[1]`:                               "(at /)",
		`7`:                                 "(at /)",
		`true`:                              "(at /)",
		`{"type":"bogus"}`:                  "(at /type)",
		`{"type":"string"}`:                 "(at /type)",
		`{"type":[]}`:                       "(at /type)",
		`{"type":"object","properties":[]}`: "(at /properties)",
		`{"type":"object","properties":{"a":{"type":"strng"}}}`:                       "(at /properties/a/type)",
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":1}]}}}`: "(at /properties/a/anyOf/1/type)",
		`{"type":"object","properties":{"a":{"items":{"type":"x"}}}}`:                 "(at /properties/a/items/type)",
		``:     "",
		`{}`:   "",
		`null`: "",
		`{"type":"object","properties":{"type":{"type":["string","null"]},"a":true},"additionalProperties":false}`: "",
	} {
		_, err := empty.WithClient([]regie.ClientTool{{Name: "mine", Parameters: json.RawMessage(parameters)}})
		switch {
		case at == "" && err != nil:
			t.Errorf("%s is refused: %v", parameters, err)
		case at != "" && (regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), "your tool mine ") || !strings.Contains(err.Error(), at)):
			t.Errorf("%s: %v", parameters, err)
		}
	}
}
