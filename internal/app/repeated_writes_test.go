package app_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/httpapi"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/tool"
)

// keyedCase is a write that comes with an Idempotency-Key, and then again.
type keyedCase struct {
	path, body string
	// other is another body or, where it begins with a question mark, another query: it is refused.
	// Empty: the operation takes neither.
	other string
	// between happens in front of the second time, which does not take it back.
	between func()
	// once says whether the write had its effect, and that once.
	once func() bool
	// again is the code of the second answer where it cannot be that of the first.
	again regie.Code
}

// keyedHouse is a house whose agent does what the message says.
type keyedHouse struct {
	*house
	place regie.Workspace
	acted int
}

// inbox is what waits for people.
func (k *keyedHouse) inbox() store.Inbox {
	k.t.Helper()
	inbox, err := k.engine.Service().Approvals.Inbox(access.AsOwner(k.t.Context()), store.InboxFilter{})
	fatal(k.t, err)
	return inbox
}

func newKeyedHouse(t *testing.T) *keyedHouse {
	t.Helper()
	k := &keyedHouse{}
	fails := action(t, "test.act", regie.ClassOnce, func(context.Context, *tool.Invocation) (tool.Result, error) {
		k.acted++
		return tool.Result{}, regie.Errorf(regie.CodeInternal, "nobody knows what became of it")
	}, nil)
	answers := func(w http.ResponseWriter, r *http.Request, said string) {
		switch {
		case strings.Contains(said, "please ask"):
			replyWith("", call{"q", "session__ask_user", `{"question":"Which?","options":["a","b"]}`})(w, r)
		case strings.Contains(said, "please write"):
			at := strings.Index(said, "please write ") + len("please write ")
			replyWith("", write("w", said[at:at+8]+".txt", "x\n"))(w, r)
		case strings.Contains(said, "please act"):
			replyWith("", call{"x", "test__act", `{}`})(w, r)
		default:
			replyWith("Done.")(w, r)
		}
	}
	does := func(w http.ResponseWriter, r *http.Request) { answers(w, r, sent(r)) }
	next := func(w http.ResponseWriter, r *http.Request) {
		if said := sent(r); strings.Contains(said, "please ask again") {
			answers(w, r, said)
			return
		}
		replyWith("Done.")(w, r)
	}
	m := newModel(t, does, next, next, next) //nolint:gocritic // it says the same again
	b := newHarness(t, m, fails)
	hears := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(hears.Close)
	b.settings.File.Notifications = map[string]config.Channel{"phone": {Type: "ntfy", URL: hears.URL + "/topic"}}
	k.house = b.serve("127.0.0.1:0")
	k.place = k.placeAt(k.root)
	return k
}

// in makes a session in which so much has been said, once it waits.
func (k *keyedHouse) in(content string) (path string, waits store.Inbox) {
	k.t.Helper()
	session := k.session()
	id, _ := regie.ParseID(session)
	k.json("POST", "/api/v1/sessions/"+session+"/messages", `{"content":"`+content+`"}`, 202, nil)
	return "/api/v1/sessions/" + session, k.parked(k.engine.Control(), id)
}

// worked makes a session in which a round has ended.
func (k *keyedHouse) worked() string {
	k.t.Helper()
	session := k.session()
	k.works(session)
	return "/api/v1/sessions/" + session
}

func (k *keyedHouse) state(path string) (out store.SessionView) {
	k.t.Helper()
	k.json("GET", path, "", 200, &out)
	return out
}

func (k *keyedHouse) rounds(path string) []store.RoundSummary {
	k.t.Helper()
	var out httpapi.Page[store.RoundSummary]
	k.json("GET", path+"/rounds", "", 200, &out)
	return out.Items
}

// ended waits for the end of a session's first round.
func (k *keyedHouse) ended(path string) bool {
	k.t.Helper()
	return k.engine.Wait(k.t.Context(), k.rounds(path)[0].Round.ID) == nil
}

func (k *keyedHouse) count(path string) int {
	k.t.Helper()
	var out httpapi.Page[json.RawMessage]
	k.json("GET", path, "", 200, &out)
	return len(out.Items)
}

const automationsAPI = "/api/v1/automations"

