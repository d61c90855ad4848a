package web

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// runPage is one round: its timeline or its steps, and one of its calls next to it.
type runPage struct {
	*frame
	Round                          *regie.Round
	Chip                           chip
	Took, Waited, Cost, Note, Chat string
	By, CallWords                  string
	Tokens, Cached                 int64 // Cached is in percent
	Calls                          int
	Trigger                        string
	Steps, Problems, Open          bool
	Exchanges                      []exchangePart
	Ticks                          []tick
	Page, Pages                    int
	Call                           *callPage
}

// callPage is one call of a run.
type callPage struct {
	*regie.Call
	Row         callRow
	Class, Took string
	Edited      fileDiff         // of proposed and executed arguments
	Needs       []item           // of the person
	Sent        *dispatch.Prompt // what a model was sent before it proposed the call
	Body        string           // of Sent, readable
	Cut         bool             // there is more of it
	Dry         *dispatch.Replay
	Same        bool // of Dry: the request of this call
}

// loadRun reads a round, and one of its calls where the address has one.
func loadRun(ctx context.Context, v *visit) (*runPage, error) {
	id, err := v.id()
	if err != nil {
		return nil, err
	}
	view, err := v.site.Service.Rounds.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	inbox, err := v.site.Service.Approvals.Inbox(ctx, store.InboxFilter{SessionID: view.Session.ID, Closed: true})
	if err != nil {
		return nil, err
	}
	around, query := v.newThread(&inbox, nil), v.r.URL.Query()
	page := &runPage{
		frame: v.newFrame("runs", v.text.T("Run no. %s", strconv.Itoa(view.Round.Number))), Round: &view.Round,
		Chip: runChip(v, &view.Round, &view.Session), Cost: formatCost(v.text, view.Spent),
		Chat: v.sessionName(view.Session.Name),
		By:   startedBy(v, &view.Round, &view.Session), Steps: query.Get("view") == "steps",
		Problems: query.Get("problems") != "", Open: view.Round.State != regie.RoundEnded,
	}
	page.Session, page.Seq, page.Grows = view.Session.ID, view.Head, view.Round.State == regie.RoundRunning
	page.Title, page.Path = page.Chat+" · "+formatUntil(view.Round.StartedAt), "/runs/"+id.String()
	if err := v.fillFrame(page.frame); err != nil {
		return nil, err
	}
	page.Note = v.sayLine(view.Round.EndNote)
	if view.Trigger != nil {
		page.Trigger = personText(view.Trigger)
	}
	page.count(v, &view)
	if page.Steps {
		for i := range view.Exchanges {
			page.Exchanges = append(page.Exchanges, v.exchangePart(&view.Exchanges[i], around.approvals))
		}
	}
	if call := cmp.Or(v.r.PathValue("call"), query.Get("call")); call != "" {
		if page.Call, err = loadCall(ctx, v, &view, around, call); err != nil {
			return nil, err
		}
	}
	if page.Open && (page.Call == nil || page.Call.Sent == nil && page.Call.Dry == nil) {
		page.Stream = page.Path + "/stream?call=" + v.r.PathValue("call") + "&" + v.r.URL.RawQuery
	}
	page.Say = page.Chip.Word
	err = page.draw(v, &view, around)
	return page, err
}

// count sums the tokens and calls of a round.
func (p *runPage) count(v *visit, view *store.RoundView) {
	var input, cached int64
	for i := range view.Exchanges {
		u := view.Exchanges[i].Usage
		input, cached, p.Tokens = input+u.Input, cached+u.CacheRead, p.Tokens+u.Input+u.Output
	}
	p.Cached = 100 * cached / max(1, input)
	words, said := map[string]int{}, []string{}
	calls := chat.CallsOf(view)
	for i := range calls {
		c := callChip(v.text, &calls[i])
		if words[c.Word]++; c.Class == "unknown" {
			p.Chip = c
		}
	}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		said = append(said, strconv.Itoa(words[word])+" "+strings.ToLower(word))
	}
	p.Calls, p.CallWords = len(calls), strings.Join(said, ", ")
}

