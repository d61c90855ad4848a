package web

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// settingsPage is one section of the settings. What a file fixes is shown with its place, and is
// changed there.
type settingsPage struct {
	*frame
	Part      string
	Parts     []settingsPart
	Limits    []limitGroup
	Rules     []ruleRow
	Altered   string // what verifying the rules found
	Tokens    []regie.Token
	Scopes    []regie.TokenScope
	Own       regie.ID // the login of this browser
	Secret    string   // of a token that was just made
	Link      string   // that lets a browser in
	Agents    []agentRow
	Providers []*providerForm
	// NewProvider is the form for one more.
	NewProvider *providerForm
	Field       string // that a refused form of a provider is about
	Notice      string // why a provider was stored without a test
	Checks      []checkGroup
	Failed      int // of the checks
	Warnings    int
	Places      []placeRow
	Trust       *control.WorkspaceTrust // of the workspace that the page is about
	Typed       map[string]string       // what a refused form held
	Homeless    bool                    // nothing in the page is what its problem is about
}

type settingsPart struct{ Name, Title string }

// limitGroup are the limits of a type of session.
type limitGroup struct {
	Title string
	Rows  []limitRow
}

type limitRow struct {
	Field, Title, Key, Typed string
	dispatch.LimitValue
}

type ruleRow struct {
	ID                    regie.ID
	Said, Tool, By, Where string
	At, Until             time.Time
}

type agentRow struct {
	dispatch.AgentView
	Text string // its definition
}

// shownSettings bounds the lists of a section.
const shownSettings = 500

// addSettings adds the pages of the settings.
func (s *Site) addSettings() {
	s.mux.HandleFunc("GET /settings", s.handle(func(v *visit) error { return v.done("/settings/limits") }))
	s.mux.HandleFunc("GET /settings/{section}", s.handle(func(v *visit) error {
		return renderSettings(v, newSettings(v))
	}))
	s.mux.HandleFunc("POST /settings/{section}", s.handle(changeSettings))
	s.mux.HandleFunc("GET /settings/workspaces/{id}", s.handle(func(v *visit) error {
		return renderSettings(v, newSettings(v))
	}))
	s.mux.HandleFunc("POST /settings/workspaces/{id}", s.handle(changeSettings))
}

func newSettings(v *visit) *settingsPage {
	t := v.text
	page := &settingsPage{
		frame: v.newFrame("settings", t.T("Settings")), Part: cmp.Or(v.r.PathValue("section"), "workspaces"),
		Typed: map[string]string{},
		Parts: []settingsPart{
			{"limits", t.T("Limits")},
			{"rules", t.T("Standing rules")},
			{"tokens", t.T("Tokens and browsers")},
			{"providers", t.T("Providers")},
			{"agents", t.T("Agents")},
			{"workspaces", t.T("Workspaces")},
			{"checks", t.T("Checks")},
		},
	}
	for name := range v.r.PostForm {
		page.Typed[name] = v.r.PostForm.Get(name)
	}
	return page
}

// changeSettings takes a form of a section. It shows a refused one again, with the error at its
// field.
func changeSettings(v *visit) error {
	page := newSettings(v)
	var err error
	switch page.Part + " " + v.field("do") {
	case "limits save":
		page.About, err = saveLimits(v)
	case "rules revoke":
		page.About, err = v.field("id"), byID(v, func(id regie.ID) error {
			return v.site.Service.Rules.Revoke(v.r.Context(), dispatch.RevokeRequest{RuleIDs: []regie.ID{id}})
		})
	case "tokens revoke":
		page.About, err = v.field("id"), byID(v, func(id regie.ID) error {
			return v.site.Service.Tokens.Revoke(v.r.Context(), control.RevokeTokensRequest{TokenIDs: []regie.ID{id}})
		})
	case "tokens link":
		var link control.SetupLink
		link, err = v.site.Service.Tokens.LinkBrowser(v.r.Context())
		page.About, page.Link = "link", link.URL
	case "tokens add":
		page.About = "add"
		page.Secret, err = addToken(v)
	case "agents save", "agents add", "agents delete":
		page.About, err = v.field("name"), changeAgent(v)
	case "workspaces trust", "workspaces distrust":
		err = changeTrust(v)
	case "providers add":
		page.Notice, err = changeProvider(v)
	case "providers save", "providers delete":
		page.About = "-" + v.field("name")
		page.Notice, err = changeProvider(v)
	default:
		err = regie.Errorf(regie.CodeNotFound, "there is no page at %s", v.r.URL.Path)
	}
	if err == nil && page.Link+page.Secret+page.Notice == "" {
		return v.done(v.r.URL.Path)
	}
	if err != nil {
		page.Problem, page.Field = v.text.Error(err), providerField(err)
	}
	return renderSettings(v, page)
}

