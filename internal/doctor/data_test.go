package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDataAndWorkspace: where the data directory lies in the workspace, or the workspace in it, by
// whatever name, the doctor says which, and what to do.
func TestDataAndWorkspace(t *testing.T) {
	base := t.TempDir()
	work, data := filepath.Join(base, "work"), filepath.Join(base, "work", "data")
	shared := filepath.Join(data, "postgres-0123456789ab")
	link := filepath.Join(base, "link")
	for _, dir := range []string{shared, filepath.Join(base, "elsewhere")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		home, data, dir string
		id              string
		status          Status
	}{
		"in the workspace":             {"", data, work, "workspace.data", Warning},
		"in it by a link":              {"", link, work, "workspace.data", Warning},
		"of a database in it":          {data, shared, work, "workspace.data", Warning},
		"the workspace in it":          {"", data, shared, "workspace.root", Failed},
		"the workspace is it":          {"", link, data, "workspace.root", Failed},
		"the workspace beside a store": {data, shared, data, "workspace.root", Failed},
		"beside it":                    {"", data, filepath.Join(base, "elsewhere"), "workspace.root", Fine},
	} {
		s := subject(c.data, c.dir)
		s.Config.DataHome = c.home
		report := Examine(t.Context(), s)
		f := finding(report, c.id, c.status)
		if f == nil || c.status != Fine && (len(f.Fixes) == 0 || !strings.Contains(f.Text.String(), "data directory")) {
			t.Errorf("%s: %+v in %+v", name, f, report)
		}
		if c.status == Fine && finding(report, "workspace.data", Warning) != nil {
			t.Errorf("%s: it is warned of", name)
		}
	}
}
