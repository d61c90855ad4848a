package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/automation"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/workspace"
)

// Automations are the automations of workspaces with their runs (spec 5.3).
type Automations struct {
	*core
	rounds *Rounds
	starts starter
}

// shownRuns is how many of the next runs a view shows (spec 5.2).
const shownRuns = 5

// List lists automations, the oldest first.
func (a *Automations) List(ctx context.Context, filter store.AutomationFilter) ([]dispatch.AutomationView, error) {
	if _, err := a.authorizeIn(ctx, "list_automations", &filter.Root, filter.ID); err != nil {
		return nil, err
	}
	return a.list(ctx, filter)
}

func (a *Automations) list(ctx context.Context, filter store.AutomationFilter) ([]dispatch.AutomationView, error) {
	rows, err := a.Store.Automations(ctx, filter)
	out := []dispatch.AutomationView{}
	for i := range rows {
		out = append(out, viewAutomation(&rows[i], time.Now()))
	}
	return out, err
}

// Get returns an automation.
func (a *Automations) Get(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
	if _, err := a.authorize(ctx, "show_automation", id); err != nil {
		return dispatch.AutomationView{}, err
	}
	return a.get(ctx, id)
}

func (a *Automations) get(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
	found, err := a.list(ctx, store.AutomationFilter{ID: id, Limit: 1})
	if err == nil && len(found) == 0 {
		err = notFound(id)
	}
	if err != nil {
		return dispatch.AutomationView{}, err
	}
	return found[0], nil
}

func viewAutomation(row *store.AutomationRow, now time.Time) dispatch.AutomationView {
	view := dispatch.AutomationView{
		AutomationRow: *row, Text: row.Message.LinearText(), Segments: row.Message.Rich, Agent: row.Seed.Agent,
		Provider: row.Seed.Provider, Model: row.Seed.Model, ApprovalMode: row.Seed.ApprovalMode,
		NextRuns: []time.Time{},
	}
	if s := row.Definition.Schedule; s != nil {
		view.When = automation.Format(s)
		if row.Enabled && (!row.Paused || !row.PausedUntil.IsZero()) {
			from := now
			if row.Paused && row.PausedUntil.After(now) {
				from = row.PausedUntil
			}
			view.NextRuns = nextRuns(s, row.SeriesFrom, from)
		}
	}
	return view
}

// nextRuns returns the next runs of a schedule, on the clock of its zone.
func nextRuns(s *regie.Schedule, series, after time.Time) []time.Time {
	out := []time.Time{}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil { // it was valid where the schedule was stored
		zone = time.UTC
	}
	for _, at := range automation.NextRuns(s, series, after, shownRuns) {
		out = append(out, at.In(zone))
	}
	return out
}

// Preview returns the next runs of a schedule that is not stored.
func (a *Automations) Preview(ctx context.Context, in dispatch.SchedulePreview) (out dispatch.ScheduleView, err error) {
	caller, err := a.authorize(ctx, "list_automations")
	if err != nil {
		return out, err
	}
	place, err := a.placeOf(ctx, caller, in.WorkspaceID, in.Root)
	if err != nil {
		return out, err
	}
	if out.Schedule, err = a.schedule(place.Root, in.When, in.Schedule); err != nil {
		return out, err
	}
	if out.Schedule == nil {
		return out, regie.Errorf(regie.CodeBadRequest, "the request names no schedule: use when or schedule")
	}
	out.When, out.NextRuns = automation.Format(out.Schedule), nextRuns(out.Schedule, time.Now(), time.Now())
	return out, nil
}

// placeOf returns the workspace that a request names by its id or its directory.
func (c *core) placeOf(ctx context.Context, caller *access.Caller, id regie.ID, root string) (regie.Workspace, error) {
	if !id.IsZero() {
		if !caller.Sees(id) {
			return regie.Workspace{}, notFound(id)
		}
		return c.findWorkspace(ctx, id)
	}
	root, err := c.root(ctx, caller, root)
	if err == nil && root == "" {
		err = regie.Errorf(regie.CodeBadRequest, "name a workspace")
	}
	if err != nil {
		return regie.Workspace{}, err
	}
	if !caller.Has(regie.ScopeAdmin) {
		places, err := c.visible(ctx, caller)
		if place, there := placeAt(places, root); there || err != nil {
			return place, err
		}
		return regie.Workspace{}, noNewWorkspace(root)
	}
	_, place, err := c.ensureWorkspace(ctx, root, workspace.FoundByDirectory, false)
	return place, err
}

