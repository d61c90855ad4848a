package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/prompt"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/store"
)

// PromptRequest names a prompt: what would be sent now for a session, or what was sent in an
// exchange of a round.
type PromptRequest struct {
	SessionID regie.ID
	RoundID   regie.ID
	Exchange  int
}

// Prompt is a request as a model gets it (spec 6.1 prompt show).
type Prompt struct {
	SessionID regie.ID `json:"session_id"`
	RoundID   regie.ID `json:"round_id"`
	// Exchange is that of a stored model call; 0 for what would be sent now.
	Exchange int                   `json:"exchange,omitempty"`
	Purpose  regie.ExchangePurpose `json:"purpose,omitempty"`
	Provider string                `json:"provider_id"`
	Model    string                `json:"model"`
	// Body is the request, byte for byte; Request is its SHA-256.
	Body    []byte     `json:"body"`
	Request regie.Hash `json:"request"`
	// Stored is the SHA-256 that was stored when it was sent. Where it is another one than Request,
	// Body is not what was sent.
	Stored regie.Hash `json:"stored,omitzero"`
	// Tokens are as the provider counted them for a stored call, else estimated; Budget is what
	// they should not pass.
	Tokens  int  `json:"tokens"`
	Counted bool `json:"counted,omitempty"`
	Budget  int  `json:"budget"`
	Over    bool `json:"over_budget,omitempty"` // what would be sent now is summarised first, where that is worth it
	Window  int  `json:"window,omitempty"`      // of the model, in tokens; 0 where nobody knows
	// Cached is when the model gave the answer, where it came from the response cache: then Body
	// was not sent.
	Cached time.Time    `json:"cached,omitzero"`
	Parts  []PromptPart `json:"parts"`
}

// Exact reports whether Body is what was sent.
func (p *Prompt) Exact() bool { return p.Stored.IsZero() || p.Stored == p.Request }

// PromptPart is a part of a prompt, in its order.
type PromptPart struct {
	Kind string `json:"kind"` // fixed, level1, level2, tools, message, instruction, guidance
	// Chunk is the part of a level by its heading, where it has one (spec 6.1).
	Chunk string `json:"chunk,omitempty"`
	// Breakpoint says that the request marks the end of the part: what lies before may be cached by
	// the vendor.
	Breakpoint bool     `json:"breakpoint,omitempty"`
	Seq        int64    `json:"seq,omitempty"`
	Message    regie.ID `json:"message_id,omitzero"`
	Sender     string   `json:"sender,omitempty"` // of a message: USER, AI, or the type of a system message
	Calls      int      `json:"calls,omitempty"`
	Dropped    int      `json:"dropped,omitempty"` // results that are named and not shown
	Bytes      int      `json:"bytes"`
	Tokens     int      `json:"tokens"` // estimated
	Text       string   `json:"text,omitempty"`

	turns int // of the conversation up to the end of this part
}

// showing is a prompt on its way.
type showing struct {
	view    store.RoundView
	run     *run // only to build the prompt
	head    provider.Head
	entries []prompt.Entry
	window  prompt.Window
	summary *regie.Message // that an exchange made; its request ends before what it does not hide
	frozen  regie.Hash     // the head of a failed exchange; that of others is found in thawHead
	prompt  prompt.View
	out     Prompt
	bytes   int

	conversation provider.Conversation
}

// Prompt returns the request that would be sent now for a session, with the levels and tools of its
// newest round, or, rebuilt from the store, the request of an exchange (decision 14). It returns
// CodeNotFound, and CodeConflict for a call without stored inputs.
func (e *Engine) Prompt(ctx context.Context, in PromptRequest) (Prompt, error) {
	if in.RoundID.IsZero() {
		round, err := e.cfg.Store.LastRound(ctx, in.SessionID)
		if err != nil {
			return Prompt{}, err
		}
		in.RoundID = round.ID
	}
	view, err := e.cfg.Store.RoundView(ctx, in.RoundID)
	if err != nil {
		return Prompt{}, err
	}
	thread, err := e.cfg.Store.Thread(ctx, view.Session.ID, 0)
	if err != nil {
		return Prompt{}, err
	}
	s, err := e.rebuild(ctx, view, thread, in.Exchange)
	if err != nil {
		return Prompt{}, err
	}
	shower, ok := s.conversation.(provider.Shower)
	if !ok {
		return Prompt{}, regie.Errorf(regie.CodeConflict, "the provider %s cannot show its requests", s.out.Provider)
	}
	s.out.Body = shower.Body()
	s.run.budget.thread.takes = s.out.Window
	room := s.run.budget.promptRoom()
	s.out.Budget = room.Budget
	shown := 0
	for i := range s.out.Parts {
		switch p := &s.out.Parts[i]; p.Kind {
		case "message":
			shown++
		case "instruction", "guidance":
		default:
			room.Fixed += p.Tokens
		}
	}
	s.out.Over = in.Exchange == 0 && room.Over(s.out.Tokens, shown)
	return s.out, nil
}

