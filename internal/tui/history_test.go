package tui

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
)

// engine is a workspace, and a model that answers so.
func engine(t *testing.T, answers http.HandlerFunc) Config {
	t.Helper()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	env := map[string]string{"REGIE_DATA_DIR": filepath.Join(t.TempDir(), "data"), "REGIE_BASE_URL": server.URL + "/v1", "REGIE_MODEL": "scripted"}
	settings, err := config.Load(func(name string) string { return env[name] }, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := app.Connect(t.Context(), app.Options{Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	request := dispatch.RunRequest{
		Root: t.TempDir(), FoundBy: "directory", Agent: "main", Provider: settings.Provider, Model: settings.Model, Policy: approval.Policy{Questions: true},
	}
	return Config{Config: chat.Config{Control: conn.Client, Text: i18n.New("en"), Request: request}}
}

// talked is a workspace in which things were said: chat by chat, each to a model that says "Fine.".
func talked(t *testing.T, chats ...[]string) (Config, []regie.ID) {
	t.Helper()
	c := engine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Fine."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	})
	var ids []regie.ID
	for _, said := range chats {
		one := c.Request
		one.SessionID = regie.NewID()
		ids = append(ids, one.SessionID)
		for _, line := range said {
			one.ClientID, one.Text = regie.NewID().String(), line
			run, err := c.Control.Submit(t.Context(), one)
			if err != nil {
				t.Fatal(err)
			}
			ends(t, chat.Follow(t.Context(), c.Control, one.SessionID, run.Seq), run.RoundID)
		}
	}
	return c, ids
}

// ends waits for the end of a round.
func ends(t *testing.T, feed *chat.Feed, round regie.ID) {
	t.Helper()
	hears(t, feed, regie.EventRound, map[string]string{"round_id": round.String(), "state": string(regie.RoundEnded)})
}

// hears waits for an event that says all of something.
func hears(t *testing.T, feed *chat.Feed, kind regie.EventType, wanted map[string]string) {
	t.Helper()
	defer feed.Stop()
	for {
		select {
		case err := <-feed.Ended:
			t.Fatal(err)
		case item := <-feed.Items:
			if item.Event == nil || item.Event.Type != kind {
				continue
			}
			var body map[string]any
			if err := json.Unmarshal(item.Event.Body, &body); err != nil {
				t.Fatal(err)
			}
			all := true
			for key, value := range wanted {
				all = all && body[key] == value
			}
			if all {
				return
			}
		}
	}
}

// works does what the chat would do next, until there is nothing.
func works(m *model, cmd tea.Cmd) {
	for cmd != nil {
		switch then := cmd().(type) {
		case done:
			if then != nil {
				then()
			}
			cmd = m.takeCommands()
		case tea.BatchMsg:
			for _, one := range then {
				works(m, one)
			}
			return
		default:
			return
		}
	}
}

// The history has what was said in the chats of the workspace, this one last, and a search says
// when it finds no older message.
func TestHistoryReadsOn(t *testing.T) {
	c, ids := talked(t, []string{"the oldest of them"}, []string{"first", "second", "third"}, []string{"in between"})
	c.History = chat.NewHistory(t.TempDir())
	c.History.Add(c.Request.Root, "/cost")
	c.History.Add("/elsewhere", "/undo")
	m := newModel(t.Context(), c)
	h := &m.history
	m.Session = ids[1]
	h.startSearch(m)
	works(m, m.takeCommands())
	if got := strings.Join(h.list, " "); got != "the oldest of them in between /cost first second third" || h.found != 5 {
		t.Fatalf("it knows %q, and finds %d", got, h.found)
	}
	h.handleKey(m, "o", "oldest")
	h.handleKey(m, "ctrl+r", "")
	if h.found < 0 || h.list[h.found] != "the oldest of them" || !strings.Contains(m.hint, "no older message") {
		t.Errorf("it finds %d of %q, and says %q", h.found, h.list, m.hint)
	}
}
