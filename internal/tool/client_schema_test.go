package tool

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestClientSchema: what a client gives as parameters of its tool is a schema of an object, or is
// refused with the tool's own name.
func TestClientSchema(t *testing.T) {
	empty, err := NewRegistry()
	if err != nil {
		t.Fatal(err)
	}
	for parameters, says := range map[string]string{
		`"str"`:                             "no JSON Schema of an object",
		`[1]`:                               "no JSON Schema of an object",
		`7`:                                 "no JSON Schema of an object",
		`true`:                              "no JSON Schema of an object",
		`{"type":"bogus"}`:                  "no JSON Schema of an object",
		`{"type":"string"}`:                 "no JSON Schema of an object",
		`{"type":[]}`:                       "no JSON Schema of an object",
		`{"type":"object","properties":[]}`: "no JSON Schema of an object",
		``:                                  "",
		`{}`:                                "",
		`null`:                              "",
		`{"type":"object","properties":{"type":{"type":["string","null"]},"a":true},"additionalProperties":false}`: "",
	} {
		_, err := empty.WithClient([]regie.ClientTool{{Name: "mine", Parameters: json.RawMessage(parameters)}})
		switch {
		case says == "" && err != nil:
			t.Errorf("%s is refused: %v", parameters, err)
		case says != "" && (regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), "your tool mine ") || !strings.Contains(err.Error(), says)):
			t.Errorf("%s: %v", parameters, err)
		}
	}
}
