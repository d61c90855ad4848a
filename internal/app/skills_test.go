package app_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// file writes a file of the workspace.
func (b *harness) file(name, text string) {
	b.t.Helper()
	at := filepath.Join(b.root, name)
	fatal(b.t, os.MkdirAll(filepath.Dir(at), 0o700))
	fatal(b.t, os.WriteFile(at, []byte(text), 0o600))
}

// trust is a person's decision about what stands in the workspace.
func (b *harness) trust() {
	b.t.Helper()
	seen, err := app.LookProject(b.settings, b.root)
	if err == nil {
		err = app.TrustProject(b.settings, &seen)
	}
	fatal(b.t, err)
}

// ran does a job to its end, or to where it waits.
func (b *harness) ran(conn *app.Conn, policy approval.Policy) dispatch.Run {
	b.t.Helper()
	in := b.request(policy)
	in.Dialect = b.spoken
	run, err := conn.Submit(b.t.Context(), in)
	if err == nil {
		err = conn.Wait(b.t.Context(), run.RoundID)
	}
	fatal(b.t, err)
	return run
}

const sealing = `---
name: sealing
description: How letters are sealed here. Use when a letter is to be sealed.
allowed-tools: files.write_file
---
Read references/word.md, and write the word in it into seal.txt.
`

// follower is a model that reads a skill which it was told of, then the file that the skill names,
// and does what both say.
func follower(t *testing.T) *model {
	t.Helper()
	var m *model
	word := regexp.MustCompile(`the word is ([A-Z]+-[0-9]+)`)
	step := func(wants string, then func() http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(m.last(), wants) {
				t.Errorf("%q is not in %s", wants, m.last())
			}
			then()(w, r)
		}
	}
	m = newModel(
		t,
		step("- sealing: How letters are sealed here.", func() http.HandlerFunc { return replyWith("", call{"a", "skills__read_skill", `{"name":"sealing"}`}) }),
		step("Read references/word.md, and write", func() http.HandlerFunc {
			return replyWith("", call{"b", "skills__read_skill", `{"name":"sealing","file":"references/word.md"}`})
		}),
		step("the word is", func() http.HandlerFunc {
			found := word.FindStringSubmatch(m.last())
			if found == nil {
				return replyWith("There is no word.")
			}
			return replyWith("", write("c", "seal.txt", found[1]))
		}),
		replyWith("Sealed."),
	)
	return m
}

// TestSkillIsFollowed: level 2 names the skill, the model reads it and a file of it, and does what
// it says; that allowed-tools names the tool lifts no question.
func TestSkillIsFollowed(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".regie/skills", ".agents/skills"} {
		b := newHarness(t, follower(t))
		b.file(dir+"/sealing/SKILL.md", sealing)
		b.file(dir+"/sealing/references/word.md", "the word is MAPLE-7\n")
		b.trust()
		conn := b.connect()
		run := b.ran(conn, approval.Policy{})
		if _, err := os.Stat(filepath.Join(b.root, "seal.txt")); err == nil {
			t.Error("what allowed-tools names was done without a question")
		}
		b.approveAll(conn)
		fatal(t, conn.Wait(t.Context(), run.RoundID))
		if data, err := os.ReadFile(filepath.Join(b.root, "seal.txt")); err != nil || string(data) != "MAPLE-7" {
			t.Errorf("%q, %v", data, err)
		}
		b.shown(conn, run, 4)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestProjectRules: a workspace's file forbids and asks, trusted or not, and whatever a run or the
// user's own file allows; it allows nothing. It is read anew for each step.
func TestProjectRules(t *testing.T) {
	t.Parallel()
	rules := func(list string) string { return "approvals: {rules: [" + list + "]}\n" }
	for _, row := range []struct {
		name, project, user string
		policy              approval.Policy
		trust               bool
		want                string // "done", "asked" or the code of what was not run
	}{
		{"nothing said", "", "", everything, false, "done"},
		{"forbidden", rules(`{tool: files.write_file, decision: forbid}`), "", everything, false, "DENIED"},
		{"forbidden by pattern", rules(`{tool: "*.*", path: "docs/**", decision: forbid}`), "", everything, false, "DENIED"},
		{"forbidden elsewhere", rules(`{tool: "files.*", path: "src/**", decision: forbid}`), "", everything, false, "done"},
		{"forbidden, trusted", rules(`{tool: files.write_file, decision: forbid}`), rules(`{tool: files.write_file, decision: allow}`), everything, true, "DENIED"},
		{"asked", rules(`{tool: "files.*", path: docs/a.md, decision: ask}`), rules(`{tool: files.write_file, decision: allow}`), everything, false, "asked"},
		{"every call approved", "approvals: {require_validation: true}\n", "", everything, false, "asked"},
		{"it allows nothing", rules(`{tool: files.write_file, decision: allow}`), "", approval.Policy{}, true, "asked"},
		{"it asks about less: no", "approvals: {require: none}\n", "", approval.Policy{}, true, "asked"},
		{"the user allows", "", rules(`{tool: files.write_file, path: "docs/**", decision: allow}`), approval.Policy{}, false, "done"},
		{"the user allows elsewhere", "", rules(`{tool: files.write_file, path: "src/**", decision: allow}`), approval.Policy{}, false, "asked"},
		{"the user forbids", "", rules(`{tool: files.write_file, decision: forbid}`), everything, false, "DENIED"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newHarness(t, newModel(t, replyWith("", write("a", "docs/a.md", "one\n")), replyWith("Done.")))
			b.configured(row.user)
			if row.project != "" {
				b.file(".regie/regie.yaml", row.project)
			}
			if row.trust {
				b.trust()
			}
			conn := b.connect()
			run := b.ran(conn, row.policy)
			view := b.round(conn, run.RoundID)
			c := view.Exchanges[0].Calls[0]
			got := map[regie.CallState]string{regie.CallSucceeded: "done", regie.CallAwaitingApproval: "asked", regie.CallNotRun: string(c.NotRun)}[c.State]
			if got != row.want {
				t.Errorf("%s %s %v, want %s", c.State, c.NotRun, c.Error, row.want)
			}
			if row.want == "DENIED" && !strings.Contains(c.Error.Message, "approvals.rules[1]") {
				t.Errorf("it does not say which rule: %s", c.Error.Message)
			}
		})
	}
}

