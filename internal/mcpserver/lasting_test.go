package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/mcpserver"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestLastAnswers: what came before the end of the input is answered, in its order, and a call that
// waits is told how its session stands.
func TestLastAnswers(t *testing.T) {
	b := newBed(t, providertest.Scene{Text: []string{"I think"}, Silent: true})
	var log bytes.Buffer
	b.config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for name, row := range map[string]struct {
		says []string
		want map[int]string
	}{
		"initialize alone": {nil, map[int]string{1: `"serverInfo"`}},
		"a list":           {[]string{`"method":"notifications/initialized"}`, `"id":2,"method":"tools/list"}`}, map[int]string{1: `"serverInfo"`, 2: `"start_session"`}},
		"who waits": {
			[]string{`"method":"notifications/initialized"}`, `"id":2,"method":"tools/call","params":{"name":"start_session","arguments":{"prompt":"think","wait":600}}}`},
			map[int]string{1: `"serverInfo"`, 2: `"state":"ACTIVE"`},
		},
	} {
		var in, out strings.Builder
		for _, line := range append([]string{`"id":1,` + shakes}, row.says...) {
			in.WriteString(`{"jsonrpc":"2.0",` + line + "\n")
		}
		if err := mcpserver.Serve(t.Context(), b.config, strings.NewReader(in.String()), &out); err != nil {
			t.Error(name, err)
		}
		got := map[int]string{}
		for line := range strings.Lines(out.String()) {
			var said rpc
			if err := json.Unmarshal([]byte(line), &said); err != nil {
				t.Fatal(name, err)
			}
			got[said.ID] = line
		}
		for id, want := range row.want {
			if !strings.Contains(got[id], want) {
				t.Errorf("%s: %d is answered %q, want %s", name, id, got[id], want)
			}
		}
		if len(got) != len(row.want) {
			t.Errorf("%s: %s", name, fmt.Sprint(got))
		}
	}
	if log.Len() > 0 {
		t.Errorf("the server's log has %s", log.String())
	}
}
