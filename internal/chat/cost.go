package chat

import (
	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// Cost formats the cost of model calls. It shows an unknown cost as unknown, never as 0 (spec 6.3).
func Cost(t *i18n.Printer, s regie.Spending) string {
	switch {
	case s.Known && s.Estimated > 0:
		return t.T("cost $%s, $%s of it estimated", regie.Dollars(s.Cost), regie.Dollars(s.Estimated))
	case s.Known:
		return t.T("cost $%s", regie.Dollars(s.Cost))
	case s.Cost == 0:
		return t.T("cost unknown")
	}
	return t.T("cost unknown, at least $%s", regie.Dollars(s.Cost))
}

// Paid reports whether there is anything to say of a cost: it is neither nothing nor known to be
// nothing.
func Paid(s regie.Spending) bool { return s != regie.Spending{Known: true} }

// Today says what was spent today and which budgets hold, or "" where there is nothing to say.
func Today(t *i18n.Printer, s store.Spent, everywhere bool) string {
	if !Paid(s.All) && s.Caps.Day == 0 && s.Caps.Workspace == 0 {
		return ""
	}
	out := t.T("today, everywhere: %s", Cost(t, s.All))
	if !everywhere {
		out = t.T("today, in this workspace: %s", Cost(t, s.Workspace))
		if s.Caps.Workspace > 0 {
			out += t.T(" of $%s", regie.Dollars(s.Caps.Workspace))
		}
		out += t.T("; everywhere: %s", Cost(t, s.All))
	}
	if s.Caps.Day > 0 {
		out += t.T(" of $%s", regie.Dollars(s.Caps.Day))
	}
	return out
}
