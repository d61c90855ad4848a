package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/store"
)

var update = flag.Bool("update", false, "write openapi.json and docs.html anew")

// TestDocument compares the OpenAPI document, and the page that shows it, with what the operations
// and the comments of their types make: what is served is what is said.
func TestDocument(t *testing.T) {
	d := newDocument(t)
	made, err := json.MarshalIndent(d.openAPI(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, '\n')
	var page bytes.Buffer
	if err := docsTemplate.Execute(&page, d.page()); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"openapi.json": made, "docs.html": page.Bytes()} {
		if *update {
			if err := os.WriteFile(name, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if there, err := os.ReadFile(name); err != nil || !bytes.Equal(there, content) {
			t.Errorf("%s is not what the code says (%v): make openapi writes it anew", name, err)
		}
	}
}

// TestOperations: each operation has its own id, says what it does, and its parameters are of kinds
// that can be read.
func TestOperations(t *testing.T) {
	ids := map[string]bool{}
	for _, o := range rows() {
		if o.scope == "" || o.scope != control.EveryCaller && !slices.Contains(regie.TokenScopes(), o.scope) {
			t.Errorf("nobody has decided what a token needs for %s (control.RequiredScope)", o.id)
		}
		if ids[o.id] || o.summary == "" || o.serve == nil {
			t.Errorf("%s %s has the id %q, which is another's, or says nothing", o.method, o.path, o.id)
		}
		ids[o.id] = true
		for _, f := range httpread.Parameters(o.query) {
			if f.Tag.Get("query") == "" || f.Tag.Get("doc") == "" {
				t.Errorf("the parameter %s of %s has no name or says nothing", f.Name, o.id)
			}
			for _, bound := range []string{"min", "max"} {
				if text := f.Tag.Get(bound); text != "" {
					if _, err := strconv.ParseInt(text, 10, 64); err != nil {
						t.Errorf("%s of %s: %v", f.Name, o.id, err)
					}
				}
			}
		}
	}
}

// TestSameAs: each operation that does the same as another one is there.
func TestSameAs(t *testing.T) {
	for id := range sameAs {
		if !slices.ContainsFunc(rows(), func(o operation) bool { return o.id == id }) {
			t.Errorf("%s is no operation", id)
		}
	}
}

// documenting makes the document: components are the named types that operations speak of, each
// once.
type documenting struct {
	t          *testing.T
	components map[string]*jsonschema.Schema
	types      map[reflect.Type]*jsonschema.Schema
	comments   map[string]string // by type, and type.field
	words      map[string][]any  // by type of text: its constants
	// asked makes the same of what requests hold, which is stricter. A type that answers speak of
	// too, one of named, has another name there.
	asked  *documenting
	strict bool
	named  map[reflect.Type]bool
}

func newDocument(t *testing.T) *documenting {
	t.Helper()
	d := &documenting{t: t, components: map[string]*jsonschema.Schema{}, comments: map[string]string{}, words: map[string][]any{}}
	text := func(format, about string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Format: format, Description: about}
	}
	d.types = map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[regie.ID]():          text("uuid", ""),
		reflect.TypeFor[regie.Hash]():        {Type: "string", Description: "SHA-256, hexadecimal.", Pattern: "^[0-9a-f]{64}$"},
		reflect.TypeFor[time.Time]():         text("date-time", ""),
		reflect.TypeFor[store.Mark]():        text("", ""),
		reflect.TypeFor[json.RawMessage]():   {Description: "Any JSON value."},
		reflect.TypeFor[jsonschema.Schema](): {Type: "object", Description: "A JSON Schema."},
	}
	d.types[reflect.TypeFor[[]byte]()] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	for _, dir := range []string{"../..", "../access", "../control", "../dispatch", "../store", ".", "../engine", "../approval", "../config", "../skill", "../trust"} {
		d.read(dir)
	}
	asked := *d
	asked.strict, asked.types, asked.named = true, maps.Clone(d.types), map[reflect.Type]bool{}
	for _, o := range append(rows(), operation{out: reflect.TypeFor[problem]()}) {
		d.collect(o.out, asked.named)
	}
	d.asked = &asked
	return d
}

// read takes the comments of a package's exported types.
func (d *documenting) read(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		d.t.Fatal(err)
	}
	set := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			d.t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	pkg, err := doc.NewFromFiles(set, parsed, "x", doc.AllDecls)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, typ := range pkg.Types {
		key := pkg.Name + "." + typ.Name
		d.comments[key] = sentence(typ.Doc)
		for _, group := range typ.Consts {
			for _, spec := range group.Decl.Specs {
				values, _ := spec.(*ast.ValueSpec)
				for _, value := range values.Values {
					if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
						word, _ := strconv.Unquote(literal.Value) // the parser has read it
						d.words[key] = append(d.words[key], word)
					}
				}
			}
		}
		for _, spec := range typ.Decl.Specs {
			named, _ := spec.(*ast.TypeSpec)
			fields, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					d.comments[key+"."+name.Name] = sentence(field.Doc.Text() + " " + field.Comment.Text())
				}
			}
		}
	}
}