// byID does something to the one thing that a form names.
func byID(v *visit, do func(regie.ID) error) error {
	id, err := regie.ParseID(v.field("id"))
	if err == nil {
		err = do(id)
	}
	return err
}

// renderSettings shows a section.
func renderSettings(v *visit, page *settingsPage) (err error) {
	ctx, s := v.r.Context(), v.site.Service
	switch page.Part {
	case "limits":
		err = page.loadLimits(v)
	case "rules":
		err = page.loadRules(v)
	case "tokens":
		var me control.Me
		if me, err = s.Users.Me(ctx); err == nil && me.Token != nil {
			page.Own = me.Token.ID
		}
		page.Scopes = regie.TokenScopes()
		if err == nil {
			page.Tokens, err = s.Tokens.List(ctx, store.TokenFilter{Limit: shownSettings})
		}
	case "providers":
		err = page.loadProviders(v)
	case "checks":
		err = page.loadChecks(v)
	case "agents":
		err = page.loadAgents(v)
	case "workspaces":
		err = page.loadWorkspaces(v)
	default:
		err = regie.Errorf(regie.CodeNotFound, "there is no page at %s", v.r.URL.Path)
	}
	if err == nil {
		err = v.fillFrame(page.frame)
	}
	if page.Homeless = page.Problem != "" && page.Typed["do"] != "add" && !page.lists(page.About); err == nil {
		v.render(statusOf(page.Problem), "settings", page)
	}
	return err
}

// lists reports whether the section shows what an error is about: another page may have removed it.
func (p *settingsPage) lists(about string) bool {
	switch p.Part {
	case "rules":
		return slices.ContainsFunc(p.Rules, func(r ruleRow) bool { return r.ID.String() == about })
	case "tokens":
		return about == "link" || slices.ContainsFunc(p.Tokens, func(t regie.Token) bool {
			return t.ID.String() == about
		})
	case "agents":
		return slices.ContainsFunc(p.Agents, func(a agentRow) bool { return a.Name == about })
	case "providers":
		return slices.ContainsFunc(p.Providers, func(f *providerForm) bool { return f.ID == about })
	}
	return true // the fields of limits are always there
}

func (p *settingsPage) loadLimits(v *visit) error {
	all, err := v.site.Service.Limits.Get(v.r.Context())
	if err != nil {
		return err
	}
	t := v.text
	titles := []string{
		t.T("Queries of data in a run"), t.T("Tries of a failed action"), t.T("Tries of a reply in the wrong form"),
		t.T("Model calls in a run"),
	}
	for _, group := range []struct {
		title, key string
		values     *dispatch.LimitValues
	}{{t.T("Chats"), "limits.chat.", &all.Chat}, {t.T("Automations"), "limits.automation.", &all.Automation}} {
		g := limitGroup{Title: group.title}
		for i, value := range limitValues(group.values) {
			row := limitRow{Field: group.key + limitKeys[i], Title: titles[i], LimitValue: *value}
			if row.Typed = p.Typed[row.Field]; p.Problem == "" && value.Stored > 0 {
				row.Typed = strconv.Itoa(value.Stored)
			}
			g.Rows = append(g.Rows, row)
		}
		p.Limits = append(p.Limits, g)
	}
	return nil
}

// limitKeys are the keys of the limits that can be set, in the order of limitValues.
var limitKeys = []string{
	"max_data_query_iterations", "max_action_retries", "max_format_error_retries", "max_autonomous_roundtrips",
}

func limitValues(l *dispatch.LimitValues) []*dispatch.LimitValue {
	return []*dispatch.LimitValue{&l.Queries, &l.Retries, &l.FormatErrors, &l.Total}
}

