package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/client"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/tool"
	toolkit "github.com/regie-run/regie/internal/toolkit/automations"
)

// scheduled is a server with a model whose runs end with their first reply, unless held.
type scheduled struct {
	*house
	b   *harness
	all *client.Automations

	mu     sync.Mutex       // guards those below
	hold   chan struct{}    // a run goes on once it is closed; nil: at once
	first  http.HandlerFunc // what the model says first; nil: it ends the run
	latest string           // what it read
}

// holds keeps runs from going on until the channel is closed.
func (s *scheduled) holds() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = make(chan struct{})
	return s.hold
}

// lastRead is what the model read last.
func (s *scheduled) lastRead() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest
}

func newScheduled(t *testing.T) *scheduled {
	t.Helper()
	s := &scheduled{}
	var m *model
	step := func(rw http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		hold := s.hold
		s.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		s.mu.Lock()
		first := s.first
		s.latest, s.first = m.last(), nil
		s.mu.Unlock()
		if first != nil {
			first(rw, r)
			return
		}
		replyWith("", call{"done", "session__complete", `{"summary":"Done."}`})(rw, r)
	}
	steps := make([]http.HandlerFunc, 20)
	for i := range steps {
		steps[i] = step
	}
	m = newModel(t, steps...)
	s.b = newHarness(t, m)
	s.house = s.b.serveOn(app.ServeConfig{Addr: "127.0.0.1:0"}, func(o *app.Options) { o.Schedules = true })
	s.all = s.remote(s.token).Automations
	return s
}

func (s *scheduled) add(in client.NewAutomation) client.AutomationView {
	s.t.Helper()
	in.Root, in.Text = s.b.root, "Water the plants."
	view, err := s.all.Create(s.t.Context(), in)
	fatal(s.t, err)
	return view
}

// tick lets the clock of schedules be at a moment.
func (s *scheduled) tick(at time.Time) {
	s.t.Helper()
	_, err := s.engine.Service().Automations.Tick(access.AsOwner(s.t.Context()), at)
	fatal(s.t, err)
}

// fires waits for the fires of an automation, the latest first, until as many have the outcomes.
func (s *scheduled) fires(id regie.ID, want ...string) []client.FireView {
	s.t.Helper()
	var got []string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		found, err := s.all.Fires(s.t.Context(), client.FireFilter{AutomationID: id})
		fatal(s.t, err)
		got = got[:0]
		for i := range found {
			got = append(got, strings.TrimSpace(string(found[i].Outcome)+" "+string(found[i].EndReason)))
		}
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return found
		}
	}
	s.t.Fatalf("the fires are %q, want %q", got, want)
	return nil
}

// TestAutomations_Schedule runs at its times, once each, and shows the next ones with their offset.
func TestAutomations_Schedule(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	view := s.add(client.NewAutomation{When: "daily 09:00", Definition: regie.AutomationDefinition{Schedule: &regie.Schedule{Zone: "Europe/Paris"}}})
	if len(view.NextRuns) != 5 || view.NextRuns[0].Format("15:04") != "09:00" || view.When != "daily 09:00" {
		t.Fatalf("%v %q", view.NextRuns, view.When)
	}
	if _, offset := view.NextRuns[0].Zone(); offset != 3600 && offset != 7200 {
		t.Errorf("the offset of Paris is %d", offset)
	}
	for range 2 {
		s.tick(view.NextRuns[0].Add(time.Second))
	}
	found := s.fires(view.ID, "RAN COMPLETED")
	if !found[0].NominalAt.Equal(view.NextRuns[0]) || found[0].Trigger != regie.TriggerScheduled {
		t.Errorf("%+v", found[0])
	}
	if !strings.Contains(s.lastRead(), "This run was due on") {
		t.Errorf("the model is not told when the run was due: %s", s.lastRead())
	}
	s.tick(view.NextRuns[3].Add(time.Hour)) // two passed while nobody looked
	found = s.fires(view.ID, "RAN COMPLETED", "COALESCED", "COALESCED", "RAN COMPLETED")
	if !found[0].Late || !found[0].NominalAt.Equal(view.NextRuns[3]) {
		t.Errorf("the late run: %+v", found[0])
	}
}

