package chat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

// UndoNamed fills in which run or undo a person names: by its id, by the last four or more
// characters of it, or by its first eight or more; "" and "last" leave it to the newest. It returns
// CodeBadID for what cannot be an id.
func UndoNamed(in *dispatch.UndoRequest, name string) (err error) {
	if name == "" || name == "last" {
		return nil
	}
	in.Target, in.Short, err = idOrPart(name)
	return err
}

// UndoPlan writes what an undo would do: what becomes of each file with its diff, what stands in
// the way, and what stays as it is. Of each diff at most limit lines are shown where that is not 0.
// It reports whether there was more.
func (p *Page) UndoPlan(plan *regie.UndoPlan, limit int) (more bool) {
	again := !plan.Undoes.IsZero()
	what := p.Text.T("undo of run %s", plan.RoundID)
	if again {
		what = p.Text.T("undo of the undo %s: what it took back of run %s comes again", Short(plan.Undoes), plan.RoundID)
	}
	if plan.Text != "" {
		what += "  \"" + plain.Line(shortened(plan.Text, shownText)) + "\""
	}
	p.line(what)
	for i := range plan.Previews {
		f := &plan.Previews[i]
		p.line(fmt.Sprintf("%3d  %s", i+1, plain.Line(p.Text.Sentence(f.Sentence))))
		if c := f.Conflict; c != nil {
			p.line("     ✗ " + plain.Line(p.Text.Sentence(c.Sentence)))
		}
		for _, warning := range f.Warnings {
			p.line("     ! " + plain.Line(p.Text.Sentence(warning)))
		}
		more = p.Diff(&regie.Review{Preview: regie.Preview{Diff: f.Diff}}, limit) || more
	}
	if len(plan.Removes) > 0 {
		p.line("     " + plain.Line(p.Text.T("the directories that are empty then go: %s", strings.Join(plan.Removes, ", "))))
	}
	switch {
	case plan.Chat && again:
		p.line("     " + p.Text.T("messages that are part of the conversation again: %d", plan.Messages))
	case plan.Chat:
		p.line("     " + p.Text.T("messages that are taken out of the conversation, and stay readable: %d", plan.Messages))
	}
	p.effects(plan.Effects)
	return more
}

// effects lists what is not taken back.
func (p *Page) effects(list []regie.Effect) {
	if len(list) > 0 {
		p.line("     " + p.Text.T("this cannot be undone and stays as it is:"))
	}
	for i := range list {
		e := &list[i]
		line := e.Tool + " " + shortened(e.Arguments, shownText)
		if e.Trash != "" {
			line = p.Text.T("%s was deleted and is too large to be put back by itself; move it back from %s", e.Arguments, e.Trash)
		}
		if e.State == regie.CallUnknown {
			line += "  " + p.Text.T("(nobody knows what became of it)")
		}
		if e.Why != nil {
			line += ": " + p.Text.Sentence(*e.Why)
		}
		p.line("       " + plain.Line(line))
	}
}

// Undone writes what became of an undo, and how it is taken back.
func (p *Page) Undone(u *regie.Undo) {
	p.line(p.Text.T("undo %s of run %s", Short(u.ID), u.RoundID) + ": " + undoCounts(p.Text, u))
	for i := range u.Files {
		f := &u.Files[i]
		mark, said := "✓", p.Text.T("put back")
		switch {
		case f.Outcome == regie.FileNotUndone:
			mark, said = "✗", p.Text.T("left as it is")
			if f.Why != nil {
				said += ": " + p.Text.Sentence(*f.Why)
			}
		case !f.To.Exists():
			said = p.Text.T("removed")
		}
		p.line("  " + mark + " " + plain.Line(f.Path+"  "+said))
	}
	p.effects(u.Effects)
	if u.Left() > 0 {
		p.line(p.Text.T("what was left can be undone again: %s", p.undoCommand(Short(u.RoundID))))
	}
	p.line(p.Text.T("to take this undo back: %s", p.undoCommand(Short(u.ID))))
}

// undoCommand is what undoes something where this is read.
func (p *Page) undoCommand(id string) string {
	if p.Inside { // it is typed there too
		return "/undo " + id
	}
	return p.Text.Typed("regie undo " + id)
}

// Redo writes how several undos are taken back together: the last one first.
func (p *Page) Redo(done []regie.Undo) {
	var names []string
	for i := range slices.Backward(done) {
		names = append(names, Short(done[i].ID))
	}
	if len(done) > 1 {
		p.line(p.Text.T("to take all of it back: %s", p.undoCommand(strings.Join(names, " "))))
	}
}