// automation makes an automation with a webhook.
func (k *keyedHouse) automation() (path string) {
	k.t.Helper()
	var made dispatch.AutomationView
	k.json("POST", automationsAPI, `{"workspace_id":"`+k.place.ID.String()+`","text":"Look.","definition":{"webhook":true}}`, 201, &made)
	return automationsAPI + "/" + made.ID.String()
}

// more is a check that a list has so many more things than now.
func (k *keyedHouse) more(path string, n int) func() bool {
	before := k.count(path)
	return func() bool { return k.count(path) == before+n }
}

// undoable is a session whose run has written a file.
func (k *keyedHouse) undoable(name string) (path, file string) {
	k.t.Helper()
	path, waits := k.in("please write " + name)
	asked := waits.Approvals[0]
	if _, err := k.engine.Service().Approvals.Decide(access.AsOwner(k.t.Context()), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
		k.t.Fatal(err)
	}
	k.until(k.engine.Control(), asked.SessionID, func(e *regie.Event) bool {
		return e.Type == regie.EventRound && strings.Contains(string(e.Body), `"state":"ENDED"`)
	})
	return path, filepath.Join(k.root, name+".txt")
}

func has(name string) bool { _, err := os.Stat(name); return err == nil }

var keyedCases = map[string]func(k *keyedHouse) keyedCase{
	"create_session": func(k *keyedHouse) keyedCase {
		body := `{"workspace_id":"` + k.place.ID.String() + `"`
		return keyedCase{path: "/api/v1/sessions", body: body + `}`, other: body + `,"name":"n"}`, once: k.more("/api/v1/sessions?limit=500", 1)}
	},
	"change_session": func(k *keyedHouse) keyedCase {
		path := "/api/v1/sessions/" + k.session()
		return keyedCase{
			path: path, body: `{"name":"A"}`, other: `{"name":"C"}`, between: func() { k.json("PATCH", path, `{"name":"B"}`, 200, nil) },
			once: func() bool { return k.state(path).Name == "B" },
		}
	},
	"remove_session": func(k *keyedHouse) keyedCase {
		return keyedCase{path: "/api/v1/sessions/" + k.session(), other: "?by=eve", once: k.more("/api/v1/sessions?limit=500", -1)}
	},
	"fork_session": func(k *keyedHouse) keyedCase {
		return keyedCase{path: k.worked() + "/fork", body: `{}`, other: `{"name":"n"}`, once: k.more("/api/v1/sessions?limit=500", 1)}
	},
	"mark_session_read": func(k *keyedHouse) keyedCase {
		path := k.worked()
		head := k.state(path).Head
		return keyedCase{
			path: path + "/read", body: fmt.Sprintf(`{"read_seq":%d}`, head), other: fmt.Sprintf(`{"read_seq":%d}`, head-1),
			once: func() bool { return k.state(path).Unread == 0 },
		}
	},
	"send_message": func(k *keyedHouse) keyedCase {
		path := "/api/v1/sessions/" + k.session()
		return keyedCase{path: path + "/messages", body: `{"content":"go"}`, other: `{"content":"go on"}`, once: func() bool { return len(k.rounds(path)) == 1 }}
	},
	"start_run": func(k *keyedHouse) keyedCase {
		session := k.session()
		body := func(text string) string {
			return fmt.Sprintf(`{"session_id":%q,"workspace_id":%q,"text":%q,"policy":{"on_approval":"park"}}`, session, k.place.ID, text)
		}
		return keyedCase{path: "/api/v1/runs", body: body("go"), other: body("go on"), once: func() bool { return len(k.rounds("/api/v1/sessions/"+session)) == 1 }}
	},
	"take_back_message": func(k *keyedHouse) keyedCase {
		path, _ := k.in("please write queued00")
		queued := func(text string) string {
			var accepted httpapi.Accepted
			k.json("POST", path+"/messages", `{"content":"`+text+`"}`, 202, &accepted)
			return `{"message_id":"` + accepted.MessageID.String() + `"}`
		}
		first, second := queued("one"), queued("two")
		return keyedCase{path: path + "/take-back", body: first, other: second, once: func() bool {
			waits := k.state(path).Pending
			return len(waits) == 1 && waits[0].Message.Text == "two"
		}}
	},
	"interrupt_session": func(k *keyedHouse) keyedCase { return k.ending("interrupt") },
	"interrupt_round": func(k *keyedHouse) keyedCase {
		path, _ := k.in("please ask 2")
		round := k.rounds(path)[0].Round.ID.String()
		return keyedCase{path: "/api/v1/rounds/" + round + "/interrupt", once: func() bool {
			return k.ended(path) && k.rounds(path)[0].Round.End == regie.EndInterrupted
		}}
	},
	"stop_session": func(k *keyedHouse) keyedCase {
		path, _ := k.in("please ask 3")
		return keyedCase{path: path + "/stop", once: func() bool {
			return k.ended(path) && k.state(path).EndReason == regie.SessionCancelled
		}}
	},
	"pause_session":  func(k *keyedHouse) keyedCase { return k.pausing("pause", "resume", false) },
	"resume_session": func(k *keyedHouse) keyedCase { return k.pausing("resume", "pause", true) },
	"pause_round":    func(k *keyedHouse) keyedCase { return k.ofRound(k.pausing("pause", "resume", false)) },
	"resume_round":   func(k *keyedHouse) keyedCase { return k.ofRound(k.pausing("resume", "pause", true)) },
	"change_provider": func(k *keyedHouse) keyedCase {
		path, _ := k.in("please ask to change the provider")
		k.json("POST", path+"/pause", "", 200, nil)
		round := k.rounds(path)[0].Round.ID.String()
		return keyedCase{
			path: "/api/v1/rounds/" + round + "/provider", body: `{"provider":"demo"}`, other: `{"provider":"demo","model":"demo"}`,
			once: func() bool { return k.rounds(path)[0].Round.Provider == "demo" },
		}
	},
	"close_session": func(k *keyedHouse) keyedCase {
		path := k.worked()
		return keyedCase{
			path: path + "/close", between: func() { k.works(strings.TrimPrefix(path, "/api/v1/sessions/")) },
			once: func() bool { return k.state(path).State == regie.SessionIdle },
		}
	},
	"request_control": func(k *keyedHouse) keyedCase {
		path := "/api/v1/sessions/" + k.session() + "/control"
		return keyedCase{path: path, between: func() { k.json("DELETE", path, "", 200, nil) }}
	},
	"release_control": func(k *keyedHouse) keyedCase {
		path := "/api/v1/sessions/" + k.session() + "/control"
		k.json("POST", path, "", 200, nil)
		return keyedCase{path: path}
	},
	"decide": func(k *keyedHouse) keyedCase {
		path, waits := k.in("please write decided0")
		body := func(word string) string {
			return fmt.Sprintf(`{"decisions":[{"call_id":%q,"decision":%q}]}`, waits.Approvals[0].Reviews[0].CallID, word)
		}
		return keyedCase{path: "/api/v1/approvals/" + waits.Approvals[0].ID.String(), body: body("allow"), other: body("deny"), once: func() bool {
			return k.ended(path) && has(filepath.Join(k.root, "decided0.txt"))
		}}
	},
	"review_edit": func(k *keyedHouse) keyedCase {
		_, waits := k.in("please write reviewed0")
		body := func(path string) string {
			return fmt.Sprintf(`{"decisions":[{"call_id":%q,"decision":"allow","arguments":{"path":%q,"content":"x"}}]}`, waits.Approvals[0].Reviews[0].CallID, path)
		}
		return keyedCase{path: "/api/v1/approvals/" + waits.Approvals[0].ID.String() + "/review", body: body("reviewed1.txt"), other: body("reviewed2.txt")}
	},
	"answer_question": func(k *keyedHouse) keyedCase {
		path, waits := k.in("please ask 4")
		return keyedCase{
			path: "/api/v1/questions/" + waits.Questions[0].ID.String(), body: `{"reply":{"choices":["a"]}}`, other: `{"reply":{"choices":["b"]}}`,
			once: func() bool { return k.state(path).State != regie.SessionWaitingResponse },
		}
	},
	"respond": func(k *keyedHouse) keyedCase {
		path, _ := k.in("please ask 5")
		return keyedCase{
			path: path + "/responses", body: `{"choices":["a"]}`, other: `{"choices":["b"]}`,
			once: func() bool { return k.state(path).State != regie.SessionWaitingResponse },
		}
	},
	"resolve_call": func(k *keyedHouse) keyedCase {
		_, waits := k.in("please act")
		asked := waits.Approvals[0]
		if _, err := k.engine.Service().Approvals.Decide(access.AsOwner(k.t.Context()), decide(asked, "x", regie.Decision{CallID: asked.Reviews[0].CallID, Answer: regie.AnswerAllow})); err != nil {
			k.t.Fatal(err)
		}
		k.until(k.engine.Control(), asked.SessionID, func(e *regie.Event) bool {
			return e.Type == regie.EventToolResult && strings.Contains(string(e.Body), string(regie.CallUnknown))
		})
		return keyedCase{
			path: "/api/v1/calls/" + asked.Reviews[0].CallID.String() + "/resolve", body: `{"as":"happened"}`, other: `{"as":"did_not_happen"}`,
			once: func() bool { return k.acted == 1 },
		}
	},
	"set_aside": func(k *keyedHouse) keyedCase {
		_, waits := k.in("please write aside000")
		id := waits.Approvals[0].ID
		return keyedCase{
			path: "/api/v1/inbox/" + id.String() + "/set-aside", body: `{"until":"2999-01-01T00:00:00Z"}`, other: `{"until":"2999-01-02T00:00:00Z"}`,
			once: func() bool { return k.inbox().SetAside[id].Equal(time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)) },
		}
	},
	"extend_deadline": func(k *keyedHouse) keyedCase {
		_, waits := k.in("please write extend00")
		id, until := waits.Approvals[0].ID, time.Now().Add(30*24*time.Hour).UTC().Truncate(time.Second)
		return keyedCase{
			path: "/api/v1/inbox/" + id.String() + "/extend", body: `{"until":"` + until.Format(time.RFC3339) + `"}`, other: `{"until":"` + until.Add(time.Hour).Format(time.RFC3339) + `"}`,
			once: func() bool {
				return slices.ContainsFunc(k.inbox().Approvals, func(a regie.Approval) bool { return a.ID == id && a.ExpiresAt.Equal(until) })
			},
		}
	},
	"plan_undo": func(k *keyedHouse) keyedCase {
		path, file := k.undoable("planned0")
		round := k.rounds(path)[0].Round.ID.String()
		return keyedCase{path: "/api/v1/undos/plan", body: `{"target":"` + round + `"}`, other: `{"target":"` + round + `","force":true}`, once: func() bool { return has(file) }}
	},
	"undo": func(k *keyedHouse) keyedCase {
		path, file := k.undoable("undone00")
		round := k.rounds(path)[0].Round.ID.String()
		return keyedCase{path: "/api/v1/undos", body: `{"target":"` + round + `"}`, other: `{"target":"` + round + `","force":true}`, once: func() bool { return !has(file) }}
	},
	"undo_in_session": func(k *keyedHouse) keyedCase {
		path, file := k.undoable("undone01")
		return keyedCase{path: path + "/undo", body: `{}`, other: `{"force":true}`, once: func() bool { return !has(file) }}
	},
	"open_workspace": func(k *keyedHouse) keyedCase {
		body := func() string { data, _ := json.Marshal(map[string]string{"path": k.t.TempDir()}); return string(data) }
		return keyedCase{path: "/api/v1/workspaces", body: body(), other: body(), once: k.more("/api/v1/workspaces", 1)}
	},
	"trust_workspace": func(k *keyedHouse) keyedCase {
		path, shown := k.trustable()
		return keyedCase{
			path: path, body: `{"sha256":"` + shown.SHA256.String() + `"}`, other: `{"sha256":"` + regie.HashOf(nil).String() + `"}`,
			between: func() { k.json("DELETE", path, "", 200, nil) }, once: func() bool { return k.trusted(path) == "untrusted" },
		}
	},
	"distrust_workspace": func(k *keyedHouse) keyedCase {
		path, shown := k.trustable()
		trust := func() { k.json("PUT", path, `{"sha256":"`+shown.SHA256.String()+`"}`, 200, nil) }
		trust()
		return keyedCase{path: path, between: trust, once: func() bool { return k.trusted(path) == "trusted" }}
	},
	"query_workspace": func(k *keyedHouse) keyedCase {
		body := func(tool string) string {
			return fmt.Sprintf(`{"workspace_id":%q,"tool":%q,"arguments":{}}`, k.place.ID, tool)
		}
		return keyedCase{path: "/api/v1/queries", body: body("files.list_files"), other: body("files.read_file")}
	},
	"test_notifications": func(*keyedHouse) keyedCase {
		return keyedCase{path: "/api/v1/notifications/test", body: `{}`, other: `{"channel":"phone"}`}
	},
	"beat": func(*keyedHouse) keyedCase { return keyedCase{path: "/api/v1/presence"} },
	"revoke_rules": func(k *keyedHouse) keyedCase {
		_, waits := k.in("please write ruled000")
		asked := waits.Approvals[0]
		rule := k.allowBelow(k.engine.Control(), asked, asked.ExpiresAt)
		body := `{"rule_ids":["` + rule.ID.String() + `"]`
		return keyedCase{path: "/api/v1/rules/revoke", body: body + `}`, other: body + `,"by":"eve"}`, once: k.more("/api/v1/rules?limit=500", -1)}
	},
	"rebuild_stats": func(*keyedHouse) keyedCase { return keyedCase{path: "/api/v1/stats/rebuild"} },
	"clear_cache": func(*keyedHouse) keyedCase {
		return keyedCase{path: "/api/v1/cache/clear", body: `{}`, other: `{"root":"/elsewhere"}`}
	},
	"change_limits": func(k *keyedHouse) keyedCase {
		const path = "/api/v1/settings/limits"
		return keyedCase{
			path: path, body: `{"chat":{"max_action_retries":7}}`, other: `{"chat":{"max_action_retries":9}}`,
			between: func() { k.json("PATCH", path, `{"chat":{"max_action_retries":8}}`, 200, nil) },
			once: func() bool {
				var limits dispatch.LimitSettings
				k.json("GET", path, "", 200, &limits)
				return limits.Chat.Retries.Value == 8
			},
		}
	},
	"create_agent": func(k *keyedHouse) keyedCase {
		return keyedCase{path: "/api/v1/agents", body: `{"name":"made"}`, other: `{"name":"other"}`, once: k.more("/api/v1/agents", 1)}
	},
	"change_agent": func(k *keyedHouse) keyedCase {
		const path = "/api/v1/agents/edited"
		k.json("POST", "/api/v1/agents", `{"name":"edited"}`, 201, nil)
		return keyedCase{
			path: path, body: `{"definition":{"model":"a"}}`, other: `{"definition":{"model":"c"}}`,
			between: func() { k.json("PATCH", path, `{"definition":{"model":"b"}}`, 200, nil) },
			once:    k.more(path+"/versions", 2),
		}
	},
	"create_provider": func(k *keyedHouse) keyedCase {
		body := func(name string) string {
			return `{"name":"` + name + `","type":"openai","base_url":"` + modelList(k.t) + `","key":"canary-0123456"}`
		}
		return keyedCase{path: "/api/v1/providers", body: body("made"), other: body("other"), once: k.more("/api/v1/providers", 1)}
	},
	"edit_provider": func(k *keyedHouse) keyedCase {
		path := k.stored("edited")
		return keyedCase{path: path, body: `{"chosen":true}`, other: `{"model":"m"}`}
	},
	"remove_provider": func(k *keyedHouse) keyedCase {
		return keyedCase{path: k.stored("removed"), once: k.more("/api/v1/providers", -1)}
	},
	"create_automation": func(k *keyedHouse) keyedCase {
		body := func(name string) string {
			return `{"workspace_id":"` + k.place.ID.String() + `","text":"` + name + `","when":"daily 09:00"}`
		}
		return keyedCase{path: automationsAPI, body: body("made"), other: body("other"), once: k.more(automationsAPI, 1)}
	},
	"preview_schedule": func(k *keyedHouse) keyedCase {
		body := func(when string) string {
			return `{"workspace_id":"` + k.place.ID.String() + `","when":"` + when + `"}`
		}
		return keyedCase{path: automationsAPI + "/preview", body: body("daily 09:00"), other: body("daily 10:00")}
	},
	"edit_automation": func(k *keyedHouse) keyedCase {
		path := k.automation()
		return keyedCase{path: path, body: `{"name":"edited"}`, other: `{"name":"other"}`, once: k.more(path+"/versions", 1)}
	},
	"run_automation": func(k *keyedHouse) keyedCase {
		path := k.automation()
		return keyedCase{path: path + "/execute", body: `{}`, other: `{"request":"x"}`, once: k.more(path+"/runs", 1)}
	},
	"pause_automation": func(k *keyedHouse) keyedCase {
		return keyedCase{path: k.automation() + "/pause", body: `{}`, other: `{"until":"2999-01-01T00:00:00Z"}`}
	},
	"enable_automation":  func(k *keyedHouse) keyedCase { return keyedCase{path: k.automation() + "/enable"} },
	"disable_automation": func(k *keyedHouse) keyedCase { return keyedCase{path: k.automation() + "/disable"} },
	"resume_automation":  func(k *keyedHouse) keyedCase { return keyedCase{path: k.automation() + "/resume"} },
	"stop_automation":    func(k *keyedHouse) keyedCase { return keyedCase{path: k.automation() + "/stop"} },
	"rotate_hook":        func(k *keyedHouse) keyedCase { return keyedCase{path: k.automation() + "/token"} },
	"remove_automation": func(k *keyedHouse) keyedCase {
		path := k.automation()
		return keyedCase{path: path + "/remove", once: k.more(automationsAPI, -1)}
	},
	"upload_attachment": func(*keyedHouse) keyedCase {
		body := func(width int) string {
			return `{"data":"` + base64.StdEncoding.EncodeToString(drawPNG(width, 2)) + `"}`
		}
		return keyedCase{path: "/api/v1/attachments", body: body(2), other: body(3)}
	},
	"remove_agent": func(k *keyedHouse) keyedCase {
		k.json("POST", "/api/v1/agents", `{"name":"removed"}`, 201, nil)
		return keyedCase{path: "/api/v1/agents/removed", once: k.more("/api/v1/agents", -1)}
	},
	"add_token": func(k *keyedHouse) keyedCase {
		return keyedCase{
			path: "/api/v1/tokens", body: `{"name":"t","scopes":["read"]}`, other: `{"name":"t","scopes":["read","chat"]}`, again: regie.CodeConflict,
			once: k.more("/api/v1/tokens?limit=500", 1),
		}
	},
	"revoke_token": func(k *keyedHouse) keyedCase {
		made := k.add(control.TokenRequest{Name: "x", Scopes: []regie.TokenScope{regie.ScopeRead}})
		return keyedCase{path: "/api/v1/tokens/" + made.Token.ID.String(), once: k.more("/api/v1/tokens?limit=500", -1)}
	},
	"revoke_tokens": func(k *keyedHouse) keyedCase {
		made := k.add(control.TokenRequest{Name: "y", Scopes: []regie.TokenScope{regie.ScopeRead}})
		body := `{"token_ids":["` + made.Token.ID.String() + `"]`
		return keyedCase{path: "/api/v1/tokens/revoke", body: body + `}`, other: body + `,"by":"eve"}`, once: k.more("/api/v1/tokens?limit=500", -1)}
	},
	"make_setup_link": func(*keyedHouse) keyedCase {
		return keyedCase{path: "/api/v1/setup-links", again: regie.CodeConflict}
	},
}

