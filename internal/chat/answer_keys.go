package chat

import (
	"slices"
	"strings"
)

// Key is one possible answer of a person.
type Key struct {
	Names string // separated by spaces
	Label string // what is shown of it, if anything
	Do    func()
}

// The names of the keys that mean yes and no, in either language.
const (
	yesNames = "y o yes oui"
	noNames  = "n no non"
)

// FindKey returns the key with a name, or nil.
func FindKey(keys []Key, name string) *Key {
	at := slices.IndexFunc(keys, func(k Key) bool { return slices.Contains(strings.Fields(k.Names), name) })
	if at < 0 {
		return nil
	}
	return &keys[at]
}

// keyPrompt returns the prompt of a line that answers with a key.
func keyPrompt(keys []Key) string {
	var labels []string
	for _, key := range keys {
		if key.Label != "" {
			labels = append(labels, key.Label)
		}
	}
	return strings.Join(labels, "  ") + " > "
}
