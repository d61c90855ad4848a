package replay_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/demo"
	"github.com/regie-run/regie/internal/provider/replay"
)

// talk sends one request and returns what came, with its deltas.
func talk(t *testing.T, p provider.Provider, text string) (*provider.Reply, string, error) {
	t.Helper()
	c, err := p.Open(provider.Head{Model: "m", MaxOutput: 10, Tools: []provider.Tool{{Name: "files__list_files"}, {Name: "files__read_file"}, {Name: "files__write_file"}}})
	if err != nil {
		t.Fatal(err)
	}
	c.Append(provider.Turn{Role: provider.RoleUser, Parts: []provider.Part{{Type: regie.PartText, Text: text}}})
	var streamed strings.Builder
	reply, err := c.Send(t.Context(), func(d provider.Delta) { streamed.WriteString(d.Text) })
	return reply, streamed.String(), err
}

// TestRecordAndReplay records a provider, over two openings of the file, and gets the same from the recording.
func TestRecordAndReplay(t *testing.T) {
	path, again := filepath.Join(t.TempDir(), "tape.jsonl"), filepath.Join(t.TempDir(), "again.jsonl")
	var replies []*provider.Reply
	var texts []string
	for _, request := range []string{"list files in notes/", "hello"} {
		for _, tape := range []string{again, path} {
			recorder, err := replay.NewRecorder(demo.New(), tape)
			if err != nil {
				t.Fatal(err)
			}
			reply, text, err := talk(t, recorder, request)
			if err != nil {
				t.Fatal(err)
			}
			if reply.FirstByte = 0; tape == path { // which no recording holds
				replies, texts = append(replies, reply), append(texts, text)
			}
		}
	}
	one, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if other, err := os.ReadFile(again); err != nil || string(other) != string(one) {
		t.Errorf("the same calls give another recording: %v\n%s\n%s", err, one, other)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the recording's mode is %v, %v", info.Mode(), err)
	}
	player, err := replay.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range replies {
		reply, text, err := talk(t, player, "whatever")
		if err != nil || text != texts[i] {
			t.Fatalf("%v, %q, want %q", err, text, texts[i])
		}
		if diff := cmp.Diff(replies[i], reply); diff != "" {
			t.Errorf("reply %d (-recorded +replayed):\n%s", i, diff)
		}
	}
	_, _, err = talk(t, player, "once more")
	if failed, ok := errors.AsType[*provider.Error](err); !ok || failed.Code != regie.CodeReplayMismatch || failed.Retryable {
		t.Errorf("past the end: %v", err)
	}
}

// TestBadRecordings opens what is none; each is refused with its line.
func TestBadRecordings(t *testing.T) {
	const head = `{"format":"regie-recording-1"}` + "\n"
	for name, c := range map[string]struct{ file, says string }{
		"empty":         {"", "no model call"},
		"only a header": {head, "no model call"},
		"another file":  {"hello\n", "line 1"},
		"cut off":       {head + `{"model":"m"`, "line 2 is cut off"},
		"garbage":       {head + "{]\n", "line 2"},
		"unknown field": {head + `{"model":"m","surprise":1}` + "\n", "line 2"},
		"neither":       {head + `{"model":"m"}` + "\n", "neither"},
		"half a call":   {head + `{"model":"m","reply":{"Parts":[{"Type":"call"}]}}` + "\n", "half a call"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tape")
			if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := replay.Open(path); regie.CodeOf(err) != regie.CodeReplayMismatch || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	spoiled := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(spoiled, []byte("my notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := replay.NewRecorder(demo.New(), spoiled); err == nil {
		t.Error("a file that is no recording would be written to")
	}
}
