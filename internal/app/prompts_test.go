package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/provider/providertest"
	"github.com/regie-run/regie/internal/store"
)

// TestRestitution sends an answer back that a person should not get, at most twice; then it renders
// the results (decision 63).
func TestRestitution(t *testing.T) {
	t.Parallel()
	list := call{"a", "files__list_files", `{}`}
	const raw, sorry = `{"name": "files__list_files", "success": true, "duration_ms": 3}`, "I'm sorry, there is a note."
	const rendered = "The model's answer was not fit to be read. These are the results:\n\nfiles.list_files has succeeded:\n\n    a.txt\t5 bytes"
	for name, c := range map[string]struct {
		agent   config.Agent
		replies []string // behind the call; each is an answer
		want    string
		told    string // to the model; empty where the first answer stands
	}{
		"raw JSON":       {config.Agent{}, []string{raw, "There is a note."}, "There is a note.", "raw JSON"},
		"an apology":     {config.Agent{Restitution: "guided"}, []string{sorry, "There is a note."}, "There is a note.", "without an apology"},
		"in French":      {config.Agent{Language: "fr"}, []string{"Je suis désolé, il y a une note.", "Il y a une note."}, "Il y a une note.", "Écris la réponse de nouveau"},
		"twice at most":  {config.Agent{}, []string{raw, sorry, raw}, rendered, "without an apology"},
		"none left":      {config.Agent{Limits: regie.Limits{Total: 2}}, []string{raw}, rendered, ""},
		"strict":         {config.Agent{Restitution: "strict"}, []string{"There is a note.", "I looked. There is a note. It is short. Shall I read it?"}, "I looked. There is a note. It is short. Shall I read it?", "4 to 6 sentences"},
		"no form wanted": {config.Agent{}, []string{"There is a note."}, "There is a note.", ""},
		"off":            {config.Agent{Restitution: "off"}, []string{raw}, raw, ""},
	} {
		t.Run(name, func(t *testing.T) {
			steps := []http.HandlerFunc{replyWith("", list)}
			for _, reply := range c.replies {
				steps = append(steps, replyWith(reply))
			}
			m := newModel(t, steps...)
			b := newHarness(t, m)
			b.holds("note\n")
			b.settings.File.Agents = map[string]config.Agent{"main": c.agent}
			view := b.run(everything)
			last := view.Exchanges[len(view.Exchanges)-1]
			if view.Round.End != regie.EndAnswered || last.Reply.AI.Text() != c.want || view.Round.Counters.Total != 1+len(c.replies) {
				t.Errorf("%s with %q after %d replies", view.Round.End, last.Reply.AI.Text(), view.Round.Counters.Total)
			}
			if c.want == rendered && last.Reply.AI.Verbatim != raw {
				t.Errorf("of the draft is kept %q", last.Reply.AI.Verbatim)
			}
			if !strings.Contains(m.last(), c.told) || (c.told == "") == strings.Contains(m.last(), "FORMAT_ERROR") {
				t.Errorf("the model was told %s", m.last())
			}
			relaunch := string(m.requests[1])
			if guided := c.agent.Restitution != "off"; strings.Contains(relaunch, `"temperature":0.2`) != guided || strings.Contains(relaunch, "[Guidance") != (guided && c.agent.Language == "") {
				t.Errorf("the relaunch says %s", relaunch)
			}
			if strings.Contains(string(m.requests[0]), "temperature") || !strings.Contains(relaunch, `"content":"{\"name\":\"files__list_files\",\"success\":true,\"duration_ms\":`) {
				t.Errorf("the model was sent %s", m.requests)
			}
		})
	}
}

