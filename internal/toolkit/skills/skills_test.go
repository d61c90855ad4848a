package skills_test

import (
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/skill"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/toolkit/skills"
)

func set(files map[string]string) skill.Set {
	p := skill.Place{Origin: skill.OfWorkspace, Dir: ".regie/skills"}
	for name, text := range files {
		p.Files = append(p.Files, skill.BundledFile{Path: name, Size: int64(len(text))})
	}
	p.Read = func(name string, most int64) ([]byte, error) {
		if int64(len(files[name])) > most {
			return nil, regie.Errorf(regie.CodeFileTooLarge, "%s has more than %d bytes", name, most)
		}
		return []byte(files[name]), nil
	}
	return skill.Load([]skill.Place{p})
}

// TestReadSkill calls the tool as the engine does.
func TestReadSkill(t *testing.T) {
	const front = "---\nname: a\ndescription: For a.\ncompatibility: Requires git\n---\n"
	files := map[string]string{
		"a/SKILL.md": front + "Do \x1b[31mit.\n", "a/x.md": "more\u202e", "a/bin": "\x00\x01", "a/big": strings.Repeat("y", 200_000), "b/SKILL.md": "---\nname: b\ndescription: For b.\n---\n",
	}
	made, err := skills.Tools(func(root string) skill.Set {
		if root != "/w" {
			return skill.Set{}
		}
		return set(files)
	})
	if err != nil {
		t.Fatal(err)
	}
	registry, err := tool.NewRegistry(made...)
	if err != nil {
		t.Fatal(err)
	}
	call := func(root, arguments string) tool.Outcome {
		checked := registry.Check("skills__read_skill", arguments)
		if checked.Error != nil {
			return tool.Outcome{State: regie.CallFailed, Error: checked.Error}
		}
		return tool.Run(t.Context(), checked.Tool, &tool.Invocation{CallID: regie.NewID(), Workspace: regie.Workspace{Root: root}, Arguments: checked.Arguments})
	}
	for _, row := range []struct {
		name, root, arguments string
		says                  []string
	}{
		{"the list", "/w", `{}`, []string{"- a: For a.\n- b: For b.\n"}},
		{"nothing", "/other", `{}`, []string{"there are no skills here"}},
		{"a skill", "/w", `{"name":"a"}`, []string{"[skill a; its files lie in .regie/skills/a of the workspace]", "[it needs: Requires git]", "big (200000 bytes)", "x.md (7 bytes)", "\n\nDo ␛[31mit.\n"}},
		{"one that says nothing", "/w", `{"name":"b"}`, []string{"nothing more than its description: For b."}},
		{"a file", "/w", `{"name":"a","file":"x.md"}`, []string{"more<U+202E>"}},
		{"bytes", "/w", `{"name":"a","file":"bin"}`, []string{"not text: 2 bytes"}},
	} {
		out := call(row.root, row.arguments)
		text := out.Result
		if out.State != regie.CallSucceeded {
			t.Errorf("%s: %+v", row.name, out)
		}
		for _, says := range row.says {
			if !strings.Contains(text, says) {
				t.Errorf("%s: %q is not in %q", row.name, says, text)
			}
		}
	}
	if out := call("/w", `{"name":"a","file":"big"}`); out.State != regie.CallSucceeded || len(out.Result) > 32<<10 || !strings.Contains(out.Result, "read_result") {
		t.Errorf("%d bytes, %v", len(out.Result), out.Error)
	}
	for arguments, code := range map[string]regie.Code{
		`{"name":"nobody"}`: regie.CodeNotFound, `{"name":"../a"}`: regie.CodeNotFound, `{"file":"x.md"}`: regie.CodeBadArguments, `{"name":"a","file":"../b/SKILL.md"}`: regie.CodeFileNotFound,
		`{"name":"a","file":"/etc/passwd"}`: regie.CodeFileNotFound, `{"name":1}`: regie.CodeBadArguments, `{"name":"a","more":1}`: regie.CodeBadArguments,
	} {
		if out := call("/w", arguments); out.State != regie.CallFailed || out.Error.Code != code {
			t.Errorf("%s: %+v %v", arguments, out.State, out.Error)
		}
	}
}