// rebuild makes a prompt of what is stored: that of an exchange, or, for number 0, the next one. A
// person may have resolved an UNKNOWN call since it was sent (decision 5), and a thread in memory
// has that from its next reading on only: which it was the hash says.
func (e *Engine) rebuild(ctx context.Context, view store.RoundView, thread store.Thread, number int) (*showing,
	error,
) {
	s := &showing{view: view, run: newParts(&roundState{
		Engine: e, round: view.Round, session: view.Session, commit: ctx,
		tools: e.workspaceTools(ctx, view.Workspace, e.cfg.Tools(ctx)),
	})}
	s.out = Prompt{SessionID: view.Session.ID, RoundID: view.Round.ID, Exchange: number}
	stored, err := s.findStored(number)
	if err == nil {
		err = s.run.readPolicy()
	}
	if err != nil {
		return nil, err
	}
	s.run.targets.initTargets()
	// who was asked, or is to be
	s.run.targets.selectTarget(s.run.targets.targetOf(s.run.exchange.Provider, s.run.exchange.Model))
	r := s.run.round
	model, err := e.cfg.Providers(r.Provider, r.Pin)
	if err != nil {
		return nil, err
	}
	can := model.Capabilities(r.Model)
	s.out.Provider, s.out.Model, s.out.Window = r.Provider, r.Model, can.ContextTokens
	s.run.budget.thread.images = can.Images
	if err := s.thawHead(ctx, number); err != nil {
		return nil, err
	}
	s.prompt = s.run.head.promptView()
	moments := []time.Time{{}}
	if stored != nil {
		moments = append(moments, stored.OpenedAt, r.StartedAt)
	}
	for _, when := range moments {
		if !s.cutThread(thread, stored, when) {
			continue
		}
		if err := s.buildPrompt(model); err != nil || s.out.Exact() {
			return s, err
		}
	}
	return s, nil
}

// findStored finds a stored model call, or the last attempt at one that brought no reply; nil for
// number 0.
func (s *showing) findStored(number int) (*store.ExchangeView, error) {
	if number == 0 {
		if n := len(s.view.Exchanges); n > 0 && s.view.Round.State != regie.RoundEnded {
			s.run.exchange = s.view.Exchanges[n-1].Exchange
		}
		return nil, nil
	}
	i := slices.IndexFunc(s.view.Exchanges, func(x store.ExchangeView) bool { return x.Number == number })
	if i < 0 {
		return nil, regie.Errorf(regie.CodeNotFound, "the run has no exchange %d, it has %d", number,
			len(s.view.Exchanges))
	}
	x := s.view.Exchanges[i]
	if n := len(x.Attempts); x.State == regie.ExchangeFailed && n > 0 &&
		x.Attempts[n-1].Purpose != regie.PurposeSummary {
		a := &x.Attempts[n-1]
		x.Purpose, x.OpenedAt, x.FirstSeq, x.LastSeq, x.Request, x.Provider, x.Model = a.Purpose, a.OpenedAt,
			a.FirstSeq, a.LastSeq, a.Request, a.Provider, a.Model
		s.frozen = a.Head
	}
	if x.Request.IsZero() {
		return nil, regie.Errorf(regie.CodeConflict, "exchange %d cannot be shown: no model was asked, its call has not ended, or its request is not stored", number)
	}
	s.out.Stored, s.out.Purpose, s.run.exchange = x.Request, x.Purpose, x.Exchange
	if x.Reply != nil {
		s.out.Tokens, s.out.Counted = int(x.Usage.Input), !x.Usage.Estimated
		// nothing was sent, so there is no count
		if x.Reply.AI != nil && !x.Reply.AI.Cached.IsZero() {
			s.out.Cached, s.out.Counted = x.Reply.AI.Cached, false
		}
		if x.Purpose == regie.PurposeSummary {
			s.summary = x.Reply
		}
	}
	return &x, nil
}

