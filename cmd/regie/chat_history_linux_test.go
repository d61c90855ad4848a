package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outcomes are the lines of a chat that say what came of calls and of runs.
var outcomes = regexp.MustCompile(`(?m)^(?:  (?:[✓✗–■] |\().*|interrupted|the run ended: .*)$`)

// numbers stand behind calls that can be unfolded: those of a chat that is opened again begin anew.
var numbers = regexp.MustCompile(`(?m)  \[[0-9]+\]$`)

// came are these lines of what a terminal has shown, from a place on.
func came(shown string) []string {
	return outcomes.FindAllString(numbers.ReplaceAllString(strings.ReplaceAll(shown, "\r", ""), ""), -1)
}

// TestChatPast has calls end in every way, and opens the chat again: each has the line that it had
// while the chat ran.
func TestChatPast(t *testing.T) {
	t.Parallel()
	s := newStage(t,
		calls("I look.", called{"a", "files__read_file", `{"path": "missing.txt"}`}, called{"b", "files__list_files", "{}"}, called{"c", "no__tool", "{}"}), reply("I looked."),
		reply("I write.", wanted{"d", "a.txt", "one\n"}), reply("I leave it."),
	)
	c := s.regie("chat")
	c.expect("> ")
	c.enter("look")
	c.expect("I looked.")
	c.expect("> ")
	c.enter("write")
	c.expect("[l] later")
	c.enter("n")
	c.expect("I leave it.")
	c.expect("> ")
	c.enter("!echo put out; exit 3")
	c.expect("[l] later")
	c.enter("y")
	c.expect("exit code 3")
	c.expect("> ")
	c.enter("!echo denied")
	c.expect("[l] later")
	c.enter("n")
	c.expect("the command was not run")
	c.expect("> ")
	c.enter("!echo begun; sleep 60")
	c.expect("[l] later")
	c.enter("y")
	c.expect("│ begun")
	c.press("\x03")
	c.expect("regie runs resolve")
	c.expect("> ")
	live := came(c.all())
	c.enter("/exit")
	c.ends(0)
	if len(live) < 9 {
		t.Fatalf("too little came of it: %q", live)
	}

	c = s.regie("chat", "-c")
	c.expect("regie runs resolve")
	c.expect("> ")
	again := came(c.all())
	c.enter("/exit")
	c.ends(0)
	if want := live[len(live)-len(again):]; len(again) < 6 || !slices.Equal(again, want) {
		t.Errorf("live:\n%s\nlater:\n%s", strings.Join(want, "\n"), strings.Join(again, "\n"))
	}

	p := emulator(s, 160, 50, "chat", "-c") // it shows more of them
	p.sees("regie runs resolve", "ready")
	if drawn := came(p.joined()); !slices.Equal(drawn, live) {
		t.Errorf("live:\n%s\nlater:\n%s\n%s", strings.Join(live, "\n"), strings.Join(drawn, "\n"), p.all())
	}
	p.enter("/show 4")
	p.sees("→ [4] files.write_file")
	p.leaves()
}

// TestChatPlainWords types in plain lines what was in the drawn chat alone: whoever reads with a
// screen reader has all of it.
func TestChatPlainWords(t *testing.T) {
	t.Parallel()
	s := newStage(t, calls("I look.", called{"a", "files__list_files", "{}"}), reply("I looked."), reply("Another answer."))
	c := s.regie("chat", "--plain")
	c.expect("> ")
	for _, step := range [][]string{
		{"/fork", "nothing was said in this chat"},
		{"/show", "there is no such call"},
		{"look", "✓ files.list_files", "[1]", "I looked."},
		{"/show 1", "→ [1] files.list_files", "SUCCEEDED"},
		{"/show 7", "there is no such call"},
		{"/model", "openai / scripted answers", "openai/scripted", "openai/another␛[31m-one"},
		{"/model openai/another-one", "openai / another-one answers from the next message on"},
		{"/model", "openai / another-one answers; /model NAME"},
		{"/agent", "main answers here", "main"},
		{"/agent nobody", "there is no agent nobody"},
		{"/cache", "response cache of this workspace: 0 answers"},
		{"/cost", "this chat: "},
		{"/fork", "forked from ", "› look", "I looked."},
		{"and on", "Another answer."},
		{"/new", "a new chat"},
		{"/fork", "nothing was said in this chat"},
		{"/resume last", "forked from ", "› and on", "Another answer."},
		{"/help", "/fork", "/new", "/model", "/agent", "/cache"},
	} {
		c.enter(step[0])
		for _, want := range step[1:] {
			c.expect(want)
		}
		c.expect("> ")
	}
	c.enter("/exit")
	c.ends(0)
}

// TestFrenchServerErrors asks a model's server that refuses what is wrong: Regie's own words are
// French wherever a person asks.
func TestFrenchServerErrors(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error": {"message": "No such key."}}`))
	}))
	t.Cleanup(refusing.Close)
	s := newStage(t)
	s.env = append(s.env, "REGIE_LANG=fr")
	for _, args := range [][]string{{"doctor"}, {"models"}, {"setup", "--model", "m"}} {
		c := s.regie(append(args, "--provider", "openai", "--base-url", refusing.URL+"/v1")...)
		c.expect("le serveur du modèle a répondu 401 : vérifiez la clé d'API : No such key.")
	}
}
