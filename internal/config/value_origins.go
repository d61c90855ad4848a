package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie/internal/keyring"
)

// ValueOrigin says from which layer a value is (spec 13).
type ValueOrigin string

// The origins of values, from the weakest on; those of files are the kinds of layers.
const (
	OriginDefault     ValueOrigin = "default"
	OriginSetup                   = ValueOrigin(LayerSetup)
	OriginSystem                  = ValueOrigin(LayerSystem)
	OriginUser                    = ValueOrigin(LayerUser)
	OriginNamed                   = ValueOrigin(LayerNamed)
	OriginProject     ValueOrigin = "project"
	OriginEnvironment ValueOrigin = "environment"
	OriginFlag        ValueOrigin = "flag"
	OriginKeyring     ValueOrigin = "keyring"
)

// Value is one effective setting.
type Value struct {
	Key   string `json:"key"`
	Value string `json:"value"` // as YAML in one line; of a secret only that it is set
	// Origin is the layer, From what of it: a file, a variable, a flag. Line is where in a file.
	Origin ValueOrigin `json:"origin"`
	From   string      `json:"from,omitempty"`
	Line   int         `json:"line,omitempty"`
	Secret bool        `json:"secret,omitempty"`
	// Use says what becomes of a value of a project's file.
	Use KeyUse `json:"use,omitempty"`
}

// Values are the effective settings, sorted by key: each that a file, a variable or a flag says,
// and each that has a default. A secret is never among them.
func (c *Config) Values() []Value {
	values := map[string]Value{}
	for key, rule := range keyRules() {
		key = strings.Replace(key, "agents.*.", "agents."+mainAgent+".", 1)
		if rule.fallback != nil && !strings.ContainsAny(key, "*[") {
			text, _ := json.Marshal(rule.fallback) // of words and numbers
			values[key] = Value{Key: key, Value: strings.Trim(string(text), `"`), Origin: OriginDefault}
		}
	}
	offset := map[string]int{} // entries of lists that all layers add to
	for _, layer := range c.Layers {
		for _, v := range layer.layerValues(offset) {
			if v.Key == "slots" { // the word takes the place of the numbers
				maps.DeleteFunc(values, func(key string, _ Value) bool { return strings.HasPrefix(key, "slots.") })
			}
			values[v.Key] = v
		}
	}
	for key, value := range map[string]string{
		"data_dir": c.DataDir, "database": c.Database, "server": c.Server, "token": c.Token,
		"language": c.Language, "provider": c.Provider,
		"base_url": c.BaseURL, "api_key": c.APIKey, "model": c.Model, "replay": c.Replay,
		"record": c.Record,
	} {
		if value != "" {
			v := c.effectiveValue(key, value)
			if old, written := values[key]; written && v.Line == 0 && old.From == v.From {
				v.Line = old.Line
			}
			values[key] = v
		}
	}
	return slices.SortedFunc(maps.Values(values), func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
}

// effectiveValue returns a setting that several layers can give, with the one that does.
func (c *Config) effectiveValue(key, value string) Value {
	from := c.Origin[key]
	v := Value{Key: key, From: from, Secret: secretKey(key)}
	v.Value = maskValue(key, value)
	switch {
	case from == "" || from == string(OriginDefault):
		v.Origin, v.From = OriginDefault, ""
	case strings.HasPrefix(from, "--"):
		v.Origin = OriginFlag
	case inKeyring(from):
		v.Origin, v.From = OriginKeyring, strings.TrimPrefix(from, keyringMark)
	default:
		v.Origin = OriginEnvironment
		for _, layer := range c.Layers {
			if layer.Path == from {
				v.Origin = ValueOrigin(layer.Kind)
			}
		}
		if !variable.MatchString(from) && v.Origin == OriginEnvironment { // what was found out: the one that runs here
			v.Origin = OriginDefault
		}
	}
	return v
}

var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// added are the lists to which every layer adds its entries.
var added = []string{"approvals.rules", "hooks"}

// layerValues returns the values of a layer, one per key. offset is the number of entries that
// earlier layers have in each list.
func (l *Layer) layerValues(offset map[string]int) (out []Value) {
	walkKeys(l.root, "", func(key string, name, value *yaml.Node) {
		list, entry, inList := strings.Cut(key, "[")
		switch {
		case inList && slices.Contains(added, list) && strings.HasSuffix(entry, "]"):
			offset[list]++
			key = fmt.Sprintf("%s[%d]", list, offset[list])
		case inList, value.Kind == yaml.MappingNode && len(value.Content) > 0,
			slices.Contains(added, key) && len(value.Content) > 0:
			return // its parts say it
		}
		v := Value{Key: key, Origin: ValueOrigin(l.Kind), From: l.Path, Line: name.Line, Secret: secretKey(key)}
		v.Value = maskValue(key, flatValue(value))
		out = append(out, v)
	})
	return out
}

// flatValue returns a value in one line.
func flatValue(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return n.Value
	}
	var value any
	if n.Decode(&value) != nil {
		return "…"
	}
	text, err := jsonv2.Marshal(value, jsonv2.Deterministic(true))
	if err != nil {
		return "…"
	}
	return string(text)
}

// secretKey reports whether the value of a key is never shown: keys, tokens, and the environment
// and headers of programs and servers.
func secretKey(key string) bool {
	parts := strings.Split(key, ".")
	last := parts[len(parts)-1]
	switch {
	case key == "token", last == "api_key":
		return true
	case parts[0] == "mcp_servers" && len(parts) >= 3 && (parts[2] == "env" || parts[2] == "headers"):
		return true
	default:
		return false
	}
}

// maskValue returns a value for display: an address without password and query.
func maskValue(key, value string) string {
	if name, is := strings.CutPrefix(value, keyringMark); secretKey(key) && (!is || !keyring.Named(name)) {
		return "***"
	} else if is {
		return value
	}
	u, err := url.Parse(value)
	switch {
	case (err != nil || u.Scheme == "") && key == "database" && value != sqliteWord:
		return "***"
	case err != nil, u.Scheme == "", u.Host == "" && u.RawQuery == "":
		return value
	}
	if u.RawQuery != "" {
		u.RawQuery = "***"
	}
	return strings.ReplaceAll(u.Redacted(), ":xxxxx@", ":***@")
}
