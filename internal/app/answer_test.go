package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestAnswerCheck sends an answer back that a person should not get, once, where the agent's file
// says so (spec 6.2).
func TestAnswerCheck(t *testing.T) {
	t.Parallel()
	list := call{"a", "files__list_files", `{}`}
	for name, c := range map[string]struct {
		agent   config.Agent
		replies []string // behind the call; each is an answer
		want    string
		count   int
		told    string // to the model; empty where the first answer stands
	}{
		"raw JSON":            {config.Agent{AnswerCheck: true}, []string{`{"files": []}`, "There are no files."}, "There are no files.", 3, "raw JSON"},
		"an apology":          {config.Agent{AnswerCheck: true}, []string{"I'm sorry, there are no files.", "There are no files."}, "There are no files.", 3, "without an apology"},
		"in French":           {config.Agent{AnswerCheck: true, Language: "fr"}, []string{"Je suis désolé, il n'y a rien.", "Il n'y a rien."}, "Il n'y a rien.", 3, "Écris la réponse de nouveau"},
		"once only":           {config.Agent{AnswerCheck: true}, []string{`{"files": []}`, `{"files": 0}`}, `{"files": 0}`, 3, "raw JSON"},
		"not where it is off": {config.Agent{}, []string{`{"files": []}`, "never"}, `{"files": []}`, 2, ""},
		"no corrections left": {config.Agent{AnswerCheck: true, Limits: regie.Limits{Total: 2}}, []string{`{"files": []}`, "never"}, `{"files": []}`, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, says("", list), says(c.replies[0]), says(c.replies[1]))
			b := newBed(t, m)
			b.settings.File.Agents = map[string]config.Agent{"main": c.agent}
			view := b.run(everything)
			last := view.Exchanges[len(view.Exchanges)-1]
			if view.Round.End != regie.EndAnswered || last.Reply.AI.Text() != c.want || view.Round.Counters.Total != c.count {
				t.Errorf("%s with %q after %d replies", view.Round.End, last.Reply.AI.Text(), view.Round.Counters.Total)
			}
			sentBack := slices.ContainsFunc(b.events(view.Session.ID), func(e regie.Event) bool {
				return e.Type == regie.EventMessage && strings.Contains(string(e.Body), string(regie.SystemFormatError))
			})
			if sentBack != (c.told != "") || !strings.Contains(m.last(), c.told) {
				t.Errorf("sent back: %v; the model was told %s", sentBack, m.last())
			}
		})
	}
}

// TestPromptOfAnAgent: its instructions, degree and language are those of the file, each chunk has
// its row, and the marks of a cache are shown.
func TestPromptOfAnAgent(t *testing.T) {
	t.Parallel()
	formats := providertest.Formats()
	format := &formats[slices.IndexFunc(formats, func(f providertest.Format) bool { return f.Name == "anthropic" })]
	server := providertest.NewServer(t, format, providertest.Scene{Text: []string{"Bonjour."}})
	b := &bed{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
	b.settings.File.Agents = map[string]config.Agent{"main": {Instructions: "Tu tiens les papiers.", PromptDegree: 4, Language: "fr"}}
	conn := b.connect()
	defer conn.Close()
	view := b.job(conn, regie.ID{}, "hello")
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{SessionID: view.Session.ID})
	if err != nil {
		t.Fatal(err)
	}
	var chunks, marked []string
	for _, part := range p.Parts {
		if part.Chunk != "" {
			chunks = append(chunks, part.Chunk)
		}
		if part.Breakpoint {
			marked = append(marked, part.Kind+" "+part.Chunk+part.Sender)
		}
	}
	if want := []string{"role", "work", "trust", "unknown", "errors", "approvals", "files", "search", "steps", "shell", "batches", "plan", "style", "limits", "instructions"}; !slices.Equal(chunks, want) {
		t.Errorf("chunks %v", chunks)
	}
	if want := []string{"level1 instructions", "message AI"}; !slices.Equal(marked, want) {
		t.Errorf("marked %q", marked)
	}
	if n := strings.Count(string(p.Body), `"cache_control"`); n != len(marked) {
		t.Errorf("%d marks are shown, %d stand in the request", len(marked), n)
	}
	if !strings.Contains(string(p.Body), "Tu es un agent") || !strings.Contains(string(p.Body), "Tu tiens les papiers.") {
		t.Errorf("the prompt is %s", p.Body)
	}
}

// TestWorkspaceDocument: each round is told what AGENTS.md says when it begins, up to a quarter of
// its budget, and it goes with its sessions.
func TestWorkspaceDocument(t *testing.T) {
	t.Parallel()
	m := newModel(t, says("One."), says("Two."), says("Three."))
	b := newBed(t, m)
	b.settings.File.Budget.ContextTokens = 6000
	path := filepath.Join(b.root, "AGENTS.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conn := b.connect()
	defer conn.Close()
	write("# Ways\nInvoices go below invoices/YEAR.\n")
	view := b.job(conn, regie.ID{}, "one")
	if !strings.Contains(m.last(), `## AGENTS.md\n`) || !strings.Contains(m.last(), `Invoices go below invoices/YEAR.`) {
		t.Errorf("the model was told %s", m.last())
	}
	write(strings.Repeat("a line of thirty-two characters\n", 1000))
	b.job(conn, view.Session.ID, "two")
	if n := strings.Count(m.last(), "a line of thirty-two"); n < 180 || n > 188 || !strings.Contains(m.last(), "files.read_file reads the rest") || strings.Contains(m.last(), "Invoices") {
		t.Errorf("%d of 1000 lines in 1500 tokens: %.600s", n, m.last())
	}
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{SessionID: view.Session.ID})
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(p.Parts, func(part engine.PromptPart) bool { return part.Kind == "level2" }); i < 0 || p.Parts[i].Chunk != "AGENTS.md" {
		t.Errorf("the parts are %+v", p.Parts)
	}
	removed, err := conn.Remove(t.Context(), dispatch.RemoveRequest{SessionID: view.Session.ID})
	if err != nil || removed.Blobs != 2 {
		t.Errorf("removed %+v, %v", removed, err)
	}
}