// configured gives the user's own file some text.
func (b *harness) configured(text string) {
	b.t.Helper()
	if text == "" {
		return
	}
	name := filepath.Join(b.t.TempDir(), "xdg", "regie", "regie.yaml")
	fatal(b.t, os.MkdirAll(filepath.Dir(name), 0o700))
	fatal(b.t, os.WriteFile(name, []byte(text), 0o600))
	env := map[string]string{
		"REGIE_DATA_DIR": b.settings.DataDir, "REGIE_BASE_URL": b.settings.BaseURL, "REGIE_MODEL": b.settings.Model, "XDG_CONFIG_HOME": filepath.Dir(filepath.Dir(name)),
	}
	database := b.settings.Database
	var err error
	b.settings, err = config.Load(func(name string) string { return env[name] }, config.Flags{})
	fatal(b.t, err)
	b.settings.Database = database
}

// TestProjectRulesOfNow: a rule that comes while a call waits for its approval holds for it, and a
// file that does not fit any more has everything asked about; a run does not begin under it.
func TestProjectRulesOfNow(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("", write("b", "b.txt", "two\n")), replyWith("Done.")))
	b.file(".regie/regie.yaml", "approvals: {rules: [{tool: files.write_file, path: a.txt, decision: ask}]}\n")
	conn := b.connect()
	run := b.ran(conn, everything)
	b.file(".regie/regie.yaml", "approvals: {rules: [{tool: files.write_file, path: a.txt, decision: forbid}]}\n")
	b.approveAll(conn)
	fatal(t, conn.Wait(t.Context(), run.RoundID))
	if _, err := os.Stat(filepath.Join(b.root, "a.txt")); err == nil {
		t.Error("what is forbidden by now was done")
	}
	if _, err := os.Stat(filepath.Join(b.root, "b.txt")); err != nil {
		t.Error(err)
	}

	b = newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("", write("b", "b.txt", "two\n")), replyWith("Done.")))
	b.file(".regie/regie.yaml", "approvals: {rules: [{tool: files.write_file, path: a.txt, decision: ask}]}\n")
	other := b.connect()
	run = b.ran(other, everything)
	b.file(".regie/regie.yaml", "approvals: {rulez: []}\n")
	if _, err := other.Submit(t.Context(), b.request(everything)); regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), "did you mean rules") {
		t.Errorf("a run begins under a file that nobody can read: %v", err)
	}
	b.approveAll(other)
	fatal(t, other.Wait(t.Context(), run.RoundID))
	inbox, err := other.Inbox(t.Context(), store.InboxFilter{Root: b.root})
	if err != nil || len(inbox.Approvals) != 1 || !strings.Contains(fmt.Sprint(inbox.Approvals[0].Reviews[0].Grounds), "this workspace") {
		t.Errorf("nobody was asked although nobody knows what the file forbids: %+v %v", inbox, err)
	}
}