// thawHead reads the frozen head of an exchange: it is stored with the first that had it.
func (s *showing) thawHead(ctx context.Context, number int) error {
	r := s.run
	frozen := s.frozen
	for i := range s.view.Exchanges {
		x := &s.view.Exchanges[i]
		if number == 0 && x.Purpose == regie.PurposeSummary { // the next one is a step
			continue
		}
		if x.Provider != r.round.Provider || x.Model != r.round.Model { // the head of another provider's requests
			continue
		}
		if s.frozen.IsZero() && !x.Head.IsZero() && (number == 0 || x.Number <= number) {
			frozen = x.Head
		}
	}
	spoken := r.round.Dialect == regie.DialectJSON
	var err error
	if frozen.IsZero() { // nothing was sent yet, or in a version that did not keep it
		s.head, err = r.head.freshHead(ctx, prompt.Reply(r.maxOutput(), s.out.Window))
		return err
	}
	data, err := r.cfg.Store.Blob(ctx, frozen)
	if err != nil {
		return err
	}
	var head frozenHead
	if err := json.Unmarshal(data, &head); err != nil {
		return regie.Errorf(regie.CodeCorrupt, "the instructions and tools of run %s cannot be read: %v",
			s.view.Round.ID, err)
	}
	r.budget.thread.images = head.Images
	s.head = provider.Head{
		Model: r.round.Model, Dialect: r.round.Dialect, Tools: head.Tools, MaxOutput: head.MaxOutput,
		ParallelCalls: !head.OneCall, ReasoningEffort: head.ReasoningEffort, ServiceTier: head.ServiceTier,
		Temperature: head.Temperature, TopP: head.TopP,
	}
	if s.head.Level1, err = r.head.loadLevel(ctx, head.Level1); err == nil {
		s.head.Level2, err = r.head.loadLevel(ctx, head.Level2)
	}
	if spoken {
		r.json = r.head.dialectOf(head.Definitions)
		s.head.Level1 += "\n" + head.Instructions
	}
	return err
}

// cutThread takes of the thread what the prompt is made of, as it was known at a moment, and
// reports whether that is not what it was before.
func (s *showing) cutThread(thread store.Thread, stored *store.ExchangeView, when time.Time) bool {
	var messages []regie.Message
	for i := range thread.Messages {
		m := &thread.Messages[i]
		switch r := s.view.Round; {
		case s.summary != nil && m.Seq >= s.summary.Seq, s.summary == nil && stored != nil && m.Seq > stored.LastSeq:
			continue
		case stored == nil && r.Phase == regie.PhaseCalls && m.RoundID == r.ID &&
			m.Exchange == r.Exchange && m.AI != nil:
			continue // its batch is open (decision 4)
		}
		messages = append(messages, *m)
	}
	s.entries = prompt.Entries(messages, thread.Calls)
	// no prompt shows half a batch (decision 35)
	if last := len(s.entries) - 1; last >= 0 && awaitsClient(s.entries[last].Calls) {
		s.entries = s.entries[:last]
	}
	changed := when.IsZero()
	for i := range s.entries {
		calls, other := asOf(s.entries[i].Calls, when)
		s.entries[i].Calls, changed = calls, changed || other
	}
	s.window = prompt.WindowOf(s.entries)
	return changed
}

// asOf takes back what people found out about calls after a moment.
func asOf(calls []regie.Call, when time.Time) (out []regie.Call, changed bool) {
	if when.IsZero() {
		return calls, false
	}
	out = append(out, calls...)
	for i := range out {
		if c := &out[i]; c.Resolution != nil && c.Resolution.At.After(when) {
			c.State, c.Resolution, changed = regie.CallUnknown, nil, true
		}
	}
	return out, changed
}