// trustable returns the address of a workspace's trust, and the content.
func (k *keyedHouse) trustable() (path string, shown control.WorkspaceTrust) {
	k.t.Helper()
	dir := k.t.TempDir()
	fatal(k.t, os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte("{}"), 0o600))
	path = "/api/v1/workspaces/" + k.placeAt(dir).ID.String() + "/trust"
	k.json("GET", path, "", 200, &shown)
	return path, shown
}

func (k *keyedHouse) trusted(path string) string {
	k.t.Helper()
	var shown control.WorkspaceTrust
	k.json("GET", path, "", 200, &shown)
	return string(shown.State)
}

// stored stores a provider.
func (k *keyedHouse) stored(name string) (path string) {
	k.t.Helper()
	k.json("POST", "/api/v1/providers", `{"name":"`+name+`","type":"openai","base_url":"`+modelList(k.t)+`"}`, 201, nil)
	return "/api/v1/providers/" + name
}

// ending is a word that ends a round: said again it ends no later one.
func (k *keyedHouse) ending(word string) keyedCase {
	path, _ := k.in("please ask to " + word)
	session := strings.TrimPrefix(path, "/api/v1/sessions/")
	return keyedCase{path: path + "/" + word, between: func() {
		k.json("POST", path+"/messages", `{"content":"please ask again"}`, 202, nil)
		k.asked(session, 2)
	}, once: func() bool {
		rounds := k.rounds(path)
		return rounds[len(rounds)-1].Round.End == regie.EndInterrupted && rounds[0].Round.End != regie.EndInterrupted
	}}
}