// TestProjectAgent: limits lower without trust, instructions count with it and stand behind the
// user's own, and where a model is asked never changes.
func TestProjectAgent(t *testing.T) {
	t.Parallel()
	m := newModel(t, replyWith("Done."))
	b := newHarness(t, m)
	b.configured("agents: {main: {instructions: Be kind.}}\nlimits: {chat: {max_tool_calls: 5}}\n")
	b.file(".regie/regie.yaml", "agents: {main: {instructions: Speak of seals., provider: elsewhere, language: fr}}\nproviders: {elsewhere: {type: openai, base_url: \"http://127.0.0.1:1\"}}\n"+
		"limits: {chat: {max_tool_calls: 2, max_autonomous_roundtrips: 900}}\nworkspace: {time_zone: Asia/Tokyo}\n")
	conn := b.connect()
	for _, trusted := range []bool{false, true} {
		if trusted {
			b.trust()
		}
		run := b.ran(conn, everything)
		told := strings.Contains(m.last(), "Be kind.\\n\\nSpeak of seals.")
		if told != trusted || strings.Contains(m.last(), "Asia/Tokyo") != trusted || !strings.Contains(m.last(), "Be kind.") {
			t.Errorf("trusted %v: %s", trusted, m.last())
		}
		if limit := map[bool]string{false: "At most 2 tool calls in one reply, 20 replies", true: "Au plus 2 appels"}[trusted]; !strings.Contains(m.last(), limit) {
			t.Errorf("%q is not in %s", limit, m.last())
		}
		view, err := conn.Get(t.Context(), run.RoundID)
		if err != nil || view.Round.Provider != b.settings.Provider || view.Round.Limits.Total != 20 {
			t.Errorf("%+v %v", view.Round, err)
		}
	}
}

// TestProjectFileNamed: where one file is named, it is the only one (spec 13).
func TestProjectFileNamed(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("", write("a", "a.txt", "one\n")), replyWith("Done.")))
	b.file(".regie/regie.yaml", "approvals: {rules: [{tool: files.write_file, decision: forbid}]}\n")
	b.settings.Apart = true
	conn := b.connect()
	b.ran(conn, everything)
	if _, err := os.Stat(filepath.Join(b.root, "a.txt")); err != nil {
		t.Error(err)
	}
}

// TestProjectCap: a workspace's file lowers what a run may cost, and an unknown price is refused
// under it.
func TestProjectCap(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("Done.")))
	b.file(".regie/regie.yaml", "budget: {usd_per_round: 0.01}\n")
	conn := b.connect()
	if _, err := conn.Submit(t.Context(), b.request(everything)); regie.CodeOf(err) != regie.CodePriceUnknown {
		t.Errorf("%v", err)
	}
}

// TestUsersSkills: a person lays out their own skills as they like, with links to directories;
// below a skill nothing leads elsewhere.
func TestUsersSkills(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, filepath.FromSlash(name)) }
	write := func(name, text string) {
		t.Helper()
		fatal(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		fatal(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	link := func(aim, name string) {
		t.Helper()
		fatal(t, os.MkdirAll(filepath.Dir(at(name)), 0o700))
		fatal(t, os.Symlink(aim, at(name)))
	}
	named := func(name string) string { return strings.ReplaceAll(sealing, "name: sealing", "name: "+name) }
	write("secret", "secret")
	write("dotfiles/skills/plain/SKILL.md", named("plain"))
	write("elsewhere/linked/SKILL.md", named("linked"))
	write("elsewhere/linked/x.md", "of the linked one")
	link("../../secret", "elsewhere/linked/out.md")
	link(at("elsewhere/linked"), "dotfiles/skills/linked")
	link(at("secret"), "dotfiles/skills/file")
	link("loop", "dotfiles/skills/loop")
	link("nowhere", "dotfiles/skills/nowhere")
	write("dotfiles/skills/onefile/x.md", "x")
	link(at("elsewhere/linked/SKILL.md"), "dotfiles/skills/onefile/SKILL.md")
	link(at("dotfiles/skills"), "config/regie/skills")
	write("agents/skills/plain/SKILL.md", named("plain"))
	write("agents/skills/other/SKILL.md", named("other"))
	set := app.Skills(config.Config{DataDir: at("data"), Skills: []string{at("config/regie/skills"), at("agents/skills"), at("none")}}, t.TempDir())
	var names []string
	for i := range set.Skills {
		names = append(names, set.Skills[i].Name)
	}
	if strings.Join(names, " ") != "other plain" {
		t.Errorf("%v", names)
	}
}
