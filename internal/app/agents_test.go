package app_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// asks runs a message to an agent in a session, zero for a new one.
func (b *harness) asksAgent(conn *app.Conn, session regie.ID, agent string) store.RoundView {
	b.t.Helper()
	in := b.request(everything)
	in.Agent, in.ModelDefault = agent, true
	if !session.IsZero() {
		in.SessionID = session
	}
	return b.await(conn, b.send(conn, in))
}

// TestAgentScopes: an agent is offered the tools of its scope, and a call outside is not run, also
// one that the model guesses (spec 4.2).
func TestAgentScopes(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("", write("w", "x.txt", "one\n"), call{"l", "files__list_files", `{}`}), replyWith("Done."))
	b := newHarness(t, m)
	b.settings.File.Agents = map[string]config.Agent{
		"reader": {Tools: regie.ToolScope{"files.*", "!files.write_file"}, Instructions: "You only read.", MaxOutputTokens: 777},
	}
	view := b.asksAgent(b.connect(), regie.ID{}, "reader")
	calls := view.Exchanges[0].Calls
	if calls[0].NotRun != regie.NotRunOutOfScope || !strings.Contains(calls[0].Error.Message, "files.write_file is outside") {
		t.Errorf("the write: %+v %+v", calls[0].State, calls[0].Error)
	}
	if calls[1].State != regie.CallSucceeded || view.Round.End != regie.EndAnswered {
		t.Errorf("the list: %+v; the run ended %s", calls[1], view.Round.End)
	}
	first := string(m.requests[0])
	if strings.Contains(first, `"files__write_file"`) || strings.Contains(first, `"shell__shell_exec"`) ||
		!strings.Contains(first, `"files__read_file"`) || !strings.Contains(first, "You only read.") || !strings.Contains(first, `:777`) {
		t.Errorf("the model was offered %s", first)
	}
}

// TestAgentVersions: a session keeps the version of its agent, and the present definition can only
// narrow it (decisions 36 and 66).
func TestAgentVersions(t *testing.T) {
	t.Parallel()
	ls := call{"l", "files__list_files", `{}`}
	m := newModel(t, replyWith("A."), replyWith("B."), replyWith("", ls), replyWith("D."))
	b := newHarness(t, m)
	conn := b.connect()
	made, err := conn.Agents.Create(t.Context(), dispatch.NewAgent{Name: "clerk", Definition: json.RawMessage(`{"instructions":"First.","tools":["files.*"]}`)})
	fatal(t, err)
	view := b.asksAgent(conn, regie.ID{}, "clerk")
	edited, err := conn.Agents.Edit(t.Context(), dispatch.AgentEdit{Name: "clerk", Definition: json.RawMessage(`{"instructions":"Second."}`), Version: made.Version})
	fatal(t, err)
	if _, err := conn.Agents.Edit(t.Context(), dispatch.AgentEdit{Name: "clerk", Definition: json.RawMessage(`{}`), Version: made.Version}); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("an edit of an older version: %v", err)
	}
	b.asksAgent(conn, view.Session.ID, "clerk")
	b.asksAgent(conn, regie.ID{}, "clerk")
	for i, want := range []string{"First.", "First.", "Second."} {
		if got := string(m.requests[i]); !strings.Contains(got, want) {
			t.Errorf("request %d says nothing of %s", i, want)
		}
	}
	if edited.Version != 2 || view.Session.AgentVersion != 1 {
		t.Errorf("versions %d, %d", edited.Version, view.Session.AgentVersion)
	}
	// What the agent may do is always what it may do now.
	_, err = conn.Agents.Edit(t.Context(), dispatch.AgentEdit{Name: "clerk", Definition: json.RawMessage(`{"tools":["files.read_file"]}`)})
	fatal(t, err)
	again := b.asksAgent(conn, view.Session.ID, "clerk")
	if got := again.Exchanges[0].Calls[0]; got.NotRun != regie.NotRunOutOfScope {
		t.Errorf("a tool that was taken away: %+v", got)
	}
	fatal(t, conn.Agents.Delete(t.Context(), "clerk"))
	if _, err := conn.Agents.Get(t.Context(), dispatch.AgentQuery{Name: "clerk"}); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("a deleted agent: %v", err)
	}
}

