package gitconfig

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestParse is how git's configuration is written.
func TestParse(t *testing.T) {
	var got []string
	parse([]byte("\ufeff; a comment\n[core] hooksPath = a # of it\n\tBare\n\teditor=\"b  c\" d   ; e\r\n[Filter \"X\\\"y]\"]\nclean = one\\\n two\\t\\\"\n[filter.z]smudge= \"#\"\nx\n[\"\"]\n=\n[open"), func(key, value string) {
		got = append(got, key+"="+value)
	})
	want := []string{"core.hookspath=a", "core.editor=b  c d", "filter.X\"y].clean=one two\t\"", "filter.z.smudge=#"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// hostile are configurations that hide a variable from a careless reader.
var hostile = []string{
	"[core]\n\thooksPath = x\\\n/y\n", "[core]\nhooksPath=\"a b\"c ; x\n", "[Core]\nHOOKSPATH = x\n",
	"[filter.X]\nclean = y\n", "[filter \"X\\\"]\"]\nclean=y\n", "[core] hooksPath = x\n", "[core]hooksPath=x\n",
	"\uFEFF[core]\nhooksPath=x\n", "[core]\r\nhooksPath = x\r\n", "[core]\nhooksPath=x\x00y\n",
	"[core]\nbare\nhooksPath=x\n", "[include]\npath = a\n[core]\nhooksPath=b\n", "[alias]\nx-y = !z\n",
	"[core]\n#c\\\nhooksPath=x\n", "[core \"\"]\nhooksPath=x\n", "[core]\nhooksPath=a # b\n", "[core]\nhooksPath=a\\\n\n",
	"[core]\nhooksPath =  y z \t \n", "[core]\nhooksPath=x\n[core]\nhooksPath=\n", "[core]\nhooksPath=\xff\n",
	"[core]\nhooksPath=a\\tb\\\\n\n", "[filter \"x\"]clean=y\n[core]\n fsmonitor = z", "[core]hooksPath\n=x\n",
	"[core]\nhooksPath\t=\tx\n", "[core]\n;[a]\nhooksPath=x", "[a]\nb=c\\\n[core]\nhooksPath=x\n",
	"[core]hooksPath=\"x;y\" #z\n", "[core] ; c\nhooksPath=x\n", "[core]\nhooksPath=x\\\r\ny\n", "[core]hooksPath=\"\"x\"\" \n",
	"[filter \"a\\\\b\"]\nclean=y\n", "[filter \"a.B\"]\nclean=y\n", "[filter  \t\"a\"]\nclean=y\n", "[a.b \"C\"]\nd=e\n",
	"[a]\n\x00[core]\nhooksPath=x\n", "[core\x00]\nhooksPath=x\n", "[core]\nhooksPath=x\x0b\n", "[core]\nhooks\x00Path=x\n",
	"[core]\n\thooksPath = .husky/_\n\tfsmonitor = \"a b\\\\c\" ;x\n[includeIf \"gitdir:~/w/\"] path=../x\n",
	"[alias]\n\tx = !sh -c 'a; b' # c\n\ty = !\"f() { :; }; f\"\n[filter \"L F\"]\n process = a \\\n   b\n",
}

// TestParseAsGit: what git takes for a variable is one here.
func TestParseAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("REGIE_CI") == "1" {
			t.Fatal("git is not there")
		}
		t.Skip("git is not there")
	}
	file := filepath.Join(t.TempDir(), "config")
	for _, text := range hostile {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "git", "config", "--file", file, "--list", "--null").Output()
		if err != nil { // git uses nothing of it
			t.Logf("git refuses %q", text)
		}
		got := map[string]bool{}
		parse([]byte(text), func(key, value string) { got[key+"\n"+value] = true })
		for said := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if strings.Contains(said, "\n") && !got[said] {
				t.Errorf("%q: git has %q, here is %v", text, said, got)
			}
		}
	}
}

// FuzzParse shows that reading ends, whatever stands in a file.
func FuzzParse(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Add("[core]\nhooksPath = a\n[include \"b\\\"\"]path=\"c\\")
	f.Fuzz(func(t *testing.T, text string) {
		parse([]byte(text), func(key, value string) {
			if len(value) > len(text) || !strings.Contains(key, ".") {
				t.Errorf("%q = %q", key, value)
			}
		})
	})
}

// harness is a workspace with a home of its own.
type harness struct {
	t          *testing.T
	root, home string
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &harness{t, filepath.Join(base, "w"), filepath.Join(base, "home")}
	t.Setenv("HOME", b.home)
	for _, name := range []string{"XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		t.Setenv(name, "")
	}
	b.file("w/.git/HEAD", "ref: refs/heads/main\n")
	return b
}

