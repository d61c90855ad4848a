package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// chatPage is a chat.
type chatPage struct {
	*frame
	ID, Workspace, ForkedFrom regie.ID // ID is zero for a new chat
	Name, Draft, ClientID     string
	Chip                      chip
	Status                    statusLine
	Needs                     []need
	Plan                      []planStep
	Done                      int // steps of the plan
	Modes                     []modeChoice
	Mode                      modeChoice
	Busy, Paused              bool
	Answered                  bool     // the newest run has ended with its answer
	Altered                   string   // what verifying the log found
	Earlier                   int64    // from where older messages are shown; 0: none
	Model, Cost               string   // of what answered last
	OwnModel                  string   // that of the chat, or of its agent
	NextModel                 string   // what answers the next message; empty: the same
	Used, Most                int      // tokens of the newest prompt, and from how many on it is summarised
	Changes                   []string // paths
	// Automation is the one that runs in the chat; zero for none.
	Automation dispatch.AutomationView
	// of a new chat
	Agents     []dispatch.AgentView
	Agent      string
	Workspaces []regie.Workspace
	Jobs       []job
}

// job is a first message to begin with, and what it does.
type job struct {
	Number        int
	Title, Effect string
	text          string
}

func listJobs(t *i18n.Printer) []job {
	return []job{
		{1, t.T("Explain this workspace"), t.T("Reads files. Changes nothing."), t.T("Explain this workspace: its purpose, its parts, and how to work with it.")},
		{2, t.T("Find what is unfinished"), t.T("Reads files. Changes nothing."), t.T("Find what is unfinished here: open tasks, TODO comments, missing parts. List the most important first.")},
		{3, t.T("Write a summary into a file"), t.T("Asks before it writes."), t.T("Write a summary of this workspace into SUMMARY.md.")},
		{4, t.T("Plan a change first"), t.T("Asks before it changes anything."), t.T("Make a plan and let me approve it before you change anything: ")},
	}
}

// statusLine says what a chat does now.
type statusLine struct{ Class, Icon, Word, More string }

// need is a link to what needs the person.
type need struct{ ID, Icon, Title string }

// showNew shows the composer of a new chat.
func showNew(v *visit) error {
	jobs := listJobs(v.text)
	if number, _ := strconv.Atoi(v.r.URL.Query().Get("job")); number > 0 && number <= len(jobs) {
		return v.renderNew(jobs[number-1].text, "")
	}
	return v.renderNew("", "")
}

func (v *visit) renderNew(draft, problem string) error {
	f := v.newFrame("new", v.text.T("New chat"))
	f.Problem, f.About = problem, "send"
	page := &chatPage{
		frame: f, ClientID: regie.NewID().String(), Draft: draft,
		Modes: modeChoices(v.text, regie.Mode(v.r.FormValue("mode"))), Jobs: listJobs(v.text),
	}
	page.Session = regie.NewID()
	err := v.fillFrame(f)
	if err == nil {
		page.Workspaces, err = v.site.Service.Workspaces.List(v.r.Context())
	}
	if err == nil {
		err = page.addRoot(v)
	}
	if err == nil {
		err = page.offerAgents(v)
	}
	if err == nil {
		v.render(statusOf(problem), "new", page)
	}
	return err
}

// addRoot adds the workspace of the server, where others alone are known. One that cannot be opened
// is an error only where there is no other.
func (p *chatPage) addRoot(v *visit) error {
	if v.site.Root == "" || p.indexRoot(v.site.Root) >= 0 {
		return nil
	}
	made, err := v.site.Service.Workspaces.Open(v.r.Context(), dispatch.WorkspaceRequest{Path: v.site.Root})
	if err != nil && len(p.Workspaces) > 0 {
		return nil
	}
	p.Workspaces = append(p.Workspaces, made)
	return err
}

func (p *chatPage) indexRoot(root string) int {
	return slices.IndexFunc(p.Workspaces, func(w regie.Workspace) bool { return w.Root == root })
}