// schedule returns the schedule of a request, in the zone of its workspace where it names none.
func (c *core) schedule(root, when string, given *regie.Schedule) (*regie.Schedule, error) {
	if when != "" {
		parsed, err := automation.Parse(when, c.Projects.Zone(root))
		if err != nil {
			return nil, err
		}
		if given != nil && given.Zone != "" {
			parsed.Zone = given.Zone
		}
		given = parsed
	}
	if given == nil {
		return nil, nil //nolint:nilnil // no schedule is one answer
	}
	if isZoneAlone(given) {
		return nil, regie.Errorf(regie.CodeBadRequest, "a time zone is no schedule: say when too, such as --when \"daily 09:00\"")
	}
	out := *given
	out.Zone = cmp.Or(out.Zone, c.Projects.Zone(root))
	return &out, automation.Validate(&out, time.Now())
}

// isZoneAlone reports whether a schedule has a time zone and nothing else.
func isZoneAlone(s *regie.Schedule) bool {
	return s != nil && s.Zone != "" && s.Equal(&regie.Schedule{Zone: s.Zone})
}

// Create stores an automation. What it allows beforehand needs the scope approve.
func (a *Automations) Create(ctx context.Context, in dispatch.NewAutomation) (dispatch.AutomationView, error) {
	caller, err := a.authorize(ctx, "change_automations", given(in.FromSession, in.FromAutomation)...)
	if err == nil {
		err = a.ownsOrNew(ctx, caller, in.ID)
	}
	var stored []regie.Segment
	if err == nil {
		stored, err = a.readSource(ctx, &in)
	}
	if err == nil {
		err = a.takeUploads(ctx, &dispatch.RunRequest{Segments: in.Segments}, stored...)
	}
	if err != nil {
		return dispatch.AutomationView{}, err
	}
	place, err := a.placeOf(ctx, caller, in.WorkspaceID, in.Root)
	if err != nil {
		return dispatch.AutomationView{}, err
	}
	if in.ID.IsZero() {
		in.ID = regie.NewID()
	}
	row := store.AutomationRow{
		Automation: regie.Automation{
			ID: in.ID, WorkspaceID: place.ID, Name: in.Name, Definition: in.Definition, Enabled: !in.Disabled,
		}, Root: place.Root,
		Seed:    regie.Session{Agent: in.Agent, Provider: in.Provider, Model: in.Model, ApprovalMode: in.ApprovalMode},
		Message: regie.Message{Text: storable(in.Text), Rich: in.Segments},
	}
	if in.Definition.Schedule, err = a.schedule(place.Root, in.When, in.Definition.Schedule); err != nil {
		return dispatch.AutomationView{}, err
	}
	row.Definition.Schedule = in.Definition.Schedule
	row.CreatedBy = regie.AutomationAuthor{Kind: regie.AuthorUser, CallID: in.CallID}
	if !in.CallID.IsZero() {
		row.CreatedBy.Kind, row.CreatedBy.ID = regie.AuthorAgent, in.Agent
	}
	return a.save(ctx, caller, &row, 0, row.Definition.Webhook, true)
}

