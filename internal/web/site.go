package web

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/automation"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/httpread"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// Config is what the pages show. Service, Secret, Look and Commands are required.
type Config struct {
	Service *control.Service
	// Root is the directory of the first chat's workspace; empty: none.
	Root string
	// Secret returns what only the caller of a request knows; the forms' tokens are made of it.
	Secret func(*http.Request) string
	// Look finds the files of the workspace at root that a message names, and Commands the slash
	// commands there.
	Look     func(root string) func(path string) (regie.EnrichmentBlock, bool)
	Commands func(t *i18n.Printer, root string) []chat.CustomCommand
	// Gate admits visitors of widgets.
	Gate *access.Gate
	// Log receives why a visitor could not be answered; nil discards.
	Log *slog.Logger
	// Open is called with 1 when a stream opens and with -1 when it ends; it may be nil.
	Open func(n int)
}

// Site serves the pages. Its methods may be called from any goroutine.
type Site struct {
	Config
	mux  *http.ServeMux
	stop chan struct{}
	once sync.Once
}

//go:embed assets
var assetFiles embed.FS

//go:embed templates
var templateFiles embed.FS

const (
	// maxForm bounds the body of a form.
	maxForm = 1 << 20
	// policy lets a page load nothing but what this server serves.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; worker-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// roots are the first parts of the paths that the pages serve.
var roots = []string{
	"", "appearance", "approvals", "assets", "automations", "calls", "chats", "inbox", "login", "questions", "runs",
	"dashboard", "more", "offers", "search", "stream",
	"settings", "widget", launcher,
}

// New returns the pages.
func New(c Config) *Site {
	if c.Open == nil {
		c.Open = func(int) {}
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	s := &Site{Config: c, mux: http.NewServeMux(), stop: make(chan struct{})}
	s.mux.HandleFunc("GET /assets/{name}", serveAsset)
	for pattern, serve := range map[string]func(*visit) error{
		"GET /{$}": showNew, "GET /chats/new": showNew, "POST /chats": beginChat,
		"GET /chats/{id}": withID(showChat), "GET /chats/{id}/stream": withID(streamChat),
		"GET /chats/{id}/images/{name}": withID(showImage),
		"POST /chats/{id}/messages":     withID(sendMessage), "POST /chats/{id}/take-back": withID(takeBack),
		"POST /chats/{id}/read": onChat(markRead),
		"POST /chats/{id}/stop": onChat(stopChat), "POST /chats/{id}/mode": onChat(setMode),
		"POST /chats/{id}/fork": onChat(forkChat), "POST /chats/{id}/rename": onChat(renameChat),
		"POST /chats/{id}/delete": onChat(removeChat), "POST /chats/{id}/resume": onChat(resumeChat),
		"GET /chats/{id}/undo": showUndo, "POST /chats/{id}/undo": showUndo,
		"GET /chats/{id}/export": withID(exportChat), "GET /offers": listOffers,
		"GET /approvals/{id}/edit": withID(showEdit), "POST /approvals/{id}/edit": withID(showEdit),
		"POST /approvals/{id}": withID(decideCalls), "POST /questions/{id}": withID(answerQuestion),
		"POST /calls/{id}": withID(resolveCall), "POST /inbox/{id}": withID(changeItem),
		"GET /inbox/{id}": showPage("inbox", loadInbox), "GET /runs/{id}/calls/{call}": showPage("run", loadRun),
		"GET /search": showPage("search", loadSearch), "GET /stream": s.streamPages,
		"POST /appearance": setAppearance, "GET /more": showPage("more", loadMore),
		"GET /automations/new": showEditor, "GET /automations/{id}/edit": showEditor,
		"POST /automations": showEditor, "POST /automations/{id}/edit": showEditor,
		"POST /automations/preview": showPage("schedule-preview", previewSchedule),
		"POST /automations/{id}":    withID(changeAutomation),
	} {
		s.mux.HandleFunc(pattern, s.handle(serve))
	}
	addPage(s, "/inbox", "inbox", loadInbox, "empty", "kinds", "detail")
	addPage(s, "/runs", "runs", loadRuns, "no-runs")
	addPage(s, "/runs/{id}", "run", loadRun, "run-state", "strip", "scale", "steps", "call-page")
	addPage(s, "/automations", "automations", loadAutomations, "no-automations")
	addPage(s, "/automations/{id}", "automation", loadAutomation, "automation-state", "next-times", "no-fires")
	addPage(s, "/dashboard", "dashboard", loadDashboard, "dashboard")
	s.addWidgets()
	s.addSettings()
	s.mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		s.visit(w, r).showLogin(http.StatusOK)
	})
	s.mux.HandleFunc("/", s.handle(func(v *visit) error {
		return regie.Errorf(regie.CodeNotFound, "there is no page at %s", v.r.URL.Path)
	}))
	return s
}

// Stop ends the streams: the server goes, and their pages come back to the next one.
func (s *Site) Stop() { s.once.Do(func() { close(s.stop) }) }