// offerAgents lists the agents of a workspace, which is put first: the chosen one, else that of the
// newest chat, else that of the server.
func (p *chatPage) offerAgents(v *visit) (err error) {
	at := slices.IndexFunc(p.Workspaces, func(w regie.Workspace) bool {
		return w.ID.String() == v.r.FormValue("workspace_id")
	})
	if at < 0 && len(p.Chats) > 0 {
		at = slices.IndexFunc(p.Workspaces, func(w regie.Workspace) bool { return w.ID == p.Chats[0].place })
	}
	if at < 0 {
		at = p.indexRoot(v.site.Root)
	}
	if at > 0 {
		p.Workspaces[0], p.Workspaces[at] = p.Workspaces[at], p.Workspaces[0]
	}
	filter := dispatch.AgentFilter{}
	if len(p.Workspaces) > 0 {
		p.Workspace, filter.Root = p.Workspaces[0].ID, p.Workspaces[0].Root
	}
	p.Agent = cmp.Or(v.r.FormValue("agent"), control.MainAgent)
	p.OwnModel, p.NextModel = v.text.T("Its model"), v.r.FormValue("model")
	p.Agents, err = v.site.Service.Agents.List(v.r.Context(), filter)
	return err
}

// statusOf is the status of a page that shows a form again.
func statusOf(problem string) int {
	if problem != "" {
		return 409
	}
	return 200
}

// showChat shows a chat.
func showChat(v *visit, id regie.ID) error { return v.renderChat(id, "", "", "") }

// renderChat shows a chat, where a form failed with its problem and what was typed.
func (v *visit) renderChat(id regie.ID, about, problem, draft string) error {
	page, err := v.loadChat(v.r.Context(), id, about, problem)
	if err != nil {
		return err
	}
	if page.Unread {
		read := dispatch.ReadRequest{SessionID: id, Seq: page.Seq}
		if err := v.site.Service.Sessions.MarkRead(v.r.Context(), read); err != nil {
			return err
		}
	}
	page.Draft, page.ClientID = draft, regie.NewID().String()
	page.Stream = "/chats/" + id.String() + "/stream?after=" + strconv.FormatInt(page.Seq, 10)
	if from := v.from(); from > 0 {
		page.Stream += "&from=" + strconv.FormatInt(from, 10)
	}
	v.render(statusOf(problem), "chat", page)
	return nil
}

// from returns where the page's part of the thread begins.
func (v *visit) from() int64 {
	from, _ := strconv.ParseInt(v.r.URL.Query().Get("from"), 10, 64) // 0 for what is no number
	return from
}

// loadChat reads a chat.
func (v *visit) loadChat(ctx context.Context, id regie.ID, about, problem string) (*chatPage, error) {
	view, err := v.site.Service.Sessions.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	inbox, err := v.site.Service.Approvals.Inbox(ctx, store.InboxFilter{SessionID: id, Closed: true})
	if err != nil {
		return nil, err
	}
	rounds, err := v.site.Service.Rounds.List(ctx, store.RoundFilter{SessionID: id, Limit: shownMessages})
	if err != nil {
		return nil, err
	}
	for i := range rounds { // as they were when the thread was read: an end never shows before its answer
		n := slices.IndexFunc(view.History, func(r regie.Round) bool { return r.ID == rounds[i].Round.ID })
		if n >= 0 {
			rounds[i].Round = view.History[n]
		}
	}
	f := v.newFrame("chats", v.sessionName(view.Name))
	f.Path = "/chats/" + id.String()
	if err := v.fillFrame(f); err != nil {
		return nil, err
	}
	page := &chatPage{
		frame: f, ID: id, Name: f.Title, Chip: sessionCallsChip(v.text, &view.SessionSummary, inbox.Unknown),
		Modes: modeChoices(v.text, view.ApprovalMode), Altered: view.AuditError,
		Model: cmp.Or(view.Model, view.Provider), Cost: formatCost(v.text, view.Spent), Workspace: view.WorkspaceID,
	}
	page.Seq, page.Unread = view.Head, view.Unread > 0 || view.Finished
	if view.ForkedFrom != nil {
		page.ForkedFrom = view.ForkedFrom.SessionID
	}
	if view.Execution != nil && !view.Execution.AutomationID.IsZero() {
		page.Automation, _ = v.site.Service.Automations.Get(ctx, view.Execution.AutomationID) // it may be removed
	}
	page.describeModel(v, &view, rounds)
	page.Mode = page.Modes[slices.IndexFunc(page.Modes, func(m modeChoice) bool { return m.Chosen })]
	b := v.newThread(&inbox, rounds)
	b.chat = "/chats/" + id.String()
	b.about, b.problem, b.next = about, problem, f.Path
	messages := view.Thread
	cut := cutThread(messages, v.from())
	if cut > 0 {
		page.Earlier = messages[max(0, cut-shownMessages)].Seq
		messages = messages[cut:]
	}
	b.build(messages)
	for i := range view.Pending {
		b.person("p-"+view.Pending[i].Message.ID.String(), &view.Pending[i], true)
	}
	page.Items, page.Plan, page.Changes, page.Needs = b.items, b.plan, b.changes, b.needs
	if !slices.ContainsFunc(page.Items, func(i item) bool { return i.ID == about }) {
		f.Problem, f.About = problem, "send"
	}
	active := ""
	for _, step := range page.Plan {
		switch step.Status {
		case "done":
			page.Done++
		case "active":
			active = step.Text
		}
	}
	page.state(v, &view, active)
	return page, b.err
}

