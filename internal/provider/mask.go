package provider

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// minKey is the length of the shortest key that is masked, in bytes: a shorter one is no secret
	// and occurs in ordinary text.
	minKey  = 8
	keyMask = "[the API key]"
)

// MaskKeys returns a replacer that masks keys, as they are and as JSON strings hold them.
func MaskKeys(keys ...string) *strings.Replacer {
	keys = slices.Clone(keys)
	// the longer one of a common prefix wins
	slices.SortFunc(keys, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, key := range keys {
		if len(key) >= minKey {
			inJSON := strconv.Quote(key)
			pairs = append(pairs, key, keyMask, inJSON[1:len(inJSON)-1], keyMask)
		}
	}
	return strings.NewReplacer(pairs...)
}
