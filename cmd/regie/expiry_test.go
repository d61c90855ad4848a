package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/store"
)

// TestExpired answers what has expired: nothing is run, and the program says why.
func TestExpired(t *testing.T) {
	t.Parallel()
	data, root := filepath.Join(t.TempDir(), "data"), t.TempDir()
	settings, err := config.Load(func(string) string { return "" }, config.Flags{DataDir: data, Provider: config.ProviderDemo})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := app.Connect(t.Context(), app.Options{Config: settings, ApprovalTTL: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	run, err := conn.Submit(t.Context(), dispatch.RunRequest{
		ClientID: "1", SessionID: regie.NewID(), Root: root, FoundBy: "directory", Text: `write "x" to a.txt`, Agent: "main",
		Provider: settings.Provider, Model: settings.Model, Policy: approval.Policy{OnApproval: approval.Park},
	})
	if err != nil {
		t.Fatal(err)
	}
	var id string
	ended := errors.New("ended")
	if err := conn.Events(t.Context(), run.SessionID, 0, func(item dispatch.Item) error {
		switch {
		case item.Event == nil:
		case item.Event.Type == regie.EventApproval && id == "":
			_, id, _ = strings.Cut(string(item.Event.Body), `"approval_id":"`)
			id, _, _ = strings.Cut(id, `"`)
		case item.Event.Type == regie.EventRound && strings.Contains(string(item.Event.Body), `"ENDED"`):
			return ended
		}
		return nil
	}); !errors.Is(err, ended) {
		t.Fatal(err)
	}
	parsed, err := regie.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	// also what is closed is found by the end of its id
	inbox, err := chat.Find(t.Context(), conn.Client, root, chat.Short(parsed))
	if err != nil || len(inbox.Approvals) != 1 || inbox.Approvals[0].State != regie.ApprovalExpired {
		t.Errorf("%+v, %v", inbox, err)
	}
	if open, err := conn.Inbox(t.Context(), store.InboxFilter{}); err != nil || len(open.Approvals) != 0 {
		t.Errorf("%+v, %v", open, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "regie", "--data-dir", data, "approve", chat.Short(parsed))
	command.Env, command.Dir = append(command.Environ(), "REGIE_LANG=en"), root
	out, err := command.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != exitError || !strings.Contains(string(out), "the approval has expired: nothing of it was run") {
		t.Errorf("%v: %s", err, out)
	}
}
