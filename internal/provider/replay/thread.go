package replay

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// thread is a conversation as a recording holds it: normalized turns and the hash of each prefix.
type thread struct {
	turns  []provider.Turn
	hashes []regie.Hash // hashes[i] covers the first i turns; the first one is zero
	calls  []string     // ids of the calls of the last turn
}

func newThread() thread { return thread{hashes: make([]regie.Hash, 1)} }

// hash covers the whole thread; zero for an empty one.
func (t *thread) hash() regie.Hash { return t.hashes[len(t.turns)] }

// add appends turns as they are sent; mask rewrites their texts. A call loses its id, and a result
// names the place of its call in the turn before, from 1.
func (t *thread) add(mask func(string) string, turns ...provider.Turn) {
	for _, sent := range turns {
		turn := provider.Turn{Role: sent.Role, Parts: normalizeParts(sent.Parts, mask)}
		for _, result := range sent.Results {
			result.CallID = strconv.Itoa(slices.Index(t.calls, result.CallID) + 1)
			result.Content = mask(result.Content)
			turn.Results = append(turn.Results, result)
		}
		t.hashes = append(t.hashes, chainHash(t.hash(), turn))
		t.turns = append(t.turns, turn)
		t.calls = nil
		for _, part := range sent.Parts {
			if part.Call != nil {
				t.calls = append(t.calls, part.Call.ID)
			}
		}
	}
}

// chainHash returns the hash of a thread that continues with a normalized turn.
func chainHash(before regie.Hash, turn any) regie.Hash {
	text, _ := encode(turn) // a normalized turn has no opaque data that could be wrong
	return regie.HashOf(append(before[:], text...))
}

func normalizeParts(parts []provider.Part, mask func(string) string) (out []provider.Part) {
	for _, part := range parts {
		if part.Opening { // date, zone, user and language differ between runs
			continue
		}
		normal := provider.Part{Type: part.Type}
		if m := part.Media; m != nil {
			normal.Media = &provider.Media{Type: m.Type, Blob: m.Blob}
		}
		if part.Call != nil {
			normal.Call = &provider.Call{Name: part.Call.Name, Arguments: mask(part.Call.Arguments)}
		} else {
			normal.Text = mask(part.Text)
		}
		out = append(out, normal)
	}
	return out
}

// A UUID or a time, in a text.
var (
	varyingID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	varyingTime = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)
)

// maskVarying replaces what differs between runs, and bytes that JSON cannot hold.
func maskVarying(text string) string {
	text = varyingID.ReplaceAllString(strings.ToValidUTF8(provider.WithoutDurations(text), "\uFFFD"), "{id}")
	return varyingTime.ReplaceAllString(text, "{time}")
}

var unescaped = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`)

// renderTurns returns turns as people read them: JSON with the lines and quotes of each text.
func renderTurns(turns []provider.Turn) string {
	text, _ := json.MarshalIndent(turns, "", " ") // never fails: a normalized turn has no opaque data
	return unescaped.Replace(string(text)) + "\n"
}

// maxDiff bounds how much of a difference is shown, in bytes.
const maxDiff = 4 << 10

// diffTurns shows how a request differs from a recorded one.
func diffTurns(recorded, asked []provider.Turn) string {
	diff := udiff.Unified("recorded", "asked", renderTurns(recorded), renderTurns(asked))
	if len(diff) > maxDiff {
		diff = strings.ToValidUTF8(diff[:maxDiff], "") + " …"
	}
	return strings.TrimSuffix(diff, "\n")
}
