package gitconfig

import (
	"slices"
	"strings"
	"testing"
)

// TestPrograms is which words of a command may be programs, where the files main, x.sh, x.py,
// lib/m.py and src/a are there.
func TestPrograms(t *testing.T) {
	there := func(word string) bool {
		return slices.Contains([]string{"main", "x.sh", "x.py", "lib/m.py", "src/a", "my tools/run it"}, word)
	}
	for command, want := range map[string]string{
		"": "", "true": "", "less -R": "", "!git log --oneline | less": "", "!git add -A . ':(exclude)dist/'": "",
		"!main": "", "x.sh": "", // along PATH
		"./a": "./a", "tools/a --flag": "tools/a", "my tools/run it": "my tools/run it",
		"!./a && ./b||./c;./d|./e\n./f & ./g":           "./a ./b ./c ./d ./e ./f ./g",
		"!f() { ./a \"$@\"; }; f":                       "./a",
		"sh x.sh --fast":                                "x.sh",
		"bash -c './a; git status'":                     "./a",
		"!sh < x.sh":                                    "x.sh",
		"python3.11 -W ignore x.py":                     "x.py",
		"node 'scripts/clean.js' %f":                    "scripts/clean.js",
		"node -e 'require(\"./a\").go()'":               "./a",
		"!echo $(./a) `./b`":                            "./a ./b",
		"!\"$(git rev-parse --show-toplevel)/tools/a\"": "./tools/a",
		"!sh \"${X}/tools/a\"":                          "./tools/a",
		"!\"tools/a b\"":                                "tools/a b",
		"!tools/a\\ b":                                  "tools/a b",
		"!sh <<X\n./a\nX":                               "./a",
		"!sh <<< 'x && ./a'":                            "./a",
		"!./a \n ) ./b":                                 "./a ./b", // a shell runs what comes before its fault
		"!git log src/a":                                "src/a",
	} {
		got := programs(command, there)
		for word := range strings.SplitSeq(strings.ReplaceAll(want, "a b", "a_b"), " ") {
			if word = strings.ReplaceAll(word, "_", " "); want != "my tools/run it" && word != "" && !slices.Contains(got, word) {
				t.Errorf("%q runs %q, want %q", command, got, want)
			}
		}
		if want == "" && len(got) > 0 || want != "" && len(got) == 0 {
			t.Errorf("%q runs %q, want %q", command, got, want)
		}
	}
}

// FuzzPrograms shows that reading ends, whatever a command says.
func FuzzPrograms(f *testing.F) {
	f.Add("!sh -c \"$(./a `b` ${c\" '$(")
	f.Add(strings.Repeat("$(", 1000))
	f.Fuzz(func(t *testing.T, command string) {
		for _, word := range programs(command, func(string) bool { return true }) {
			if strings.IndexByte(word, unknown) >= 0 && !strings.Contains(command, "\x00") {
				t.Errorf("%q runs %q", command, word)
			}
		}
	})
}
