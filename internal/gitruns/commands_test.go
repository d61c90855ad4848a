package gitruns

import (
	"slices"
	"strings"
	"testing"
)

// TestPrograms is which words of a command are programs, and which are not, where the files main,
// x.sh, x.py, lib/m.py, package.json and src/a are there.
func TestPrograms(t *testing.T) {
	there := func(word string) bool {
		return slices.Contains([]string{"main", "x.sh", "x.py", "lib/m.py", "package.json", "src/a", "my tools/run it"}, word)
	}
	for command, want := range map[string]string{
		"":                                        "",
		"!git push origin main":                   "",
		"!git add package.json src/a":             "",
		"!git add -A . ':(exclude)dist/'":         "",
		"!git log --format='%h; ./no' | less":     "",
		"!main":                                   "", // along PATH
		"x.sh":                                    "",
		"true":                                    "",
		"!echo hi > out/log":                      "",
		"!git log 2>&1 >/dev/null":                "",
		"!sh deploy package.json":                 "",
		"!git status # ./no":                      "",
		"!f() { git push \"$1\" src/a; }; f":      "",
		"./a":                                     "./a",
		"tools/a --flag src/a":                    "tools/a",
		"my tools/run it":                         "my tools/run it",
		"!./a && ./b||./c;./d|./e\n./f & ./g":     "./a ./b ./c ./d ./e ./f ./g",
		"!f() { ./a \"$@\"; }; f":                 "./a",
		"!if ./a; then ! ./b; else ./c; fi":       "./a ./b ./c",
		"!X=1 Y='a b' ./a src/a":                  "./a",
		"!exec env -u X Y=1 nice -n 5 ./a":        "./a",
		"!git ls-files | xargs -n 1 ./a":          "./a",
		"!timeout 5s ./a":                         "./a",
		"sh x.sh package.json":                    "x.sh",
		"sh -eu x.sh":                             "x.sh",
		"bash -c './a; git add package.json'":     "./a",
		"/bin/bash -ec \"sh 'x.sh'\"":             "/bin/bash x.sh",
		"!sh < x.sh":                              "x.sh",
		"!. tools/env && main":                    "tools/env",
		"python3.11 -W ignore x.py package.json":  "x.py",
		"python -m lib.m":                         "lib/m.py",
		"node 'scripts/clean.js' %f":              "scripts/clean.js",
		"node -r ./hook.js ./main.js":             "./hook.js ./main.js",
		"node -e 'require(\"./a\").go(\"main\")'": "./a",
		"perl -pe 's/a/b/' main":                  "",
		"!eval './a'":                             "./a",
		"!echo $(./a) `./b`":                      "./a ./b",
		"!\"$(git rev-parse --show-toplevel)/tools/a\" main": "./tools/a",
		"!sh \"${X}/tools/a\"":                               "./tools/a",
		"!$HOME/bin/a":                                       "~/bin/a",
		"!\"tools/a b\"":                                     "tools/a b",
		"!tools/a\\ b":                                       "tools/a b",
		"!sh <<X\n./a\nX":                                    "./a",
		"!sh <<< 'x && ./a'":                                 "./a",
		"!sh <(./a)":                                         "./a",
		"!case x in x) ./a;; esac":                           "./a",
		"!time ./a":                                          "./a",
		"!./a \n ) ./b":                                      "./a ./b", // a shell runs what comes before its fault
	} {
		if got := programs(command, there); strings.Join(got, " ") != want {
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
