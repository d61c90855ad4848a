package workspace_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie/internal/workspace"
)

// walked lists what is not ignored below a directory.
func (p *place) walked(dir string) []string {
	p.t.Helper()
	var out []string
	all := func(string) bool { return true }
	_, err := p.root.List(p.t.Context(), dir, workspace.Listing{Wanted: all, Holds: all, Show: func(e *workspace.SurveyEntry) bool {
		if !e.Mode.IsDir() {
			out = append(out, e.Path)
		}
		return true
	}})
	p.must(err)
	slices.Sort(out)
	return out
}

func TestIgnores(t *testing.T) {
	p := newPlace(t)
	p.file(".gitignore", "*.log\nbuild/\n/only-here\n!keep.log\nsub/deep/*.tmp\n")
	p.file(".git/info/exclude", "private-notes\n!*.log\n")
	p.file(".ignore", "generated.go\n!seen.log\n")
	p.file(".regieignore", "!taken-back\nmine\n")
	p.file("sub/.gitignore", "!special.log\nlocal\n")
	for _, name := range []string{
		"a.log", "keep.log", "seen.log", "build/x", "only-here", "sub/only-here", "sub/deep/x.tmp", "x.tmp", "private-notes", "generated.go", "mine",
		"sub/special.log", "sub/other.log", "sub/local", "local", "taken-back", "sub/build/y", "src/build",
	} {
		p.file(name, "")
	}
	want := []string{
		".gitignore", ".ignore", ".regieignore", "keep.log", "local", "seen.log", "src/build", "sub/.gitignore", "sub/only-here", "sub/special.log", "taken-back", "x.tmp",
	}
	if got := p.walked("."); !slices.Equal(got, want) {
		t.Errorf("not ignored is\n%v, want\n%v", got, want)
	}
	for name, ignored := range map[string]bool{
		"a.log": true, "keep.log": false, "build/new/file": true, "sub/new/x.log": true, "new": false, "none/at/all.log": true, "sub/special.log": false, "mine/x": true,
	} {
		if got := p.root.Ignored(name); got != ignored {
			t.Errorf("%s is ignored: %v", name, got)
		}
	}
	// Who names an ignored directory sees it, with what its own files say.
	p.file("build/.gitignore", "x\n")
	p.file("build/z", "")
	p.file("build/w.log", "")
	if got := p.walked("build"); !slices.Equal(got, []string{"build/.gitignore", "build/w.log", "build/z"}) {
		t.Errorf("an ignored directory that was named holds %v", got)
	}
	// Ignore files that are links say nothing.
	q := newPlace(t)
	q.file("../outside/rules", "x\n")
	q.link("../outside/rules", ".gitignore")
	q.link("../outside", ".git")
	q.file("x", "")
	if q.root.Ignored("x") {
		t.Error("an ignore file outside of the workspace was read")
	}
}