func sentence(comment string) string { return strings.Join(strings.Fields(comment), " ") }

// schema is what a type looks like: a named struct of ours is a component, which others refer to.
func (d *documenting) schema(t reflect.Type) *jsonschema.Schema {
	d.collect(t, map[reflect.Type]bool{})
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: d.types})
	if err != nil {
		d.t.Fatal(err)
	}
	return orNull(s)
}

// orNull says of a reference that may be null that it is either: what stands beside a $ref counts
// too in OpenAPI 3.1, and no value would be both.
func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	s.Items, s.AdditionalProperties = orNull(s.Items), orNull(s.AdditionalProperties)
	if s.Ref != "" && len(s.Types) > 0 {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Ref: s.Ref}, {Type: "null"}}}
	}
	if slices.Contains(s.Types, "null") && len(s.Enum) > 0 && !slices.Contains(s.Enum, nil) {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	return s
}

// neverNull is what is left out where it is nothing.
func neverNull(s *jsonschema.Schema) *jsonschema.Schema {
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		return s.AnyOf[0]
	}
	if kinds := slices.DeleteFunc(slices.Clone(s.Types), func(kind string) bool { return kind == "null" }); len(kinds) == 1 && len(s.Types) == 2 {
		s.Type, s.Types = kinds[0], nil
		s.Enum = slices.DeleteFunc(s.Enum, func(word any) bool { return word == nil })
	}
	return s
}

// collect makes the components of a type and of those that it consists of.
func (d *documenting) collect(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] || d.types[t] != nil {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.String:
		if words := d.words[commentKey(t)]; len(words) > 0 && t.Name() != "Code" { // codes grow
			d.types[t] = &jsonschema.Schema{Type: "string", Enum: words}
		}
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		d.collect(t.Elem(), seen)
	case reflect.Struct:
		if !strings.HasPrefix(t.PkgPath(), "github.com/regie-run/") {
			return
		}
		name := componentName(t)
		if d.named[t] {
			name += "Input"
		}
		if d.components[name] != nil {
			d.t.Fatalf("two types are called %s", name)
		}
		d.components[name] = &jsonschema.Schema{} // its place: types may consist of themselves
		d.types[t] = &jsonschema.Schema{Ref: "#/components/schemas/" + name}
		for field := range t.Fields() {
			if field.Tag.Get("json") != "-" && (field.IsExported() || field.Anonymous) { // else no JSON holds it
				d.collect(field.Type, seen)
			}
		}
		*d.components[name] = *d.object(t)
	}
}

// componentName is a type's own name; a page's is that of its items.
func componentName(t reflect.Type) string {
	name, of, generic := strings.Cut(t.Name(), "[")
	if generic {
		return strings.TrimSuffix(of[strings.LastIndexByte(of, '.')+1:], "]") + name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// object is the schema of a struct itself, with its comments. Answers may grow, so that other
// properties are not forbidden there, and have what is never left out. Requests are refused with
// other properties, and without those that have the tag required.
func (d *documenting) object(t reflect.Type) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	s.Description = d.comments[commentKey(t)]
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || f.Anonymous && name == "" || !f.IsExported() { // what is embedded is part of the object
			continue
		}
		if name == "" {
			name = f.Name
		}
		property := d.schema(f.Type)
		omitted := strings.Contains(options, "omit")
		if omitted && !d.strict {
			property = neverNull(property)
		}
		if about := d.comments[commentKey(owner(t, f))+"."+f.Name]; about != "" {
			property.Description = about
		}
		s.Properties[name] = property
		s.PropertyOrder = append(s.PropertyOrder, name)
		if d.strict && f.Tag.Get("required") == "true" || !d.strict && !omitted {
			s.Required = append(s.Required, name)
		}
	}
	if d.strict {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}} // false
	}
	return s
}

// owner is the struct that a field stands in, which may be one that is embedded.
func owner(t reflect.Type, f reflect.StructField) reflect.Type {
	for _, at := range f.Index[:len(f.Index)-1] {
		if t = t.Field(at).Type; t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}

func commentKey(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }

type object = map[string]any

func (d *documenting) openAPI() object {
	paths := object{}
	var tags []string
	for _, o := range rows() {
		item, _ := paths[base+o.path].(object)
		if item == nil {
			item = object{}
			paths[base+o.path] = item
		}
		item[strings.ToLower(o.method)] = d.operation(&o)
		if !slices.Contains(tags, o.tag) {
			tags = append(tags, o.tag)
		}
	}
	addBesides(paths)
	var named []object
	for _, tag := range append(tags, "server") {
		named = append(named, object{"name": tag})
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Regie", "version": "v1",
			"description": "A runtime for AI agents with controlled autonomy. Errors are application/problem+json with a stable code. Bodies are strict: " +
				"unknown, duplicate and case-variant keys are refused. Writes accept an Idempotency-Key. /docs lists what is served in the formats of others too: /v1 and /mcp.",
		},
		"security": []object{{"token": []string{}}, {"browser": []string{}}},
		"tags":     named,
		"paths":    paths,
		"components": object{
			"schemas": d.components,
			"securitySchemes": object{
				"token":   object{"type": "http", "scheme": "bearer", "description": "The token of the data directory, or an API token with the scope that an operation names."},
				"browser": object{"type": "apiKey", "in": "cookie", "name": cookieName + "-7333", "description": "A browser that a setup link has let in. The number is the port of the address, if it has one; with HTTPS the name begins with __Host-."},
			},
			"responses": object{"Problem": object{
				"description": "What went wrong, with a stable code.",
				"content":     object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
			}},
		},
	}
}