// saveLimits stores the limits of a form, all or none; an empty field takes a stored one back. It
// returns the field that an error is about.
func saveLimits(v *visit) (about string, err error) {
	now, err := v.site.Service.Limits.Get(v.r.Context())
	if err != nil {
		return "", err
	}
	var in dispatch.LimitChanges
	fields := map[string]string{}
	for _, group := range []struct {
		key    string
		values *dispatch.LimitValues
		into   *dispatch.LimitChange
	}{{"limits.chat.", &now.Chat, &in.Chat}, {"limits.automation.", &now.Automation, &in.Automation}} {
		into := []**int{&group.into.Queries, &group.into.Retries, &group.into.FormatErrors, &group.into.Total}
		for i, value := range limitValues(group.values) {
			name := group.key + limitKeys[i]
			typed, n := v.field(name), 0
			if typed != "" {
				if n, err = strconv.Atoi(typed); err != nil || n == 0 {
					return name, regie.Errorf(regie.CodeBadRequest, "%q is not a limit: write a whole number from 1 up, or nothing", typed)
				}
			}
			if n != value.Stored {
				*into[i], fields[name] = &n, typed
			}
		}
	}
	if len(fields) == 0 {
		return "", nil
	}
	if _, err = v.site.Service.Limits.Set(v.r.Context(), in); err != nil {
		for name := range fields {
			if strings.Contains(err.Error(), name) {
				about = name
			}
		}
	}
	return about, err
}

func (p *settingsPage) loadRules(v *visit) error {
	list, err := v.site.Service.Rules.List(v.r.Context(), store.RuleFilter{Limit: shownSettings})
	p.Altered = list.AuditError
	for i := range list.Rules {
		r := &list.Rules[i]
		row := ruleRow{
			ID: r.ID, Tool: sanitize.Line(r.Scope.Tool), By: sanitize.Line(r.Author), At: r.CreatedAt,
			Until: r.ExpiresAt, Where: sanitize.Line(r.Workspace),
		}
		scope := sanitize.Line(v.text.Sentence(r.Scope.Sentence))
		switch r.Verdict {
		case regie.VerdictAllow:
			row.Said = v.text.T("Allowed without asking: %s", scope)
		case regie.VerdictForbid:
			row.Said = v.text.T("Forbidden: %s", scope)
		default:
			row.Said = v.text.T("Asked each time: %s", scope)
		}
		if !r.SessionID.IsZero() {
			row.Where += " · " + v.sessionName(r.SessionName)
		}
		p.Rules = append(p.Rules, row)
	}
	return err
}

// addToken makes a token and returns its secret, which no page shows again.
func addToken(v *visit) (string, error) {
	in := control.TokenRequest{Name: v.field("name")}
	for _, scope := range v.r.PostForm["scope"] {
		in.Scopes = append(in.Scopes, regie.TokenScope(scope))
	}
	if typed := v.field("days"); typed != "" {
		days, err := strconv.Atoi(typed)
		if err != nil || days < 1 || days > 3650 {
			return "", regie.Errorf(regie.CodeBadRequest, "%q is not a number of days: write one from 1 to 3650", typed)
		}
		in.ExpiresAt = time.Now().AddDate(0, 0, days)
	}
	made, err := v.site.Service.Tokens.Add(v.r.Context(), in)
	return made.Secret, err
}

func (p *settingsPage) loadAgents(v *visit) error {
	all, err := v.site.Service.Agents.List(v.r.Context(), dispatch.AgentFilter{})
	for i := range all {
		row := agentRow{all[i], string(chat.Pretty(all[i].Definition))}
		if p.Problem != "" && p.About == row.Name {
			row.Text = p.Typed["definition"]
		}
		p.Agents = append(p.Agents, row)
	}
	return err
}

// changeAgent adds, changes or deletes an agent of the database. The form holds the version that it
// shows: another one is a conflict.
func changeAgent(v *visit) error {
	ctx, agents, name := v.r.Context(), v.site.Service.Agents, v.field("name")
	typed := json.RawMessage(v.field("definition"))
	if v.field("do") != "delete" && json.Unmarshal(typed, &map[string]any{}) != nil {
		return regie.Errorf(regie.CodeBadRequest, "the definition is not JSON: write an object, at least {}")
	}
	switch v.field("do") {
	case "add":
		_, err := agents.Create(ctx, dispatch.NewAgent{Name: name, Definition: typed})
		return err
	case "delete":
		return agents.Delete(ctx, name)
	}
	version, _ := strconv.Atoi(v.field("version")) // 0 for what is no number
	shown, err := agents.Get(ctx, dispatch.AgentQuery{Name: name, Version: max(1, version)})
	if err == nil {
		typed, err = dispatch.PatchTo(shown.Definition, typed)
	}
	if err == nil {
		_, err = agents.Edit(ctx, dispatch.AgentEdit{Name: name, Definition: typed, Version: version})
	}
	return err
}
