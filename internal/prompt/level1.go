package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dialect"
)

// Documentation is what level 1 depends on.
type Documentation struct {
	Instructions string // the agent's own
	// Degree is the highest importance to include about Regie, from Essential to Nice; zero means
	// DefaultDegree.
	Degree int
	// French says it in French.
	French bool
	Limits regie.Limits
	Type   regie.SessionType
	// Toolkits are those that the agent has by its configuration: not what of them can be reached
	// at the moment, which would change the bytes.
	Toolkits []string
	// Index says that files.search_semantic is among its tools.
	Index bool
	// Servers are the external programs that provide tools, by the prefix of their tools' names.
	Servers []string
	// Questions says that a person can answer.
	Questions bool
	// Dialect is the dialect of the model's replies. The instructions for JSON and its commands
	// follow level 1, like declarations of tools: both belong to the round's tools.
	Dialect regie.Dialect
}

func (d *Documentation) maxDegree() int {
	if d.Degree == 0 {
		return DefaultDegree
	}
	return d.Degree
}

// heading begins a chunk's first line.
const heading = "## "

// Level1 is the documentation that every request of an agent begins with (spec 6.1): the same bytes
// for the same configuration. It is written of chunks, each under its heading. It names the limits
// in force as fixed figures, never as live counters.
func Level1(d Documentation) string {
	var b strings.Builder
	for i := range chunks {
		c := &chunks[i]
		if !c.isIncluded(&d) {
			continue
		}
		text := strings.TrimSpace(c.renderText(&d))
		if text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(heading + c.id + "\n" + text + "\n")
	}
	return b.String()
}

// Section is a part of a level as prompt show lists it.
type Section struct {
	Name string // of the chunk; empty for what stands under no heading of ours
	Text string
}

// Sections takes a level apart at the headings of its chunks: what Level1 has written gives its
// chunks, in order and without a byte missing.
func Sections(level string) []Section {
	var out []Section
	add := func(name, line string) {
		if name != "" || len(out) == 0 {
			out = append(out, Section{Name: name})
		}
		out[len(out)-1].Text += line
	}
	for line := range strings.Lines(level) {
		name, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), heading)
		ours := name == dialect.InstructionsID || name == AgentsFile || name == SkillsID ||
			slices.ContainsFunc(chunks, func(c chunk) bool { return c.id == name })
		if !is || !ours || slices.ContainsFunc(out, func(s Section) bool { return s.Name == name }) {
			name = ""
		}
		add(name, line)
	}
	return out
}

func limitsText(d *Documentation) string {
	if d.French {
		return limitsFrench(d)
	}
	l, calls, what := d.Limits, "tool calls", "run"
	if d.Dialect == regie.DialectJSON {
		calls = "commands"
	}
	if d.Type == regie.SessionAutomation {
		what = "session"
	}
	out := fmt.Sprintf(
		"At most %d %s in one reply, %d replies in this %s, %d replies in a row that only read, %d retries of failed actions",
		l.CallsInReply, calls, l.Total, what, l.Queries, l.Retries)
	if d.Dialect == regie.DialectJSON {
		out += fmt.Sprintf(", %d corrections in a row of replies that cannot be read", l.FormatErrors)
	}
	if l.Tokens > 0 {
		out += fmt.Sprintf(", %d tokens in this %s", l.Tokens, what)
	}
	if l.Seconds > 0 {
		out += fmt.Sprintf(", %d seconds for it", l.Seconds)
	}
	return out + "."
}

func limitsFrench(d *Documentation) string {
	l, calls, what := d.Limits, "appels d'outils", "cette exécution"
	if d.Dialect == regie.DialectJSON {
		calls = "commandes"
	}
	if d.Type == regie.SessionAutomation {
		what = "cette session"
	}
	out := fmt.Sprintf(
		"Au plus %d %s par réponse, %d réponses dans %s, %d réponses de suite qui ne font que lire, %d nouvelles tentatives d'actions échouées",
		l.CallsInReply, calls, l.Total, what, l.Queries, l.Retries)
	if d.Dialect == regie.DialectJSON {
		out += fmt.Sprintf(", %d corrections de suite de réponses illisibles", l.FormatErrors)
	}
	if l.Tokens > 0 {
		out += fmt.Sprintf(", %d jetons dans %s", l.Tokens, what)
	}
	if l.Seconds > 0 {
		out += fmt.Sprintf(", %d secondes pour elle", l.Seconds)
	}
	return out + "."
}
