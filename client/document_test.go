package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
)

type schema struct {
	Ref        string            `json:"$ref"`
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
}

type content map[string]struct {
	Schema schema `json:"schema"`
}

type described struct {
	ID         string `json:"operationId"`
	Parameters []struct{ Name, In string }
	Body       struct {
		Content content `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content content `json:"content"`
	} `json:"responses"`
}

// document is what the server says of its interface.
type document struct {
	t          *testing.T
	Paths      map[string]map[string]described `json:"paths"`
	Components struct {
		Schemas map[string]schema `json:"schemas"`
	} `json:"components"`

	mu    sync.Mutex
	asked map[string]bool // ids of operations
}

func (d *document) resolve(s schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}
	return s
}

// find returns the operation of a request.
func (d *document) find(r *http.Request) (described, bool) {
	var found described
	best := -1
	for path, methods := range d.Paths {
		pattern := "^" + regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(path, `[^/]+`) + "$"
		o, ok := methods[strings.ToLower(r.Method)]
		if exact := strings.Count(path, "/") - strings.Count(path, "{"); ok && exact > best && regexp.MustCompile(pattern).MatchString(r.URL.Path) {
			found, best = o, exact
		}
	}
	return found, best >= 0
}

// ServeHTTP holds a request against the document, and answers as that says, with as little as
// possible.
func (d *document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	o, ok := d.find(r)
	if !ok {
		d.t.Errorf("the document knows no %s %s", r.Method, r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
		return
	}
	d.mu.Lock()
	d.asked[o.ID] = true
	d.mu.Unlock()
	declared := map[string]bool{}
	for _, p := range o.Parameters {
		declared[p.In+" "+p.Name] = true
	}
	for name := range r.URL.Query() {
		if !declared["query "+name] {
			d.t.Errorf("%s has no parameter %s", o.ID, name)
		}
	}
	data, _ := io.ReadAll(r.Body)
	wanted := d.resolve(o.Body.Content["application/json"].Schema)
	if len(o.Body.Content) == 0 && len(data) > 0 {
		d.t.Errorf("%s takes no body, and was sent %s", o.ID, data)
	}
	if len(o.Body.Content) > 0 {
		var sent map[string]any
		if err := json.Unmarshal(data, &sent); err != nil {
			d.t.Errorf("%s was sent %q: %v", o.ID, data, err)
		}
		for key := range sent {
			if _, ok := wanted.Properties[key]; !ok {
				d.t.Errorf("%s takes no %q", o.ID, key)
			}
		}
	}
	for _, answer := range o.Responses {
		if _, streams := answer.Content["text/event-stream"]; streams {
			w.Header().Set("Content-Type", "text/event-stream")
			return
		}
		s := d.resolve(answer.Content["application/json"].Schema)
		if s.Type == nil {
			continue
		}
		least := "{}"
		if kinds, _ := json.Marshal(s.Type); strings.Contains(string(kinds), "array") {
			least = "[]"
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, least)
		return
	}
}

// newDocument reads the document.
func newDocument(t *testing.T) *document {
	t.Helper()
	data, err := os.ReadFile("../internal/httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	d := &document{t: t, asked: map[string]bool{}}
	if err := json.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestClientKeepsToTheDocument calls every method of the client that sends a request, and holds
// each request against the OpenAPI document: paths, parameters and bodies are those that are there,
// and the answers are what the client reads.
func TestClientKeepsToTheDocument(t *testing.T) {
	d := newDocument(t)
	server := httptest.NewServer(d)
	defer server.Close()
	c, err := client.New(server.URL, "token", "en")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for m := range reflect.TypeFor[*client.Client]().Methods() {
		if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() || m.Name == "Alive" {
			continue
		}
		before := len(d.asked)
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 2; i < m.Type.NumIn(); i++ {
			args = append(args, filled(m.Type.In(i), 0))
		}
		out := reflect.ValueOf(c).MethodByName(m.Name).Call(args)
		err, _ := reflect.TypeAssert[error](out[len(out)-1])
		follows := m.Name == "Events" || m.Name == "Watch" // what is followed has ended
		if len(d.asked) == before || follows != (regie.CodeOf(err) == regie.CodeEngineGone) || !follows && err != nil {
			t.Errorf("%s: %d operations asked for, %v", m.Name, len(d.asked)-before, err)
		}
	}
}

// filled is a value in which every field says something.
func filled(of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	if of == reflect.TypeFor[regie.ID]() {
		return reflect.ValueOf(regie.NewID())
	}
	switch of.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Func:
		return reflect.Zero(of)
	case reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() && depth < 1 {
				v.Field(i).Set(filled(of.Field(i).Type, depth+1))
			}
		}
	}
	return v
}
