package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

// documented is the OpenAPI document, with which everything that a house is asked and answers is
// compared (described).
type documented struct {
	mux     *http.ServeMux // finds the operation of a request
	schemas map[string]*jsonschema.Schema
	asked   map[string]string            // by pattern: the schema of a body
	answers map[string]map[string]string // by pattern and status: that of an answer

	mu       sync.Mutex
	resolved map[string]*jsonschema.Resolved // by schema
}

// formats are those that a validator of schemas leaves alone.
var formats = map[string]string{
	"uuid":      "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
	"date-time": `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$`,
}

var readDocument = sync.OnceValues(func() (*documented, error) {
	data, err := os.ReadFile(filepath.Join("..", "httpapi", "openapi.json"))
	if err != nil {
		return nil, err
	}
	type content map[string]struct {
		Schema json.RawMessage `json:"schema"`
	}
	var read struct {
		Paths map[string]map[string]struct {
			Body struct {
				Content content `json:"content"`
			} `json:"requestBody"`
			Responses map[string]struct {
				Content content `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]*jsonschema.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(bytes.ReplaceAll(data, []byte("#/components/schemas/"), []byte("#/$defs/")), &read); err != nil {
		return nil, err
	}
	d := &documented{
		mux: http.NewServeMux(), schemas: read.Components.Schemas, asked: map[string]string{}, answers: map[string]map[string]string{},
		resolved: map[string]*jsonschema.Resolved{},
	}
	add := func(name string, from content) (string, error) {
		schema := from["application/json"].Schema
		if schema == nil {
			return "", nil
		}
		name = strings.NewReplacer("/", ".", " ", "-", "{", "", "}", "").Replace(name)
		d.schemas[name] = &jsonschema.Schema{}
		return name, json.Unmarshal(schema, d.schemas[name])
	}
	for path, methods := range read.Paths {
		for method, o := range methods {
			pattern := strings.ToUpper(method) + " " + path
			d.mux.HandleFunc(pattern, http.NotFound)
			if d.asked[pattern], err = add(pattern, o.Body.Content); err != nil {
				return nil, err
			}
			d.answers[pattern] = map[string]string{}
			for status, response := range o.Responses {
				if d.answers[pattern][status], err = add(pattern+" "+status, response.Content); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, schema := range d.schemas {
		strictFormats(schema)
	}
	return d, nil
})

// strictFormats has a validator look at formats too.
func strictFormats(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if pattern := formats[s.Format]; pattern != "" {
		s.Pattern = pattern
	}
	strictFormats(s.Items)
	strictFormats(s.AdditionalProperties)
	for _, one := range s.Properties {
		strictFormats(one)
	}
	for _, one := range s.AnyOf {
		strictFormats(one)
	}
}

// fits holds JSON against a schema of the document.
func (d *documented) fits(name string, data []byte) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.resolved[name] == nil {
		var err error
		if d.resolved[name], err = (&jsonschema.Schema{Ref: "#/$defs/" + name, Defs: d.schemas}).Resolve(nil); err != nil {
			return err
		}
	}
	return d.resolved[name].Validate(value)
}

// required is what the body of a request has to have.
func (d *documented) required(method, path string) []string {
	r, err := http.NewRequest(method, path, nil) //nolint:noctx // it is only looked at
	if err != nil {
		return nil
	}
	_, pattern := d.mux.Handler(r)
	if schema := d.schemas[d.asked[pattern]]; schema != nil {
		return d.schemas[strings.TrimPrefix(schema.Ref, "#/$defs/")].Required
	}
	return nil
}

// described holds a request that was answered, and its answer, against the OpenAPI document: what
// was done fits what may be asked, and each answer what is said of it. Streams and other forms are
// left alone.
func described(t *testing.T, r *http.Request, body string, response *http.Response) {
	t.Helper()
	d, err := readDocument()
	fatal(t, err)
	_, pattern := d.mux.Handler(r)
	kind := response.Header.Get("Content-Type")
	if pattern == "" || r.Method == http.MethodHead || kind != "application/json" && kind != "application/problem+json" {
		return
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s: %v", pattern, err)
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(data))
	name, failed := d.answers[pattern][strconv.Itoa(response.StatusCode)], response.StatusCode >= 400
	if failed {
		name = "Problem"
	}
	if failed != (kind == "application/problem+json") || name == "" {
		t.Errorf("%s: the document knows no answer %d of type %s", pattern, response.StatusCode, kind)
	} else if err := d.fits(name, data); err != nil {
		t.Errorf("%s: the answer %d is not what the document says: %v\n%.2000s", pattern, response.StatusCode, err, data)
	}
	if asked := d.asked[pattern]; asked != "" && !failed {
		if err := d.fits(asked, []byte(body)); err != nil {
			t.Errorf("%s: what the document forbids was done: %v\n%.2000s", pattern, err, body)
		}
	}
}

// TestEveryAnswerIsDescribed asks for all that can be read, of sessions in which something was
// decided, asked, undone and kept: what comes is what the document says (house.ask), bytes among
// it.
func TestEveryAnswerIsDescribed(t *testing.T) {
	t.Parallel()
	k := newKeyedHouse(t)
	path, _ := k.undoable("shown000")
	session := strings.TrimPrefix(path, "/api/v1/sessions/")
	k.json("POST", path+"/undo", `{"chat":true}`, 200, nil)
	k.in("please ask")
	_, writes := k.in("please write ruled001")
	k.allowBelow(k.engine.Control(), writes.Approvals[0], writes.Approvals[0].ExpiresAt)
	k.in("please write waits001")
	k.add(control.TokenRequest{Name: "t", Scopes: []regie.TokenScope{regie.ScopeRead}})
	round := k.rounds(path)[0].Round.ID.String()
	var sent regie.Attachment
	k.json("POST", "/api/v1/attachments", `{"name":"a.png","data":"`+base64.StdEncoding.EncodeToString(drawPNG(2, 2))+`"}`, 201, &sent)
	k.json("POST", path+"/messages", `{"segments":[{"text":"please look"},{"attachment":{"blob":"`+sent.Blob.String()+`","media_type":"","name":"","size":0}}]}`, 202, nil)
	k.json("POST", path+"/fork", `{}`, 201, nil)
	k.distrusted()
	automation := strings.TrimPrefix(k.automation(), "/api/v1/")
	k.json("POST", "/api/v1/"+automation+"/execute", `{}`, 200, nil)
	left := map[string]bool{}
	d, err := readDocument()
	fatal(t, err)
	for pattern, answers := range d.answers {
		left[pattern] = strings.HasPrefix(pattern, "GET ") && answers["200"] != ""
	}
	for address, status := range map[string]int{
		"agents": 200, "agents/main": 200, "agents/main/versions": 200, "agents/nobody": 404, "approvals?state=all": 200, "automations": 200, "automations?cursor=x": 400, automation: 200, automation + "/runs": 200, automation + "/versions": 200, "automations/" + session: 404, "cache": 200, "inbox": 200, "inbox?state=all": 200, "inbox?brief=true": 200, "models": 200, "notifications": 200, "notifications?limit=x": 400, "presence": 200,
		"prompt?session=" + session: 200, "prompt?exchange=1&round=" + round: 200, "providers": 200,
		"rounds": 200, "rounds?limit=1": 200, "rounds/" + round: 200, "rounds/x": 400, "rounds/" + session: 404, "rounds/" + round + "/replay": 200, "rules?ended=true": 200,
		"search?q=go&workspace=" + k.place.ID.String(): 200, "search": 400, "sessions?limit=2": 200, "sessions?cursor=x": 400, "sessions/" + session: 200,
		"sessions/" + session + "/export": 200, "sessions/" + session + "/attachments/" + sent.Blob.String(): 200, "sessions/" + session + "/attachments/x": 400, "sessions/" + session + "/messages": 200, "sessions/" + session + "/rounds": 200, "settings/limits": 200,
		"spending": 200, "stats?by=hour&group=agent": 200, "stats?from=x": 400, "tokens": 200, "tools": 200, "users": 200, "users/me": 200, "verify": 200, "workspaces": 200, "workspaces/" + k.place.ID.String() + "/trust": 200, "workspaces/" + session + "/trust": 404,
		"/openapi.json": 200, "/readyz": 200, "/version": 200,
	} {
		if !strings.HasPrefix(address, "/") {
			address = "/api/v1/" + address
		}
		response := k.ask("GET", address, "") //nolint:bodyclose // at the end of the test
		if response.StatusCode != status {
			t.Errorf("%s: %d, want %d", address, response.StatusCode, status)
		}
		if _, pattern := d.mux.Handler(response.Request); status == http.StatusOK {
			left[pattern] = false
		}
	}
	for pattern, missing := range left {
		if missing {
			t.Errorf("nothing has asked for %s", pattern)
		}
	}
}
