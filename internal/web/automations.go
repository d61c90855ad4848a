package web

import (
	"cmp"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// automationsPage is the list of automations, or one of them with its history. More is the address
// of what the list or the history has further.
type automationsPage struct {
	*frame
	automationLine
	More template.URL
	Hook string // the address of its webhook, which no other page shows
}

// automationLine is an automation with its forms. Place is its workspace, where there are several.
type automationLine struct {
	Of    *dispatch.AutomationView
	Form  formOf
	Place string
}

// fireLine is a time of an automation in its history.
type fireLine struct {
	*store.FireView
	Zone string
}

const shownAutomations = 100

// loadAutomations lists the automations that the caller sees, the oldest first.
func loadAutomations(ctx context.Context, v *visit) (*automationsPage, error) {
	page := &automationsPage{frame: v.newFrame("automations", v.text.T("Automations"))}
	page.Stream = "/automations/stream?" + v.r.URL.RawQuery
	after, err := store.ParseCursor("automations", v.r.URL.Query().Get("cursor"))
	service := v.site.Service
	found, bad := service.Automations.List(ctx, store.AutomationFilter{After: after, Limit: shownAutomations + 1})
	places, failed := service.Workspaces.List(ctx)
	if err := cmp.Or(err, bad, failed); err != nil {
		return nil, err
	}
	found, page.More = cutPage(v, "automations", found, shownAutomations, func(a *dispatch.AutomationView) store.Mark {
		return store.Mark{At: a.CreatedAt, ID: a.ID}
	})
	b := &thread{v: v}
	for i := range found {
		line := automationLine{Of: &found[i], Form: formOf{Token: v.token, Next: "/automations"}}
		if at := findWorkspace(places, line.Of.WorkspaceID.String()); at >= 0 && len(places) > 1 {
			line.Place = places[at].Name
		}
		b.add("a-"+line.Of.ID.String(), "item-automation", line)
	}
	page.Items = b.items
	return page, cmp.Or(b.err, v.fillFrame(page.frame))
}

// zoneOf returns the time zone of a schedule; empty without one.
func zoneOf(s *regie.Schedule) string { return cmp.Or(s, &regie.Schedule{}).Zone }

func findWorkspace(places []regie.Workspace, id string) int {
	return slices.IndexFunc(places, func(w regie.Workspace) bool { return w.ID.String() == id })
}

// cutPage cuts the elements behind the page off a list, and returns their address.
func cutPage[T any](v *visit, list string, found []T, size int, mark func(*T) store.Mark) ([]T, template.URL) {
	if len(found) <= size {
		return found, ""
	}
	query := v.r.URL.Query()
	query.Set("cursor", store.Cursor(list, mark(&found[size-1])))
	return found[:size], template.URL("?" + query.Encode()) //nolint:gosec // it is encoded
}

// loadAutomation reads an automation with a page of its history.
func loadAutomation(ctx context.Context, v *visit) (*automationsPage, error) {
	id, err := v.id()
	if err != nil {
		return nil, err
	}
	all, path := v.site.Service.Automations, "/automations/"+id.String()
	before, err := store.ParseCursor("fires", v.r.URL.Query().Get("cursor"))
	view, bad := all.Get(ctx, id)
	fires, failed := all.Fires(ctx, store.FireFilter{AutomationID: id, Before: before, Limit: shownRuns + 1})
	if err := cmp.Or(err, bad, failed); err != nil {
		return nil, err
	}
	page := &automationsPage{frame: v.newFrame("automations", sanitize.Line(view.Name))}
	page.Of, page.Form = &view, formOf{Token: v.token, Next: path}
	page.Path, page.Stream = path, path+"/stream?"+v.r.URL.RawQuery
	fires, page.More = cutPage(v, "fires", fires, shownRuns, func(f *store.FireView) store.Mark {
		return store.Mark{At: f.NominalAt, ID: f.ID}
	})
	b := &thread{v: v}
	for i := range fires {
		b.add("f-"+fires[i].ID.String(), "item-fire", fireLine{&fires[i], zoneOf(view.Definition.Schedule)})
	}
	page.Items = b.items
	return page, cmp.Or(b.err, v.fillFrame(page.frame))
}

// changeAutomation starts, pauses, stops, enables or removes an automation, or renews the token of
// its webhook.
func changeAutomation(v *visit, id regie.ID) (err error) {
	ctx, all, view := v.r.Context(), v.site.Service.Automations, dispatch.AutomationView{}
	switch do, until, _ := strings.Cut(v.field("do"), " "); do {
	case "run":
		_, err = all.Run(ctx, dispatch.AutomationStart{ID: id})
	case "pause":
		_, err = all.Pause(ctx, dispatch.AutomationPause{ID: id, Until: findLater(v.text, until)})
	case "resume":
		_, err = all.Resume(ctx, id)
	case "stop":
		_, err = all.Stop(ctx, id)
	case "token":
		view, err = all.Rotate(ctx, id)
	case "remove":
		err = all.Remove(ctx, id)
	default:
		_, err = all.Enable(ctx, id, do == "enable")
	}
	if view.HookPath != "" {
		return renderHook(v, &view)
	}
	return v.finishForm("", err, v.next())
}

// renderHook shows an automation with the address of its webhook, which no other page shows.
func renderHook(v *visit, view *dispatch.AutomationView) error {
	v.r.SetPathValue("id", view.ID.String())
	page, err := loadAutomation(v.r.Context(), v)
	if err == nil {
		page.Hook = cmp.Or(v.r.Header.Get("Origin"), "http://"+v.r.Host) + view.HookPath
		v.render(http.StatusOK, "automation", page)
	}
	return err
}

// editorPage is the form of an automation.
type editorPage struct {
	*frame
	Of             dispatch.AutomationView // the one that is edited or copied, or that a chat makes
	ID, Copy, From regie.ID                // of the one that is edited, or what a new one is made of
	Conflict       bool                    // the automation has changed meanwhile
	Preview        schedulePreview
	Agents         []dispatch.AgentView
	Places         []regie.Workspace
	Place          regie.Workspace // the one of the automation
	typed          url.Values
}

// schedulePreview has the next times of a schedule, or the reason why there are none.
type schedulePreview struct {
	dispatch.ScheduleView
	Problem string
	wrong   error
}

// Typed returns the text that was typed into a field, or else its value.
func (p *editorPage) Typed(name string, value any) any {
	if len(p.typed) > 0 {
		return p.typed.Get(name)
	}
	return value
}

// newEditor reads the automation of a form: one that is there, or a new one, made of another one or
// of a chat.
func newEditor(v *visit) (p *editorPage, err error) {
	ctx, s := v.r.Context(), v.site.Service
	p = &editorPage{frame: v.newFrame("automations", v.text.T("New automation")), typed: v.r.PostForm}
	p.ID, _ = v.id() // each of the three is zero where the address has none
	p.Copy, _ = regie.ParseID(v.r.FormValue("copy"))
	p.From, _ = regie.ParseID(v.r.FormValue("from"))
	switch {
	case !p.From.IsZero():
		p.Of, err = readChat(v, p.From)
	case !p.ID.IsZero() || !p.Copy.IsZero():
		p.Of, err = s.Automations.Get(ctx, cmp.Or(p.ID, p.Copy))
	}
	if !p.ID.IsZero() {
		p.Title = sanitize.Line(p.Of.Name)
	}
	p.Of.Enabled = p.Of.Enabled || p.ID.IsZero()
	p.Preview.Schedule, p.Preview.NextRuns = p.Of.Definition.Schedule, p.Of.NextRuns
	places, failed := s.Workspaces.List(ctx)
	if p.Places = places; len(places) == 0 {
		failed = regie.Errorf(regie.CodeConflict, "there is no workspace yet: run regie run in a directory first")
	}
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	p.Place = p.Places[max(0, findWorkspace(p.Places, cmp.Or(v.field("place"), p.Of.WorkspaceID.String())))]
	p.Agents, err = s.Agents.List(ctx, dispatch.AgentFilter{Root: p.Place.Root})
	return p, err
}

// readChat returns the automation that a chat makes: all that people said in it is one message.
func readChat(v *visit, id regie.ID) (out dispatch.AutomationView, err error) {
	view, err := v.site.Service.Sessions.Get(v.r.Context(), id)
	var messages []regie.Message
	for i := range view.Thread {
		messages = append(messages, view.Thread[i].Message)
	}
	out.Text, out.Name = regie.LinearText(control.JoinMessages(messages)), view.Name
	out.WorkspaceID, out.Agent, out.ApprovalMode = view.WorkspaceID, view.Agent, view.ApprovalMode
	return out, err
}

// showEditor shows the form of an automation, and saves it. A refused form keeps the typed text and
// has the error at its field.
func showEditor(v *visit) error {
	p, err := newEditor(v)
	if err != nil {
		return err
	}
	if v.r.Method == http.MethodPost {
		if v.field("do") != "check" {
			view, err := p.save(v)
			switch {
			case err == nil && view.HookPath != "":
				return renderHook(v, &view)
			case err == nil:
				return v.done("/automations/" + view.ID.String())
			}
			p.explain(v, err)
		}
		p.Preview, _ = previewSchedule(v.r.Context(), v) // of a known workspace
	}
	return renderFilled(v, p.frame, "automation-editor", p)
}

// explain puts an error at the field with the text that it quotes.
func (p *editorPage) explain(v *visit, err error) {
	p.Problem, p.Conflict = v.text.Error(err), !p.ID.IsZero() && regie.CodeOf(err) == regie.CodeConflict
	for _, name := range []string{"total", "usd", "zone", "agent", "files", "allow", "ask"} {
		quoted := func(line string) bool { return strings.Contains(err.Error(), strconv.Quote(line)) }
		if slices.ContainsFunc(readLines(v, name), quoted) {
			p.About = name
		}
	}
	if v.field("text") == "" {
		p.About = cmp.Or(p.About, "text")
	}
}

// readLines returns the lines of a field.
func readLines(v *visit, name string) []string {
	return strings.FieldsFunc(v.field(name), func(r rune) bool { return r == '\r' || r == '\n' })
}

// previewSchedule returns the next times of the schedule of a form. A wrong schedule is no error.
func previewSchedule(ctx context.Context, v *visit) (out schedulePreview, err error) {
	if v.field("when") == "" {
		return out, nil
	}
	in := dispatch.SchedulePreview{When: v.field("when"), Schedule: &regie.Schedule{Zone: v.field("zone")}}
	if in.WorkspaceID, err = regie.ParseID(v.field("place")); err == nil {
		out.ScheduleView, out.wrong = v.site.Service.Automations.Preview(ctx, in)
	}
	out.Problem = v.text.Error(out.wrong)
	return out, err
}

// define returns the definition of a form, with the fields that it does not have as they are.
func (p *editorPage) define(v *visit) (json.RawMessage, error) {
	total, bad := strconv.Atoi(cmp.Or(v.field("total"), "0"))
	usd, failed := strconv.ParseFloat(cmp.Or(strings.Replace(v.field("usd"), ",", ".", 1), "0"), 64)
	if bad != nil || total < 0 {
		return nil, regie.Errorf(regie.CodeBadRequest, "%q is not a limit: write a whole number from 1 up, or nothing", v.field("total"))
	}
	if failed != nil || !(usd >= 0 && usd <= 1e6) {
		return nil, regie.Errorf(regie.CodeBadRequest, "%q is not an amount of dollars: write one such as 0.50, or nothing", v.field("usd"))
	}
	limits, schedule := p.Of.Definition.Limits, p.Of.Definition.Schedule
	if limits.Total = total; v.field("when") != p.Of.When || v.field("zone") != zoneOf(schedule) {
		shown, err := previewSchedule(v.r.Context(), v)
		if err := cmp.Or(err, shown.wrong); err != nil {
			p.About = "when"
			return nil, err
		}
		schedule = shown.Schedule
	}
	return json.Marshal(map[string]any{
		"schedule": schedule, "webhook": v.field("webhook") != "", "files": readLines(v, "files"),
		"missed": v.field("missed"), "overlap": v.field("overlap"), "on_approval": v.field("on_approval"),
		"allow": readLines(v, "allow"), "ask": readLines(v, "ask"), "limits": limits, "usd_per_run": usd,
		"require_validation": v.field("require_validation") != "",
	})
}

// save stores the automation of a form.
func (p *editorPage) save(v *visit) (view dispatch.AutomationView, err error) {
	ctx, all, enabled := v.r.Context(), v.site.Service.Automations, v.field("enabled") != ""
	definition, err := p.define(v)
	message := dispatch.RunRequest{Text: strings.ReplaceAll(v.field("text"), "\r\n", "\n")}
	typed := message.Text != strings.TrimSpace(p.Of.Text)
	if err == nil && typed {
		err = completeMessage(v, &message, p.Place.Root)
	}
	if err != nil {
		return view, err
	}
	mode := regie.Mode(strings.TrimPrefix(v.field("mode"), string(regie.ModeAsk))) // which is the default
	if p.ID.IsZero() {
		in := dispatch.NewAutomation{
			WorkspaceID: p.Place.ID, Name: v.field("name"), Text: message.Text, Segments: message.Segments,
			Agent: v.field("agent"), Provider: p.Of.Provider, Model: p.Of.Model,
			ApprovalMode: mode, Definition: p.Of.Definition, Disabled: !enabled,
		}
		if in.ID, _ = regie.ParseID(v.field("new_id")); !typed { // the segments of the source are richer than its text
			in.Text, in.FromSession, in.FromAutomation = "", p.From, p.Copy
		}
		in.Definition.Schedule = nil // else the new one is merged into it
		if err = json.Unmarshal(definition, &in.Definition); err == nil {
			view, err = all.Create(ctx, in)
		}
		return view, err
	}
	in := dispatch.AutomationEdit{
		ID: p.ID, Name: new(v.field("name")), Agent: new(v.field("agent")), ApprovalMode: &mode, Definition: definition,
	}
	in.Version, _ = strconv.Atoi(v.field("version")) // 0 for what is no number
	if typed {
		in.Text, in.Segments = &message.Text, message.Segments
	}
	if view, err = all.Edit(ctx, in); err == nil && view.Enabled != enabled {
		_, err = all.Enable(ctx, p.ID, enabled)
	}
	return view, err
}
