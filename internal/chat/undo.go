package chat

import (
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
)

// UndoNamed sets the run or undo that a person names: by its id, its last four or more characters,
// or its first eight or more. "" and "last" leave the choice of the newest to the engine. It
// returns CodeBadID for an impossible id.
func UndoNamed(in *dispatch.UndoRequest, name string) (err error) {
	if name == "" || name == "last" {
		return nil
	}
	in.Target, in.Short, err = idOrPart(name)
	return err
}

// UndoPlan writes the effect of an undo: each file with its diff, the obstacles, and what stays
// unchanged. It shows at most limit lines of each diff; 0 means all. It reports whether there was
// more.
func (p *Page) UndoPlan(plan *regie.UndoPlan, limit int) (more bool) {
	again := !plan.Undoes.IsZero()
	what := p.Text.T("undo of run %s", plan.RoundID)
	if again {
		what = p.Text.T("undo of the undo %s: the changes of run %s are restored", Short(plan.Undoes), plan.RoundID)
	}
	if plan.Text != "" {
		what += "  \"" + sanitize.Line(truncateLine(plan.Text, shownText)) + "\""
	}
	p.writeLine(what)
	for i := range plan.Previews {
		f := &plan.Previews[i]
		p.writeLine(fmt.Sprintf("%3d  %s", i+1, sanitize.Line(p.Text.Sentence(f.Sentence))))
		if c := f.Conflict; c != nil {
			p.writeLine("     ✗ " + sanitize.Line(p.Text.Sentence(c.Sentence)))
		}
		for _, warning := range f.Warnings {
			p.writeLine("     ! " + sanitize.Line(p.Text.Sentence(warning)))
		}
		more = p.Diff(&regie.Review{Preview: regie.Preview{Diff: f.Diff}}, limit) || more
	}
	if len(plan.Removes) > 0 {
		gone := p.Text.T("directories that become empty are removed: %s", strings.Join(plan.Removes, ", "))
		p.writeNote(sanitize.Line(gone))
	}
	switch {
	case plan.Chat && again:
		p.writeNote(p.Text.T("messages that are part of the conversation again: %d", plan.Messages))
	case plan.Chat:
		p.writeNote(p.Text.T("messages removed from the conversation (still readable): %d", plan.Messages))
	}
	p.writeEffects(plan.Effects)
	return more
}

// writeEffects lists the effects that stay.
func (p *Page) writeEffects(list []regie.Effect) {
	if len(list) > 0 {
		p.writeNote(p.Text.T("this cannot be undone and stays as it is:"))
	}
	for i := range list {
		e := &list[i]
		line := e.Tool + " " + truncateLine(e.Arguments, shownText)
		if e.State == regie.CallUnknown {
			line += "  " + p.Text.T("(outcome unknown)")
		}
		if e.Why != nil {
			line += ": " + p.Text.Sentence(*e.Why)
		}
		p.writeLine("       " + sanitize.Line(line))
	}
}

// Undone writes what became of an undo, and how it is taken back.
func (p *Page) Undone(u *regie.Undo) {
	p.writeLine(p.Text.T("undo %s of run %s", Short(u.ID), u.RoundID) + ": " + undoCounts(p.Text, u))
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
		p.writeLine("  " + mark + " " + sanitize.Line(f.Path+"  "+said))
	}
	p.writeEffects(u.Effects)
	if u.Left() > 0 {
		p.writeLine(p.Text.T("to undo the rest: %s", p.undoCommand(Short(u.RoundID))))
	}
	p.writeLine(p.Text.T("to revert this undo: %s", p.undoCommand(Short(u.ID))))
}

// undoCommand returns what undoes something where this is read.
func (p *Page) undoCommand(id string) string {
	if p.Inside { // it is typed there too
		return "/undo " + id
	}
	return "regie undo " + id
}

// undoCounts says how much went back.
func undoCounts(t *i18n.Printer, u *regie.Undo) string {
	var parts []string
	if n := len(u.Files) - u.Left(); n > 0 || !u.Chat {
		parts = append(parts, t.T("files put back: %d", n))
	}
	if n := u.Left(); n > 0 {
		parts = append(parts, t.T("left as they are: %d", n))
	}
	if u.Chat {
		parts = append(parts, t.T("the conversation that the agent sees has changed"))
	}
	return strings.Join(parts, ", ")
}

// UndoLines are an undo as a list of what became of a run has it.
func UndoLines(t *i18n.Printer, undos []regie.Undo) []string {
	var out []string
	for i := range undos {
		u := &undos[i]
		at := u.CreatedAt.Local().Format("2006-01-02 15:04:05")
		line := t.T("undone by %s, %s", sanitize.Line(u.By), at)
		if !u.Undoes.IsZero() {
			line = t.T("the undo %s was taken back by %s, %s", Short(u.Undoes), sanitize.Line(u.By), at)
		}
		out = append(out, line+": "+undoCounts(t, u)+"  ("+Short(u.ID)+")")
	}
	return out
}

// undoWords parses the arguments of /undo: an id, "files", "force".
func undoWords(in *dispatch.UndoRequest, rest string) (err error) {
	for word := range strings.FieldsSeq(rest) {
		switch word {
		case "files":
			in.Chat = false
		case "force":
			in.Force = true
		default:
			err = UndoNamed(in, word)
		}
	}
	return err
}

// UndoInTheWay says that nothing was undone, and what could be done about it.
func UndoInTheWay(t *i18n.Printer, plan *regie.UndoPlan, how string) string {
	files, conflicts := len(plan.Files), len(plan.Conflicts(false))
	if len(plan.Conflicts(true)) > 0 {
		return t.T("nothing was undone: of %d files, %d are in conflict", files, conflicts)
	}
	return t.T("nothing was undone: of %d files, %d are in conflict; %s restores them anyway and keeps their present content", files, conflicts, how)
}

// Agreed is the request for a plan that a person agreed to.
func Agreed(in dispatch.UndoRequest, plan *regie.UndoPlan) dispatch.UndoRequest {
	in.UndoID, in.Target, in.Short, in.Plan = regie.NewID(), plan.RoundID, "", plan.Plan
	if !plan.Undoes.IsZero() {
		in.Target = plan.Undoes
	}
	return in
}