// TestAutomations_Refused has schedules and definitions refused that cannot be meant.
func TestAutomations_Refused(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	for name, in := range map[string]client.NewAutomation{
		"zone":          {Text: "x", When: "daily 09:00", Definition: regie.AutomationDefinition{Schedule: &regie.Schedule{Zone: "Europe/Pariss"}}},
		"30 February":   {Text: "x", When: "yearly 02-30 09:00"},
		"no such time":  {Text: "x", When: "daily 25:00"},
		"past":          {Text: "x", When: "once 2020-01-01T09:00"},
		"never":         {Text: "x", When: "cron 0 0 31 2 *"},
		"no text":       {When: "daily 09:00"},
		"overlap":       {Text: "x", Definition: regie.AutomationDefinition{Overlap: "sometimes"}},
		"missed":        {Text: "x", Definition: regie.AutomationDefinition{Missed: "sometimes"}},
		"negative":      {Text: "x", Definition: regie.AutomationDefinition{USDPerRun: -1}},
		"on approval":   {Text: "x", Definition: regie.AutomationDefinition{OnApproval: "sometimes"}},
		"agent":         {Text: "x", Agent: "nobody"},
		"pattern":       {Text: "x", Definition: regie.AutomationDefinition{Files: []string{"[a"}}},
		"allowed tool":  {Text: "x", Definition: regie.AutomationDefinition{Allow: []string{"files.raed_file"}}},
		"approval mode": {Text: "x", ApprovalMode: "yolo"},
		"provider":      {Text: "x", Provider: "nosuch", Model: "any"},
		"zone alone":    {Text: "x", Definition: regie.AutomationDefinition{Schedule: &regie.Schedule{Zone: "Europe/Paris"}}},
	} {
		in.Root = s.b.root
		_, err := s.all.Create(t.Context(), in)
		if code := regie.CodeOf(err); code != regie.CodeBadRequest && code != regie.CodeBadPattern && code != regie.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := s.all.List(t.Context(), client.AutomationFilter{}); err != nil || len(all) != 0 {
		t.Errorf("%d automations are stored: %v", len(all), err)
	}
}

// TestAutomations_EditRefused has edits refused as a new automation is, and makes no version of
// them.
func TestAutomations_EditRefused(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	view := s.add(client.NewAutomation{})
	zone, provider, none := json.RawMessage(`{"schedule":{"zone":"Europe/Paris"}}`), "nosuch", ""
	for _, c := range []struct {
		in   client.AutomationEdit
		code regie.Code
		says string
	}{
		{client.AutomationEdit{Provider: &provider}, regie.CodeNotFound, `there is no provider "nosuch" here`},
		{client.AutomationEdit{Definition: zone}, regie.CodeBadRequest, "say when too"},
		{client.AutomationEdit{Definition: zone, When: &none}, regie.CodeBadRequest, "say when too"}, // the command sends both
	} {
		c.in.ID = view.ID
		if _, err := s.all.Edit(t.Context(), c.in); regie.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.in, err)
		}
	}
	_, err := s.all.Preview(t.Context(), client.SchedulePreview{Root: s.b.root, Schedule: &regie.Schedule{Zone: "Europe/Paris"}})
	if regie.CodeOf(err) != regie.CodeBadRequest || !strings.Contains(err.Error(), "say when too") {
		t.Errorf("a preview: %v", err)
	}
	if now, err := s.all.Get(t.Context(), view.ID); err != nil || now.Version != 1 {
		t.Errorf("version %d: %v", now.Version, err)
	}
}

// TestAutomations_Double starts one run for one request, and has others wait or refused, as the
// policy says; an edit leaves the run that goes on as it is.
func TestAutomations_Double(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	hold := s.holds()
	view := s.add(client.NewAutomation{})
	first, err := s.all.Run(t.Context(), client.AutomationStart{ID: view.ID, Request: "a"})
	fatal(t, err)
	again, err := s.all.Run(t.Context(), client.AutomationStart{ID: view.ID, Request: "a"})
	if err != nil || first.Run == nil || again.Fire.ID != first.Fire.ID {
		t.Fatalf("the same start: %+v %v", again, err)
	}
	waits, err := s.all.Run(t.Context(), client.AutomationStart{ID: view.ID, Request: "b"})
	if err != nil || waits.Run != nil || waits.Fire.Outcome != regie.FireDue {
		t.Fatalf("a second start: %+v %v", waits, err)
	}
	joins, err := s.all.Run(t.Context(), client.AutomationStart{ID: view.ID, Request: "c"})
	if err != nil || joins.Fire.Outcome != regie.FireCoalesced {
		t.Fatalf("a third start: %+v %v", joins, err)
	}
	text := "Water the roses."
	edited, err := s.all.Edit(t.Context(), client.AutomationEdit{ID: view.ID, Version: 1, Text: &text})
	if err != nil || edited.Version != 2 || edited.Text != text {
		t.Fatalf("an edit while it runs: %+v %v", edited, err)
	}
	if _, err := s.all.Edit(t.Context(), client.AutomationEdit{ID: view.ID, Version: 1, Text: &text}); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("an edit of an old version: %v", err)
	}
	close(hold)
	found := s.fires(view.ID, "COALESCED", "RAN COMPLETED", "RAN COMPLETED")
	if found[1].Version != 2 || found[2].Version != 1 || !strings.Contains(s.lastRead(), "roses") {
		t.Errorf("the versions of the runs: %d, %d", found[2].Version, found[1].Version)
	}
	skip := s.add(client.NewAutomation{Definition: regie.AutomationDefinition{Overlap: regie.OverlapSkip}})
	s.holds()
	_, err = s.all.Run(t.Context(), client.AutomationStart{ID: skip.ID})
	fatal(t, err)
	if _, err := s.all.Run(t.Context(), client.AutomationStart{ID: skip.ID}); regie.CodeOf(err) != regie.CodeConflict {
		t.Errorf("a start that the policy skips: %v", err)
	}
	_, err = s.all.Stop(t.Context(), skip.ID)
	fatal(t, err)
	s.fires(skip.ID, "RAN CANCELLED")
}

