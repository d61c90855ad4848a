package chat

import (
	"fmt"
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
	what := p.Text.T("undo of run %s", plan.RoundID)
	if !plan.Undoes.IsZero() {
		what = p.Text.T("undo of the undo %s: what it took back of run %s comes again",
			Short(plan.Undoes), plan.RoundID)
	}
	if plan.Text != "" {
		what += "  " + p.Text.T("\"%s\"", plain.Line(oneLine(plan.Text)))
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
		p.line("     " + p.Text.T("the directories that are empty then go: %s",
			plain.Line(strings.Join(plan.Removes, ", "))))
	}
	switch {
	case plan.Chat && p.restores(plan):
		p.line("     " + p.Text.T("messages that are part of the conversation again: %d", plan.Messages))
	case plan.Chat:
		p.line("     " + p.Text.T("messages that are taken out of the conversation, and stay readable: %d",
			plan.Messages))
	}
	p.effects(plan.Effects)
	return more
}

// restores says that an undo brings messages again: it takes back one that took them out.
func (p *Page) restores(plan *regie.UndoPlan) bool { return !plan.Undoes.IsZero() }

// effects lists what is not taken back.
func (p *Page) effects(list []regie.Effect) {
	if len(list) == 0 {
		return
	}
	p.line("     " + p.Text.T("this cannot be undone and stays as it is:"))
	for i := range list {
		e := &list[i]
		if e.Trash != "" {
			p.line("       " +
				p.Text.T("%s was deleted and is too large to be put back by itself; move it back from %s",
					plain.Line(e.Arguments), plain.Line(e.Trash)))
			continue
		}
		line := "       " + plain.Line(e.Tool) + " " + plain.Line(oneLine(e.Arguments))
		if e.State == regie.CallUnknown {
			line += "  " + p.Text.T("(nobody knows what became of it)")
		}
		p.line(line)
		if e.Why != nil {
			p.line("         " + plain.Line(p.Text.Sentence(*e.Why)))
		}
	}
}

// Undone writes what became of an undo, and how it is taken back.
func (p *Page) Undone(u *regie.Undo) {
	p.line(p.Text.T("undo %s of run %s", Short(u.ID), u.RoundID) + ": " + undoCounts(p.Text, u))
	for i := range u.Files {
		f := &u.Files[i]
		mark, name := "✓", plain.Line(f.Path)
		said := p.Text.T("put back")
		switch {
		case f.Outcome == regie.FileNotUndone:
			mark, said = "✗", p.Text.T("left as it is")
			if f.Why != nil {
				said += ": " + plain.Line(p.Text.Sentence(*f.Why))
			}
		case !f.To.Exists():
			said = p.Text.T("removed")
		case !f.From.Exists():
			said = p.Text.T("restored")
		}
		p.line("  " + mark + " " + name + "  " + said)
	}
	p.effects(u.Effects)
	again, back := p.Text.T("what was left can be undone again: regie undo %s", Short(u.RoundID)),
		p.Text.T("to take this undo back: regie undo %s", Short(u.ID))
	if p.Inside { // it is typed there too
		again, back = p.Text.T("what was left can be undone again: /undo %s", Short(u.RoundID)),
			p.Text.T("to take this undo back: /undo %s", Short(u.ID))
	}
	if u.Left() > 0 {
		p.line(again)
	}
	p.line(back)
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
		line := t.T("undone by %s, %s", plain.Line(u.By), u.CreatedAt.Local().Format("2006-01-02 15:04:05"))
		if !u.Undoes.IsZero() {
			line = t.T("the undo %s was taken back by %s, %s", Short(u.Undoes), plain.Line(u.By),
				u.CreatedAt.Local().Format("2006-01-02 15:04:05"))
		}
		if u.Forced {
			line += " " + t.T("(forced)")
		}
		if u.State != regie.UndoDone {
			line += ": " + t.T("under way")
		} else {
			line += ": " + undoCounts(t, u)
		}
		out = append(out, line+"  ("+Short(u.ID)+")")
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
	said := t.T("nothing was undone: of %d files %d are in the way", len(plan.Files), len(plan.Conflicts(force)))
	if force || plan.Stuck() == len(plan.Files) && !plan.Chat {
		return said
	}
	return said + "; " + t.T(
		"%s puts them back all the same, keeps what they hold now and leaves what cannot be put back", how)
}

// UndoLeaves says, before a person agrees to an undo by force, what it leaves; "" where that is
// nothing.
func UndoLeaves(t *text.Printer, plans []regie.UndoPlan, force bool) string {
	files, stuck := 0, 0
	for i := range plans {
		files, stuck = files+len(plans[i].Files), stuck+plans[i].Stuck()
	}
	if !force || stuck == 0 {
		return ""
	}
	return t.T("of %d files %d cannot be put back and stay as they are (✗)", files, stuck)
}

// superseded marks a message that no longer counts.
func (p *Page) superseded(is bool) string {
	if !is {
		return ""
	}
	return "  " + p.Text.T("(no longer part of the conversation)")
}

// undos writes what was taken back in a session.
func (p *Page) undos(list []regie.Undo) {
	if len(list) == 0 {
		return
	}
	p.line("")
	for i, line := range UndoLines(p.Text, list) {
		p.line(p.Text.T("run %s", list[i].RoundID.String()) + "  " + line)
	}
}