// TestRestitution_JSON holds a model of the JSON dialect to the same, and its thread stays whole.
func TestRestitution_JSON(t *testing.T) {
	t.Parallel()
	sorry := replyWith(`{"pre_text":"I'm sorry."}`)
	m := newModel(t, replyWith(`{"pre_text":"I look.","data_commands":[{"type":"files.list_files"}]}`), sorry, sorry, sorry, replyWith(`{"pre_text":"Three notes."}`)) //nolint:gocritic // it says the same again
	b := newHarness(t, m)
	in := b.inJSON(everything)
	conn := b.connect()
	view := b.await(conn, b.send(conn, in))
	if got := view.Exchanges[3].Reply.AI; !strings.HasPrefix(got.Text(), "The model's answer was not fit") || got.Verbatim != "I'm sorry." {
		t.Errorf("the answer is %+v", got)
	}
	in.ClientID, in.Text = regie.NewID().String(), "and?"
	run := b.send(conn, in)
	b.await(conn, run)
	if !strings.Contains(m.last(), `{\"pre_text\":\"The model's answer was not fit`) {
		t.Errorf("the model was told %s", m.last())
	}
	b.shown(conn, run, 1)
}

// TestRestitution_Unattended leaves an unattended run alone, and a client of /v1, which streams its
// drafts.
func TestRestitution_Unattended(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  regie.SessionType
		how   approval.Restitution
		wants string
	}{{regie.SessionAutomation, "", ""}, {regie.SessionChat, approval.RestitutionUnchecked, "[Guidance"}} {
		m := newModel(t, replyWith("", call{"a", "files__list_files", `{}`}), replyWith("I'm sorry.", call{"b", "session__complete", `{"summary":"x"}`}))
		b := newHarness(t, m)
		in := b.request(approval.Policy{Allow: []string{"*.*"}, Restitution: c.how})
		if in.Type = c.kind; c.kind == regie.SessionChat {
			m.steps[1] = replyWith("I'm sorry.")
		}
		b.ask(in)
		if last := m.last(); m.count() != 2 || !strings.Contains(last, c.wants) || c.wants == "" && strings.Contains(last, "[Guidance") || strings.Contains(last, "temperature") {
			t.Errorf("%s: after %d requests %s", c.kind, m.count(), last)
		}
	}
}

// TestRelaunchTemperature_Refused goes on without the temperature where the model takes none, and
// what was sent can be rebuilt.
func TestRelaunchTemperature_Refused(t *testing.T) {
	t.Parallel()
	list := call{"a", "files__list_files", `{}`}
	strictly := func(then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if body, err := io.ReadAll(r.Body); err == nil && strings.Contains(string(body), `"temperature"`) {
				http.Error(w, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.2 with this model.","type":"invalid_request_error"}}`, http.StatusBadRequest)
				return
			}
			then(w, r)
		}
	}
	m := newModel(t, replyWith("", list), strictly(replyWith("", call{"b", "files__list_files", `{"recursive":true}`})), strictly(replyWith("Done.")))
	b := newHarness(t, m)
	conn := b.connect()
	run := b.send(conn, b.request(everything))
	expect(t, b.await(conn, run), regie.EndAnswered, "SUCCEEDED", "SUCCEEDED")
	if m.count() != 4 {
		t.Errorf("the model was asked %d times", m.count())
	}
	b.shown(conn, run, 3)
}

