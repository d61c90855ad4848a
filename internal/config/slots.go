package config

import (
	"cmp"

	"go.yaml.in/yaml/v3"

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
	if s.Exclusive = node.Value == SlotsExclusive; s.Exclusive {
		return nil
	}
	type plain Slots
	return node.Decode((*plain)(s))
}

// Capacity is what the setting means.
func (s Slots) Capacity() slot.Capacity {
	return slot.Capacity{
		Exclusive: s.Exclusive, Chat: cmp.Or(s.Chat, slot.Default.Chat),
		Automation: cmp.Or(s.Automation, slot.Default.Automation),
		API:        cmp.Or(s.API, slot.Default.API),
	}
}