func (d *documenting) operation(o *operation) object {
	out := object{"operationId": o.id, "summary": o.summary, "tags": []string{o.tag}}
	if o.scope != control.EveryCaller { // what a token needs, as roles are said of a bearer (OpenAPI 3.1)
		out["security"] = []object{{"token": []regie.TokenScope{o.scope}}, {"browser": []regie.TokenScope{o.scope}}}
	}
	var parameters []object
	for _, name := range placesOf(o.path) {
		schema := object{"type": "string"}
		if name == "id" {
			schema["format"] = "uuid"
		}
		parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": schema})
	}
	for _, field := range httpread.Parameters(o.query) {
		parameters = append(parameters, d.parameter(field))
	}
	if o.method != http.MethodGet {
		parameters = append(parameters, object{
			"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "maxLength": store.MaxKey},
			"description": "For 24 hours the same request again does nothing, and is answered as the first one was.",
		})
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if o.in != reflect.TypeFor[none]() {
		out["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.asked.schema(o.in)}}}
	}
	content := object{}
	switch {
	case o.streams && o.status == http.StatusOK:
		content["text/event-stream"] = object{"schema": d.schema(o.out)}
	case o.out == reflect.TypeFor[none]():
		content["application/json"] = object{"schema": object{"type": "object"}}
	default:
		content["application/json"] = object{"schema": d.schema(o.out)}
	}
	responses := object{
		strconv.Itoa(o.status): object{"description": http.StatusText(o.status), "content": content},
		"default":              object{"$ref": "#/components/responses/Problem"},
	}
	if o.streams && o.status != http.StatusOK {
		responses["200"] = object{"description": "The stream of the round.", "content": object{"text/event-stream": object{"schema": object{"type": "string"}}}}
	}
	out["responses"] = responses
	return out
}

func (d *documenting) parameter(f reflect.StructField) object {
	schema := d.schema(f.Type)
	if words := strings.Fields(f.Tag.Get("enum")); len(words) > 0 {
		schema.Type = "string"
		for _, word := range words {
			schema.Enum = append(schema.Enum, word)
		}
	}
	if schema.Type == "integer" {
		least, greatest := httpread.Bounds(f.Tag)
		low, high := float64(least), float64(greatest)
		schema.Minimum, schema.Maximum = &low, &high
	}
	return object{"name": f.Tag.Get("query"), "in": "query", "description": f.Tag.Get("doc"), "schema": schema}
}

// page is what docs.html shows.
func (d *documenting) page() any {
	type parameter struct{ Name, About string }
	type row struct {
		Method, Path, ID, Summary string
		Scope                     regie.TokenScope
		In, Out                   string
		Parameters                []parameter
	}
	type property struct{ Name, Kind, About string }
	type component struct {
		Name, About string
		Properties  []property
	}
	out := struct {
		Operations []row
		Besides    []besideRow
		Types      []component
	}{Besides: besideRows()}
	name := func(d *documenting, t reflect.Type) string {
		if t == reflect.TypeFor[none]() {
			return ""
		}
		s := d.schema(t)
		if s.Items != nil {
			return "[]" + strings.TrimPrefix(s.Items.Ref, "#/components/schemas/")
		}
		return strings.TrimPrefix(s.Ref, "#/components/schemas/")
	}
	for _, o := range rows() {
		r := row{Method: o.method, Path: base + o.path, ID: o.id, Summary: o.summary, Scope: o.scope, In: name(d.asked, o.in), Out: name(d, o.out)}
		for _, f := range httpread.Parameters(o.query) {
			r.Parameters = append(r.Parameters, parameter{f.Tag.Get("query"), f.Tag.Get("doc")})
		}
		out.Operations = append(out.Operations, r)
	}
	for _, key := range slices.Sorted(func(yield func(string) bool) {
		for k := range d.components {
			if !yield(k) {
				return
			}
		}
	}) {
		c := component{Name: key, About: d.components[key].Description}
		for _, p := range slices.Sorted(func(yield func(string) bool) {
			for k := range d.components[key].Properties {
				if !yield(k) {
					return
				}
			}
		}) {
			s := d.components[key].Properties[p]
			c.Properties = append(c.Properties, property{p, kindOf(s), s.Description})
		}
		out.Types = append(out.Types, c)
	}
	return out
}

func kindOf(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/components/schemas/")
	case s.Items != nil:
		return "[]" + kindOf(s.Items)
	case s.Type != "":
		return s.Type
	case len(s.Types) > 0:
		return strings.Join(s.Types, " | ")
	case len(s.AnyOf) > 0:
		return kindOf(s.AnyOf[len(s.AnyOf)-1])
	}
	return "any"
}
