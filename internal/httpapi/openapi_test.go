package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"html/template"
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
	"github.com/regie-run/regie/internal/dispatch"
)

var update = flag.Bool("update", false, "write openapi.json and docs.html anew")

// TestDocument compares the OpenAPI document, and the page that shows it, with what the operations and the comments of their types make: what is
// served is what is said.
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

// TestOperations: each operation has its own id, says what it does, and its parameters are of kinds that can be read.
func TestOperations(t *testing.T) {
	ids := map[string]bool{}
	for _, o := range rows() {
		if ids[o.id] || o.summary == "" || o.serve == nil {
			t.Errorf("%s %s has the id %q, which is another's, or says nothing", o.method, o.path, o.id)
		}
		ids[o.id] = true
		for f := range o.query.Fields() {
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

// documenting makes the document: components are the named types that operations speak of, each once.
type documenting struct {
	t          *testing.T
	components map[string]*jsonschema.Schema
	types      map[reflect.Type]*jsonschema.Schema
	comments   map[string]string // by type, and type.field
	words      map[string][]any  // by type of text: its constants
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
		reflect.TypeFor[json.RawMessage]():   {Description: "Any JSON value."},
		reflect.TypeFor[jsonschema.Schema](): {Type: "object", Description: "A JSON Schema."},
	}
	for _, dir := range []string{"../..", "../dispatch", "../store", ".", "../engine", "../approval"} {
		d.read(dir)
	}
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
		if d.components[name] != nil {
			d.t.Fatalf("two types are called %s", name)
		}
		d.components[name] = &jsonschema.Schema{} // its place: types may consist of themselves
		d.types[t] = &jsonschema.Schema{Ref: "#/components/schemas/" + name}
		for field := range t.Fields() {
			d.collect(field.Type, seen)
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

// object is the schema of a struct itself, with its comments. Answers may grow, so that other properties are not forbidden.
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
		if about := d.comments[commentKey(owner(t, f))+"."+f.Name]; about != "" {
			property.Description = about
		}
		s.Properties[name] = property
		s.PropertyOrder = append(s.PropertyOrder, name)
		if !strings.Contains(options, "omit") {
			s.Required = append(s.Required, name)
		}
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
	d.collect(reflect.TypeFor[problem](), map[reflect.Type]bool{})
	var named []object
	for _, tag := range tags {
		named = append(named, object{"name": tag})
	}
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Regie", "version": "v1",
			"description": "A runtime for AI agents with controlled autonomy. Errors are application/problem+json with a stable code. Bodies are strict: " +
				"unknown, duplicate and case-variant keys are refused. Writes accept an Idempotency-Key.",
		},
		"security": []object{{"token": []string{}}},
		"tags":     named,
		"paths":    paths,
		"components": object{
			"schemas":         d.components,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
			"responses": object{"Problem": object{
				"description": "What went wrong, with a stable code.",
				"content":     object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
			}},
		},
	}
}

func (d *documenting) operation(o *operation) object {
	out := object{"operationId": o.id, "summary": o.summary, "tags": []string{o.tag}}
	var parameters []object
	if strings.Contains(o.path, "{id}") {
		parameters = append(parameters, object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string", "format": "uuid"}})
	}
	for field := range o.query.Fields() {
		parameters = append(parameters, d.parameter(field))
	}
	if o.method != http.MethodGet {
		parameters = append(parameters, object{
			"name": "Idempotency-Key", "in": "header", "schema": object{"type": "string", "maxLength": maxKey},
			"description": "The same one again finds what the first request did.",
		})
	}
	if len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if o.in != reflect.TypeFor[none]() {
		out["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": d.schema(o.in)}}}
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
		for _, word := range words {
			schema.Enum = append(schema.Enum, word)
		}
	}
	if schema.Type == "integer" {
		least, greatest := bounds(f)
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
		Types      []component
	}{}
	name := func(t reflect.Type) string {
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
		r := row{Method: o.method, Path: base + o.path, ID: o.id, Summary: o.summary, In: name(o.in), Out: name(o.out)}
		for f := range o.query.Fields() {
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
		return fmt.Sprint(strings.Join(s.Types, " | "))
	case len(s.AnyOf) > 0:
		return kindOf(s.AnyOf[len(s.AnyOf)-1])
	}
	return "any"
}

var docsTemplate = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Regie: HTTP interface</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}section{border-top:1px solid #8886;padding:.5rem 0}h3{font-size:1rem;margin:.25rem 0}
dl{display:grid;grid-template-columns:minmax(8rem,max-content) 1fr;gap:0 1rem;margin:.25rem 0}dd{margin:0}b{display:inline-block;min-width:4.5rem}</style>
<main><h1>Regie: HTTP interface</h1>
<p>Requests show the token of the server as <code>Authorization: Bearer …</code>. Errors are <code>application/problem+json</code> with a stable code.
Bodies are strict: unknown, duplicate and case-variant keys are refused. Writes accept an <code>Idempotency-Key</code>. Lists have pages: <code>next_cursor</code>
is the <code>cursor</code> of the next one. The whole is in <a href="/openapi.json">openapi.json</a>.</p>
<h2>Operations</h2>
{{range .Operations}}<section id="{{.ID}}"><h3><b>{{.Method}}</b> <code>{{.Path}}</code></h3><p>{{.Summary}}.</p>
<dl>{{range .Parameters}}<dt><code>{{.Name}}</code></dt><dd>{{.About}}</dd>{{end}}
{{with .In}}<dt>takes</dt><dd><a href="#type-{{.}}">{{.}}</a></dd>{{end}}{{with .Out}}<dt>answers</dt><dd><a href="#type-{{.}}">{{.}}</a></dd>{{end}}</dl></section>
{{end}}<h2>Types</h2>
{{range .Types}}<section id="type-{{.Name}}"><h3><code>{{.Name}}</code></h3>{{with .About}}<p>{{.}}</p>{{end}}
<dl>{{range .Properties}}<dt><code>{{.Name}}</code></dt><dd><i>{{.Kind}}</i> {{.About}}</dd>{{end}}</dl></section>
{{end}}</main></html>
`))

// rows are the operations of a server that serves nothing.
func rows() []operation { return (&server{Config{Control: struct{ dispatch.Control }{}}}).operations() }
