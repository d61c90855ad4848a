package httpapi

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// TestDocumentIsValid reads openapi.json as a client's generator does: every place in a path is a
// parameter, every reference leads somewhere, every id is one operation's, every response says what
// it is, and schemas are schemas.
func TestDocumentIsValid(t *testing.T) {
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var whole object
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	v := &validating{t: t, whole: whole, ids: map[string]bool{}, schemas: object{}}
	if whole["openapi"] != "3.1.0" {
		t.Errorf("openapi is %v", whole["openapi"])
	}
	paths, _ := whole["paths"].(object)
	for path, item := range paths {
		methods, _ := item.(object)
		for method, operation := range methods {
			o, _ := operation.(object)
			v.operation(strings.ToUpper(method)+" "+path, path, o)
		}
	}
	if all := len(rows()) + len(besides()); len(v.ids) != all {
		t.Errorf("%d operations are in the document, of %d", len(v.ids), all)
	}
	parts, _ := whole["components"].(object)
	schemas, _ := parts["schemas"].(object)
	for name, schema := range schemas {
		v.schema(components+name, schema)
	}
	v.resolve()
	v.references("#", whole)
}

// components is where the document has its schemas.
const components = "#/components/schemas/"

type validating struct {
	t       *testing.T
	whole   object
	ids     map[string]bool
	schemas object // all that stand in the document
}

func (v *validating) operation(at, path string, o object) {
	id, _ := o["operationId"].(string)
	if id == "" || v.ids[id] {
		v.t.Errorf("%s has the id %q, which is none or another's", at, id)
	}
	v.ids[id] = true
	var places []string
	seen := map[string]bool{}
	parameters, _ := o["parameters"].([]any)
	for _, one := range parameters {
		p, _ := one.(object)
		name, _ := p["name"].(string)
		where, _ := p["in"].(string)
		if name == "" || seen[where+" "+name] || !slices.Contains([]string{"path", "query", "header", "cookie"}, where) {
			v.t.Errorf("%s has a parameter %q in %q, which is none or stands there twice", at, name, where)
		}
		seen[where+" "+name] = true
		if where == "path" {
			if places = append(places, name); p["required"] != true {
				v.t.Errorf("%s: the place %s is not required", at, name)
			}
		}
		v.schema(at+", "+name, p["schema"])
	}
	if want := placesOf(path); !slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(places))) {
		v.t.Errorf("%s has the places %v and declares %v", at, want, places)
	}
	if body, ok := o["requestBody"].(object); ok {
		v.content(at, body)
	}
	responses, _ := o["responses"].(object)
	if len(responses) == 0 {
		v.t.Errorf("%s has no responses", at)
	}
	for status, one := range responses {
		response, _ := one.(object)
		if _, refers := response["$ref"]; refers {
			continue // TestDocumentIsValid follows it
		}
		if text, _ := response["description"].(string); text == "" {
			v.t.Errorf("%s: %s has no description", at, status)
		}
		v.content(at+" "+status, response)
	}
}

func (v *validating) content(at string, of object) {
	content, _ := of["content"].(object)
	for kind, one := range content {
		media, _ := one.(object)
		v.schema(at+" "+kind, media["schema"])
	}
}

// schema notes a schema that stands in the document.
func (v *validating) schema(at string, schema any) {
	if schema == nil {
		v.t.Errorf("%s has no schema", at)
		return
	}
	name := strings.NewReplacer("/", "-", " ", "-", "{", "", "}", "").Replace(at)
	if _, component := strings.CutPrefix(at, components); component {
		name = strings.TrimPrefix(at, components)
	}
	v.schemas[name] = schema
}

// resolve has the library read all schemas, and resolve what they refer to.
func (v *validating) resolve() {
	data, err := json.Marshal(object{"$defs": v.schemas})
	if err != nil {
		v.t.Fatal(err)
	}
	var read jsonschema.Schema
	err = json.Unmarshal([]byte(strings.ReplaceAll(string(data), components, "#/$defs/")), &read)
	if err == nil {
		_, err = read.Resolve(nil)
	}
	if err != nil {
		v.t.Errorf("these are no schemas: %v", err)
	}
}

// references follows every $ref of the document.
func (v *validating) references(at string, in any) {
	switch in := in.(type) {
	case []any:
		for _, one := range in {
			v.references(at, one)
		}
	case object:
		for key, one := range in {
			to, refers := one.(string)
			if key != "$ref" || !refers {
				v.references(at+"/"+key, one)
				continue
			}
			path, own := strings.CutPrefix(to, "#/")
			var found any = v.whole
			for part := range strings.SplitSeq(path, "/") {
				there, _ := found.(object)
				found = there[part]
			}
			if !own || found == nil {
				v.t.Errorf("%s refers to %s, which is not there", at, to)
			}
		}
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