// readSource takes the template of a new automation from the chat or the automation that it is made
// of, and returns the segments that it read. What people said in a chat becomes one message.
func (a *Automations) readSource(ctx context.Context, in *dispatch.NewAutomation) (stored []regie.Segment, err error) {
	switch {
	case !in.FromAutomation.IsZero():
		from, err := a.get(ctx, in.FromAutomation)
		if err != nil {
			return nil, err
		}
		stored = from.Segments
		if in.Text == "" && len(in.Segments) == 0 {
			in.Text, in.Segments = from.Message.Text, from.Segments
		}
		in.Name, in.WorkspaceID = cmp.Or(in.Name, from.Name), from.WorkspaceID
		in.Agent, in.Provider = cmp.Or(in.Agent, from.Agent), cmp.Or(in.Provider, from.Provider)
		in.Model = cmp.Or(in.Model, from.Model)
		in.ApprovalMode = cmp.Or(in.ApprovalMode, from.ApprovalMode)
		changes, _ := json.Marshal(&in.Definition) // of plain fields
		if in.Definition, err = mergeDefinition(from.Definition, changes); err != nil {
			return nil, err
		}
	case !in.FromSession.IsZero():
		session, place, err := a.Store.Session(ctx, in.FromSession)
		if err != nil {
			return nil, err
		}
		if in.Text == "" && len(in.Segments) == 0 {
			thread, err := a.Store.Thread(ctx, in.FromSession, 0)
			if err != nil {
				return nil, err
			}
			in.Segments = JoinMessages(thread.Messages)
			stored = in.Segments
		}
		in.Definition.Tainted = in.Definition.Tainted || !in.CallID.IsZero() && session.Tainted
		in.Name, in.WorkspaceID, in.Agent = cmp.Or(in.Name, session.Name), place.ID, cmp.Or(in.Agent, session.Agent)
	}
	return stored, nil
}

// JoinMessages joins what a person said, without what an undo took back.
func JoinMessages(messages []regie.Message) (out []regie.Segment) {
	for i := range messages {
		m := &messages[i]
		if m.Sender != regie.SenderUser || m.Author.Kind != regie.AuthorUser || m.Superseded || m.LinearText() == "" {
			continue
		}
		if len(out) > 0 {
			out = append(out, regie.Segment{Text: "\n\n"})
		}
		if len(m.Rich) > 0 {
			out = append(out, m.Rich...)
		} else {
			out = append(out, regie.Segment{Text: m.Text})
		}
	}
	return out
}

// Edit changes an automation, which makes a new version; its runs keep theirs. It returns
// CodeConflict where the automation has another version than the one that was changed.
func (a *Automations) Edit(ctx context.Context, in dispatch.AutomationEdit) (dispatch.AutomationView, error) {
	caller, err := a.authorize(ctx, "change_automations", in.ID)
	if err != nil {
		return dispatch.AutomationView{}, err
	}
	now, err := a.get(ctx, in.ID)
	if err != nil {
		return now, err
	}
	row, template := now.AutomationRow, false
	for _, field := range []struct{ given, of *string }{
		{in.Agent, &row.Seed.Agent},
		{in.Provider, &row.Seed.Provider},
		{in.Model, &row.Seed.Model},
		{(*string)(in.ApprovalMode), (*string)(&row.Seed.ApprovalMode)},
	} {
		if field.given != nil {
			template = template || *field.of != *field.given
			*field.of = *field.given
		}
	}
	switch {
	case len(in.Segments) > 0:
		if err = a.takeUploads(ctx, &dispatch.RunRequest{Segments: in.Segments}, now.Segments...); err != nil {
			return now, err
		}
		template, row.Message = true, regie.Message{Rich: in.Segments}
	case in.Text != nil && *in.Text != now.Text:
		template, row.Message = true, regie.Message{Text: storable(*in.Text)}
	}
	if in.Name != nil {
		row.Name = *in.Name
	}
	had := row.Definition
	if len(in.Definition) > 0 {
		if row.Definition, err = mergeDefinition(row.Definition, in.Definition); err != nil {
			return now, err
		}
	}
	if in.When != nil {
		if row.Definition.Schedule, err = a.reschedule(row.Root, *in.When, row.Definition.Schedule); err != nil {
			return now, err
		}
	} else if !had.Schedule.Equal(row.Definition.Schedule) {
		if row.Definition.Schedule, err = a.schedule(row.Root, "", row.Definition.Schedule); err != nil {
			return now, err
		}
	}
	after := cmp.Or(in.Version, now.Version)
	return a.save(ctx, caller, &row, after, row.Definition.Webhook && !had.Webhook, template)
}