// git runs git in a place; without git the test is left out, but for the gate, which has it.
func (p *place) git(stdin string, args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "git", append([]string{"-C", p.dir, "-c", "core.excludesFile=", "-c", "core.quotePath=false"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited { //nolint:errorlint // it is what Run returns
		missing(p.t, "git is not there: "+err.Error())
	}
	if complaints.Len() > 0 {
		p.t.Fatalf("git %v: %s", args, complaints.String())
	}
	return out.String()
}

// asGit compares a tree with what git ignores of it.
func (p *place) asGit(what string) {
	p.t.Helper()
	git := strings.Split(strings.TrimSuffix(p.git("", "ls-files", "-z", "--others", "--cached", "--exclude-standard"), "\x00"), "\x00")
	git = slices.DeleteFunc(git, func(name string) bool { return name == "" })
	slices.Sort(git)
	if got := p.walked("."); !slices.Equal(got, git) {
		p.t.Errorf("%s: not ignored is\n%q, for git\n%q", what, got, git)
	}
}

// Hand-picked lines over a tree of names that they could mean, each compared with git itself.
func TestIgnoresAsGit(t *testing.T) {
	names := []string{
		"a", "b", "a.txt", "a/b", "ab", "abc", "a b", "a b ", "a\\b", "#x", "!x", "[a]", "a*b", "foo/bar/baz", "foo/baz", "foo/x/y/baz", "bar/foo/baz", "a-b", "{a,b}", "-", "]", "^a", "1", "x.o",
		"d/a", "d/d/a", "d/d/d/b", "dir/sub/file", "file", "sub/file", ".hidden", "d/.hidden", "tail\t", "Upper", "upper",
	}
	lines := []string{
		"a", "/a", "a/", "a/b", "/a/b", "**/a", "a/**", "a/**/b", "**", "*", "/*", "*/", "foo/**/baz", "foo/*/baz", "**/foo", "foo/**", "/**/baz", "***/baz", "foo/***", "f**r/b*z", "a?", "?", "[a-c]", "[!a]", "[^a]",
		"[a", "\\#x", "\\!x", "#x", "!x", "a\\ b", "a b  ", "a b\\ ", "a\\", "a\\\\b", "\\[a\\]", "a\\*b", "a*b", "*.txt", "*.[oa]", "a//b", "//a", "/", "//", "a//",
		"d/**/a", "d/*/a", "*/a", "**/d/a", "sub/file", "/sub/file", "dir/**/file", "{a,b}", "\\{a,b\\}", ".*", "[a-]b", "[b-a]", "tail\t", "upper", "\uFEFFa", "**/", "a/../b", "./a", "d/", "d/d/", "*d*", "\r", "a\r",
	}
	rest := []string{"", "*\n!%s\n", "%s\n!*/\n!b\n", "!%s\n*.txt\n"}
	p := newPlace(t)
	p.git("", "init", "-q")
	for _, name := range names {
		if info, err := os.Stat(p.abs(name)); err == nil && info.IsDir() {
			continue
		}
		if dir := filepath.Dir(p.abs(name)); dir != p.dir { // "a" is a directory too in "a/b": then it is one
			for at := dir; at != p.dir; at = filepath.Dir(at) {
				if info, err := os.Stat(at); err == nil && !info.IsDir() {
					p.must(os.Remove(at))
				}
			}
		}
		p.file(name, "")
	}
	for _, line := range lines {
		for _, form := range rest {
			text := line + "\n"
			if form != "" {
				text = fmt.Sprintf(form, line)
			}
			p.file(".gitignore", text)
			p.asGit(fmt.Sprintf("%q", text))
		}
	}
}

// Rules by chance, in several files, compared with git.
func TestIgnoresByChanceAsGit(t *testing.T) {
	p := newPlace(t)
	p.git("", "init", "-q")
	for _, dir := range []string{"", "a/", "b/", "a/b/", "a/a/", "b/a/b/"} {
		for _, name := range []string{"x", "y.z", "ab", "c*"} {
			p.file(dir+name, "")
		}
	}
	seed := uint64(1)
	random := rand.New(rand.NewPCG(seed, 7))
	parts := []string{"a", "b", "x", "y", ".z", "*", "**", "?", "/", "/", "!", "[ab]", "[!a]", "\\", " ", "c", "ab", "/**/", "**/"}
	for range 150 {
		text := ""
		for range 1 + random.IntN(4) {
			for range 1 + random.IntN(5) {
				text += parts[random.IntN(len(parts))]
			}
			text += "\n"
		}
		file := []string{".gitignore", "a/.gitignore", "b/a/.gitignore", ".git/info/exclude"}[random.IntN(4)]
		p.file(file, text)
		p.asGit(fmt.Sprintf("seed %d: %s is %q, .gitignore %q, a/.gitignore %q", seed, file, text, readIf(p, ".gitignore"), readIf(p, "a/.gitignore")))
		if t.Failed() {
			return
		}
	}
}

func readIf(p *place, name string) string {
	data, _ := os.ReadFile(p.abs(name))
	return string(data)
}

// FuzzIgnore reads rules and compares them with a path: whatever they are, it ends soon and does
// not panic, and what is taken back by name as the last word is not ignored.
func FuzzIgnore(f *testing.F) {
	for _, seed := range []string{"*.go\n!x\n", "a/**/b", "[a-z", "**/**/**/**/x", "\\", "[[:alpha:]-", strings.Repeat("*a", 500)} {
		f.Add(seed, "a/b/c.go")
	}
	f.Fuzz(func(t *testing.T, rules, name string) {
		if len(rules) > 4<<10 || len(name) > 1<<10 {
			return
		}
		base := path.Base(path.Clean("/" + name))
		if strings.ContainsAny(base, "\\/*?[]!# \t\r\n\x00") || base == "." || base == "" {
			base = "plain"
		}
		if workspace.IgnoredBy(rules+"\n!"+base+"\n", base) {
			t.Errorf("%q is ignored although the last rule takes it back", base)
		}
		workspace.IgnoredBy(rules, name)
	})
}
