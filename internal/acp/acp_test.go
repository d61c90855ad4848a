package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestChat: an answer as it streams, with what the model thinks; a file that is linked is read;
// nothing acts on who shows it.
func TestChat(t *testing.T) {
	p := newPlace(t, providertest.Scene{Thinking: "Hm\x1b[1m.", Text: []string{"Hello \x1b[3", "1mthere."}}, providertest.Scene{Text: []string{"Read."}})
	if err := os.WriteFile(filepath.Join(p.root, "a.txt"), []byte("alpha\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := p.open()
	session := e.session(p)
	if got := e.result(e.prompt(session, "hi")); got["stopReason"] != "end_turn" || e.said.String() != "Hello there." {
		t.Errorf("%v, said was %q", got, e.said.String())
	}
	if thoughts := e.of("agent_thought_chunk"); len(thoughts) != 1 || !strings.Contains(text(thoughts), `"Hm."`) {
		t.Errorf("thoughts: %v", thoughts)
	}
	got := e.call("session/prompt", object{"sessionId": session, "prompt": []any{
		object{"type": "text", "text": "look at "},
		object{"type": "resource_link", "name": "a.txt", "uri": "file://" + filepath.Join(p.root, "a.txt")},
		object{"type": "resource", "resource": object{"uri": "file:///x.go", "text": "package x"}},
	}})
	if got["stopReason"] != "end_turn" || !strings.HasSuffix(e.said.String(), "Read.") {
		t.Errorf("%v %q", got, e.said.String())
	}
	if list := e.call("session/list", object{"cwd": p.root}); !strings.Contains(text(list), session) {
		t.Errorf("the list is %v", list)
	}
	e.all = nil
	e.call("session/load", object{"sessionId": session, "cwd": p.root, "mcpServers": []any{}})
	if said := text(e.all); !strings.Contains(said, "look at @a.txt") || !strings.Contains(said, "Read.") || !strings.Contains(said, "package x") {
		t.Errorf("told anew was %s", said)
	}
}

// TestRefused: what an editor may send that cannot be done, each with an error and nothing else.
func TestRefused(t *testing.T) {
	p := newPlace(t, providertest.Scene{Text: []string{"Hello."}})
	e := p.open()
	session := e.session(p)
	for name, row := range map[string]struct {
		method string
		params any
		code   float64
	}{
		"no such session":      {"session/prompt", object{"sessionId": "x", "prompt": []any{object{"type": "text", "text": "hi"}}}, -32002},
		"nothing said":         {"session/prompt", object{"sessionId": session, "prompt": []any{}}, -32602},
		"an image":             {"session/prompt", object{"sessionId": session, "prompt": []any{object{"type": "image", "data": "aGk=", "mimeType": "image/png"}}}, -32602},
		"a relative directory": {"session/new", object{"cwd": "place", "mcpServers": []any{}}, -32602},
		"no directory":         {"session/new", object{"cwd": "/nothing/there", "mcpServers": []any{}}, -32002},
		"the root":             {"session/new", object{"cwd": "/", "mcpServers": []any{}}, -32602},
		"an unknown session":   {"session/load", object{"sessionId": "01a20470-a1cf-7b0c-a162-13704101d49e", "cwd": p.root, "mcpServers": []any{}}, -32002},
		"another directory's":  {"session/load", object{"sessionId": session, "cwd": t.TempDir(), "mcpServers": []any{}}, -32002},
		"a mode":               {"session/set_mode", object{"sessionId": session, "modeId": "x"}, -32601},
		"an unknown method":    {"session/nothing", object{}, -32601},
	} {
		t.Run(name, func(t *testing.T) {
			failed, _ := e.answer(e.send(row.method, row.params))["error"].(object)
			if failed["code"] != row.code {
				t.Errorf("%v, want %v", failed, row.code)
			}
		})
	}
	if got := e.result(e.prompt(session, "hi")); got["stopReason"] != "end_turn" {
		t.Errorf("afterwards: %v", got)
	}
}

// TestPermission: a call with its diff, and what becomes of each answer.
func TestPermission(t *testing.T) {
	for answer, row := range map[string]struct {
		status  string
		written bool
		said    string
	}{
		"once":      {"completed", true, "I write.Done."},
		"session:0": {"completed", true, "I write.Done."},
		"always:0":  {"completed", true, "I write.Done."},
		"reject":    {"failed", false, "I write.Done."},
	} {
		t.Run(answer, func(t *testing.T) {
			p := newPlace(t, writes(), providertest.Scene{Text: []string{"Done."}})
			e := p.open()
			id := e.prompt(e.session(p), "write it")
			asked := e.permission()
			call, _ := asked["toolCall"].(object)
			if calls := e.of("tool_call"); len(calls) != 1 || calls[0]["kind"] != "edit" || calls[0]["toolCallId"] != call["toolCallId"] ||
				!strings.Contains(text(calls[0]["locations"]), filepath.Join(p.root, "new.txt")) {
				t.Errorf("the call is %s", text(calls))
			}
			if shown := text(call); !strings.Contains(shown, `"type":"diff"`) || !strings.Contains(shown, "two") || strings.Contains(shown, `\u001b`) {
				t.Errorf("asked is %s", shown)
			}
			if options := text(asked["options"]); !strings.Contains(options, `"allow_once"`) || !strings.Contains(options, "Always allow in this workspace: ") || !strings.Contains(options, `"reject_once"`) {
				t.Errorf("the options are %s", options)
			}
			e.write(object{"outcome": object{"outcome": "selected", "optionId": answer}, "_meta": object{"reason": "not today"}})
			got := e.result(id)
			updates := e.of("tool_call_update")
			if got["stopReason"] != "end_turn" || len(updates) == 0 || updates[len(updates)-1]["status"] != row.status || e.said.String() != row.said {
				t.Errorf("%v, updates %s, said %q", got, text(updates), e.said.String())
			}
			if answer == "reject" && !strings.Contains(text(updates), "not today") {
				t.Errorf("the reason is lost: %s", text(updates))
			}
			if _, err := os.Stat(filepath.Join(p.root, "new.txt")); (err == nil) != row.written {
				t.Errorf("written: %v", err)
			}
		})
	}
}

// TestLeftOpen: what the person leaves open ends the turn and not the run: it is asked again when
// the session is loaded.
func TestLeftOpen(t *testing.T) {
	p := newPlace(t, writes(), providertest.Scene{Text: []string{"Done."}})
	e := p.open()
	session := e.session(p)
	id := e.prompt(session, "write it")
	e.until("permission")
	e.write(object{"outcome": object{"outcome": "cancelled"}})
	if got := e.result(id); got["stopReason"] != "end_turn" || !strings.Contains(e.said.String(), "regie approvals") {
		t.Errorf("%v, said %q", got, e.said.String())
	}
	e.send("session/load", object{"sessionId": session, "cwd": p.root, "mcpServers": []any{}})
	e.until("permission")
	e.write(object{"outcome": object{"outcome": "selected", "optionId": "once"}})
	for !strings.HasSuffix(e.said.String(), "Done.") {
		e.until("update")
	}
}

// TestCancel: the person interrupts while the model is silent, and while they are asked.
func TestCancel(t *testing.T) {
	p := newPlace(t, providertest.Scene{Text: []string{"I think"}, Silent: true})
	e := p.open()
	session := e.session(p)
	id := e.prompt(session, "think")
	e.until("update")
	e.write(object{"method": "session/cancel", "params": object{"sessionId": session}})
	if got := e.result(id); got["stopReason"] != "cancelled" {
		t.Errorf("%v", got)
	}
	p = newPlace(t, writes(), providertest.Scene{Text: []string{"Done."}})
	e = p.open()
	session = e.session(p)
	id = e.prompt(session, "write it")
	e.until("permission")
	e.write(object{"method": "session/cancel", "params": object{"sessionId": session}})
	if got := e.result(id); got["stopReason"] != "cancelled" {
		t.Errorf("%v", got)
	}
	if _, err := os.Stat(filepath.Join(p.root, "new.txt")); err == nil {
		t.Error("it was written")
	}
}

// TestQuestion: what the agent asks is a choice.
func TestQuestion(t *testing.T) {
	p := newPlace(t, providertest.Scene{Calls: []provider.Call{{ID: "q", Name: "session__ask_user", Arguments: `{"question":"Which one?","options":["red","blue"]}`}}},
		providertest.Scene{Text: []string{"Done."}})
	e := p.open()
	id := e.prompt(e.session(p), "ask me")
	asked := e.permission()
	if shown := text(asked); !strings.Contains(shown, "Which one?") || !strings.Contains(shown, `"blue"`) {
		t.Errorf("asked is %s", shown)
	}
	e.write(object{"outcome": object{"outcome": "selected", "optionId": "choice:1"}})
	if got := e.result(id); got["stopReason"] != "end_turn" || e.said.String() != "Done." {
		t.Errorf("%v %q", got, e.said.String())
	}
}

// TestLoadAfterKill: the program dies by SIGKILL while it asks; the next one finds the session,
// asks again, and the write happens once.
func TestLoadAfterKill(t *testing.T) {
	p := newPlace(t, writes(), providertest.Scene{Text: []string{"Done."}})
	e := p.open()
	session := e.session(p)
	e.prompt(session, "write it")
	e.until("permission")
	e.kill()
	e = p.open()
	e.send("session/load", object{"sessionId": session, "cwd": p.root, "mcpServers": []any{}})
	e.until("permission")
	if told := text(e.all); !strings.Contains(told, "write it") || !strings.Contains(told, "I write.") {
		t.Errorf("told anew was %s", told)
	}
	e.write(object{"outcome": object{"outcome": "selected", "optionId": "once"}})
	for !strings.HasSuffix(e.said.String(), "Done.") {
		e.until("update")
	}
	if data, err := os.ReadFile(filepath.Join(p.root, "new.txt")); err != nil || string(data) != "one\x1b[2J\ntwo\n" {
		t.Errorf("%q, %v", data, err)
	}
}