// cutThread returns where the part of a thread begins that its page shows: the newest messages, and
// all from a number on where that is above 0.
func cutThread(messages []store.MessageView, from int64) int {
	cut := max(0, len(messages)-shownMessages)
	if from > 0 {
		cut = min(cut, slices.IndexFunc(messages, func(m store.MessageView) bool { return m.Seq >= from }))
	}
	return cut
}

// describeModel says which model answers next, and how full its context is.
func (p *chatPage) describeModel(v *visit, view *store.SessionView, rounds []store.RoundSummary) {
	p.OwnModel, p.NextModel = view.Provider+"/"+view.Model, v.r.URL.Query().Get("model")
	if len(rounds) == 0 {
		return
	}
	newest := &rounds[0].Round
	p.Answered = hasAnswered(newest.End)
	p.Model, p.Most = newest.Model, newest.Limits.ContextTokens
	p.NextModel = cmp.Or(p.NextModel, newest.Provider+"/"+newest.Model)
	for i := range view.Thread {
		if m := &view.Thread[i].Message; m.AI != nil && m.Usage != nil {
			p.Used = int(m.Usage.Input)
		}
	}
}

func (v *visit) newThread(inbox *store.Inbox, rounds []store.RoundSummary) *thread {
	b := &thread{
		v: v, rounds: map[regie.ID]*store.RoundSummary{}, approvals: map[regie.ID]*regie.Approval{},
		questions: map[regie.ID]*regie.Question{}, shown: map[regie.ID]bool{},
	}
	for i := range rounds {
		b.rounds[rounds[i].Round.ID] = &rounds[i]
	}
	for i := range inbox.Approvals {
		for j := range inbox.Approvals[i].Reviews {
			b.approvals[inbox.Approvals[i].Reviews[j].CallID] = &inbox.Approvals[i]
		}
	}
	for i := range inbox.Questions {
		b.questions[inbox.Questions[i].CallID] = &inbox.Questions[i]
	}
	return b
}

// state says what the chat does now, never two things. active is the step of its plan.
func (p *chatPage) state(v *visit, view *store.SessionView, active string) {
	t := v.text
	more, known := map[regie.SessionState]string{
		regie.SessionActive:            strings.Trim(active+" · "+p.Cost, " ·"),
		regie.SessionWaitingValidation: t.T("The clock and the cost stand still."),
		regie.SessionWaitingResponse:   t.T("The clock and the cost stand still."),
		regie.SessionQueued:            t.T("Other chats run first. It starts by itself."),
		regie.SessionWaitingNetwork:    t.T("It is tried again by itself. Nothing is lost."),
		regie.SessionWaitingProvider:   t.T("It goes on by itself."),
		regie.SessionWaitingTask:       t.T("It goes on by itself."),
		regie.SessionPaused:            t.T("Nothing runs. Resume it, or stop it."),
	}[view.State]
	if !known {
		return
	}
	p.Status = statusLine{p.Chip.Class, p.Chip.Icon, p.Chip.Word, more}
	switch view.State {
	case regie.SessionActive:
		p.Status.Icon = "spin"
	case regie.SessionWaitingValidation, regie.SessionWaitingResponse:
		p.Status.Icon, p.Status.Word = "warn", t.T("Waits for you")
	}
	p.Paused = view.State == regie.SessionPaused
	for i := range view.Waits {
		if w := &view.Waits[i]; w.Kind == regie.WaitNetwork {
			p.Status.More = t.T("since %s", formatClock(w.Since)) + ". " + more
		}
	}
	p.Busy = true
	if p.Status.Class == "work" && v.retry.Word != "" {
		p.Status = v.retry
	}
}
