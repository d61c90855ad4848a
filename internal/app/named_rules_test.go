package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/doctor"
	"github.com/regie-run/regie/internal/store"
)

// TestNamedSettingsOfAClient: a client that was told to decide by a file of settings is refused a
// run where the engine decides by others. One that was told nothing is answered by whatever the
// engine has, and so is one whose file says the same.
func TestNamedSettingsOfAClient(t *testing.T) {
	t.Parallel()
	b := newBed(t, newModel(t, says("one"), says("two"), says("three")))
	engine := b.connect()
	defer engine.Close()
	own := b.settings
	for _, row := range []struct {
		name           string
		apart, refused bool
		change         func()
	}{
		{"the same", true, false, func() {}},
		{"others that nobody named", false, false, func() { b.settings.File.Approvals.RequireValidation = true }},
		{"a check of every call", true, true, func() { b.settings.File.Approvals.RequireValidation = true }},
		{"another sandbox", true, true, func() { b.settings.File.Shell.Sandbox = "landlock" }},
		{"a network", true, true, func() { b.settings.File.Shell.Network = true }},
		{"what is no decision", true, false, func() { b.settings.File.Listen = "127.0.0.1:1" }},
	} {
		b.settings = own
		b.settings.Apart = row.apart
		row.change()
		client := b.connect()
		run, err := client.Submit(t.Context(), b.request(everything))
		if (regie.CodeOf(err) == regie.CodeConflict) != row.refused || row.refused == (err == nil) {
			t.Errorf("%s: %v", row.name, err)
		}
		if err == nil {
			expect(t, b.await(client, run), regie.EndAnswered)
		}
		_, decided := client.Decide(t.Context(), dispatch.DecideRequest{})
		_, answered := client.Answer(t.Context(), dispatch.AnswerRequest{})
		for what, err := range map[string]error{
			"Resume": client.Resume(t.Context(), regie.NewID()), "Decide": decided, "Answer": answered, "Resolve": client.Resolve(t.Context(), dispatch.ResolveRequest{}),
		} {
			if err == nil || strings.Contains(err.Error(), "decides by other settings") != row.refused {
				t.Errorf("%s: %s: %v", row.name, what, err)
			}
		}
		if _, err := client.Sessions(t.Context(), store.SessionFilter{}); err != nil {
			t.Errorf("%s: who only looks is refused: %v", row.name, err)
		}
		report := app.Examine(t.Context(), doctor.Subject{Config: b.settings, Env: func(string) string { return "" }, Dir: b.root, Now: time.Now})
		said := false
		for i := range report {
			said = said || report[i].ID == "engine.settings" && report[i].Status == doctor.Warning
		}
		if said != row.refused {
			t.Errorf("%s: the doctor says so: %v", row.name, said)
		}
		fatal(t, client.Close())
	}
}
