package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/control"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestNotifications_FireFailed: people hear of a run that cannot begin, and of the pause after some
// of them, through channels with content and without.
func TestNotifications_FireFailed(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t))
	got := map[string]chan map[string]any{}
	b.settings.File.Notifications = map[string]config.Channel{}
	for name, channel := range map[string]config.Channel{"plain": {}, "content": {Content: true, Link: "https://regie.example.com"}} {
		told := make(chan map[string]any, 10)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			told <- body
		}))
		t.Cleanup(receiver.Close)
		channel.Type, channel.URL, channel.SecretEnv, channel.Secret = config.ChannelWebhook, receiver.URL, "HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		b.settings.File.Notifications[name], got[name] = channel, told
	}
	name := b.settings.Provider
	b.settings.Providers = map[string]config.Provider{"gone": {Name: "gone", Type: name, BaseURL: b.settings.BaseURL}}
	h := b.serve("127.0.0.1:0")
	made, err := h.client().Automations.Create(t.Context(), client.NewAutomation{Root: b.root, Name: "Plants", Text: "Water them.", Provider: "gone", Model: "scripted"})
	fatal(t, err)
	_, err = h.client().Automations.Edit(t.Context(), client.AutomationEdit{ID: made.ID, Name: new("All plants")})
	fatal(t, err)
	fatal(t, h.engine.Close())
	b.settings.Providers = nil // as a person takes it out of the settings
	h = b.serve("127.0.0.1:0")
	id := made.ID.String()
	expected := func(kind, title, why string) {
		t.Helper()
		for name, want := range map[string][]any{
			"plain":   {kind, title, "regie automations runs " + id + " says more.", nil},
			"content": {kind, title, "All plants\n" + why, "https://regie.example.com/automations/" + id},
		} {
			select {
			case told := <-got[name]:
				if diff := cmp.Diff(want, []any{told["type"], told["title"], told["text"], told["url"]}); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			case <-time.After(time.Minute):
				t.Fatalf("nothing came through %s", name)
			}
		}
	}
	for n := range store.MaxFailures {
		if _, err := h.client().Automations.Run(t.Context(), client.AutomationStart{ID: made.ID}); regie.CodeOf(err) != regie.CodeNotFound {
			t.Fatalf("run %d: %v", n, err)
		}
		expected("failure", "A run has failed", `there is no provider "gone" here: regie models lists those that are configured`)
	}
	expected("pause", "A run is paused", "its last runs failed: 3")
}

// TestNotifications: a run that fails is told through a channel of its workspace alone; the list
// and the test are those of the interface.
func TestNotifications(t *testing.T) {
	t.Parallel()
	got := make(chan map[string]any, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got <- body
	}))
	t.Cleanup(receiver.Close)
	b := newHarness(t, newModel(t, refuses(http.StatusUnauthorized, `{"error":{"message":"bad key"}}`)))
	hook := config.Channel{
		Type: config.ChannelWebhook, URL: receiver.URL, SecretEnv: "HOOK", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", Workspace: b.root,
		Content: true, Link: "https://regie.example.com",
	}
	elsewhere := hook
	elsewhere.Workspace = t.TempDir()
	b.settings.File.Notifications = map[string]config.Channel{"hook": hook, "elsewhere": elsewhere}
	h := b.serve("127.0.0.1:0")
	run := b.send(b.connect(), b.request(everything))
	fatal(t, h.engine.Wait(t.Context(), run.RoundID))
	var told map[string]any
	select {
	case told = <-got:
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	if told["type"] != "failure" || told["round_id"] != run.RoundID.String() || told["url"] != "https://regie.example.com/runs/"+run.RoundID.String() {
		t.Errorf("the webhook: %v", told)
	}
	remote, err := client.New(h.served.URL, h.add(control.TokenRequest{Name: "all", Scopes: regie.TokenScopes()}).Secret, "en")
	fatal(t, err)
	defer remote.Close()
	sent, err := remote.Notifications.Test(t.Context(), dispatch.NotificationTest{Channel: "hook"})
	fatal(t, err)
	if len(sent) != 1 || sent[0].State != store.DeliverySent || (<-got)["id"] != sent[0].ID.String() {
		t.Errorf("the test: %+v", sent)
	}
	if _, err := remote.Notifications.Test(t.Context(), dispatch.NotificationTest{Channel: "nope"}); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("an unknown channel: %v", err)
	}
	found, err := remote.Notifications.List(t.Context(), store.DeliveryFilter{Root: b.root})
	fatal(t, err)
	if len(found) != 1 || found[0].ID.String() != told["id"] || found[0].Channel != "hook" || found[0].RoundID != run.RoundID {
		t.Errorf("the list: %+v", found)
	}
	if found, err = remote.Notifications.List(t.Context(), store.DeliveryFilter{Root: elsewhere.Workspace}); err != nil || len(found) != 0 {
		t.Errorf("elsewhere: %+v, %v", found, err)
	}
	reader, err := client.New(h.served.URL, h.add(control.TokenRequest{Name: "reader", Scopes: []regie.TokenScope{regie.ScopeRead}}).Secret, "en")
	fatal(t, err)
	defer reader.Close()
	if _, err := reader.Notifications.Test(t.Context(), dispatch.NotificationTest{}); regie.CodeOf(err) != regie.CodeMissingScope {
		t.Errorf("a test by who only reads: %v", err)
	}
}
