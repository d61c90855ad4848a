package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// TestGlobalIgnore: what a person has git ignore everywhere is ignored in a repository, after what
// the repository says; the repository's own settings name no file of the machine.
func TestGlobalIgnore(t *testing.T) {
	for name, row := range map[string]struct {
		home   map[string]string // below the home directory
		global string            // GIT_CONFIG_GLOBAL, there
		work   map[string]string
		want   bool
	}{
		"git/ignore":                  {home: map[string]string{".config/git/ignore": "*.swp\n"}, want: true},
		"nothing":                     {},
		"excludesFile":                {home: map[string]string{".gitconfig": "[user]\n\tname = x\n[core]\n\tautocrlf = false\n\texcludesFile = ~/.mine # mine\n", ".mine": "*.swp\n"}, want: true},
		"quoted":                      {home: map[string]string{".config/git/config": "[Core] EXCLUDESFILE = \"~/my own\"\n", "my own": "*.swp\n"}, want: true},
		"it takes git/ignore's place": {home: map[string]string{".gitconfig": "[core]\nexcludesfile = ~/.mine\n", ".mine": "*.o\n", ".config/git/ignore": "*.swp\n"}},
		"included":                    {home: map[string]string{".gitconfig": "[include]\n\tpath = more\n", "more": "[core]\nexcludesfile = ~/.mine\n", ".mine": "*.swp\n"}, want: true},
		"included for some":           {home: map[string]string{".gitconfig": "[includeIf \"gitdir:/other/\"]\n\tpath = more\n", "more": "[core]\nexcludesfile = ~/.mine\n", ".mine": "*.swp\n"}},
		"named in the environment":    {home: map[string]string{"elsewhere": "[core]\nexcludesfile = ~/.mine\n", ".mine": "*.swp\n"}, global: "elsewhere", want: true},
		"in its place":                {home: map[string]string{".gitconfig": "[core]\nexcludesfile = ~/.mine\n", ".mine": "*.swp\n"}, global: "elsewhere"},
		"nothing is named":            {home: map[string]string{".gitconfig": "[core]\nexcludesfile =\n", ".config/git/ignore": "*.swp\n"}},
		"a relative one":              {home: map[string]string{".gitconfig": "[core]\nexcludesfile = a.swp\n"}},
		"of another section":          {home: map[string]string{".gitconfig": "[other]\nexcludesfile = ~/.mine\n", ".mine": "*.swp\n"}},
		"a repository's":              {home: map[string]string{".mine": "*.swp\n"}, work: map[string]string{".git/config": "[core]\nexcludesfile = ~/.mine\n"}},
		"the repository differs":      {home: map[string]string{".config/git/ignore": "*.swp\n"}, work: map[string]string{".git/info/exclude": "!a.swp\n"}},
		".gitignore differs":          {home: map[string]string{".config/git/ignore": "*.swp\n"}, work: map[string]string{".gitignore": "!a.swp\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			home, dir := t.TempDir(), t.TempDir()
			t.Setenv("HOME", home)
			t.Setenv("XDG_CONFIG_HOME", "")
			t.Setenv("GIT_CONFIG_SYSTEM", filepath.Join(home, "none"))
			t.Setenv("GIT_CONFIG_GLOBAL", "")
			if row.global != "" {
				t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, row.global))
			}
			write := func(at, name, text string) {
				t.Helper()
				at = filepath.Join(at, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range row.home {
				write(home, name, text)
			}
			write(dir, ".git/HEAD", "ref: refs/heads/main\n")
			for name, text := range row.work {
				write(dir, name, text)
			}
			write(dir, "a.swp", "x")
			write(dir, "b.md", "x")
			root, err := workspace.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if got := root.Ignored("a.swp"); got != row.want || root.Ignored("b.md") {
				t.Errorf("ignored: %v, want %v", got, row.want)
			}
			found, err := root.Survey(t.Context(), workspace.Surveying{})
			if err != nil || (found.Left.Ignored == 1) != row.want {
				t.Errorf("the survey left %+v out, %v", found.Left, err)
			}
			seen, err := root.Search(t.Context(), workspace.Query{Text: "x", Path: ".", Most: 10}, func(workspace.Match) bool { return true })
			if err != nil || (seen.Ignored == 1) != row.want {
				t.Errorf("the search left %d out, %v", seen.Ignored, err)
			}
		})
	}
}
