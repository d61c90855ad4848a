package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/regie-run/regie/internal/provider"
)

// FuzzRecording reads anything: what is a recording says the same when it is written again, and
// each of its threads can be shown.
func FuzzRecording(f *testing.F) {
	seed, err := os.ReadFile(filepath.Join("testdata", "thread.txt"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(seed))
	f.Add(firstLine + "\nprovider \"a b\"\nmodel m\ndialect json\ncall 1\nby x y native\nsettings a \"b c\"\nasked tool\nresult 0 failed\n  \"\\x00\"\nwithheld\n" +
		"answered \"\" cut held_back\nthinking\n  |\n  |  \nopaque p\n  | {}\nsource u\n  |\nusage estimated\nstreamed nothing\nend\n")
	f.Fuzz(func(t *testing.T, data string) {
		r, err := parse([]byte(data))
		if err != nil {
			if !strings.Contains(err.Error(), "line ") && !strings.Contains(err.Error(), "it ") {
				t.Fatalf("an error without its line: %v", err)
			}
			return
		}
		var w writer
		w.line(firstLine)
		w.line("provider", quoted(r.first.provider))
		w.line("model", quoted(r.first.model))
		w.line("dialect", quoted(string(r.first.dialect)))
		for name := range r.texts {
			kind, hash, _ := strings.Cut(name, " ")
			w.line(kind, quoted(hash))
			w.text("")
		}
		for i, c := range r.calls {
			w.call(c, r.first)
			hash := (&thread{}).hash()
			for _, turn := range r.thread(i + 1) {
				hash = after(hash, &turn)
			}
			if hash != r.hashes[i].asked {
				t.Fatalf("the thread of call %d is another one", i+1)
			}
		}
		again, err := parse([]byte(w.String()))
		if err != nil {
			t.Fatalf("%v in\n%s", err, w.String())
		}
		opts := cmp.Options{cmp.AllowUnexported(recording{}, call{}, speaker{}, links{}), cmpopts.IgnoreUnexported(provider.Error{})}
		if diff := cmp.Diff(r, again, opts); diff != "" {
			t.Fatalf("written again it says something else:\n%s", diff)
		}
	})
}
