package httpapi

import (
	"cmp"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/sanitize"
)

const setupPath = "/setup"

// SetupPath begins a setup link and returns its path: who opens it within a quarter of an hour,
// once, has a browser that the server knows. The one before ends.
func (g *Guard) SetupPath() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.code, g.ends = access.NewSecret(), time.Now().Add(setupTime)
	return setupPath + "?code=" + g.code
}

// useSetupLink ends the setup link, and reports whether it was the right one.
func (g *Guard) useSetupLink(code string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if code == "" || g.code == "" || !access.Same(code, g.code) || time.Now().After(g.ends) {
		return false
	}
	g.code = ""
	return true
}

// giveBack makes a setup link valid again after a failed use.
func (g *Guard) giveBack(code string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.code == "" {
		g.code = code
	}
}

// browserName returns a browser's name in lists: what it says of itself, on one line.
func browserName(agent string) string {
	name := []rune(sanitize.Line(agent))
	return cmp.Or(string(name[:min(len(name), 100)]), "browser")
}

// setupPage asks before it does anything: what only looks at links, as programs for mail do, uses
// nothing up.
var setupPage = template.Must(template.New("setup").Parse(`<!doctype html>
<html lang="{{.Language}}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Regie</title>{{with .Style}}<link rel="stylesheet" href="{{.}}">{{end}}
<body class="plain"><main><h1>Regie</h1>
{{if .Button}}<form method="post" action="` + setupPath + `"><input type="hidden" name="code" value="{{.Code}}">
<p>{{.Text}}</p><button>{{.Button}}</button></form>{{else}}<p role="alert">{{.Text}}</p>{{end}}</main></body></html>
`))

// serveSetup lets a browser in.
func (g *Guard) serveSetup(w http.ResponseWriter, r *http.Request, s *responder) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodGet:
		ask, yes := regie.Say("Let this browser use this Regie? The link works once."), regie.Say("Let it in")
		g.showSetup(w, r, s, &regie.Error{Format: ask.Format}, &regie.Error{Format: yes.Format})
	case http.MethodPost:
		r.Body = http.MaxBytesReader(w, r.Body, 1<<12)
		if err := r.ParseForm(); err != nil || !g.useSetupLink(r.PostForm.Get("code")) {
			used := regie.Errorf(regie.CodeNoToken, "the login link was already used, or has expired: regie web creates another one")
			if !strings.Contains(r.Header.Get("Accept"), "text/html") {
				g.turnAway(w, r, s, used, true)
				return
			}
			if s.refused != nil {
				s.refused("token")
			}
			g.showSetup(w, r, s, used, nil)
			return
		}
		secret, until, err := g.Gate.Login(r.Context(), browserName(r.UserAgent()))
		if err != nil {
			g.giveBack(r.PostForm.Get("code"))
			s.writeError(w, r, err)
			return
		}
		http.SetCookie(w, sessionCookie(r, secret, until))
		to := "/docs"
		if g.Pages != nil {
			to = "/"
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	default:
		w.Header().Set("Allow", "GET, POST")
		s.writeError(w, r, regie.Errorf(regie.CodeNoMethod, "%s is not a method of %s: use %s",
			r.Method, setupPath, "GET, POST"))
	}
}

// showSetup writes the page of a setup link: with a button, what that does, and else why there is
// none.
func (g *Guard) showSetup(w http.ResponseWriter, r *http.Request, s *responder, text, button *regie.Error) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'")
	language := r.Header.Get("Accept-Language")
	page := map[string]string{"Language": "en", "Code": r.URL.Query().Get("code"), "Text": s.translate(language, text)}
	if strings.HasPrefix(strings.ToLower(language), "fr") {
		page["Language"] = "fr"
	}
	if g.Pages != nil {
		page["Style"] = "/assets/regie.css"
	}
	if button != nil {
		page["Button"] = s.translate(language, button)
	} else {
		w.WriteHeader(http.StatusUnauthorized)
	}
	_ = setupPage.Execute(w, page) // the client has gone if this fails
}
