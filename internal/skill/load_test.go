package skill_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/skill"
)

// place is a directory of skills in memory.
func place(origin skill.Origin, dir string, files map[string]string) skill.Place {
	p := skill.Place{Origin: origin, Dir: dir, Odd: map[string]regie.Code{}}
	for name, text := range files {
		p.Files = append(p.Files, skill.BundledFile{Path: name, Size: int64(len(text))})
	}
	slices.SortFunc(p.Files, func(a, b skill.BundledFile) int { return strings.Compare(a.Path, b.Path) })
	p.Read = func(name string, most int64) ([]byte, error) {
		text, ok := files[name]
		switch {
		case !ok:
			return nil, regie.Errorf(regie.CodeFileNotFound, "%s does not exist", name)
		case int64(len(text)) > most:
			return nil, regie.Errorf(regie.CodeFileTooLarge, "%s has more than %d bytes", name, most)
		}
		return []byte(text), nil
	}
	return p
}

func called(name, says string) string {
	return "---\nname: " + name + "\ndescription: " + says + "\n---\n" + says + "\n"
}

func said(n skill.Notice) string {
	if n.Err != nil {
		return n.Err.Error()
	}
	return n.Text.String()
}

func TestLoad(t *testing.T) {
	first := place(skill.OfWorkspace, ".regie/skills", map[string]string{
		"b/SKILL.md": called("b", "of the workspace"), "a/SKILL.md": called("a", "first"), "a/references/x.md": "x", "a/scripts/y.sh": "y",
		"README.md": "no skill", "loose/notes.md": "no skill", "deep/er/SKILL.md": called("er", "too deep"), "bad/SKILL.md": "nothing",
	})
	first.Odd["linked"], first.Odd["fifo/SKILL.md"], first.Odd["a/secret.env"] = regie.CodePathOutside, regie.CodeSpecialFile, regie.CodePathProtected
	second := place(skill.OfUser, "/home/me/skills", map[string]string{"b/SKILL.md": called("b", "of the user"), "c/SKILL.md": strings.Replace(called("c", "last"), "---\nlast", "allowed-tools: Bash\n---\nlast", 1)})
	third := skill.Place{Origin: skill.OfUser, Dir: "/gone", Err: regie.Errorf(regie.CodeNoPermission, "no")}
	set := skill.Load([]skill.Place{first, second, third})
	var got []string
	for _, s := range set.Skills {
		got = append(got, fmt.Sprintf("%s %s %s %v", s.Name, s.Origin, s.Description, s.Files))
	}
	want := []string{"a workspace first [{references/x.md 1} {scripts/y.sh 1}]", "b workspace of the workspace []", "c user last []"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
	told := map[string]string{}
	for _, n := range set.Notices {
		told[n.Dir] += fmt.Sprint(n.Refused, " ", said(n), ";")
	}
	for dir, says := range map[string]string{
		".regie/skills/bad": "true SKILL.md does not begin", ".regie/skills/linked": "true .regie/skills/linked is a link", ".regie/skills/fifo": "true .regie/skills/fifo/SKILL.md is not a regular file",
		".regie/skills/a": "false a/secret.env may contain a secret", "/home/me/skills/b": "true a skill of this name in .regie/skills/b", "/home/me/skills/c": "false allowed-tools has no effect",
		"/gone": "true no",
	} {
		if !strings.HasPrefix(told[dir], says) {
			t.Errorf("%s: told %q, want %q", dir, told[dir], says)
		}
	}
	if len(told) != 7 {
		t.Errorf("told %q", told)
	}
}

func TestLoadIsBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 10_000 {
		name := fmt.Sprintf("s%05d", i)
		files[name+"/SKILL.md"] = called(name, strings.Repeat("x", 1000))
	}
	set := skill.Load([]skill.Place{place(skill.OfUser, "/skills", files)})
	if len(set.Skills) != 200 || set.Skills[199].Name != "s00199" || len(set.Notices) != 1 {
		t.Errorf("%d skills, the last %s; %d notices", len(set.Skills), set.Skills[len(set.Skills)-1].Name, len(set.Notices))
	}
	for name := range files {
		files[name] = "bad"
	}
	if set := skill.Load([]skill.Place{place(skill.OfUser, "/skills", files)}); len(set.Skills) != 0 || len(set.Notices) != 100 {
		t.Errorf("%d skills, %d notices", len(set.Skills), len(set.Notices))
	}
}

func TestReadStaysInTheSkill(t *testing.T) {
	set := skill.Load([]skill.Place{place(skill.OfWorkspace, ".regie/skills", map[string]string{
		"a/SKILL.md": called("a", "one"), "a/x.md": "of a", "b/SKILL.md": called("b", "two"), "b/x.md": "of b", "ab/x.md": "of nobody", "big/SKILL.md": called("big", "three"),
		"big/x.md": strings.Repeat("x", skill.MaxRead+1),
	})})
	a, ok := set.Find("a")
	if !ok {
		t.Fatal("there is no skill a")
	}
	for name, want := range map[string]string{"x.md": "of a", "./x.md": "of a", "y/../x.md": "of a", "SKILL.md": "one", ".\\x.md": "of a"} {
		if data, err := a.Read(name); err != nil || string(data) != want {
			t.Errorf("%q: %q, %v", name, data, err)
		}
	}
	for _, name := range []string{"", ".", "..", "../b/x.md", "../ab/x.md", "../a", "/etc/passwd", "..\\b\\x.md", "X.MD", "../../skills/b/x.md", "a/x.md", "x.md\x00", "\x1b[2J"} {
		data, err := a.Read(name)
		if regie.CodeOf(err) != regie.CodeFileNotFound || strings.ContainsAny(err.Error(), "\x1b\x00") {
			t.Errorf("%q: %q, %v", name, data, err)
		}
	}
	big, _ := set.Find("big")
	if _, err := big.Read("x.md"); regie.CodeOf(err) != regie.CodeFileTooLarge {
		t.Errorf("%v", err)
	}
	if _, ok := set.Find("nobody"); ok {
		t.Error("found")
	}
}