// TestAgentsRefused: what no agent can be is refused in a sentence that says what to do.
func TestAgentsRefused(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	b.settings.File.Agents = map[string]config.Agent{"reader": {}}
	conn := b.connect()
	for _, c := range []struct{ name, definition, want string }{
		{"Clerk", `{}`, "not a valid agent name"},
		{"reader", `{}`, "is one of the settings"},
		{"main", `{}`, "is one of the settings"},
		{"clerk", `{"tools":["files.raed_file"]}`, "did you mean files.read_file"},
		{"clerk", `{"provider":"nowhere"}`, "not configured"},
		{"clerk", `{"instruction":"x"}`, "did you mean instructions?"},
		{"clerk", `{"limits":{"max_tool_calls":-1}}`, "limits.max_tool_calls"},
		{"clerk", `[]`, "a list was found"},
	} {
		if _, err := conn.Agents.Create(t.Context(), dispatch.NewAgent{Name: c.name, Definition: json.RawMessage(c.definition)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.name, c.definition, err)
		}
	}
	in := b.request(everything)
	in.Agent = "nobody"
	if _, err := conn.Submit(t.Context(), in); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("an agent that is not there: %v", err)
	}
}

// TestAgentFiles: a workspace's own agents work where a person trusts its files, and hold to their
// approvals.
func TestAgentFiles(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("w", "x.txt", "one\n")), replyWith("Done.")))
	b.file(".regie/agents/scribe.md", "---\ndescription: Writes\napprovals: {rules: [{tool: files.write_file, decision: forbid}]}\n---\nYou write.\n")
	b.file(".regie/agents/broken.md", "You write.\n")
	conn := b.connect()
	in := b.request(everything)
	in.Agent = "scribe"
	if _, err := conn.Submit(t.Context(), in); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("an agent of files that nobody trusts: %v", err)
	}
	b.trust()
	all, err := conn.Agents.List(t.Context(), dispatch.AgentFilter{Root: b.root})
	if err != nil || len(all) != 3 || all[0].Name != "broken" || !strings.Contains(all[0].Problem, "does not begin with a line ---") || all[2].Path != ".regie/agents/scribe.md" {
		t.Errorf("%+v, %v", all, err)
	}
	view := b.asksAgent(conn, regie.ID{}, "scribe")
	if got := view.Exchanges[0].Calls[0]; got.NotRun != regie.NotRunDenied || !strings.Contains(got.Error.Message, "forbid") {
		t.Errorf("%+v", got)
	}
}

// TestAgentLimits: the calls of a session and the bytes of a result are bounded.
func TestAgentLimits(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("a", "x.txt", strings.Repeat("line\n", 500))),
		replyWith("", call{"b", "files__read_file", `{"path":"x.txt"}`}, call{"c", "files__list_files", `{}`}), replyWith("Done.")))
	b.settings.File.Agents = map[string]config.Agent{"main": {Limits: regie.Limits{SessionCalls: 2, ResultBytes: 300}}}
	view := b.run(everything)
	calls := view.Exchanges[1].Calls
	if calls[0].State != regie.CallSucceeded || len(calls[0].Result) > 300 || !strings.Contains(calls[0].Result, "shortened") {
		t.Errorf("%s: %d bytes, %q", calls[0].State, len(calls[0].Result), calls[0].Result)
	}
	if calls[1].NotRun != regie.NotRunOverLimit || !strings.Contains(calls[1].Error.Message, "limit of 2 calls in this session") {
		t.Errorf("%+v", calls[1])
	}
}

// TestAgentScopes_Person: the scope binds the agent, not the person's own commands and mentions.
func TestAgentScopes_Person(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("I see.")))
	b.file("a.txt", "what the file holds\n")
	b.settings.File.Agents = map[string]config.Agent{"main": {Tools: regie.ToolScope{"files.list_files"}}}
	conn := b.connect()
	in := b.command(regie.NewID(), "echo mine")
	in.Policy = everything
	view := b.await(conn, b.send(conn, in))
	if got := view.Exchanges[0].Calls[0]; got.State != regie.CallSucceeded || !strings.Contains(got.Result, "mine") {
		t.Errorf("a person's own command: %s %+v", got.State, got.Error)
	}
	named := b.await(conn, b.send(conn, b.naming(regie.NewID(), "look at @a.txt", everything)))
	if len(named.Enrichments) != 1 || named.Enrichments[0].Calls[0].State != regie.CallSucceeded {
		t.Errorf("a mention: %+v", named.Enrichments)
	}
}

// TestAgent_MisspeltTools refuses an agent whose exclusion excludes nothing: what it names would be
// offered. A toolkit that is like none may come later.
func TestAgent_MisspeltTools(t *testing.T) {
	t.Parallel()
	conn := newHarness(t, newModel(t)).connect()
	for pattern, want := range map[string]string{
		"!shel.shell_exec": "shell.shell_exec", "!shell.shel_exec*": "shell.shell_exec", "file.read_file": "files.read_file",
		"!shell.*": "", "bank.*": "", "!*.write_*": "",
	} {
		tools, _ := json.Marshal(map[string][]string{"tools": {pattern}})
		_, err := conn.Agents.Create(t.Context(), dispatch.NewAgent{Name: "a" + regie.NewID().String(), Definition: tools})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
