package app_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
)

type sentMessage struct{ Role, Content string }

func sentMessages(t *testing.T, body []byte) []sentMessage {
	t.Helper()
	var out struct{ Messages []sentMessage }
	if err := json.Unmarshal(body, &out); err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

// TestOpening: the model is told day, zone and user before the first message of each round, never
// in the levels, and the same bytes for ever (decision 14).
func TestOpening(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		language string
		dialect  regie.Dialect
		kind     regie.SessionType
		want     string
	}{
		"english":    {"en", regie.DialectNative, regie.SessionChat, `^\[ROUND_START\] \w+day, \d+ \w+ \d{4}, \d\d:\d\d \(Asia/Kathmandu, UTC\+05:45\)\. User: \S.*\.\ndo it$`},
		"french":     {"fr", regie.DialectNative, regie.SessionChat, `^\[ROUND_START\] \w+(di|che) \d+(er)? \pL+ \d{4}, \d\d:\d\d \(Asia/Kathmandu, UTC\+05:45\)\. Utilisateur : \S.*\.\ndo it$`},
		"json":       {"en", regie.DialectJSON, regie.SessionChat, `^\[ROUND_START\] .*Asia/Kathmandu.*\ndo it$`},
		"automation": {"en", regie.DialectNative, regie.SessionAutomation, `^\[ROUND_START\] .*Asia/Kathmandu.*\ndo it$`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := says("Done.")
			if c.dialect == regie.DialectJSON {
				answer = says(`{"pre_text":"Done."}`)
			}
			if c.kind == regie.SessionAutomation {
				answer = says("", call{"end", "session__complete", `{"summary":"done"}`})
			}
			m := newModel(t, slices.Repeat([]http.HandlerFunc{answer}, 2)...)
			b := newBed(t, m)
			b.settings.File.Workspace.TimeZone = "Asia/Kathmandu"
			b.settings.File.Agents = map[string]config.Agent{"main": {Language: c.language}}
			conn := b.connect()
			defer conn.Close()
			in := b.request(everything)
			in.Dialect, in.Type = c.dialect, c.kind
			first, err := conn.Submit(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			b.await(conn, first)
			sent := sentMessages(t, m.requests[0])
			if len(sent) < 2 || !regexp.MustCompile(c.want).MatchString(sent[len(sent)-1].Content) {
				t.Fatalf("the person's turn is %q", sent[len(sent)-1].Content)
			}
			if strings.Contains(sent[0].Content, "Kathmandu") || strings.Contains(sent[0].Content, "ROUND_START") || sent[0].Role != "system" {
				t.Errorf("a level says it: %s", sent[0].Content)
			}
			b.shown(conn, first, 1)
			if c.kind == regie.SessionAutomation {
				return
			}
			in.ClientID = regie.NewID().String()
			second, err := conn.Submit(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
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
			if err != nil {
				t.Fatal(err)
			}
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
	m := newModel(t, says("It is a fine day."))
	b := newBed(t, m)
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