// TestPromptOfAnAgent: its instructions, degree and language are those of the file, each chunk has
// its row, and the marks of a cache are shown.
func TestPromptOfAnAgent(t *testing.T) {
	t.Parallel()
	formats := providertest.Formats()
	format := &formats[slices.IndexFunc(formats, func(f providertest.Format) bool { return f.Name == "anthropic" })]
	server := providertest.NewServer(t, format, providertest.Scene{Text: []string{"Bonjour."}})
	b := &harness{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
	b.settings.File.Agents = map[string]config.Agent{"main": {Instructions: "Tu tiens les papiers.", PromptDegree: 4, Language: "fr"}}
	conn := b.connect()
	view := b.job(conn, regie.ID{}, "hello")
	p, err := conn.Prompt(t.Context(), dispatch.PromptRequest{SessionID: view.Session.ID})
	fatal(t, err)
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
	m := newModel(t, replyWith("One."), replyWith("Two."), replyWith("Three."))
	b := newHarness(t, m)
	b.settings.File.Budget.ContextTokens = 6000
	path := filepath.Join(b.root, "AGENTS.md")
	write := func(text string) {
		t.Helper()
		fatal(t, os.WriteFile(path, []byte(text), 0o600))
	}
	conn := b.connect()
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
	fatal(t, err)
	if i := slices.IndexFunc(p.Parts, func(part engine.PromptPart) bool { return part.Kind == "level2" }); i < 0 || p.Parts[i].Chunk != "AGENTS.md" {
		t.Errorf("the parts are %+v", p.Parts)
	}
	removed, err := conn.Remove(t.Context(), dispatch.RemoveRequest{SessionID: view.Session.ID})
	if err != nil || removed.Blobs != 2 {
		t.Errorf("removed %+v, %v", removed, err)
	}
}

// TestWokenDocument: a run that waited for a person goes on with AGENTS.md as it is then, also in
// another process, and what was sent before can still be shown (decision 53).
func TestWokenDocument(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string // "" is no file
		levels        int    // events that tell it
		texts         int64  // that go with the session
	}{
		"changed":   {"Seals are red.", "Seals are blue.", 1, 2},
		"appeared":  {"", "Seals are blue.", 1, 1},
		"went":      {"Seals are red.", "", 1, 1},
		"unchanged": {"Seals are red.", "Seals are red.", 0, 1},
		"never was": {"", "", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("Done."))
			b := newHarness(t, m)
			document := func(text string) {
				t.Helper()
				if b.file("AGENTS.md", text+"\n"); text == "" {
					fatal(t, os.Remove(filepath.Join(b.root, "AGENTS.md")))
				}
			}
			document(c.before)
			conn := b.connect()
			run := b.ran(conn, approval.Policy{})
			first := m.last()
			document(c.after)
			fatal(t, conn.Close())
			conn = b.connect()
			b.approveAll(conn)
			fatal(t, conn.Wait(t.Context(), run.RoundID))
			if !strings.Contains(first, c.before) || !strings.Contains(m.last(), c.after) || c.before != c.after && c.before != "" && strings.Contains(m.last(), c.before) {
				t.Errorf("the model was told %s, and then %s", first, m.last())
			}
			told := 0
			for _, e := range b.events(run.SessionID) {
				if e.Type == regie.EventLevels {
					told++
				}
			}
			if told != c.levels {
				t.Errorf("told %d times", told)
			}
			b.shown(conn, run, 2)
			if fault := unlikeWritten(t, conn, run.SessionID); fault != "" {
				t.Error(fault)
			}
			if removed, err := conn.Remove(t.Context(), dispatch.RemoveRequest{SessionID: run.SessionID}); err != nil || removed.Blobs != c.texts {
				t.Errorf("%d texts went with the session; %v", removed.Blobs, err)
			}
		})
	}
}

// approveAll says yes to all that waits.
func (b *harness) approveAll(conn *app.Conn) {
	b.t.Helper()
	inbox, err := conn.Inbox(b.t.Context(), store.InboxFilter{Root: b.root})
	if err != nil || len(inbox.Approvals) == 0 {
		b.t.Fatalf("%+v, %v", inbox, err)
	}
	for _, asked := range inbox.Approvals {
		var all []regie.Decision
		for _, review := range asked.Reviews {
			all = append(all, regie.Decision{CallID: review.CallID, Answer: regie.AnswerAllow})
		}
		b.decide(conn, asked, all...)
	}
}

// shown has the prompts of a round rebuilt from the store, each the very bytes that were sent.
func (b *harness) shown(conn *app.Conn, run dispatch.Run, exchanges int) {
	b.t.Helper()
	for n := range exchanges {
		p, err := conn.Prompt(b.t.Context(), dispatch.PromptRequest{RoundID: run.RoundID, Exchange: n + 1})
		if err != nil || !p.Exact() {
			b.t.Errorf("exchange %d is not what was sent: %v\n%s", n+1, err, p.Body)
		}
	}
}

type sentMessage struct{ Role, Content string }

func sentMessages(t *testing.T, body []byte) []sentMessage {
	t.Helper()
	var out struct{ Messages []sentMessage }
	fatal(t, json.Unmarshal(body, &out))
	return out.Messages
}