// buildPrompt renders the prompt and weighs its parts.
func (s *showing) buildPrompt(model provider.Provider) error {
	conversation, err := model.Open(s.head)
	if err != nil {
		return err
	}
	s.conversation = conversation
	size := func() int {
		_, n := conversation.Request()
		return n
	}
	s.out.Parts = s.fixedParts(size())
	appended := 0
	var gauge prompt.Gauge
	counted := countedReply(s.entries, s.out.Model, func(*regie.Message) bool { return false })
	add := func(part PromptPart, turns []provider.Turn) {
		if len(turns) == 0 {
			return
		}
		before := size()
		conversation.Append(turns...)
		images, _ := provider.CountImages(turns)
		gauge.Images += images
		appended += len(turns)
		part.Bytes, part.turns = size()-before, appended
		s.out.Parts = append(s.out.Parts, part)
	}
	s.run.budget.thread.spoken = false
	s.window.Shown(s.entries, 0, func(e prompt.Entry, place int) {
		if s.summary != nil && s.summary.System.Compaction != nil && place >= s.summary.System.Compaction.Hidden {
			return
		}
		if e.Message == counted {
			gauge.Learn(*counted.Usage, size())
		}
		turns := s.prompt.Show(e)
		if place >= 0 && len(turns) > 0 {
			s.run.budget.thread.spoken = endsWithPerson(s.run.budget.thread.spoken, e.Message)
		}
		add(describePart(&e), turns)
	})
	before := size()
	if s.summary != nil {
		add(PromptPart{Kind: "instruction"}, []provider.Turn{s.prompt.Instruction()})
		before = size()
		conversation.EndWith(summaryTail)
	} else {
		s.run.budget.untempered = s.refusedTemperature()
		conversation.EndWith(s.run.budget.requestTail())
	}
	if after := size(); after != before {
		s.out.Parts = append(s.out.Parts, PromptPart{Kind: "guidance", Bytes: after - before})
	}
	s.markBreakpoints()
	s.out.Request, s.bytes = conversation.Request()
	if s.out.Counted {
		gauge = prompt.Gauge{Images: gauge.Images}
		gauge.Learn(regie.Usage{Input: int64(s.out.Tokens)}, s.bytes)
	} else {
		s.out.Tokens = gauge.Tokens(s.bytes)
	}
	for i := range s.out.Parts {
		s.out.Parts[i].Tokens = gauge.Part(s.out.Parts[i].Bytes)
	}
	return s.run.budget.thread.unread
}

// refusedTemperature reports whether the model had refused the temperature of a relaunch by then.
func (s *showing) refusedTemperature() bool {
	for i := range s.view.Exchanges {
		x := &s.view.Exchanges[i]
		if s.out.Exchange == 0 || x.Number <= s.out.Exchange {
			for j := range x.Attempts {
				if refusesTemperature(x.Attempts[j].Code, x.Attempts[j].Error) {
					return true
				}
			}
		}
	}
	return false
}

// markBreakpoints notes on the parts where the request carries marks for the vendor's cache.
func (s *showing) markBreakpoints() {
	marker, ok := s.conversation.(provider.Marker)
	if !ok {
		return
	}
	marks := marker.Marks()
	marked := map[string]bool{"level1": marks.Level1, "level2": marks.Level2}
	for i := range slices.Backward(s.out.Parts) {
		p := &s.out.Parts[i]
		p.Breakpoint, marked[p.Kind] = marked[p.Kind], false
	}
	for _, turn := range marks.Turns {
		if i := slices.IndexFunc(s.out.Parts, func(p PromptPart) bool { return turn < p.turns }); i >= 0 {
			s.out.Parts[i].Breakpoint = true
		}
	}
}

// fixedParts returns the parts before the thread.
func (s *showing) fixedParts(size int) []PromptPart {
	var parts []PromptPart
	for _, level := range []struct{ kind, text string }{{"level1", s.head.Level1}, {"level2", s.head.Level2}} {
		for _, section := range prompt.Sections(level.text) {
			text := section.Text
			if section.Name != "" { // the heading is said beside it
				_, text, _ = strings.Cut(text, "\n")
			}
			parts = append(parts, PromptPart{
				Kind: level.kind, Chunk: section.Name,
				Bytes: len(section.Text), Text: firstLine(text),
			})
			size -= len(section.Text)
		}
	}
	tools := PromptPart{Kind: "tools"}
	var names []string
	for i := range s.head.Tools {
		t := &s.head.Tools[i]
		tools.Bytes += len(t.Name) + len(t.Description) + len(t.Parameters)
		names = append(names, t.Name)
	}
	tools.Calls, tools.Text = len(names), strings.Join(names, " ")
	tools.Bytes = min(tools.Bytes, max(0, size))
	return append(parts, tools, PromptPart{Kind: "fixed", Bytes: max(0, size-tools.Bytes)})
}

func describePart(e *prompt.Entry) PromptPart {
	m := e.Message
	part := PromptPart{
		Kind: "message", Seq: m.Seq, Message: m.ID, Sender: string(m.Sender), Calls: len(e.Calls),
		Dropped: e.Dropped, Text: firstLine(m.Text),
	}
	switch {
	case m.System != nil:
		part.Sender, part.Text = string(m.System.Type), firstLine(m.System.Summary)
	case m.AI != nil:
		part.Text = firstLine(m.AI.Text())
	case len(m.Rich) > 0:
		part.Text = firstLine(m.LinearText())
	}
	return part
}

// firstLine shortens a text to what fits into a line of a table.
func firstLine(s string) string {
	const most = 80
	runes := []rune(strings.Join(strings.Fields(s[:min(len(s), 16*most)]), " "))
	if len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return string(runes)
}
