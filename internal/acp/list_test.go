package acp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestListPages: more sessions than a page has are told in pages, each once.
func TestListPages(t *testing.T) {
	p := newPlace(t, providertest.Scene{Text: []string{"Hello."}})
	settings, err := config.Load(func(name string) string {
		for _, line := range p.env {
			if value, is := strings.CutPrefix(line, name+"="); is {
				return value
			}
		}
		return ""
	}, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := app.Connect(t.Context(), app.Options{Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	place, err := engine.OpenWorkspace(t.Context(), dispatch.WorkspaceRequest{Path: p.root})
	const made = 103
	for i := 0; i < made && err == nil; i++ {
		_, err = engine.NewSession(t.Context(), dispatch.SessionRequest{WorkspaceID: place.ID, Name: fmt.Sprint("session ", i)})
		if err == nil && i%50 == 0 { // what is no conversation is not among them
			_, err = engine.NewSession(t.Context(), dispatch.SessionRequest{WorkspaceID: place.ID, Type: regie.SessionAutomation, Name: "automation"})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	e := p.open()
	seen := map[string]bool{}
	request := object{"cwd": p.root}
	for _, want := range []int{100, made - 100} {
		page := e.call("session/list", request)
		list, _ := page["sessions"].([]any)
		for _, line := range list {
			one, _ := line.(object)
			seen[text(one["sessionId"])] = true
		}
		if len(list) != want || (page["nextCursor"] != nil) != (want == 100) {
			t.Fatalf("a page has %d sessions, and the cursor %v", len(list), page["nextCursor"])
		}
		request["cursor"] = page["nextCursor"]
	}
	if len(seen) != made {
		t.Errorf("%d of %d sessions are told", len(seen), made)
	}
}