// reschedule returns the schedule of some words, in the zone of the one before; nil for none.
func (a *Automations) reschedule(root, when string, before *regie.Schedule) (*regie.Schedule, error) {
	switch {
	case when == "" && !isZoneAlone(before): // a zone alone is an error, not no schedule
		return nil, nil //nolint:nilnil // no schedule is one answer
	case before == nil:
		return a.schedule(root, when, nil)
	}
	return a.schedule(root, when, &regie.Schedule{Zone: before.Zone})
}

// mergeDefinition merges changes into a definition. A schedule is replaced as a whole: its kinds
// exclude each other.
func mergeDefinition(now regie.AutomationDefinition, changes json.RawMessage) (
	out regie.AutomationDefinition, err error,
) {
	var named struct {
		Schedule json.RawMessage `json:"schedule"`
	}
	if json.Unmarshal(changes, &named) == nil && named.Schedule != nil {
		now.Schedule = nil
	}
	target, _ := json.Marshal(now) // of plain fields
	merged, err := mergePatch(target, changes)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(merged))
		decoder.DisallowUnknownFields()
		if err = decoder.Decode(&out); err != nil {
			err = regie.Errorf(regie.CodeBadRequest, "the definition does not fit: %v", err)
		}
	}
	return out, err
}

// save checks and stores a version of an automation, with a new token of its webhook where hook
// says so, and with a new template.
func (a *Automations) save(ctx context.Context, caller *access.Caller, row *store.AutomationRow, after int,
	hook, template bool,
) (view dispatch.AutomationView, err error) {
	row.Seed.Agent = cmp.Or(row.Seed.Agent, MainAgent)
	if err = a.checkAutomation(ctx, caller, row); err == nil && template && row.Seed.Provider != "" {
		err = checkProvider(&a.Settings, row.Seed.Provider)
	}
	if err != nil {
		return view, err
	}
	owner, err := a.Owner(ctx)
	if err != nil {
		return view, err
	}
	in := store.SaveAutomation{Automation: row.Automation, After: after, By: storable(a.author(caller, ""))}
	in.Automation.UserID, in.Automation.CreatedBy.ID = owner.ID, cmp.Or(row.CreatedBy.ID, owner.ID.String())
	if template {
		row.Seed.ID, row.Seed.WorkspaceID, row.Seed.UserID = regie.NewID(), row.WorkspaceID, owner.ID
		row.Seed.Type, row.Seed.Name, row.Seed.TokenID = regie.SessionSeed, row.Name, caller.Token.ID
		message := regie.Message{
			ID: regie.NewID(), Sender: regie.SenderUser, Text: row.Message.Text, Rich: row.Message.Rich,
			Author: regie.Author{Kind: regie.AuthorUser, ID: owner.ID.String(), TokenID: caller.Token.ID},
		}
		in.Template = &store.Template{Session: row.Seed, Message: message}
	}
	secret := ""
	if hook {
		secret = access.NewSecret()
		in.Hook = access.HashOf(secret)
	}
	stored, err := a.Store.SaveAutomation(ctx, in)
	if err != nil {
		return view, err
	}
	a.wake()
	view, err = a.get(ctx, stored.ID)
	// of a repeated creation the first answer has the token
	if err == nil && hook && (after > 0 || in.Template != nil && stored.SeedID == in.Template.Session.ID) {
		view.HookPath = "/hooks/" + stored.ID.String() + "/" + secret
	}
	return view, err
}

const (
	// maxPatterns bounds the patterns of tools and files of an automation.
	maxPatterns = 100
	// maxPattern bounds one in bytes.
	maxPattern = 300
)