// pausing is a word that is taken back in front of its second time.
func (k *keyedHouse) pausing(word, back string, paused bool) keyedCase {
	path, _ := k.in("please ask to " + word)
	if paused {
		k.json("POST", path+"/"+back, "", 200, nil)
	}
	return keyedCase{
		path: path + "/" + word, between: func() { k.json("POST", path+"/"+back, "", 200, nil) },
		once: func() bool { return (k.rounds(path)[0].Round.Stop == regie.StopPause) == paused },
	}
}

// ofRound says to a session's round what was to be said to the session.
func (k *keyedHouse) ofRound(c keyedCase) keyedCase {
	session, word := filepath.Dir(c.path), filepath.Base(c.path)
	c.path = "/api/v1/rounds/" + k.rounds(session)[0].Round.ID.String() + "/" + word
	return c
}

// needs says a write without each thing that the document requires of it: it is refused, and does
// nothing.
func (k *keyedHouse) needs(method string, c *keyedCase) {
	k.t.Helper()
	d, err := readDocument()
	fatal(k.t, err)
	for _, name := range d.required(method, c.path) {
		var body map[string]json.RawMessage
		fatal(k.t, json.Unmarshal([]byte(c.body), &body))
		delete(body, name)
		without, _ := json.Marshal(body) // it was JSON
		var said struct {
			Detail string `json:"detail"`
		}
		if k.json(method, c.path, string(without), 400, &said); !strings.Contains(said.Detail, "needs "+name+":") {
			k.t.Errorf("without %s: %s", name, said.Detail)
		}
	}
}

