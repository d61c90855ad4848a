package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
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

// chipWords is a chip before its word is translated.
type chipWords struct {
	class, icon string
	word        regie.Sentence
}

func (c chipWords) translateChip(t *i18n.Printer) chip {
	return chip{c.class, c.icon, t.Sentence(c.word)}
}

var sessionChips = map[regie.SessionState]chipWords{
	regie.SessionActive:            {"work", "spark", regie.Say("Working")},
	regie.SessionQueued:            {"", "clock", regie.Say("Queued")},
	regie.SessionWaitingValidation: {"you", "warn", regie.Say("Needs you")},
	regie.SessionWaitingNetwork:    {"", "waves", regie.Say("No network")},
	regie.SessionWaitingProvider:   {"", "clock", regie.Say("Waits for its provider")},
	regie.SessionWaitingTask:       {"", "clock", regie.Say("Waits for a task")},
	regie.SessionPaused:            {"", "pause", regie.Say("Paused")},
	regie.SessionClosed:            {"", "tick", regie.Say("Closed")},
}

// sessionChip returns the chip of a session.
func sessionChip(t *i18n.Printer, s *store.SessionSummary) chip {
	switch {
	case s.State == regie.SessionQueued && s.QueuePosition > 0:
		return chip{"", "clock", t.T("Queued, place %s", strconv.Itoa(s.QueuePosition))}
	case s.State == regie.SessionWaitingResponse: // the same word in French, which none of Say may be
		return chip{"you", "ask", t.T("Question")}
	}
	if known, found := sessionChips[s.State]; found {
		return known.translateChip(t)
	}
	if s.LastEnd == "" || hasAnswered(s.LastEnd) {
		return chip{"", "ring", t.T("Idle")}
	}
	return endChip(t, s.LastEnd)
}

// hasAnswered reports whether a round ended with its answer.
func hasAnswered(end regie.RoundEnd) bool {
	return end == regie.EndAnswered || end == regie.EndCompleted
}

var endChips = map[regie.RoundEnd]chipWords{
	regie.EndAnswered:      {"", "tick", regie.Say("Answered")},
	regie.EndCompleted:     {"", "tick", regie.Say("Completed")},
	regie.EndLimit:         {"you", "warn", regie.Say("Limit reached")},
	regie.EndEarlyStop:     {"you", "warn", regie.Say("Stopped early")},
	regie.EndDenied:        {"", "cross", regie.Say("Denied")},
	regie.EndInterrupted:   {"", "pause", regie.Say("Interrupted")},
	regie.EndStopped:       {"", "stop", regie.Say("Stopped")},
	regie.EndProviderError: {"bad", "cross", regie.Say("Model error")},
	regie.EndNoProgress:    {"bad", "cross", regie.Say("No progress")},
	regie.EndWatchdog:      {"bad", "cross", regie.Say("Stopped: no activity")},
	regie.EndClientTools:   {"", "clock", regie.Say("Waits for the client")},
}

// endChip returns the chip of why a round ended.
func endChip(t *i18n.Printer, end regie.RoundEnd) chip {
	if known, found := endChips[end]; found {
		return known.translateChip(t)
	}
	return chip{"", "ring", string(end)}
}

var callChips = map[regie.CallState]chipWords{
	regie.CallProposed:         {"open", "ring", regie.Say("Proposed")},
	regie.CallApproved:         {"open", "ring", regie.Say("Allowed")},
	regie.CallAwaitingApproval: {"you", "warn", regie.Say("Asks")},
	regie.CallStarted:          {"work", "spin", regie.Say("Running")},
	regie.CallSucceeded:        {"done", "tick", regie.Say("Done")},
	regie.CallFailed:           {"bad", "cross", regie.Say("Failed")},
	regie.CallUnknown:          {"unknown", "lozenge", regie.Say("Outcome unknown")},
}

var exchangeChips = map[regie.ExchangeState]chipWords{
	regie.ExchangeOpen:    {"work", "spin", regie.Say("Running")},
	regie.ExchangeReplied: {"done", "tick", regie.Say("Done")},
	regie.ExchangeFailed:  {"bad", "cross", regie.Say("Failed")},
}

// callChip returns the chip of a call.
func callChip(t *i18n.Printer, c *regie.Call) chip {
	if code := store.ExitCode(c); c.State == regie.CallSucceeded && code != "" {
		return chip{"bad", "cross", t.T("exit code %s", code)}
	}
	if known, found := callChips[c.State]; found {
		return known.translateChip(t)
	}
	return notRunChip(t, c.NotRun)
}