// checkAutomation returns why an automation cannot be stored.
func (a *Automations) checkAutomation(ctx context.Context, caller *access.Caller, row *store.AutomationRow) error {
	run := dispatch.RunRequest{Text: row.Message.Text, Segments: row.Message.Rich, Root: row.Root}
	d := &row.Definition
	if len(run.Segments) > 0 {
		run.Text = ""
	}
	name, err := sessionName(cmp.Or(row.Name, title(&run)))
	row.Name = name
	switch {
	case strings.TrimSpace(said(&run)) == "":
		return regie.Errorf(regie.CodeBadRequest, "the automation has no text: say what each run is to do")
	case len(said(&run)) > maxText:
		return regie.Errorf(regie.CodeBadRequest,
			"the message has %d bytes, at most %d are allowed: put it into a file and name the file", len(said(&run)), maxText)
	case err != nil:
		return err
	case d.Limits.Negative() != "":
		return regie.Errorf(regie.CodeBadRequest,
			"the limit %s is negative: leave it out, or use a number from 1 up", d.Limits.Negative())
	case !slices.Contains([]regie.MissedPolicy{"", regie.MissedOnce, regie.MissedSkip, regie.MissedEach}, d.Missed):
		return regie.Errorf(regie.CodeBadRequest, "%q is not a policy for missed times: use once, skip or each", string(d.Missed))
	case !slices.Contains([]regie.OverlapPolicy{
		"", regie.OverlapSkip, regie.OverlapQueueOne, regie.OverlapParallel,
	}, d.Overlap):
		return regie.Errorf(regie.CodeBadRequest, "%q is not a policy for overlapping runs: use skip, queue_one or parallel",
			string(d.Overlap))
	case d.USDPerRun < 0 || d.USDPerRun > 1e6:
		return regie.Errorf(regie.CodeBadRequest, "usd_per_run must be between 0 and 1,000,000")
	case len(d.Allow) > 0 && !caller.Has(regie.ScopeApprove):
		return access.MissingScope(regie.ScopeApprove)
	case len(d.Files)+len(d.Allow)+len(d.Ask) > maxPatterns:
		return regie.Errorf(regie.CodeBadRequest, "an automation has at most %d patterns", maxPatterns)
	}
	if err := automation.CheckPatterns(d.Files, maxPattern); err != nil {
		return err
	}
	policy := automationPolicy(d)
	allowed := dispatch.RunRequest{Root: row.Root, Policy: approval.Policy{Allow: slices.Concat(d.Allow, d.Ask)}}
	agent, err := a.findAgent(ctx, row.Root, row.Seed.Agent, 0)
	row.Seed.AgentVersion = agent.version
	return cmp.Or(policy.Validate(), regie.ValidateSegments(row.Message.Rich),
		checkMode(caller, row.Seed.ApprovalMode), err,
		a.rounds.checkAllowed(ctx, &allowed))
}

// automationPolicy is what an automation's runs are allowed without asking.
func automationPolicy(d *regie.AutomationDefinition) approval.Policy {
	return approval.Policy{
		Allow: d.Allow, Ask: d.Ask, OnApproval: approval.OnApproval(cmp.Or(d.OnApproval, string(approval.Park))),
	}
}

// Rotate gives an automation's webhook a new token, which ends the present one.
func (a *Automations) Rotate(ctx context.Context, id regie.ID) (dispatch.AutomationView, error) {
	caller, err := a.authorize(ctx, "change_automations", id)
	if err != nil {
		return dispatch.AutomationView{}, err
	}
	now, err := a.get(ctx, id)
	if err != nil {
		return now, err
	}
	if !now.Definition.Webhook {
		return now, regie.Errorf(regie.CodeConflict, "the automation has no webhook: add one with webhook: true")
	}
	return a.save(ctx, caller, &now.AutomationRow, now.Version, true, false)
}

// Versions returns the versions of an automation, the oldest first.
func (a *Automations) Versions(ctx context.Context, id regie.ID) ([]store.AutomationVersion, error) {
	if _, err := a.authorize(ctx, "show_automation", id); err != nil {
		return nil, err
	}
	return a.Store.AutomationVersions(ctx, id)
}

// Fires lists what became of the times of an automation, the latest first.
func (a *Automations) Fires(ctx context.Context, filter store.FireFilter) ([]store.FireView, error) {
	if _, err := a.authorize(ctx, "show_automation", filter.AutomationID); err != nil {
		return nil, err
	}
	return a.Store.Fires(ctx, filter)
}