// undoCounts says how much went back.
func undoCounts(t *text.Printer, u *regie.Undo) string {
	var parts []string
	if n := len(u.Files) - u.Left(); n > 0 || !u.Chat {
		parts = append(parts, t.T("files put back: %d", n))
	}
	if n := u.Left(); n > 0 {
		parts = append(parts, t.T("left as they are: %d", n))
	}
	if u.Chat {
		parts = append(parts, t.T("what counts of the conversation has changed"))
	}
	return strings.Join(parts, ", ")
}

// UndoLines are an undo as a list of what became of a run has it.
func UndoLines(t *text.Printer, undos []regie.Undo) []string {
	var out []string
	for i := range undos {
		u := &undos[i]
		at := u.CreatedAt.Local().Format("2006-01-02 15:04:05")
		line := t.T("undone by %s, %s", plain.Line(u.By), at)
		if !u.Undoes.IsZero() {
			line = t.T("the undo %s was taken back by %s, %s", Short(u.Undoes), plain.Line(u.By), at)
		}
		out = append(out, line+": "+undoCounts(t, u)+"  ("+Short(u.ID)+")")
	}
	return out
}

// undoWords reads what stands behind /undo: how many runs, or ids; "to" and the run or the message
// to go back to; files alone; by force.
func undoWords(in *dispatch.UndoRequest, rest string) (series UndoSeries) {
	to := false
	for word := range strings.FieldsSeq(rest) {
		runs, err := strconv.Atoi(word)
		switch {
		case to:
			series.Back, to = word, false
		case word == "files":
			in.Chat = false
		case word == "force":
			in.Force = true
		case word == "to":
			to = true
		case err == nil && runs > 0 && runs <= MaxSeries: // a part of an id has four letters
			series.Runs = runs
		default:
			series.Names = append(series.Names, word)
		}
	}
	return series
}

// UndoInTheWay says that nothing was undone, and what could be done about it.
func UndoInTheWay(t *text.Printer, plan *regie.UndoPlan, force bool, how string) string {
	files, conflicts := len(plan.Files), len(plan.Conflicts(force))
	if force || plan.Stuck() == files && !plan.Chat {
		return t.T("nothing was undone: of %d files %d are in the way", files, conflicts)
	}
	return t.T("nothing was undone: of %d files %d are in the way; %s puts them back all the same, keeps what they hold now and leaves what cannot be put back", files, conflicts, how)
}

// MaxSeries bounds how many runs are undone together.
const MaxSeries = 100

// UndoSeries says which undos a person wants together.
type UndoSeries struct {
	// Names are runs and undos, in the order in which they are to be undone; none: the newest runs.
	Names []string
	// Runs is how many runs are meant where none is named; 0 is one. Back is a run, or the id of a
	// message: all that its session has done from there on.
	Runs int
	Back string
}

// UndoPlans plans the undos of a series, each as if those before it were done. It stops at the
// first in whose way something stands: nothing of a series is done then. Where there are fewer runs
// than are wanted it plans what there is.
func UndoPlans(ctx context.Context, control Control, in dispatch.UndoRequest, series UndoSeries) (
	out []regie.UndoPlan, err error,
) {
	wanted := max(1, series.Runs, len(series.Names))
	if series.Back != "" && series.Runs == 0 && len(series.Names) == 0 {
		wanted = MaxSeries
	}
	if wanted > MaxSeries {
		return nil, regie.Errorf(regie.CodeBadRequest, "at most %d runs are undone together", MaxSeries)
	}
	in.Back = series.Back
	for n := range wanted {
		next := in
		if len(series.Names) > 0 {
			if err := UndoNamed(&next, series.Names[n]); err != nil {
				return nil, err
			}
		}
		plan, err := control.PlanUndo(ctx, next)
		if regie.CodeOf(err) == regie.CodeNotFound && len(out) > 0 && len(series.Names) == 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		out = append(out, plan)
		if len(plan.Conflicts(in.Force)) > 0 {
			break
		}
		in.Over = append(in.Over, UndoTarget(&plan))
	}
	return out, nil
}

// UndoTarget is what a plan undoes: a run, or an undo.
func UndoTarget(plan *regie.UndoPlan) regie.ID {
	if !plan.Undoes.IsZero() {
		return plan.Undoes
	}
	return plan.RoundID
}

// Agreed is the request for a plan that a person agreed to.
func Agreed(in dispatch.UndoRequest, plan *regie.UndoPlan) dispatch.UndoRequest {
	in.UndoID, in.Target, in.Short, in.Back, in.Over, in.Plan = regie.NewID(), UndoTarget(plan), "", "", nil, plan.Plan
	return in
}