var notRunWords = map[regie.NotRunCode]regie.Sentence{
	regie.NotRunDenied:          regie.Say("denied"),
	regie.NotRunExpired:         regie.Say("expired"),
	regie.NotRunAntiLoop:        regie.Say("repeated"),
	regie.NotRunOverLimit:       regie.Say("over the limit"),
	regie.NotRunInterrupted:     regie.Say("interrupted"),
	regie.NotRunSuperseded:      regie.Say("you changed course"),
	regie.NotRunOutOfScope:      regie.Say("not its tool"),
	regie.NotRunInvalid:         regie.Say("wrong arguments"),
	regie.NotRunRepeatedFailure: regie.Say("failed before"),
}

// notRunChip returns the chip of a call that was not run.
func notRunChip(t *i18n.Printer, code regie.NotRunCode) chip {
	if code == regie.NotRunDuplicateInBatch || code == regie.NotRunCached {
		return chip{"open", "copy", t.T("Same as above")}
	}
	return chip{"open", "cross", t.T("Not run: %s", t.Sentence(notRunWords[code]))}
}

// sessionCallsChip returns the chip of a session, with its calls among the unknown ones.
func sessionCallsChip(t *i18n.Printer, s *store.SessionSummary, unknown []regie.Call) chip {
	c := sessionChip(t, s)
	if c.Class == "" && slices.ContainsFunc(unknown, func(c regie.Call) bool { return c.SessionID == s.ID }) {
		return callChips[regie.CallUnknown].translateChip(t)
	}
	return c
}

// lampOf returns the lamp of a session.
func (v *visit) lampOf(s *store.SessionSummary, unknown []regie.Call) lamp {
	switch c := sessionCallsChip(v.text, s, unknown); {
	case c.Class != "":
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
	said := map[string]regie.Sentence{
		"session.update_plan":   regie.Say("Update the plan"),
		"session.ask_user":      regie.Say("Ask a question"),
		"files.read_file":       regie.Say("Read %s", about),
		"files.write_file":      regie.Say("Write %s", about),
		"files.edit_file":       regie.Say("Change %s", about),
		"files.delete_file":     regie.Say("Delete %s", about),
		"files.list_files":      regie.Say("List %s", about),
		"files.search_text":     regie.Say("Search for %s", about),
		"files.search_semantic": regie.Say("Search for %s", about),
		"shell.shell_exec":      regie.Say("Run %s", about),
	}[c.Tool]
	switch {
	case about == "" && c.Tool == "files.list_files":
		return t.T("List files")
	case about == "" && len(said.Args) > 0:
		return sanitize.Line(c.Tool)
	}
	return cmp.Or(t.Sentence(said), about, sanitize.Line(c.Tool))
}

// modeChoice is a mode as it is chosen.
type modeChoice struct {
	Mode        regie.Mode
	Name, About string
	Chosen      bool
}

// modeChoices returns the modes of a chat.
func modeChoices(t *i18n.Printer, chosen regie.Mode) []modeChoice {
	out := []modeChoice{
		{regie.ModeAsk, t.T("Ask first"), t.T("It reads freely and asks before it changes anything."), false},
		{regie.ModeAcceptEdits, t.T("Accept edits"), t.T("It changes files without asking, and asks before commands."), false},
		{regie.ModePlan, t.T("Plan first"), t.T("It reads, and changes nothing until you approve its plan."), false},
		{regie.ModeAuto, t.T("Auto"), t.T("It changes files and runs sandboxed commands without asking."), false},
	}
	at := slices.IndexFunc(out, func(m modeChoice) bool { return m.Mode == chosen })
	out[max(0, at)].Chosen = true
	return out
}

// formatMicros formats microseconds.
func formatMicros(t *i18n.Printer, us int64) string {
	return formatSpan(t, time.Duration(us)*time.Microsecond)
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

// sayLine translates a sentence that may hold words of others.
func (v *visit) sayLine(s regie.Sentence) string { return sanitize.Line(v.text.Sentence(s)) }

// sentences translates some.
func sentences(v *visit, list []regie.Sentence) (out []string) {
	for _, one := range list {
		out = append(out, v.sayLine(one))
	}
	return out
}

// capitalize begins a sentence with a capital letter.
func capitalize(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + s[size:]
}

// countCalls says how many calls there are.
func countCalls(t *i18n.Printer, n int) string {
	if n == 1 {
		return t.T("1 call")
	}
	return t.T("%d calls", n)
}
