package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie"
)

// LayerKind is the owner of a file of settings (spec 13).
type LayerKind string

// The kinds, from the one that counts least on.
const (
	LayerSetup  LayerKind = "setup"  // what regie setup stored
	LayerSystem LayerKind = "system" // the machine's
	LayerUser   LayerKind = "user"
	LayerNamed  LayerKind = "named" // by --config or REGIE_CONFIG: then no other counts
)

// SystemFile is the default path of the machine's file.
const SystemFile = "/etc/regie/regie.yaml"

// Layer is a file of settings that counts.
type Layer struct {
	Kind LayerKind
	Path string
	root *yaml.Node // its mapping; nil where it says nothing
}

// readLayer reads a file strictly, and keeps how it is written.
func readLayer(kind LayerKind, path string) (Layer, File, error) {
	layer := Layer{Kind: kind, Path: path}
	data, err := readBytes(path)
	if err != nil {
		return layer, File{}, err
	}
	var f File
	f, layer.root, err = parseFile(path, data)
	return layer, f, err
}

// CheckFile looks at one file of settings without using it.
func CheckFile(path string) error {
	_, _, err := readLayer(LayerNamed, path)
	return err
}

// readBytes reads a file of settings.
func readBytes(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, regie.Errorf(regie.CodeBadRequest, "the configuration %s cannot be read: %v", path, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, regie.Errorf(regie.CodeBadRequest, "the configuration %s cannot be read: %v", path, err)
	case len(data) > maxFile:
		return nil, regie.Errorf(regie.CodeBadRequest, "the configuration %s has more than %d bytes", path, maxFile)
	}
	return data, nil
}

// loadLayers reads the machine's file and the user's, where they are there. What both say is the
// user's to say, key by key; their rules and hooks all count, the machine's first.
func (c *Config) loadLayers(system, user string) error {
	var merged *yaml.Node
	var rules []Rule
	var hooks []Hook
	ofAgents := map[string][]Rule{} // of the last file that has some: they know where they stand
	for _, at := range []Layer{{Kind: LayerSystem, Path: system}, {Kind: LayerUser, Path: user}} {
		if _, err := os.Stat(at.Path); at.Path == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		layer, f, err := readLayer(at.Kind, at.Path)
		if err != nil {
			return err
		}
		merged = mergeMappings(merged, layer.root)
		rules, hooks = append(rules, f.Approvals.Rules...), append(hooks, f.Hooks...)
		for name, agent := range f.Agents {
			if agent.Approvals.Rules != nil {
				ofAgents[name] = agent.Approvals.Rules
			}
		}
		c.Layers, c.Origin["file"] = append(c.Layers, layer), layer.Path
	}
	if merged != nil {
		if err := merged.Decode(&c.File); err != nil {
			return regie.Errorf(regie.CodeBadRequest, "the configuration %s is not valid: %v", c.Origin["file"], err)
		}
	}
	c.File.Approvals.Rules, c.File.Hooks = rules, hooks
	for name, agent := range c.File.Agents {
		agent.Approvals.Rules = ofAgents[name]
		c.File.Agents[name] = agent
	}
	return nil
}

// mergeMappings puts the keys of one mapping over those of another, which may both be nil.
func mergeMappings(below, above *yaml.Node) *yaml.Node {
	switch {
	case below == nil || above != nil && (below.Kind != yaml.MappingNode || above.Kind != yaml.MappingNode):
		return above
	case above == nil:
		return below
	}
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: slices.Clone(below.Content)}
	for i := 0; i+1 < len(above.Content); i += 2 {
		at := -1
		for j := 0; j < len(out.Content); j += 2 {
			if out.Content[j].Value == above.Content[i].Value {
				at = j
			}
		}
		if at < 0 {
			out.Content = append(out.Content, above.Content[i], above.Content[i+1])
		} else {
			out.Content[at+1] = mergeMappings(out.Content[at+1], above.Content[i+1])
		}
	}
	return out
}

// sourceOf returns the file that says a key, the last of several.
func (c *Config) sourceOf(key string) string {
	for _, layer := range slices.Backward(c.Layers) {
		if layer.Kind != LayerSetup && layer.lineOf(key) > 0 {
			return layer.Path
		}
	}
	return c.Origin["file"]
}

// lineOf returns the line of a key in a layer, 0 where the layer does not have it.
func (l *Layer) lineOf(key string) (line int) {
	walkKeys(l.root, "", func(at string, name, _ *yaml.Node) {
		if at == key && line == 0 {
			line = name.Line
		}
	})
	return line
}

// walkKeys visits every key of a mapping, those of entries in lists too: a.b, and a[1].b from 1 on.
func walkKeys(n *yaml.Node, at string, visit func(key string, name, value *yaml.Node)) {
	if n == nil {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := joinKey(at, n.Content[i].Value)
			visit(key, n.Content[i], n.Content[i+1])
			walkKeys(n.Content[i+1], key, visit)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if item.Kind == yaml.MappingNode {
				key := at + "[" + strconv.Itoa(i+1) + "]"
				visit(key, item, item)
				walkKeys(item, key, visit)
			}
		}
	}
}
