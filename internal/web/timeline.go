package web

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// span is a stretch of time.
type span struct{ from, to time.Time }

func (s span) length() time.Duration { return max(0, s.to.Sub(s.from)) }

// timescale maps times of a run to its width, in percent. Stretches of work are to scale, gaps
// between them are folded to one width.
type timescale struct {
	busy   []span // in order, without overlaps
	worked time.Duration
	fold   float64
	unit   float64 // of a second
}

const (
	// leastFold is the shortest gap that is folded.
	leastFold = 2 * time.Second
	foldWidth = 9.0
	leastBar  = 0.7
	shownRows = 200
)

func newTimescale(spans []span) timescale {
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	var s timescale
	for _, next := range spans {
		last := len(s.busy) - 1
		if last < 0 || next.from.Sub(s.busy[last].to) >= leastFold {
			s.busy = append(s.busy, next)
		} else if next.to.After(s.busy[last].to) {
			s.busy[last].to = next.to
		}
	}
	for _, b := range s.busy {
		s.worked += b.length()
	}
	folds := float64(max(0, len(s.busy)-1))
	s.fold = min(foldWidth, 50/max(1, folds))
	s.unit = (98 - folds*s.fold) / max(s.worked.Seconds(), 0.001) // room for the last bar
	return s
}

// at returns the place of a time: within a gap, where the gap begins or, as an end, where it ends.
func (s timescale) at(t time.Time, end bool) (x float64) {
	for i, b := range s.busy {
		if t.Before(b.from) {
			if !end && i > 0 {
				return x - s.fold
			}
			return x
		}
		if !t.After(b.to) {
			return x + t.Sub(b.from).Seconds()*s.unit
		}
		if x += b.length().Seconds() * s.unit; i+1 < len(s.busy) {
			x += s.fold
		}
	}
	return x
}

// tick is a line of the scale.
type tick struct{ X, Label string }

// ticks returns the lines of the scale, at round numbers of working time.
func (s timescale) ticks(v *visit) []tick {
	ms := int64(1)
	for i := 0; s.worked.Milliseconds() > 6*ms; i++ {
		ms = ms * []int64{2, 5, 2}[i%3] / []int64{1, 2, 1}[i%3]
	}
	step := time.Duration(ms) * time.Millisecond
	out := []tick{{"0", "0"}}
	passed, before := time.Duration(0), 0.0
	for i, b := range s.busy {
		for at := passed.Truncate(step) + step; at <= passed+b.length(); at += step {
			out = append(out, tick{percent(before + (at-passed).Seconds()*s.unit), formatSpan(v.text, at)})
		}
		passed += b.length()
		before += b.length().Seconds()*s.unit + s.fold*float64(min(1, len(s.busy)-1-i))
	}
	return out
}

