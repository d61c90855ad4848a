package replay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
)

// encodeCalls writes the calls of a recording again.
func encodeCalls(t *testing.T, r *recording) string {
	t.Helper()
	out := header + "\n"
	for _, c := range r.calls {
		if c.HeadOf > 0 {
			c.Head = nil
		}
		text, err := encode(c)
		if err != nil {
			t.Fatal(err)
		}
		out += text
	}
	return out
}

// FuzzRecording reads anything: a recording says the same when its calls are written again, and
// each of its threads can be shown.
func FuzzRecording(f *testing.F) {
	seed, err := os.ReadFile(filepath.Join("testdata", "thread.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(header + "\n" +
		`{"call":1,"provider":"a b","head":{"model":"m","dialect":"json","max_output":1,"parallel_calls":false},"asked":[{"role":"tool","results":[{"call":"0","content":"\u0000\u2028","is_error":true}]}],` +
		`"reply":{"parts":[{"type":"thinking","text":"\n  ","provider":"p","opaque":{"a": 1}}],"cut":true,"usage":{"input":0,"output":0},"sources":[{"url":"u"}]}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(data)
		if err != nil {
			if !strings.Contains(err.Error(), "line ") && !strings.Contains(err.Error(), "it ") {
				t.Fatalf("an error without its line: %v", err)
			}
			return
		}
		for _, c := range r.calls {
			var hash regie.Hash
			for _, turn := range r.turns(c) {
				hash = chainHash(hash, turn)
			}
			if hash != c.thread {
				t.Fatalf("the thread of call %d is another one", c.Number)
			}
		}
		written := encodeCalls(t, r)
		again, err := parse([]byte(written))
		if err != nil {
			t.Fatalf("%v in\n%s", err, written)
		}
		if diff := cmp.Diff(written, encodeCalls(t, again)); diff != "" {
			t.Fatalf("written again it says something else:\n%s", diff)
		}
	})
}
