package config

import (
	"cmp"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/slot"
)

// Slots are how many rounds run side by side for one user in one workspace (decisions 21 and 52):
// the word exclusive, with which chats and automations share one, or a number for each kind, where
// zero is the default.
type Slots struct {
	Exclusive  bool `yaml:"-"`
	Chat       int  `yaml:"chat"`
	Automation int  `yaml:"automation"`
	API        int  `yaml:"api"`
}

// SlotsExclusive is the word.
const SlotsExclusive = "exclusive"

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Slots) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		if node.Value != SlotsExclusive {
			return regie.Errorf(regie.CodeBadRequest,
				"slots is %q: use exclusive, or a number for each of chat, automation and api", node.Value)
		}
		*s = Slots{Exclusive: true}
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 { // a node of its own knows nothing of KnownFields
		switch key := node.Content[i].Value; key {
		case "chat", "automation", "api":
		default:
			return regie.Errorf(regie.CodeBadRequest,
				"slots has no key %s: use chat, automation and api, or the word exclusive", key)
		}
		var n int
		if err := node.Content[i+1].Decode(&n); err != nil || n < 1 {
			return regie.Errorf(regie.CodeBadRequest, "slots.%s must be a number from 1 on", node.Content[i].Value)
		}
	}
	type plain Slots
	return node.Decode((*plain)(s))
}

// maxSlots bounds a kind's slots.
const maxSlots = 100_000

func (s Slots) check(path string) error {
	for _, n := range []int{s.Chat, s.Automation, s.API} {
		if n > maxSlots {
			return regie.Errorf(regie.CodeBadRequest, "slots in %s holds %d: at most %d are allowed", path, n, maxSlots)
		}
	}
	return nil
}

// Capacity is what the setting means.
func (s Slots) Capacity() slot.Capacity {
	return slot.Capacity{
		Exclusive: s.Exclusive, Chat: cmp.Or(s.Chat, slot.Default.Chat),
		Automation: cmp.Or(s.Automation, slot.Default.Automation),
		API:        cmp.Or(s.API, slot.Default.API),
	}
}
