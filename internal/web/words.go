package web

import (
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// chip is a state as icon and word.
type chip struct{ Class, Icon, Word string }

// lamp is the state of a chat in the navigation: a shape, and the word for it.
type lamp struct{ Class, Word string }

// sessionChip returns the chip of a session.
func sessionChip(t *i18n.Printer, s *store.SessionSummary) chip {
	switch s.State {
	case regie.SessionActive:
		return chip{"work", "spark", t.T("Working")}
	case regie.SessionQueued:
		if s.QueuePosition > 0 {
			return chip{"", "clock", t.T("Queued, place %s", strconv.Itoa(s.QueuePosition))}
		}
		return chip{"", "clock", t.T("Queued")}
	case regie.SessionWaitingValidation:
		return chip{"you", "warn", t.T("Needs you")}
	case regie.SessionWaitingResponse:
		return chip{"you", "ask", t.T("Question")}
	case regie.SessionWaitingNetwork:
		return chip{"", "waves", t.T("No network")}
	case regie.SessionWaitingProvider:
		return chip{"", "clock", t.T("Waits for its provider")}
	case regie.SessionWaitingTask:
		return chip{"", "clock", t.T("Waits for a task")}
	case regie.SessionPaused:
		return chip{"", "pause", t.T("Paused")}
	case regie.SessionClosed:
		return chip{"", "tick", t.T("Closed")}
	default:
		if s.LastEnd == "" || s.LastEnd == regie.EndAnswered || s.LastEnd == regie.EndCompleted {
			return chip{"", "ring", t.T("Idle")}
		}
		return endChip(t, s.LastEnd)
	}
}

// endChip returns the chip of why a round ended.
func endChip(t *i18n.Printer, end regie.RoundEnd) chip {
	switch end {
	case regie.EndAnswered:
		return chip{"", "tick", t.T("Answered")}
	case regie.EndCompleted:
		return chip{"", "tick", t.T("Completed")}
	case regie.EndLimit:
		return chip{"you", "warn", t.T("Limit reached")}
	case regie.EndEarlyStop:
		return chip{"you", "warn", t.T("Stopped early")}
	case regie.EndDenied:
		return chip{"", "cross", t.T("Denied")}
	case regie.EndInterrupted:
		return chip{"", "pause", t.T("Interrupted")}
	case regie.EndStopped:
		return chip{"", "stop", t.T("Stopped")}
	case regie.EndProviderError:
		return chip{"bad", "cross", t.T("Model error")}
	case regie.EndNoProgress:
		return chip{"bad", "cross", t.T("No progress")}
	case regie.EndWatchdog:
		return chip{"bad", "cross", t.T("Stopped: no activity")}
	case regie.EndClientTools:
		return chip{"", "clock", t.T("Waits for the client")}
	default:
		return chip{"", "ring", string(end)}
	}
}

// roundChip returns the chip of a round.
func roundChip(t *i18n.Printer, r *regie.Round) chip {
	switch r.State {
	case regie.RoundRunning:
		return chip{"work", "spark", t.T("Working")}
	case regie.RoundWaiting:
		return chip{"", "clock", t.T("Waits")}
	default:
		return endChip(t, r.End)
	}
}

// callChip returns the chip of a call.
func callChip(t *i18n.Printer, c *regie.Call) chip {
	switch c.State {
	case regie.CallProposed:
		return chip{"open", "ring", t.T("Proposed")}
	case regie.CallApproved:
		return chip{"open", "ring", t.T("Allowed")}
	case regie.CallAwaitingApproval:
		return chip{"you", "warn", t.T("Asks")}
	case regie.CallStarted:
		return chip{"work", "spin", t.T("Running")}
	case regie.CallSucceeded:
		if store.ExitCode(c) != "" {
			return chip{"bad", "cross", t.T("exit code %s", store.ExitCode(c))}
		}
		return chip{"done", "tick", t.T("Done")}
	case regie.CallFailed:
		return chip{"bad", "cross", t.T("Failed")}
	case regie.CallUnknown:
		return chip{"unknown", "lozenge", t.T("Outcome unknown")}
	default:
		return notRunChip(t, c.NotRun)
	}
}

// notRunChip returns the chip of a call that was not run.
func notRunChip(t *i18n.Printer, code regie.NotRunCode) chip {
	word := string(code)
	switch code {
	case regie.NotRunDuplicateInBatch, regie.NotRunCached:
		return chip{"open", "copy", t.T("Same as above")}
	case regie.NotRunDenied:
		word = t.T("denied")
	case regie.NotRunExpired:
		word = t.T("expired")
	case regie.NotRunAntiLoop:
		word = t.T("repeated")
	case regie.NotRunOverLimit:
		word = t.T("over the limit")
	case regie.NotRunInterrupted:
		word = t.T("interrupted")
	case regie.NotRunSuperseded:
		word = t.T("you changed course")
	case regie.NotRunOutOfScope:
		word = t.T("not its tool")
	case regie.NotRunInvalid:
		word = t.T("wrong arguments")
	case regie.NotRunRepeatedFailure:
		word = t.T("failed before")
	}
	return chip{"open", "cross", t.T("Not run: %s", word)}
}

// lampOf returns the lamp of a session.
func (v *visit) lampOf(s *store.SessionSummary) lamp {
	switch c := sessionChip(v.text, s); {
	case c.Class == "work", c.Class == "you", c.Class == "bad":
		return lamp{c.Class, c.Word}
	case s.Unread > 0 || s.Finished:
		return lamp{"unread", v.text.T("Unread")}
	default:
		return lamp{"read", c.Word}
	}
}

// callSentence says what a call does.
func callSentence(t *i18n.Printer, c *regie.Call) string {
	about := sanitize.Line(store.About(c))
	switch {
	case about == "" && c.Tool == "files.list_files":
		return t.T("List files")
	case c.Tool == "session.update_plan":
		return t.T("Update the plan")
	case c.Tool == "session.ask_user":
		return t.T("Ask a question")
	case about == "":
		return sanitize.Line(c.Tool)
	}
	switch c.Tool {
	case "files.read_file":
		return t.T("Read %s", about)
	case "files.write_file":
		return t.T("Write %s", about)
	case "files.edit_file":
		return t.T("Change %s", about)
	case "files.delete_file":
		return t.T("Delete %s", about)
	case "files.list_files":
		return t.T("List %s", about)
	case "files.search_text", "files.search_semantic":
		return t.T("Search for %s", about)
	case "shell.shell_exec":
		return t.T("Run %s", about)
	}
	return about
}

// modeChoice is a mode as it is chosen.
type modeChoice struct {
	Mode        regie.Mode
	Name, About string
	Chosen      bool
}

// modeChoices returns the modes of a chat.
func modeChoices(t *i18n.Printer, chosen regie.Mode) []modeChoice {
	out := make([]modeChoice, 0, len(regie.Modes()))
	for _, mode := range regie.Modes() {
		m := modeChoice{Mode: mode, Chosen: mode == chosen || chosen == "" && mode == regie.ModeAsk}
		switch mode {
		case regie.ModeAcceptEdits:
			m.Name, m.About = t.T("Accept edits"), t.T("It changes files without asking, and asks before commands.")
		case regie.ModePlan:
			m.Name, m.About = t.T("Plan first"), t.T("It reads, and changes nothing until you approve its plan.")
		case regie.ModeAuto:
			m.Name, m.About = t.T("Auto"), t.T("It changes files and runs sandboxed commands without asking.")
		default:
			m.Name, m.About = t.T("Ask first"), t.T("It reads freely and asks before it changes anything.")
		}
		out = append(out, m)
	}
	return out
}

// formatSpan formats how long something took.
func formatSpan(t *i18n.Printer, d time.Duration) string {
	switch {
	case d < time.Second:
		return t.T("%d ms", d.Milliseconds())
	case d < time.Minute:
		return t.T("%.1f s", d.Seconds())
	case d < 10*time.Minute && d%time.Minute >= time.Second:
		return t.T("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < time.Hour:
		return t.T("%s min", strconv.Itoa(int(d.Minutes())))
	case d < 48*time.Hour:
		return t.T("%s h", strconv.Itoa(int(d.Hours())))
	default:
		return t.T("%d days", int(d.Hours()/24))
	}
}

// formatTokens formats a number of tokens, in thousands from a thousand on.
func formatTokens(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return strconv.Itoa((n+500)/1000) + "\u00a0k"
}

// formatCost formats the cost of model calls; an unknown cost is never shown as 0.
func formatCost(t *i18n.Printer, s regie.Spending) string {
	if s.Known {
		return t.T("$%s", regie.Dollars(s.Cost))
	}
	if s.Cost > 0 {
		return t.T("cost unknown, at least $%s", regie.Dollars(s.Cost))
	}
	return t.T("cost unknown")
}

// sentences translates some.
func sentences(v *visit, list []regie.Sentence) (out []string) {
	for _, one := range list {
		out = append(out, sanitize.Line(v.text.Sentence(one)))
	}
	return out
}

// capitalize begins a sentence with a capital letter.
func capitalize(s string) string {
	if s == "" {
		return s
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// countCalls says how many calls there are.
func countCalls(t *i18n.Printer, n int) string {
	if n == 1 {
		return t.T("1 call")
	}
	return t.T("%d calls", n)
}