func percent(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// bar is a part of a row, in percent of its width.
type bar struct{ Class, X, Width string }

// timelineRow is a line of a timeline: an exchange, a call or a wait.
type timelineRow struct {
	chip
	ID, Text, Link             string
	Exchange, Current, Problem bool
	Bars                       []bar
	Ticks                      []tick
	Note, NoteX                string // next to the bars
	Left                       bool   // of NoteX
	Time, Cost                 string

	at    time.Time
	spans []classedSpan
}

type classedSpan struct {
	span
	class string
}

// timeline makes the rows of a run.
type timeline struct {
	v         *visit
	run       string // its path
	now       time.Time
	asked     map[regie.ID]*regie.Approval // by their calls
	questions map[regie.ID]*regie.Question
	rows      []timelineRow
	waits     []span
	seen      map[regie.ID]bool // approvals
}

// exchange adds a model call with its failed attempts.
func (l *timeline) exchange(x *store.ExchangeView) {
	t := l.v.text
	row := timelineRow{
		ID: "x-" + strconv.Itoa(x.Number), Text: t.T("Exchange %d", x.Number), Exchange: true,
		Cost: formatCost(t, regie.Spending{Cost: x.Money.Cost, Known: x.Money.Known}), at: x.OpenedAt,
		Link: l.run + "?view=steps#x-" + strconv.Itoa(x.Number), Problem: x.State == regie.ExchangeFailed,
		chip: exchangeChips[x.State].translateChip(t),
	}
	for i := range x.Attempts {
		a := &x.Attempts[i]
		row.spans = append(row.spans, classedSpan{span{a.OpenedAt, a.EndedAt}, "bad"})
		row.at, row.Problem = x.Attempts[0].OpenedAt, true
	}
	if len(x.Attempts) > 0 {
		row.Note = t.T("%s attempts", strconv.Itoa(len(x.Attempts)+1))
	}
	took := time.Duration(x.ModelUS) * time.Microsecond
	switch x.State {
	case regie.ExchangeReplied:
		row.chip = chip{Icon: "spark"}
	case regie.ExchangeOpen:
		took, row.Cost = l.now.Sub(x.OpenedAt), ""
	}
	if x.State != regie.ExchangeFailed {
		row.spans = append(row.spans, classedSpan{span{x.OpenedAt, x.OpenedAt.Add(took)}, "model"})
	}
	if row.Time = formatSpan(t, took); x.ModelUS == 0 && x.State != regie.ExchangeOpen {
		row.Time, row.Cost = "", ""
	}
	l.rows = append(l.rows, row)
	for i := range x.Calls {
		l.call(&x.Calls[i])
	}
}

// call adds a call, and the wait for its approval or answer.
func (l *timeline) call(c *regie.Call) {
	t, asked := l.v.text, l.asked[c.ID]
	shown := l.v.callRow(c, asked)
	row := timelineRow{
		ID: "c-" + c.ID.String(), Text: capitalize(shown.Sentence), chip: shown.Chip,
		Link: l.run + "/calls/" + c.ID.String(), at: cmp.Or(c.StartedAt, c.SettledAt, c.ProposedAt),
		Problem: shown.Chip.Class == "bad" || shown.Chip.Class == "unknown",
	}
	if asked != nil && !l.seen[asked.ID] {
		l.seen[asked.ID] = true
		text := t.T("Waited for approval")
		if by := decidedBy(asked); by != "" {
			text = t.T("Waited for approval: %s", by)
		}
		l.wait("a-"+asked.ID.String(), text, asked.CreatedAt, asked.ClosedAt)
	}
	switch q := l.questions[c.ID]; {
	case q != nil:
		l.wait(row.ID, row.Text, q.CreatedAt, c.SettledAt)
		l.rows[len(l.rows)-1].Link = row.Link
		return
	case c.StartedAt.IsZero() && c.Kind == regie.KindQuery && c.DurationUS > 0:
		took := time.Duration(c.DurationUS) * time.Microsecond
		row.spans = []classedSpan{{span{c.SettledAt.Add(-took), c.SettledAt}, "tool"}}
		row.Time = formatSpan(t, took)
	case c.StartedAt.IsZero():
		if row.Note = row.Word; shown.Chip.Class == "done" {
			row.Note = ""
		}
	default:
		end := cmp.Or(c.SettledAt, l.now)
		class := map[string]string{"bad": "bad", "unknown": "unknown"}[row.Class]
		row.spans = []classedSpan{{span{c.StartedAt, end}, cmp.Or(class, "tool")}}
		row.Time = formatSpan(t, end.Sub(c.StartedAt))
	}
	if c.Attempts > 1 {
		row.Note = t.T("%s attempts", strconv.Itoa(c.Attempts))
	}
	l.rows = append(l.rows, row)
}

func decidedBy(a *regie.Approval) string {
	for i := range a.Reviews {
		if d := a.Reviews[i].Decision; d != nil {
			return sanitize.Line(d.By)
		}
	}
	return ""
}

// wait adds a wait, which is still open where it has no end.
func (l *timeline) wait(id, text string, from, to time.Time) {
	row := timelineRow{ID: id, Text: text, chip: chip{"you", "warn", l.v.text.T("Waits for you")}, at: from}
	if !to.IsZero() {
		row.chip = chip{"", "clock", l.v.text.T("Waited")}
	}
	to = cmp.Or(to, l.now)
	row.Time = formatSpan(l.v.text, to.Sub(from))
	row.Note, row.spans = row.Time, []classedSpan{{span{from, to}, "wait"}}
	l.waits = append(l.waits, span{from, to})
	l.rows = append(l.rows, row)
}

// scale puts the rows in the order of time, with the gaps that nothing explains, and draws their
// bars.
func (l *timeline) scale(open bool) timescale {
	var spans []span
	for i := range l.rows {
		for _, s := range l.rows[i].spans {
			if s.class != "wait" {
				spans = append(spans, s.span)
			}
		}
	}
	if open {
		spans = append(spans, span{l.now, l.now})
	}
	s := newTimescale(spans)
	for i := 1; i < len(s.busy); i++ {
		gap := span{s.busy[i-1].to, s.busy[i].from}
		if !slices.ContainsFunc(l.waits, func(w span) bool { return w.from.Before(gap.to) && w.to.After(gap.from) }) {
			l.wait("w-"+strconv.Itoa(i), l.v.text.T("Paused, or without a network"), gap.from, gap.to)
		}
	}
	slices.SortStableFunc(l.rows, func(a, b timelineRow) int { return a.at.Compare(b.at) })
	for i := range l.rows {
		l.rows[i].draw(s)
	}
	return s
}

func (r *timelineRow) draw(s timescale) {
	for _, part := range r.spans {
		from, to := s.at(part.from, false), s.at(part.to, true)
		to = max(to, from+leastBar)
		r.Bars = append(r.Bars, bar{part.class, percent(from), percent(to - from)})
		if r.NoteX, r.Left = percent(to), to > 70; r.Left {
			r.NoteX = r.Bars[0].X
		}
	}
	if r.Bars == nil {
		r.NoteX = percent(min(70, s.at(r.at, false)))
	}
}
