package app_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestFailedCallsSayWhatTheyWereSent has a model call fail once, and one for good: each says what
// it was sent, byte for byte, and a replay compares it (decision 14).
func TestFailedCallsSayWhatTheyWereSent(t *testing.T) {
	t.Parallel()
	for _, format := range providertest.Formats() {
		t.Run(format.Name, func(t *testing.T) {
			scenes := []providertest.Scene{
				{Status: 500, Message: "not now"},
				{Calls: []provider.Call{{ID: "one", Name: "files__list_files", Arguments: `{}`}}, Input: 900, Output: 20},
				{Status: 400, Message: "not like that"},
			}
			var asked [][]byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Method != http.MethodPost || r.URL.Path == "/api/show" || len(asked) == len(scenes) {
					http.NotFound(w, r)
					return
				}
				asked = append(asked, body)
				format.Play(w, r, scenes[len(asked)-1])
			}))
			defer server.Close()
			b := &bed{t: t, root: t.TempDir(), settings: settingsFor(t, format.Name, server.URL+format.Path)}
			view := b.run(everything)
			if view.Round.End != regie.EndProviderError || len(asked) != 3 || len(view.Exchanges) != 2 {
				t.Fatalf("%s, %d requests, %d exchanges", view.Round.End, len(asked), len(view.Exchanges))
			}
			first, second := view.Exchanges[0], view.Exchanges[1]
			if second.State != regie.ExchangeFailed || second.Request != regie.HashOf(asked[2]) || second.LastSeq <= first.LastSeq {
				t.Errorf("the failed exchange: %+v", second.Exchange)
			}
			conn, err := app.Connect(t.Context(), app.Options{Config: b.settings, ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for i, in := range []dispatch.PromptRequest{{Exchange: 1, Attempt: 1}, {Exchange: 1, Attempt: 2}, {Exchange: 2}} {
				in.RoundID = view.Round.ID
				if p, err := conn.Prompt(t.Context(), in); err != nil || !p.Exact() || !bytes.Equal(p.Body, asked[i]) {
					t.Errorf("request %d: %v\n%s", i, err, p.Body)
				}
			}
			in := dispatch.PromptRequest{RoundID: view.Round.ID, Exchange: 2, Attempt: 2}
			if _, err := conn.Prompt(t.Context(), in); regie.CodeOf(err) != regie.CodeNotFound {
				t.Errorf("an attempt that was not made: %v", err)
			}
			if out, err := conn.Replay(t.Context(), view.Round.ID); err != nil || out.Identical != 3 || out.Difference != 0 || len(out.Skipped) != 0 {
				t.Errorf("once more: %+v, %v", out, err)
			}
		})
	}
}
