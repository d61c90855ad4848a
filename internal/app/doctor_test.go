package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/doctor"
)

// TestDoctorBesideAnEngine: the doctor finds the engine that runs, one that is silent, and none,
// and is in nobody's way.
func TestDoctorBesideAnEngine(t *testing.T) {
	t.Parallel()
	b := newHarness(t, newModel(t, replyWith("hello")))
	settings := b.settings
	settings.Provider, settings.Model = config.ProviderDemo, "demo" // the scripted model has no list to be asked for
	examine := func(status doctor.Status) *doctor.Finding {
		t.Helper()
		report := app.Examine(t.Context(), doctor.Subject{Config: settings, Env: func(string) string { return "" }, Dir: b.root})
		for i := range report {
			if report[i].ID == "engine.running" && report[i].Status == status {
				return &report[i]
			}
			if report[i].Status == doctor.Failed && report[i].Group != doctor.Model && report[i].ID != "engine.running" {
				t.Errorf("%s failed: %s", report[i].ID, report[i].Text)
			}
		}
		t.Fatalf("nothing %s is said of the engine: %+v", status, report)
		return nil
	}
	if f := examine(doctor.Fine); f.Text.Format != "no engine runs; a command that needs one starts it" {
		t.Errorf("before: %s", f.Text)
	}
	if _, err := os.Stat(b.settings.DataDir); err == nil {
		t.Error("the doctor has made the data directory")
	}
	engine := b.connect()
	if f := examine(doctor.Fine); f.Text.Format != "process %s is the engine and answers after %s (%s)" {
		t.Errorf("beside an engine: %s", f.Text)
	}
	run := b.send(engine, b.request(everything))
	expect(t, b.await(engine, run), regie.EndAnswered)
	fatal(t, engine.Close())
	examine(doctor.Fine)
	held, err := os.OpenFile(filepath.Join(b.settings.DataDir, "engine.lock"), os.O_RDWR, 0)
	fatal(t, err)
	defer held.Close()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatalf("the doctor has kept the lock: %v", err)
	}
	if f := examine(doctor.Failed); f.Code != regie.CodeLocked || len(f.Fixes) == 0 {
		t.Errorf("a holder that does not answer: %+v", f)
	}
}

// TestDoctorAsks: the chosen server is asked, and nobody else.
func TestDoctorAsks(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	var mu sync.Mutex
	server := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[name+" "+r.Method+" "+r.URL.Path]++
			mu.Unlock()
			fmt.Fprint(w, `{"data": [{"id": "m"}]}`)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	c := config.Config{
		DataDir: filepath.Join(t.TempDir(), "data"), Provider: "lab", Model: "m", Origin: map[string]string{"provider": "test"},
		Providers: map[string]config.Provider{},
		File:      config.File{Providers: map[string]config.Provider{"written": {}}},
	}
	for _, name := range []string{"lab", "written", "found"} {
		c.Providers[name] = config.Provider{Name: name, Type: "openai", BaseURL: server(name), APIKey: "sk"}
	}
	c.BaseURL = c.Providers["lab"].BaseURL
	report := app.Examine(t.Context(), doctor.Subject{Config: c, Env: func(string) string { return "" }, Dir: t.TempDir()})
	if len(asked) != 1 || asked["lab GET /v1/models"] != 1 {
		t.Errorf("asked: %v", asked)
	}
	said := map[string]doctor.Status{}
	for i := range report {
		said[report[i].ID] = report[i].Status
	}
	if said["model.answers"] != doctor.Fine || said["model.tools"] != doctor.Fine {
		t.Errorf("said: %v", said)
	}
}
