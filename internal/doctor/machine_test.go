package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

func TestModel(t *testing.T) {
	for _, c := range []struct {
		name   string
		server Server
		model  string
		id     string
		status Status
		fix    string
	}{
		{"answers", Server{Asked: true, Models: []string{"a"}, ToolModels: []string{"a"}}, "a", "model.tools", Fine, ""},
		{"latest", Server{Asked: true, Models: []string{"a:latest"}, ToolModels: []string{"a:latest"}}, "a", "model.tools", Fine, ""},
		{"no tools", Server{Asked: true, Models: []string{"a"}}, "a", "model.tools", Warning, "regie models"},
		{"no such model", Server{Asked: true, Models: []string{"a", "b"}}, "c", "model.known", Failed, "choose one of its models (a, b)"},
		{"not pulled", Server{Asked: true, Type: "ollama", Models: []string{"a"}}, "c", "model.known", Failed, "ollama pull c"},
		{"no key", Server{}, "a", "model.key", Failed, "regie setup"},
		{"wrong key", Server{Asked: true, Code: regie.CodeProviderAuth}, "a", "model.answers", Failed, "regie setup"},
		{"no credit", Server{Asked: true, Code: regie.CodeProviderQuota}, "a", "model.answers", Failed, "credit"},
		{"offline", Server{Asked: true, Code: regie.CodeProviderOffline}, "a", "model.answers", Failed, "network"},
		{"Ollama not running", Server{Asked: true, Type: "ollama", Local: true, Code: regie.CodeProviderOffline}, "a", "model.answers", Failed, "ollama serve"},
		{"local server not running", Server{Asked: true, Local: true, Code: regie.CodeProviderOffline}, "a", "model.answers", Failed, "start the server"},
		{"busy", Server{Asked: true, Code: regie.CodeProviderBusy}, "a", "model.answers", Warning, "regie run hello"},
		{"no list", Server{Asked: true, Code: regie.CodeProviderRejected}, "a", "model.answers", Warning, "regie run hello"},
	} {
		s := subject("", "")
		s.Config.Provider, s.Config.Model = "lab", c.model
		c.server.Name = "lab"
		s.Server = func(context.Context) *Server { return &c.server }
		report := Examine(t.Context(), s)
		if f := finding(report, c.id, c.status); f == nil || !strings.Contains(fixes(f), c.fix) {
			t.Errorf("%s: %+v in %+v", c.name, f, report[:5])
		}
	}
	s := subject("", "")
	s.Config.Provider = ""
	if f := finding(Examine(t.Context(), s), "model.chosen", Failed); f == nil || fixes(f) != "regie setup" {
		t.Errorf("no model: %+v", f)
	}
	s.Config.Provider, s.Config.Model = "lab", ""
	if f := finding(Examine(t.Context(), s), "model.chosen", Failed); f == nil || f.Code != regie.CodeNoModel {
		t.Errorf("a server without a model: %+v", f)
	}
}

// TestSpace: bounds that no test can produce on a real disk.
func TestSpace(t *testing.T) {
	for _, c := range []struct {
		free   uint64
		status Status
		text   string
	}{
		{0, Failed, "only 0 B are free"},
		{spaceNeeded - 1, Failed, "only 64 MiB are free"},
		{1 << 40, Fine, "1 TiB are free"},
		{spaceNeeded, Warning, "64 MiB are free"},
		{3 << 29, Fine, "1.5 GiB are free"},
	} {
		x := &exam{}
		x.judgeSpace("/my data", c.free)
		if f := x.report[0]; f.Status != c.status || !strings.HasPrefix(f.Text.String(), c.text) && !strings.Contains(f.Text.String(), c.text) || c.status == Failed && (f.Code != regie.CodeDiskFull || len(f.Fixes) == 0) {
			t.Errorf("%+v: %s %s", c, f.Status, f.Text)
		}
	}
}

func TestFileSystems(t *testing.T) {
	for kind, status := range map[string]Status{"nfs": Failed, "9p": Failed, "tmpfs": Warning, "overlay": Warning} {
		x := &exam{}
		x.fileSystem("/x", kind)
		if f := x.report[0]; f.Status != status || len(f.Fixes) == 0 {
			t.Errorf("%s: %s %s", kind, f.Status, f.Text)
		}
	}
}

// TestWarnings: what is worth a look and needs nothing.
func TestWarnings(t *testing.T) {
	data, dir := fresh(t)
	s := subject(data, dir)
	must(t, os.MkdirAll(filepath.Join(dir, ".regie"), 0o700), write(filepath.Join(dir, ".regie", "regie.yaml"), "", 0o600), os.Chmod(data, 0o750))
	s.Project = func(root string) Project {
		return Project{File: filepath.Join(root, ".regie", "regie.yaml"), Skills: 2, Bad: []string{".regie/skills/x"}}
	}
	report := Examine(t.Context(), s)
	for id, fix := range map[string]string{
		"workspace.trust": "regie trust", "workspace.skills": "regie skills", "data.private": "chmod 700", "model.chosen": "regie setup",
	} {
		if f := finding(report, id, Warning); f == nil || !strings.Contains(fixes(f), fix) {
			t.Errorf("%s: %+v", id, f)
		}
	}
	if failed := ids(report); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
}

// TestProject is how what a workspace says to agents stands.
func TestProject(t *testing.T) {
	data, dir := fresh(t)
	for _, row := range []struct {
		name    string
		project Project
		id      string
		status  Status
		says    string
	}{
		{"trusted", Project{Trusted: true, Skills: 1, Settings: 2}, "workspace.trust", Fine, "because you trust them"},
		{"not trusted", Project{Settings: 2}, "workspace.trust", Warning, "until you trust them"},
		{"too much", Project{Unread: regie.Errorf(regie.CodeFileTooLarge, "much")}, "workspace.trust", Failed, ""},
		{"broken", Project{Broken: regie.Errorf(regie.CodeBadRequest, "no"), File: "f"}, "workspace.project", Failed, ""},
	} {
		s := subject(data, dir)
		s.Project = func(string) Project { return row.project }
		f := finding(Examine(t.Context(), s), row.id, row.status)
		if f == nil || !strings.Contains(f.Text.String(), row.says) || row.status != Fine && len(f.Fixes) == 0 {
			t.Errorf("%s: %+v", row.name, f)
		}
	}
	s := subject(data, dir)
	s.Project = func(string) Project { return Project{} }
	if f := finding(Examine(t.Context(), s), "workspace.trust", Fine); f != nil {
		t.Errorf("a workspace that says nothing: %+v", f)
	}
}
