package approval

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/regie-run/regie"
)

// bindVersion separates these hashes from all others, and from those of another form of them.
const bindVersion = "regie approval 1\x00"

// Bind returns what an approval holds for (decision 20): the tool's definition, its name included, the canonical arguments that would
// run, and the preconditions that the preview showed. An approval whose hash is another one is none. The order of the preconditions
// does not matter, because a tool may list them in any.
func Bind(definition regie.Hash, arguments []byte, preconditions []regie.Precondition) regie.Hash {
	var data []byte
	add := func(field []byte) { // with its length, so that no two lists of fields read the same
		data = binary.BigEndian.AppendUint64(data, uint64(len(field)))
		data = append(data, field...)
	}
	data = append(append(data, bindVersion...), definition[:]...)
	add(arguments)
	sorted := slices.SortedFunc(slices.Values(preconditions), func(a, b regie.Precondition) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), bytes.Compare(a.Hash[:], b.Hash[:]))
	})
	for _, p := range sorted {
		add([]byte(p.Kind))
		add([]byte(p.Name))
		data = append(data, p.Hash[:]...)
	}
	return regie.HashOf(data)
}