// TestOpening: the model is told day, zone and user before the first message of each round, never
// in the levels, and the same bytes for ever (decision 14).
func TestOpening(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		language string
		dialect  regie.Dialect
		want     string
	}{
		"english": {"en", regie.DialectNative, `^\[ROUND_START\] \w+day, \d+ \w+ \d{4}, \d\d:\d\d \(Asia/Kathmandu, UTC\+05:45\)\. User: \S.*\.\ndo it$`},
		"french":  {"fr", regie.DialectNative, `^\[ROUND_START\] \w+(di|che) \d+(er)? \pL+ \d{4}, \d\d:\d\d \(Asia/Kathmandu, UTC\+05:45\)\. Utilisateur : \S.*\.\ndo it$`},
		"json":    {"en", regie.DialectJSON, `^\[ROUND_START\] .*Asia/Kathmandu.*\ndo it$`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := replyWith("Done.")
			if c.dialect == regie.DialectJSON {
				answer = replyWith(`{"pre_text":"Done."}`)
			}
			m := newModel(t, slices.Repeat([]http.HandlerFunc{answer}, 2)...)
			b := newHarness(t, m)
			b.settings.File.Workspace.TimeZone = "Asia/Kathmandu"
			b.settings.File.Agents = map[string]config.Agent{"main": {Language: c.language}}
			conn := b.connect()
			in := b.request(everything)
			in.Dialect = c.dialect
			first := b.send(conn, in)
			b.await(conn, first)
			sent := sentMessages(t, m.requests[0])
			if len(sent) < 2 || !regexp.MustCompile(c.want).MatchString(sent[len(sent)-1].Content) {
				t.Fatalf("the person's turn is %q", sent[len(sent)-1].Content)
			}
			if strings.Contains(sent[0].Content, "Kathmandu") || strings.Contains(sent[0].Content, "ROUND_START") || sent[0].Role != "system" {
				t.Errorf("a level says it: %s", sent[0].Content)
			}
			b.shown(conn, first, 1)
			in.ClientID = regie.NewID().String()
			second := b.send(conn, in)
			b.await(conn, second)
			again := sentMessages(t, m.requests[1])
			for i, message := range sent {
				if again[i] != message {
					t.Errorf("message %d was %+v and became %+v", i, message, again[i])
				}
			}
			if n := strings.Count(string(m.requests[1]), "[ROUND_START]"); n != 2 {
				t.Errorf("it stands there %d times", n)
			}
			b.shown(conn, second, 1)
			fork, err := conn.Fork(t.Context(), dispatch.ForkRequest{From: first.SessionID, SessionID: regie.NewID()})
			fatal(t, err)
			b.until(conn, fork.Session.ID, func(e *regie.Event) bool {
				var copied regie.Message
				if e.Type != regie.EventMessage || json.Unmarshal(e.Body, &copied) != nil || copied.Opening == nil {
					return false
				}
				return copied.Opening.Zone == "Asia/Kathmandu" && time.Since(copied.Opening.At) < time.Hour
			})
		})
	}
}

// TestOpeningOfCached: what may be answered from the response cache is told the day, so the same
// question is the same all day, and another one tomorrow or in another zone.
func TestOpeningOfCached(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("It is a fine day."))
	b := newHarness(t, m)
	b.settings.File.Workspace.TimeZone = "Pacific/Kiritimati"
	b.caching("on", nil)
	b.run(everything)
	b.run(everything)
	if line := sentMessages(t, m.requests[0])[1].Content; m.count() != 1 || !regexp.MustCompile(`^\[ROUND_START\] \w+, \d+ \w+ \d{4} \(Pacific/Kiritimati, UTC\+14:00\)\.`).MatchString(line) {
		t.Errorf("asked %d times: %s", m.count(), line)
	}
	b.settings.File.Workspace.TimeZone = "Pacific/Pago_Pago" // there it is never the same day
	b.run(everything)
	if m.count() != 2 {
		t.Errorf("yesterday's answer, asked %d times", m.count())
	}
}