// Serves reports whether a path is that of a page.
func (s *Site) Serves(path string) bool {
	root, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains(roots, root)
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	s.mux.ServeHTTP(w, r)
}

// visit is one request of a person.
type visit struct {
	site  *Site
	w     http.ResponseWriter
	r     *http.Request
	text  *i18n.Printer
	theme string
	token string     // of forms
	retry statusLine // why a page that is followed waits for its model
}

const (
	themeCookie    = "regie-theme"
	languageCookie = "regie-language"
)

func (s *Site) visit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{site: s, w: w, r: r}
	language := r.Header.Get("Accept-Language")
	if c, err := r.Cookie(languageCookie); err == nil {
		language = c.Value
	}
	v.text = i18n.New(language)
	if c, err := r.Cookie(themeCookie); err == nil && slices.Contains(themes, c.Value) {
		v.theme = c.Value
	}
	sum := sha256.Sum256([]byte("regie form " + s.Secret(r)))
	v.token = base64.RawURLEncoding.EncodeToString(sum[:])
	return v
}

// handle makes a handler of a function: callers without a login get the login page, and forms
// without their token nothing.
func (s *Site) handle(serve func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := s.visit(w, r)
		if access.From(r.Context()) == nil {
			v.refuse()
			return
		}
		err := v.readForm()
		if err == nil {
			err = serve(v)
		}
		if err != nil {
			v.showError(err)
		}
	}
}

// readForm reads the form of a POST and checks its token.
func (v *visit) readForm() error {
	if v.r.Method != http.MethodPost {
		return nil
	}
	bound, parse := int64(maxForm), v.r.ParseForm
	if kind, _, _ := mime.ParseMediaType(v.r.Header.Get("Content-Type")); kind == "multipart/form-data" {
		bound, parse = maxImageForm, func() error { return v.r.ParseMultipartForm(maxImageForm) } //nolint:gosec // the body is bounded below
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, bound)
	err := parse()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return regie.Errorf(regie.CodeTooLarge, "the form is larger than %d KiB: put what is long into a file of the workspace", bound>>10)
	}
	if err != nil {
		return regie.Errorf(regie.CodeBadRequest, "the form cannot be read: %v", err)
	}
	if subtle.ConstantTimeCompare([]byte(v.r.PostForm.Get("csrf")), []byte(v.token)) != 1 {
		return regie.Errorf(regie.CodeForbidden, "the form is not of this login: reload the page and try again")
	}
	return nil
}

// byScript reports whether the page's module sends the request, which takes JSON.
func (v *visit) byScript() bool {
	accept := v.r.Header.Get("Accept")
	return strings.Contains(accept, "application/json") || strings.Contains(accept, "text/event-stream")
}

// refuse answers a caller without a login.
func (v *visit) refuse() {
	if v.byScript() {
		v.writeProblem(access.ErrNoToken)
		return
	}
	v.showLogin(http.StatusUnauthorized)
}

// problem is an error as the page's module reads it.
type problem struct {
	Code   regie.Code `json:"code"`
	Detail string     `json:"detail"`
}

func (v *visit) writeProblem(err error) {
	code := regie.CodeOf(err)
	v.writeJSON(httpread.Status(code), "application/problem+json", problem{code, v.text.Error(err)})
}

func (v *visit) writeJSON(status int, kind string, data any) {
	v.w.Header().Set("Content-Type", kind)
	v.w.Header().Set("Cache-Control", "no-store")
	v.w.WriteHeader(status)
	_ = json.NewEncoder(v.w).Encode(data) // the client has gone if this fails
}

// showError answers with an error: a page, or JSON for the page's module.
func (v *visit) showError(err error) {
	if v.byScript() {
		v.writeProblem(err)
		return
	}
	f := v.newFrame("", v.text.T("This did not work"))
	_ = v.fillFrame(f) // a page that cannot load keeps what it has
	v.render(httpread.Status(regie.CodeOf(err)), "error", struct {
		*frame
		Code   regie.Code
		Detail string
	}{f, regie.CodeOf(err), v.text.Error(err)})
}

func (v *visit) showLogin(status int) {
	v.render(status, "login", v.newFrame("", v.text.T("Sign in")))
}

// done answers a form that was taken.
func (v *visit) done(to string) error {
	if v.byScript() {
		v.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	http.Redirect(v.w, v.r, to, http.StatusSeeOther) //nolint:gosec // next lets only paths through
	return nil
}

// next returns the page that a form came from, which is one of ours.
func (v *visit) next() string {
	if to := v.r.PostForm.Get("next"); strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") && !strings.Contains(to, `\`) {
		return to
	}
	return "/"
}

// id returns the id of the path.
func (v *visit) id() (regie.ID, error) { return regie.ParseID(v.r.PathValue("id")) }

// withID makes a handler of a function that takes the id of the path.
func withID(serve func(v *visit, id regie.ID) error) func(*visit) error {
	return func(v *visit) error {
		id, err := v.id()
		if err != nil {
			return err
		}
		return serve(v, id)
	}
}