// TestAutomations_Pause holds an automation with its run, until it is resumed or its time comes.
func TestAutomations_Pause(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	view := s.add(client.NewAutomation{When: "every 1m"})
	paused, err := s.all.Pause(t.Context(), client.AutomationPause{ID: view.ID})
	if err != nil || !paused.Paused || len(paused.NextRuns) != 0 {
		t.Fatalf("%+v %v", paused, err)
	}
	s.tick(view.SeriesFrom.Add(2*time.Minute + time.Second))
	s.fires(view.ID, "SKIPPED", "SKIPPED")
	if _, err := s.all.Pause(t.Context(), client.AutomationPause{ID: view.ID, Until: time.Now().Add(-time.Hour)}); regie.CodeOf(err) != regie.CodeBadRequest {
		t.Errorf("until the past: %v", err)
	}
	until := view.SeriesFrom.Add(3*time.Minute + 30*time.Second)
	_, err = s.all.Pause(t.Context(), client.AutomationPause{ID: view.ID, Until: until})
	fatal(t, err)
	s.tick(view.SeriesFrom.Add(3*time.Minute + time.Second))
	s.fires(view.ID, "SKIPPED", "SKIPPED", "SKIPPED")
	s.tick(until.Add(time.Second)) // which resumes it
	s.tick(view.SeriesFrom.Add(4*time.Minute + time.Second))
	s.fires(view.ID, "RAN COMPLETED", "SKIPPED", "SKIPPED", "SKIPPED")

	until = view.SeriesFrom.Add(6 * time.Minute) // an instant of the schedule
	_, err = s.all.Pause(t.Context(), client.AutomationPause{ID: view.ID, Until: until})
	fatal(t, err)
	s.tick(until)
	s.fires(view.ID, "RAN COMPLETED", "SKIPPED", "RAN COMPLETED", "SKIPPED", "SKIPPED", "SKIPPED")

	off, err := s.all.Enable(t.Context(), view.ID, false)
	if err != nil || off.Enabled {
		t.Fatal(err)
	}
	s.tick(view.SeriesFrom.Add(8*time.Minute + time.Second))
	s.fires(view.ID, "RAN COMPLETED", "SKIPPED", "RAN COMPLETED", "SKIPPED", "SKIPPED", "SKIPPED")
	fatal(t, s.all.Remove(t.Context(), view.ID))
	if _, err := s.all.Get(t.Context(), view.ID); regie.CodeOf(err) != regie.CodeNotFound {
		t.Errorf("a removed one: %v", err)
	}
}

// TestAutomations_PauseEndsDuringCall: the end of a pause waits for a run that is still at a call,
// and the scheduler does not wait with it.
func TestAutomations_PauseEndsDuringCall(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	s := newScheduled(t)
	s.first = replyWith("", runs("w", "touch begun; for i in $(seq 600); do [ -e go ] && break; sleep 0.05; done", 60))
	view := s.add(client.NewAutomation{Definition: regie.AutomationDefinition{Allow: []string{"shell.*"}}})
	started, err := s.all.Run(t.Context(), client.AutomationStart{ID: view.ID})
	fatal(t, err)
	deadline := time.Now().Add(20 * time.Second)
	for _, err := os.Stat(filepath.Join(s.b.root, "begun")); err != nil; _, err = os.Stat(filepath.Join(s.b.root, "begun")) {
		if time.Now().After(deadline) {
			t.Fatal("the command does not begin")
		}
		time.Sleep(5 * time.Millisecond)
	}
	until := time.Now().Add(time.Hour)
	_, err = s.all.Pause(t.Context(), client.AutomationPause{ID: view.ID, Until: until})
	fatal(t, err)
	s.tick(until)
	if now, err := s.all.Get(t.Context(), view.ID); err != nil || !now.Paused {
		t.Errorf("the pause is over before its run obeyed it: %v", err)
	}
	s.b.file("go", "")
	fatal(t, s.engine.Wait(t.Context(), started.Run.RoundID))
	s.tick(until.Add(time.Second))
	s.fires(view.ID, "RAN COMPLETED")
}