func (b *harness) file(name, text string) {
	b.t.Helper()
	at := filepath.Join(filepath.Dir(b.root), name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		b.t.Fatal(err)
	}
	text = strings.ReplaceAll(text, "$W", b.root)
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *harness) link(name, target string) {
	b.t.Helper()
	at := filepath.Join(filepath.Dir(b.root), name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Symlink(strings.ReplaceAll(target, "$W", b.root), at); err != nil {
		b.t.Fatal(err)
	}
}

// TestPlaces is what configuration of each kind names.
func TestPlaces(t *testing.T) {
	for _, row := range []struct {
		name  string
		files map[string]string
		links map[string]string
		want  []string
	}{
		{"nothing", map[string]string{"w/.git/config": "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = ../x/y\n"}, nil, nil},
		{"hooks", map[string]string{"w/.git/config": "[core]\n\thooksPath = .githooks\n"}, nil, []string{".githooks"}},
		{"hooks, by their absolute path", map[string]string{"w/.git/config": "[core]\n\thooksPath = $W/tools/hooks\n"}, nil, []string{"tools/hooks"}},
		{"hooks elsewhere", map[string]string{"w/.git/config": "[core]\n\thooksPath = /opt/hooks\n"}, nil, nil},
		{"husky", map[string]string{"w/.git/config": "[core]\n\thooksPath = .husky/_\n"}, nil, []string{".husky", ".husky/_"}},
		{"hooks at the top", map[string]string{"w/.git/config": "[core]\n\thooksPath = .\n"}, nil, hookNames},
		{"hooks through a link", map[string]string{"w/.git/config": "[core]\n\thooksPath = h/../hooks\n"}, map[string]string{"w/h": "deep/er"}, []string{"deep/hooks", "h"}},
		{"a link for the hooks", nil, map[string]string{"w/.git/hooks": "../hooks"}, []string{"hooks"}},
		{"a hook that is a link", map[string]string{"w/.git/hooks/sample": ""}, map[string]string{"w/.git/hooks/pre-commit": "../../scripts/check"}, []string{".git/hooks/pre-commit", "scripts/check"}},
		{"a hook of another directory that is a link", map[string]string{"w/.git/config": "[core]\n\thooksPath = .h\n"}, map[string]string{"w/.h/pre-commit": "../check"}, []string{".h", ".h/pre-commit", "check"}},
		{"a link for the configuration", map[string]string{"w/conf": "[core]\n\thooksPath = x\n"}, map[string]string{"w/.git/config": "../conf"}, []string{"conf", "x"}},
		{"what is included", map[string]string{"w/.git/config": "[include]\n\tpath = ../.gitconfig\n", "w/.gitconfig": "[core]\n\thooksPath = x\n[include]\n\tpath = more\n\tpath = .gitconfig\n"}, nil, []string{".gitconfig", "more", "x"}},
		{"what may be included", map[string]string{"w/.git/config": "[includeIf \"onbranch:x\"]\n\tpath = ../.gitconfig\n"}, nil, []string{".gitconfig"}},
		{"a monitor", map[string]string{"w/.git/config": "[core]\n\tfsmonitor = tools/watch\n"}, nil, []string{"tools/watch"}},
		{"a switch", map[string]string{"w/.git/config": "[core]\n\tfsmonitor = true\n\tpager = less -R\n"}, nil, nil},
		{"filters", map[string]string{"w/.git/config": "[filter \"a\"]\n\tclean = node 'scripts/clean.js' %f\n\tsmudge = sh run.sh\n", "w/run.sh": "", "w/scripts/x": ""}, nil, []string{"run.sh", "scripts/clean.js"}},
		{"what aliases hand to git", map[string]string{
			"w/.git/config": "[alias]\n\ta = !git log src/\n\tb = log src/a\n\tpushall = !git push origin master\n\ty = !git add -A . ':(exclude)dist/'\n", "w/src/a": "", "w/main": "",
		}, nil, nil},
		{"an alias", map[string]string{"w/.git/config": "[alias]\n\ta = !./tools/a && x\n"}, nil, []string{"tools/a"}},
		{"the user's", map[string]string{"home/.gitconfig": "[core]\n\thooksPath = .hooks\n[include]\n\tpath = $W/mine\n"}, nil, []string{".hooks", "mine"}},
		{"the user's, elsewhere", map[string]string{"home/.config/git/config": "[core]\n\thooksPath = ~/../w/h\n"}, nil, []string{"h"}},
		{"the user's, a link", map[string]string{"w/dot/gitconfig": ""}, map[string]string{"home/.gitconfig": "$W/dot/gitconfig"}, []string{"dot/gitconfig"}},
		{"a work tree's", map[string]string{"w/.git/config.worktree": "[core]\n\thooksPath = x\n"}, nil, []string{"x"}},
		{"a work tree that lies elsewhere", map[string]string{"w/.git/config": "[core]\n\tworktree = ../src\n\thooksPath = x\n"}, nil, []string{"src/x", "x"}},
		{"a repository around it", map[string]string{".git/config": "[core]\n\thooksPath = w/x\n"}, nil, []string{"x"}},
		{"one below", map[string]string{"w/lib/.git/config": "[core]\n\thooksPath = x\n"}, nil, []string{"lib/x"}},
		{"a linked work tree below", map[string]string{"w/lib/.git": "gitdir: ../.git/worktrees/lib\n", "w/.git/worktrees/lib/commondir": "../..\n", "w/.git/config": "[core]\n\thooksPath = x\n"}, nil, []string{"lib/x", "x"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newHarness(t)
			for name, text := range row.files {
				b.file(name, text)
			}
			for name, target := range row.links {
				if row.name == "hooks through a link" {
					b.file("w/deep/er/file", "")
				}
				b.link(name, target)
			}
			if got := Places(b.root, filepath.Join(b.root, "lib")); !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// TestPlacesEnd has configuration that includes itself, more and more, and what is no file.
func TestPlacesEnd(t *testing.T) {
	b := newHarness(t)
	b.file("w/.git/config", "[include]\n\tpath = config\n\tpath = ../a/b\n\tpath = /dev/zero\n\tpath = ..\n"+strings.Repeat("\tpath = ./config\n", 1000))
	b.file("w/a/b", strings.Repeat("[include]\n\tpath = ../a/b\n\tpath = x\n", 1000))
	b.link("w/a/x", "x")
	if got := Places(b.root); len(got) > maxPlaces || !slices.Contains(got, "a/b") {
		t.Errorf("%d places: %.200q", len(got), got)
	}
}