// finishForm answers a form: with the page to, or again with its own page and the problem at the
// item that the form is about.
func (v *visit) finishForm(about string, err error, to string) error {
	if err != nil {
		return v.failForm(about, err)
	}
	return v.done(to)
}

// render writes a page.
func (v *visit) render(status int, name string, data any) {
	var page bytes.Buffer
	if err := v.templates().ExecuteTemplate(&page, name, data); err != nil {
		http.Error(v.w, "the page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Language, Cookie")
	v.w.WriteHeader(status)
	_, _ = page.WriteTo(v.w) // the client has gone if this fails
}

// fragment renders a part of a page.
func (v *visit) fragment(name string, data any) (template.HTML, error) {
	var out strings.Builder
	err := v.templates().ExecuteTemplate(&out, name, data)
	return template.HTML(out.String()), err //nolint:gosec // a template has made it
}

func (v *visit) templates() *template.Template { return templates[v.text.Language()]() }

var templates = map[string]func() *template.Template{
	"en": sync.OnceValue(func() *template.Template { return parseTemplates("en") }),
	"fr": sync.OnceValue(func() *template.Template { return parseTemplates("fr") }),
}

// parseTemplates binds the templates to a language.
func parseTemplates(language string) *template.Template {
	text := catalogue{i18n.New(language)}
	return template.Must(template.New("").Funcs(template.FuncMap{
		"t":     text.translate,
		"clean": sanitize.Strip, "line": sanitize.Line, "visible": sanitize.Visible, "reason": text.Error,
		"preview": func(s string) string { return sanitize.Clip(s, 200) },
		"asset":   assetPath, "clock": formatClock, "until": formatUntil, "tokens": formatTokens,
		"chipof": func(class, icon, word string) chip { return chip{class, icon, word} },
		"inc":    func(n int) int { return n + 1 }, "precise": func(at time.Time) string { return at.Local().Format("15:04:05.000") },
		"stamp":    func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"sentence": text.Sentence, "ratio": ratio,
		"percent": func(a, b int64) float64 { return 100 * ratio(a, b) },
		"sum":     func(a, b int64) int64 { return a + b },
		"dollars": func(amount int64) string { return formatDollars(text.Printer, amount) },
		"cost": func(n int64, unknown bool) string {
			return formatCost(text.Printer, regie.Spending{Cost: n, Known: !unknown})
		},
		"new": regie.NewID, "list": func(items ...any) []any { return items }, "join": strings.Join, "zone": zoneOf,
		"describe": func(s *regie.Schedule) string { return automation.Describe(text.Printer, s) },
		"instant":  func(at time.Time, zone string) string { return automation.FormatInstant(text.Printer, at, zone) },
		"statechip": func(s regie.SessionState) chip {
			return sessionChip(text.Printer, &store.SessionSummary{Session: regie.Session{State: s}})
		},
		"span": func(us int64) string { return formatMicros(text.Printer, us) },
		"age":  func(w store.Waiting) string { return formatSpan(text.Printer, w.Age(time.Now())) },
		"icon": func(name string) template.HTML {
			return template.HTML(`<svg class="icon" aria-hidden="true"><use href="#i-` + name + `"/></svg>`) //nolint:gosec // names of ours
		},
	}).ParseFS(templateFiles, "templates/*.html"))
}

// catalogue translates what templates say.
type catalogue struct{ *i18n.Printer }

func (c catalogue) translate(format string, args ...any) string { return c.T(format, args...) }

// asset is a file that pages load. Its path has its hash, so that browsers keep it.
type asset struct {
	data []byte
	kind string
	path string
}

var assets = sync.OnceValue(func() map[string]asset {
	out := map[string]asset{}
	entries, _ := assetFiles.ReadDir("assets") // embedded, in the order of their names
	for _, entry := range entries {
		data, _ := assetFiles.ReadFile("assets/" + entry.Name())
		for name, font := range out { // the style sheet, behind the fonts, names them with their hashes
			if strings.HasSuffix(name, ".woff2") && path.Ext(entry.Name()) == ".css" {
				data = bytes.ReplaceAll(data, []byte(`"`+name+`"`), []byte(`"`+font.path+`"`))
			}
		}
		sum, extension := sha256.Sum256(data), path.Ext(entry.Name())
		name := strings.TrimSuffix(entry.Name(), extension) + "." + hex.EncodeToString(sum[:6]) + extension
		kind := cmp.Or(map[string]string{".js": "text/javascript; charset=utf-8", ".woff2": "font/woff2"}[extension],
			mime.TypeByExtension(extension))
		one := asset{data, kind, "/assets/" + name}
		out[entry.Name()], out[name] = one, one
	}
	return out
})

func assetPath(name string) string { return assets()[name].path }

// serveAsset serves a file, to callers without a login too.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	one, ok := assets()[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", one.kind)
	w.Header().Set("Cache-Control", "no-cache")
	if one.path == r.URL.Path {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(one.data) // the client has gone if this fails
}