// repeat says a write twice with a key, and something else with the same key.
func (k *keyedHouse) repeat(t *testing.T, method string, c keyedCase) {
	t.Helper()
	key := carrying("Idempotency-Key", "the same")
	ask := func(path, body string) (status int, said string, replayed bool) {
		response := k.ask(method, path, body, key)
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		fatal(t, err)
		return response.StatusCode, string(data), response.Header.Get("Idempotent-Replayed") == "true"
	}
	k.needs(method, &c)
	status, first, replayed := ask(c.path, c.body)
	if status >= 300 || replayed {
		t.Fatalf("the first time: %d %s", status, first)
	}
	if c.between != nil {
		c.between()
	}
	again, second, replayed := ask(c.path, c.body)
	switch {
	case c.again != "" && !strings.Contains(second, string(c.again)):
		t.Errorf("the second time: %d %s, want %s", again, second, c.again)
	case c.again == "" && (again != status || second != first || !replayed):
		t.Errorf("%d %s, and the second time %d %s (replayed: %v)", status, first, again, second, replayed)
	}
	if c.other != "" {
		path, body := c.path, c.other
		if strings.HasPrefix(c.other, "?") {
			path, body = c.path+c.other, c.body
		}
		if status, said, _ := ask(path, body); status != http.StatusConflict || !strings.Contains(said, string(regie.CodeKeyReused)) {
			t.Errorf("something else with the key: %d %s", status, said)
		}
	}
	if c.once != nil && !c.once() {
		t.Error("it did not have its effect, or more than that")
	}
}

