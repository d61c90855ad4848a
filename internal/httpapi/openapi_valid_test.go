package httpapi

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// TestDocumentIsValid has the library resolve all schemas of openapi.json, and follows its other
// references.
func TestDocumentIsValid(t *testing.T) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var whole struct {
		OpenAPI    string
		Components map[string]map[string]any
	}
	if err := json.Unmarshal(data, &whole); err != nil || whole.OpenAPI != "3.1.0" {
		t.Fatal(err, whole.OpenAPI)
	}
	for _, to := range regexp.MustCompile(`"\$ref": "#/components/([^/"]+)/([^"]+)"`).FindAllStringSubmatch(string(data), -1) {
		if whole.Components[to[1]][to[2]] == nil {
			t.Errorf("%s is not there", to[0])
		}
	}
	schemas, err := json.Marshal(object{"$defs": whole.Components["schemas"]})
	if err != nil {
		t.Fatal(err)
	}
	var read jsonschema.Schema
	err = json.Unmarshal([]byte(strings.ReplaceAll(string(schemas), "#/components/schemas/", "#/$defs/")), &read)
	if err == nil {
		_, err = read.Resolve(nil)
	}
	if err != nil {
		t.Errorf("these are no schemas: %v", err)
	}
}

// TestKeyedOperations: what may be done again, and what is not kept, are operations that write.
func TestKeyedOperations(t *testing.T) {
	for _, ids := range []map[string]bool{repeatable, secret} {
		for id := range ids {
			if !slices.ContainsFunc(rows(), func(o operation) bool { return o.id == id && o.method != "GET" }) {
				t.Errorf("%s is no operation that writes", id)
			}
		}
	}
}
