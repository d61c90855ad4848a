package app_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
)

// named writes the bank into the workspace's .mcp.json.
func (b *harness) named(k *bank, more string) {
	b.t.Helper()
	s := k.settings("once", 0)
	entry, err := json.Marshal(map[string]any{"type": "stdio", "command": s.Command, "env": map[string]string{envBank: "${NOT_SET_ANYWHERE:-" + k.address + "}"}})
	fatal(b.t, err)
	b.file(".mcp.json", `{"mcpServers":{"bank":`+string(entry)+more+`}}`)
}

// TestWorkspaceServers: what a workspace's .mcp.json names starts nothing before a person trusts
// exactly that; then its tools are there, each asking; once the trust ends, in the middle of a run,
// they are not run any more; and a change makes the file inert again.
func TestWorkspaceServers(t *testing.T) {
	t.Parallel()
	k := newBank(t)
	var pays atomic.Bool
	pay := func(id, amount string) http.HandlerFunc {
		return replyWith("", call{id, "bank__pay", `{"amount":` + amount + `}`})
	}
	steps := []http.HandlerFunc{pay("a", "1"), pay("b", "2"), replyWith("done")}
	warm := func(w http.ResponseWriter, r *http.Request) { // until the server is there
		if !pays.Load() {
			replyWith("not yet")(w, r)
			return
		}
		step := steps[0]
		steps = steps[1:]
		step(w, r)
	}
	m := newModel(t, slices.Repeat([]http.HandlerFunc{warm}, 60)...)
	b := newHarness(t, m)
	b.named(k, `,"off":{"command":"x","disabled":true},"odd":{"type":"sse","url":"https://example.org"}`)
	conn := b.connect()
	b.do(conn, everything)
	if len(k.starts) != 0 || strings.Contains(m.last(), "bank") {
		t.Fatal("an untrusted workspace's server is started")
	}
	b.trust()
	k.plan <- "offer pays"
	view := b.do(conn, everything)
	for range 20 {
		if !slices.ContainsFunc(missing(view), func(m regie.Missing) bool { return m.Toolkit == "bank" }) {
			break
		}
		view = b.do(conn, everything)
	}
	if len(offered(t, m.last())) == 0 {
		t.Fatalf("its tools are not offered: %+v", missing(view))
	}
	if got := missing(view); len(got) != 1 || got[0].Toolkit != "odd" {
		t.Errorf("missing: %+v", got)
	}
	o := k.started()
	pays.Store(true)
	run := b.startRun(conn, everything)
	o.paying()
	fatal(t, app.Distrust(b.settings, b.root))
	o.say("paid")
	view = b.await(conn, run)
	expect(t, view, regie.EndAnswered, "SUCCEEDED", "NOT_RUN DENIED")
	if e := view.Exchanges[1].Calls[0].Error; e == nil || !strings.Contains(e.Message, "not trusted any more") {
		t.Errorf("%+v", e)
	}
	pays.Store(false)
	b.do(conn, everything)
	if strings.Contains(m.last(), "bank__pay") {
		t.Error("a workspace that is not trusted any more has its tools")
	}
	for range o.lines { // it ends: nobody may use it
	}
	b.trust()
	b.named(k, "")
	b.do(conn, everything)
	if len(k.starts) != 0 {
		t.Error("a file that has changed starts servers")
	}
}

// TestWorkspaceServersAreTheirs: one that the settings name goes before it, one that leads to this
// machine is not asked, and no key is handed out.
func TestWorkspaceServersAreTheirs(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-canary")
	b := newHarness(t, newModel(t, replyWith("ok")))
	b.file(".mcp.json", `{"mcpServers":{
		"key":{"command":"true","env":{"K":"${ANTHROPIC_API_KEY}"}},
		"here":{"type":"http","url":"http://127.0.0.1:1/mcp"},
		"files":{"command":"true"}, "more":{"command":"true","alwaysAllow":["x"]}}}`)
	seen, err := app.LookProject(b.settings, b.root)
	fatal(t, err)
	why := map[string]string{}
	for _, s := range seen.Servers {
		if s.Why != nil {
			why[s.Name] = s.Why.Error()
		}
	}
	if len(seen.Servers) != 4 || !strings.Contains(why["key"], "ANTHROPIC_API_KEY") || !strings.Contains(why["files"], "toolkit") || why["more"] != "" {
		t.Errorf("%v", why)
	}
	b.trust()
	conn := b.connect()
	view := b.do(conn, everything)
	told := map[string]string{}
	for _, m := range missing(view) {
		told[m.Toolkit] = m.Why
	}
	if !strings.Contains(told["key"], "workspaces do not get") || !strings.Contains(told["here"], "private network") && !strings.Contains(told["here"], "has not answered yet") {
		t.Errorf("%v", told)
	}
	if strings.Contains(told["key"], "canary") {
		t.Error("a key is shown")
	}
}
