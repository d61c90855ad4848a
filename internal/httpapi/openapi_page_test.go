package httpapi

import (
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
)

// besideRow is what docs.html shows of a beside.
type besideRow struct {
	Method, Path, Summary string
	Scope                 regie.TokenScope
}

// besides are those of a server that serves nothing.
func besides() []beside { return (&server{}).plainRoutes() }

func besideRows() (out []besideRow) {
	for _, b := range besides() {
		out = append(out, besideRow{http.MethodGet, b.path, b.summary, b.scope})
	}
	return out
}

// addBesides puts what tells of the server itself into the document.
func addBesides(paths object) {
	for _, b := range besides() {
		answer := object{"description": b.summary}
		if b.kind != "" {
			answer["content"] = object{b.kind: object{"schema": object{}}}
		}
		o := object{
			"operationId": strings.Map(func(c rune) rune {
				if c == '/' || c == '.' {
					return '_'
				}
				return c
			}, strings.TrimPrefix(b.path, "/")), "summary": b.summary, "tags": []string{"server"},
			"responses": object{strconv.Itoa(b.status): answer, "default": object{"$ref": "#/components/responses/Problem"}},
		}
		switch b.scope {
		case "":
			o["security"] = []object{}
		case control.EveryCaller:
		default:
			o["security"] = []object{{"token": []regie.TokenScope{b.scope}}, {"browser": []regie.TokenScope{b.scope}}}
		}
		paths[b.path] = object{"get": o}
	}
}

// placesOf are the names of what is in braces in a path.
func placesOf(path string) (names []string) {
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// docsTemplate is docs.html.
var docsTemplate = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Regie: HTTP interface</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}section{border-top:1px solid #8886;padding:.5rem 0}h3{font-size:1rem;margin:.25rem 0}
dl{display:grid;grid-template-columns:minmax(8rem,max-content) 1fr;gap:0 1rem;margin:.25rem 0}dd{margin:0}b{display:inline-block;min-width:4.5rem}</style>
<main><h1>Regie: HTTP interface</h1>
<p>Requests show the token of the server as <code>Authorization: Bearer …</code>, or an API token with the scope that stands behind an operation. Errors are <code>application/problem+json</code> with a stable code.
Bodies are strict: unknown, duplicate and case-variant keys are refused. Writes accept an <code>Idempotency-Key</code>. Lists have pages: <code>next_cursor</code>
is the <code>cursor</code> of the next one. The whole is in <a href="/openapi.json">openapi.json</a>.</p>
<h2>Operations</h2>
{{range .Operations}}<section id="{{.ID}}"><h3><b>{{.Method}}</b> <code>{{.Path}}</code></h3><p>{{.Summary}}. <i>{{.Scope}}</i></p>
<dl>{{range .Parameters}}<dt><code>{{.Name}}</code></dt><dd>{{.About}}</dd>{{end}}
{{with .In}}<dt>takes</dt><dd><a href="#type-{{.}}">{{.}}</a></dd>{{end}}{{with .Out}}<dt>answers</dt><dd><a href="#type-{{.}}">{{.}}</a></dd>{{end}}</dl></section>
{{end}}<h2>Beside them</h2>
{{range .Besides}}<section id="{{.Path}}"><h3><b>{{.Method}}</b> <code>{{.Path}}</code></h3><p>{{.Summary}}. {{with .Scope}}<i>{{.}}</i>{{else}}Without a token.{{end}}</p></section>
{{end}}<h2>Types</h2>
{{range .Types}}<section id="type-{{.Name}}"><h3><code>{{.Name}}</code></h3>{{with .About}}<p>{{.}}</p>{{end}}
<dl>{{range .Properties}}<dt><code>{{.Name}}</code></dt><dd><i>{{.Kind}}</i> {{.About}}</dd>{{end}}</dl></section>
{{end}}</main></html>
`))

// rows are the operations of a server that serves nothing.
func rows() []operation {
	return (&server{Config: Config{Service: control.New(control.Config{})}}).operations()
}