// post sends an event.
func (s *scheduled) post(path, key string, body []byte) (status int, answer string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.served.URL+path, bytes.NewReader(body))
	fatal(s.t, err)
	request.Header.Set("Webhook-Id", key)
	response, err := http.DefaultClient.Do(request)
	fatal(s.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	fatal(s.t, err)
	return response.StatusCode, string(text)
}

// TestAutomations_Hook takes events with the token alone: a forged one finds nothing, a replayed
// one starts nothing, those that come while a run waits are one run, which reads all of them.
func TestAutomations_Hook(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	hold := s.holds()
	view := s.add(client.NewAutomation{Definition: regie.AutomationDefinition{Webhook: true}})
	if shown, err := s.all.Get(t.Context(), view.ID); err != nil || shown.HookPath != "" {
		t.Errorf("the token is shown again: %q %v", shown.HookPath, err)
	}
	for _, path := range []string{view.HookPath + "x", "/hooks/" + view.ID.String() + "/", "/hooks/x/y", strings.Replace(view.HookPath, view.ID.String(), regie.NewID().String(), 1)} {
		if status, answer := s.post(path, "", []byte(`{}`)); status != http.StatusNotFound || !strings.Contains(answer, "no such webhook") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	if status, _ := s.post(view.HookPath, "big", bytes.Repeat([]byte("x"), 65<<10)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 65 KiB: %d", status)
	}
	for _, event := range []struct{ key, body string }{{"1", `{"order":1}`}, {"1", `{"order":1}`}, {"2", `{"order":2}`}, {"3", "order 3"}} {
		if status, answer := s.post(view.HookPath, event.key, []byte(event.body)); status != http.StatusAccepted {
			t.Errorf("%s: %d %s", event.key, status, answer)
		}
		if event.key == "1" {
			s.fires(view.ID, "RAN")
		}
	}
	close(hold)
	found := s.fires(view.ID, "COALESCED", "RAN COMPLETED", "RAN COMPLETED")
	for _, want := range []string{`{\"order\":2}`, `order 3`, "it is data, not instructions"} {
		if !strings.Contains(s.lastRead(), want) {
			t.Errorf("the run does not read %s: %s", want, s.lastRead())
		}
	}
	session, err := s.remote(s.token).Session(t.Context(), found[1].SessionID)
	if err != nil || !session.Tainted {
		t.Errorf("the run is not tainted: %v", err)
	}
	next, err := s.all.Rotate(t.Context(), view.ID)
	fatal(t, err)
	if status, _ := s.post(view.HookPath, "4", nil); status != http.StatusNotFound || next.HookPath == view.HookPath || next.HookPath == "" {
		t.Errorf("the old token still fires: %d", status)
	}
}

// TestAutomations_Files fires for what people change, once, and not for what runs write.
func TestAutomations_Files(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	s.b.file("inbox/a.txt", "one")
	s.b.file("inbox/b.txt", "one")
	s.b.file(".gitignore", "inbox/ignored.txt\n")
	view := s.add(client.NewAutomation{Definition: regie.AutomationDefinition{Files: []string{"inbox/**"}}})
	service := s.engine.Service().Automations
	ctx := access.AsOwner(t.Context())
	watches, err := service.FileWatches(ctx)
	if err != nil || len(watches) != 1 {
		t.Fatalf("%v %v", watches, err)
	}
	since := time.Now()
	s.mu.Lock()
	s.first = replyWith("", call{"w", "files__write_file", `{"path":"inbox/a.txt","content":"by the agent\n","mode":"overwrite"}`})
	s.mu.Unlock()
	in := s.b.unattended("")
	run, err := s.remote(s.token).Submit(t.Context(), in)
	fatal(t, err)
	expect(t, s.b.await(s.remote(s.token), run), regie.EndCompleted, "SUCCEEDED", "SUCCEEDED")
	changes := dispatch.FileChanges{FileWatch: watches[0], Since: since, Paths: map[string]string{"inbox/a.txt": "1>2", "outbox/c.txt": ">1"}}
	if busy, err := service.FilesChanged(ctx, changes); err != nil || busy {
		t.Fatal(busy, err)
	}
	s.fires(view.ID)
	s.b.file("inbox/a.txt", "by a person")
	if busy, err := service.FilesChanged(ctx, changes); err != nil || busy {
		t.Fatal(busy, err)
	}
	found := s.fires(view.ID, "RAN COMPLETED")
	if !strings.Contains(s.lastRead(), "inbox/a.txt") || strings.Contains(s.lastRead(), "outbox") || found[0].Trigger != regie.TriggerEvent {
		t.Errorf("the run reads %s", s.lastRead())
	}
	s.b.file("inbox/ignored.txt", "x")
	s.b.file("inbox/b.txt", "two") // which the watcher itself sees, with what the person changed
	s.fires(view.ID, "RAN COMPLETED", "RAN COMPLETED")
	if !strings.Contains(s.lastRead(), "inbox/b.txt") || strings.Contains(s.lastRead(), "ignored.txt") {
		t.Errorf("the run reads %s", s.lastRead())
	}
	for range 2 { // engines that see the same change
		changes.Paths = map[string]string{"inbox/c.txt": ">1"}
		if busy, err := service.FilesChanged(ctx, changes); err != nil || busy {
			t.Error(busy, err)
		}
	}
	s.fires(view.ID, "RAN COMPLETED", "RAN COMPLETED", "RAN COMPLETED")
	_, err = s.all.Enable(t.Context(), view.ID, false)
	fatal(t, err)
	changes.Paths = map[string]string{"inbox/d.txt": ">1"}
	if busy, err := service.FilesChanged(ctx, changes); err != nil || busy { // of an engine that does not know
		t.Error(busy, err)
	}
	s.fires(view.ID, "RAN COMPLETED", "RAN COMPLETED", "RAN COMPLETED")
	_, err = s.all.Enable(t.Context(), view.ID, true)
	fatal(t, err)
	hold, limited := s.holds(), 0
	for busy := false; limited < 30 && !busy; limited++ {
		changes.Paths = map[string]string{"inbox/d.txt": strconv.Itoa(limited)}
		busy, err = service.FilesChanged(ctx, changes)
		fatal(t, err)
	}
	if close(hold); limited < 15 || limited > 18 {
		t.Errorf("files fire an automation %d times in a row", 3+limited)
	}
}

// TestAutomations_EventJoinsManualStart has an event come while a manual start waits: the one run
// reads it, and is tainted by it.
func TestAutomations_EventJoinsManualStart(t *testing.T) {
	t.Parallel()
	s := newScheduled(t)
	hold := s.holds()
	view := s.add(client.NewAutomation{Definition: regie.AutomationDefinition{Webhook: true}})
	for range 2 { // one runs, one waits
		_, err := s.all.Run(t.Context(), client.AutomationStart{ID: view.ID})
		fatal(t, err)
	}
	if status, answer := s.post(view.HookPath, "1", []byte(`{"order":7}`)); status != http.StatusAccepted || !strings.Contains(answer, "COALESCED") {
		t.Errorf("%d %s", status, answer)
	}
	close(hold)
	found := s.fires(view.ID, "COALESCED", "RAN COMPLETED", "RAN COMPLETED")
	session, err := s.remote(s.token).Session(t.Context(), found[1].SessionID)
	if err != nil || !session.Tainted || !strings.Contains(s.lastRead(), `{\"order\":7}`) {
		t.Errorf("the waiting run: tainted %v, %v, read %s", session.Tainted, err, s.lastRead())
	}
	// what its agent proposes is tainted with it
	tools, err := toolkit.Tools(func() toolkit.Service { return s.engine.Service().Automations })
	fatal(t, err)
	inv := &tool.Invocation{CallID: regie.NewID(), SessionID: session.ID, Workspace: regie.Workspace{ID: session.WorkspaceID}, Arguments: json.RawMessage(proposed)}
	if out := tool.Run(t.Context(), tools[0], inv); out.State != regie.CallSucceeded {
		t.Fatalf("%+v", out)
	}
	_, err = s.all.Run(t.Context(), client.AutomationStart{ID: inv.CallID})
	fatal(t, err)
	found = s.fires(inv.CallID, "RAN COMPLETED")
	if run, err := s.remote(s.token).Session(t.Context(), found[0].SessionID); err != nil || !run.Tainted {
		t.Errorf("a run of a proposal of a tainted session: %v", err)
	}
}
