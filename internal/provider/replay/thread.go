package replay

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
)

// thread is a conversation as a recording has it: its turns in their written form, and the hash of
// each beginning.
type thread struct {
	turns  []provider.Turn // steady, without ids
	hashes []regie.Hash    // hashes[i] is of the first i+1 turns
	calls  []string        // the ids of the calls of the last turn
}

// add appends turns as they are sent; hide takes keys out.
func (t *thread) add(hide func(string) string, turns ...provider.Turn) {
	for i := range turns {
		t.append(t.steadied(&turns[i], hide))
		t.calls = t.calls[:0]
		for j := range turns[i].Parts {
			if c := turns[i].Parts[j].Call; c != nil {
				t.calls = append(t.calls, c.ID)
			}
		}
	}
}

// append appends a turn in its written form.
func (t *thread) append(turn provider.Turn) {
	t.turns = append(t.turns, turn)
	t.hashes = append(t.hashes, after(t.hash(), &turn))
}

// hash is of the whole thread; zero for an empty one.
func (t *thread) hash() regie.Hash {
	if len(t.hashes) == 0 {
		return regie.Hash{}
	}
	return t.hashes[len(t.hashes)-1]
}

// after is the hash of a thread that goes on with a turn in its written form.
func after(before regie.Hash, turn *provider.Turn) regie.Hash {
	var w writer
	w.turn(turn)
	sum := sha256.New()
	sum.Write(before[:])
	sum.Write([]byte(w.String()))
	return regie.Hash(sum.Sum(nil))
}

// steadied is a turn in its written form: a call has no id, and a result the place of its call in
// the turn before, from 1.
func (t *thread) steadied(turn *provider.Turn, hide func(string) string) provider.Turn {
	out := provider.Turn{Role: turn.Role, Parts: steadyParts(turn.Parts, hide)}
	for i := range turn.Results {
		result := turn.Results[i]
		place := slices.Index(t.calls, result.CallID) + 1
		out.Results = append(out.Results, provider.Result{
			CallID:  strconv.Itoa(place),
			Content: steady(hide(result.Content)), IsError: result.IsError,
		})
	}
	return out
}

func steadyParts(parts []provider.Part, hide func(string) string) []provider.Part {
	out := make([]provider.Part, 0, len(parts))
	for i := range parts {
		if parts[i].Opening { // another date, zone, user or language is another run's
			continue
		}
		part := provider.Part{Type: parts[i].Type, Text: steady(hide(parts[i].Text))}
		if c := parts[i].Call; c != nil {
			part.Text, part.Call = "", &provider.Call{Name: c.Name, Arguments: steady(hide(c.Arguments))}
		}
		out = append(out, part)
	}
	return out
}

// answered is the hash of a thread that goes on with a reply.
func answered(before regie.Hash, reply *provider.Reply) regie.Hash {
	turn := answerTurn(reply)
	return after(before, &turn)
}

func answerTurn(reply *provider.Reply) provider.Turn {
	return provider.Turn{Role: provider.RoleAssistant, Parts: steadyParts(reply.Parts,
		func(text string) string { return text })}
}

// written is turns as a recording has them.
func written(turns []provider.Turn) string {
	var w writer
	for i := range turns {
		w.turn(&turns[i])
	}
	return w.String()
}

// maxDiff bounds how much of a difference is shown, in lines, and maxDiffLine each of them, in
// bytes.
const (
	maxDiff     = 24
	maxDiffLine = 240
)

// difference is what is asked against what was recorded, shortly.
func difference(recorded, asked []provider.Turn) string {
	same := 0
	for same < min(len(recorded), len(asked)) && written(recorded[same:same+1]) == written(asked[same:same+1]) {
		same++
	}
	lines := strings.Split(strings.TrimSuffix(udiff.Unified("recorded", "asked", written(recorded[same:]),
		written(asked[same:])), "\n"), "\n")
	if len(lines) > maxDiff {
		lines = append(lines[:maxDiff], fmt.Sprintf("(%d lines more)", len(lines)-maxDiff))
	}
	for i, line := range lines {
		if len(line) > maxDiffLine {
			lines[i] = strings.ToValidUTF8(line[:maxDiffLine], "") + " …"
		}
	}
	return strings.Join(lines, "\n")
}
