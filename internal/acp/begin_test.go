package acp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/acp"
	catalogue "github.com/regie-run/regie/internal/text"
)

// TestInitializeFirst: a request before initialize is refused, and one behind it is not, however
// soon it comes; an initialize that is refused begins nothing.
func TestInitializeFirst(t *testing.T) {
	const early = `{"jsonrpc":"2.0","id":"e","method":"session/new","params":{"cwd":"x","mcpServers":[]}}` + "\n"
	const refused = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"x"}}` + "\n"
	const begins = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1}}` + "\n"
	for in, want := range map[string]map[string]int{
		early:           {"e": -32600},
		begins + early:  {"i": 0, "e": -32602}, // the directory
		refused + early: {"i": -32602, "e": -32600},
		early + begins:  {"e": -32600, "i": 0},
	} {
		lines := make(chan []byte, 10)
		reader := &held{Reader: strings.NewReader(in), answers: len(want), told: lines, timeout: time.After(20 * time.Second), t: t}
		if err := acp.Serve(t.Context(), acp.Config{Text: catalogue.New("fr"), Version: "test"}, reader, reader); err != nil {
			t.Error(err)
		}
		for id, code := range want {
			if got, is := reader.codes[id]; !is || got != code {
				t.Errorf("%s: %s is answered %d (%v), want %d", in, id, got, is, code)
			}
		}
		if want["e"] == -32600 && !strings.Contains(reader.said, "initialize vient avant session/new") {
			t.Errorf("%s: said is %s", in, reader.said)
		}
	}
}

// held is both ends of an editor, whose input ends when so many ids are answered.
type held struct {
	*strings.Reader
	t       *testing.T
	answers int
	told    chan []byte
	timeout <-chan time.Time
	codes   map[string]int
	said    string
}

func (h *held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	for err != nil && len(h.codes) < h.answers {
		select {
		case line := <-h.told:
			var m struct {
				ID    string
				Error struct {
					Code    int
					Message string
				}
			}
			if json.Unmarshal(line, &m) != nil {
				h.t.Errorf("answered is %s", line)
			}
			if h.codes == nil {
				h.codes = map[string]int{}
			}
			h.codes[m.ID] = m.Error.Code
			h.said += m.Error.Message
		case <-h.timeout:
			h.t.Error("not all is answered")
			return n, err
		}
	}
	return n, err
}

func (h *held) Write(p []byte) (int, error) {
	h.told <- append([]byte(nil), p...)
	return len(p), nil
}
