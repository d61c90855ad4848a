package web

import (
	"cmp"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
)

const (
	// launcher is the script that other sites load.
	launcher = "widget.js"
	// maxVisitForm bounds the body of a visitor's form.
	maxVisitForm = 64 << 10
)

// widgetPage is the chat of a visitor of another site (spec 10.3). A visitor has no cookie: the
// frame keeps the secret of its session, and sends it as a field of each form. Nothing that a
// browser adds by itself opens anything here, so forms need no token against forgery.
type widgetPage struct {
	*frame
	Name    string // in addresses
	Widget  control.WidgetView
	Items   []item
	State   control.VisitState
	Visitor string // the secret, for forms without scripts
	Fresh   string // the secret of a chat that the form begins: sent again, it begins no second one

	ClientID, Draft string
}

// visitLine is a line of a visitor's chat as its templates take it.
type visitLine struct {
	ID     string
	Line   control.VisitLine
	Blocks []template.HTML
	State  control.VisitState
}

// Public reports whether a path is for visitors of other sites.
func (s *Site) Public(path string) bool {
	return path == "/"+launcher || strings.HasPrefix(path, "/widget/")
}

// addWidgets adds the pages of visitors.
func (s *Site) addWidgets() {
	s.mux.HandleFunc("GET /"+launcher, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", assets()[launcher].kind)
		h.Set("Cache-Control", "public, max-age=300")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		_, _ = w.Write(assets()[launcher].data) // the client has gone if this fails
	})
	for pattern, serve := range map[string]func(*visit, *widgetPage) error{
		"GET /widget/{name}": renderVisit, "POST /widget/{name}": sendVisit,
		"POST /widget/{name}/stream": streamVisit,
	} {
		s.mux.HandleFunc(pattern, s.handleVisitor(serve))
	}
}

// handleVisitor makes a handler of a function: the caller is the visitor that the form names, and
// the sites of the widget may show the page.
func (s *Site) handleVisitor(serve func(*visit, *widgetPage) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxVisitForm)
		v := s.visit(w, r)
		if err := r.ParseForm(); err != nil {
			v.writeProblem(regie.Errorf(regie.CodeBadRequest, "the form cannot be read: %v", err))
			return
		}
		page := &widgetPage{
			Name: r.PathValue("name"), Visitor: r.PostForm.Get("visitor"), ClientID: regie.NewID().String(),
			Fresh: access.NewSecret(),
		}
		ctx, done, err := s.admitVisitor(v, page)
		if err == nil {
			defer done()
			v.r = r.WithContext(ctx)
			page.Widget, err = s.Service.Visits.Widget(ctx)
		}
		if err == nil {
			page.frame = v.newFrame("", page.Widget.Title)
			w.Header().Del("X-Frame-Options")
			w.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'none'",
				"frame-ancestors "+strings.Join(page.Widget.Origins, " "), 1))
			err = serve(v, page)
		}
		if err != nil {
			v.writeProblem(s.forVisitor(err))
		}
	}
}

// admitVisitor returns the context of the visitor of a request. After the end of a chat the
// next message begins a new one.
func (s *Site) admitVisitor(v *visit, page *widgetPage) (context.Context, func(), error) {
	caller, err := s.Gate.AdmitVisitor(v.r.Context(), page.Name, page.Visitor)
	code, sends := regie.CodeOf(err), v.r.Pattern == "POST /widget/{name}"
	if sends && (code == regie.CodeNoToken || code == regie.CodeTokenEnded) {
		page.Visitor = ""
		caller, err = s.Gate.AdmitVisitor(v.r.Context(), page.Name, "")
	}
	if err != nil {
		return nil, nil, err
	}
	if caller.Visitor.Session.IsZero() {
		return access.With(v.r.Context(), caller), func() {}, nil
	}
	ctx, done, _, err := s.Gate.Enter(v.r.Context(), caller)
	return ctx, done, err
}

// forVisitor returns an error that visitors may read. It logs the faults of this installation.
func (s *Site) forVisitor(err error) error {
	switch code := regie.CodeOf(err); code {
	case regie.CodeTooManyRequests, regie.CodeBadRequest, regie.CodeNotFound, regie.CodeNoToken, regie.CodeTokenEnded:
		return err
	default:
		s.Log.Warn("a visitor of a widget could not be answered", "code", string(code), "error", err)
		return regie.Errorf(regie.CodeConflict, "This chat does not work right now. Come back later.")
	}
}

// sendVisit sends a visitor's message: the answer to the page's module is the secret of a new chat,
// that to a form the page.
func sendVisit(v *visit, page *widgetPage) error {
	secret, err := v.site.Service.Visits.Send(v.r.Context(), control.VisitMessage{
		ClientID: cmp.Or(v.field("client_message_id"), page.ClientID),
		Text:     strings.ReplaceAll(v.r.PostForm.Get("text"), "\r\n", "\n"), Secret: v.field("fresh"),
	})
	if v.byScript() {
		if err == nil {
			v.w.Header().Set("Content-Type", "application/json")
			v.w.Header().Set("Cache-Control", "no-store")
			_ = json.NewEncoder(v.w).Encode(map[string]string{"visitor": secret}) // the client has gone if this fails
		}
		return err
	}
	if err != nil {
		page.Problem, page.Draft = v.text.Error(v.site.forVisitor(err)), v.r.PostForm.Get("text")
	}
	if secret != "" {
		caller, err := v.site.Gate.AdmitVisitor(v.r.Context(), page.Name, secret)
		if err != nil {
			return err
		}
		page.Visitor, v.r = secret, v.r.WithContext(access.With(v.r.Context(), caller))
	}
	return renderVisit(v, page)
}

// renderVisit shows the chat.
func renderVisit(v *visit, page *widgetPage) error {
	if _, err := loadVisit(v.r.Context(), v, page); err != nil {
		return err
	}
	v.render(statusOf(page.Problem), "widget", page)
	return nil
}

// streamVisit streams what changes of the chat.
func streamVisit(v *visit, page *widgetPage) error {
	visitor := access.From(v.r.Context()).Visitor
	if visitor.Session.IsZero() {
		return access.ErrNoToken
	}
	return v.stream(-1, visitor.Session, func(ctx context.Context) (*snapshot, error) {
		seq, err := loadVisit(ctx, v, page)
		if err != nil {
			return nil, err
		}
		shown := &snapshot{Title: page.Title, Seq: seq, Items: page.Items}
		if page.State == control.VisitWorking {
			shown.Say = v.text.T("Working")
		}
		err = shown.addRegions(v, page, "visit")
		return shown, err
	})
}

// loadVisit reads the chat, and returns the number of its last event.
func loadVisit(ctx context.Context, v *visit, page *widgetPage) (int64, error) {
	visit, err := v.site.Service.Visits.Thread(ctx)
	if err != nil {
		return 0, err
	}
	page.State = visit.State
	page.Items, err = visitItems(v, &visit)
	return visit.Seq, err
}

// visitItems renders the lines of a chat, and behind them what it waits for.
func visitItems(v *visit, visit *control.Visit) (items []item, err error) {
	b := &thread{v: v}
	for i, line := range visit.Lines {
		show := visitLine{ID: "v-" + strconv.Itoa(i), Line: line}
		if line.Answer != "" {
			show.Blocks = renderBlocks(line.Answer, 0)
		}
		b.add(show.ID, "visit-line", show)
	}
	if visit.State == control.VisitAsked || visit.State == control.VisitFailed {
		b.add("v-note", "visit-note", visitLine{ID: "v-note", State: visit.State})
	}
	return b.items, b.err
}