// draw makes the timeline, and cuts its page off it.
func (p *runPage) draw(v *visit, view *store.RoundView, around *thread) error {
	l := &timeline{
		v: v, run: p.Path, now: time.Now(), seen: map[regie.ID]bool{},
		asked: around.approvals, questions: around.questions,
	}
	for i := range view.Enrichments {
		for j := range view.Enrichments[i].Calls {
			l.call(&view.Enrichments[i].Calls[j])
		}
	}
	for i := range view.Exchanges {
		l.exchange(&view.Exchanges[i])
	}
	scale := l.scale(p.Open)
	end := cmp.Or(view.Round.EndedAt, l.now)
	p.Took = formatSpan(v.text, scale.worked)
	if waited := end.Sub(view.Round.StartedAt) - scale.worked; waited >= leastFold {
		p.Waited = formatSpan(v.text, waited)
	}
	p.Ticks = scale.ticks(v)
	if p.Problems {
		l.rows = slices.DeleteFunc(l.rows, func(r timelineRow) bool { return !r.Problem })
	}
	number, _ := strconv.Atoi(v.r.URL.Query().Get("page")) // 0 for what is no number
	p.Pages = max(1, (len(l.rows)+shownRows-1)/shownRows)
	p.Page = min(max(1, number), p.Pages)
	if p.Steps {
		return nil
	}
	b := &thread{v: v}
	for _, row := range l.rows[(p.Page-1)*shownRows : min(len(l.rows), p.Page*shownRows)] {
		row.Ticks, row.Current = p.Ticks, p.Call != nil && row.ID == "c-"+p.Call.ID.String()
		b.add(row.ID, "item-step", row)
	}
	p.Items = b.items
	return b.err
}

// loadCall reads one call of a round; its request and replay only where the address asks for them.
func loadCall(ctx context.Context, v *visit, view *store.RoundView, around *thread, id string) (*callPage, error) {
	calls := chat.CallsOf(view)
	n := slices.IndexFunc(calls, func(c regie.Call) bool { return c.ID.String() == id })
	if n < 0 {
		return nil, regie.Errorf(regie.CodeNotFound, "there is no call %s in this run", sanitize.Line(id))
	}
	c := &calls[n]
	around.next = "/runs/" + view.Round.ID.String() + "/calls/" + c.ID.String()
	around.requests(c)
	page := &callPage{
		Call: c, Row: v.callRow(c, around.approvals[c.ID]), Class: classWords(v, c.Class),
		Needs: slices.DeleteFunc(around.items, func(i item) bool {
			return !strings.Contains(string(i.HTML), `class="card`) // it is settled
		}),
	}
	page.Row.Sentence = capitalize(page.Row.Sentence)
	if !c.StartedAt.IsZero() && !c.SettledAt.IsZero() {
		page.Took = formatSpan(v.text, c.SettledAt.Sub(c.StartedAt))
	}
	if page.Row.Executed != "" && page.Row.Executed != page.Row.Arguments {
		diff := udiff.Unified("a", "b", page.Row.Arguments+"\n", page.Row.Executed+"\n")
		page.Edited = parseFileDiff("edited", v.text.T("proposed and executed"), diff)
	}
	query := v.r.URL.Query()
	if query.Get("request") != "" {
		prompt, err := v.site.Service.Rounds.Prompt(ctx, dispatch.PromptRequest{CallID: c.ID})
		if err != nil {
			return nil, err
		}
		body := string(chat.Pretty(prompt.Body))
		page.Sent, page.Body, page.Cut = &prompt, sanitize.Strip(sanitize.Clip(body, maxShown)), len(body) > maxShown
	}
	if query.Get("replay") != "" {
		replay, err := v.site.Service.Rounds.Replay(ctx, view.Round.ID)
		if err != nil {
			return nil, err
		}
		page.Dry = &replay
		page.Same = slices.ContainsFunc(replay.Steps, func(s dispatch.ReplayStep) bool {
			return s.Exchange == c.Exchange && s.Recorded == s.Rebuilt
		})
	}
	return page, around.err
}

// classWords says how a call may be repeated.
func classWords(v *visit, class regie.EffectClass) string {
	return map[regie.EffectClass]string{
		regie.ClassRead:       v.text.T("reads, may be repeated freely"),
		regie.ClassKeyed:      v.text.T("repeated with the same key only"),
		regie.ClassVerifiable: v.text.T("verified before it is repeated"),
		regie.ClassOnce:       v.text.T("once, never repeated by itself"),
		regie.ClassResumable:  v.text.T("the same work goes on"),
	}[class]
}