// TestRepeatedWrites says every write of the interface twice with an Idempotency-Key (spec 10.2):
// the second answer is the first one's, to the byte, something else with the same key is refused,
// and the effect is there once. A write that has no case here fails.
func TestRepeatedWrites(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "httpapi", "openapi.json"))
	fatal(t, err)
	var document struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	fatal(t, json.Unmarshal(data, &document))
	k := newKeyedHouse(t)
	left := maps.Clone(keyedCases)
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, o := range document.Paths[path] {
			if method == "get" || o.ID == "logout" || o.ID == "" { // who has logged out is let in no more: TestBrowser
				continue
			}
			t.Run(o.ID, func(t *testing.T) {
				repeats, there := left[o.ID]
				if !there {
					t.Fatalf("%s %s is a write, and no case repeats it", method, path)
				}
				delete(left, o.ID)
				whole := k.t
				k.t = t
				defer func() { k.t = whole }()
				k.repeat(t, strings.ToUpper(method), repeats(k))
			})
		}
	}
	if len(left) > 0 {
		t.Errorf("no write: %v", slices.Collect(maps.Keys(left)))
	}
	session := k.session()
	k.json("POST", "/api/v1/sessions/"+session+"/fork", `{}`, 400, nil, carrying("Idempotency-Key", strings.Repeat("x", 300)))
}
