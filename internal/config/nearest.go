package config

import (
	"errors"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/regie-run/regie/internal/spell"
)

var unknownKey = regexp.MustCompile(`^(line \d+): field (\S+) not found in type ((?:config|regie)\.\S+)$`)

// withNearest says of each unknown key which known one of the same place is nearest (spec 13).
func withNearest(err error) string {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	out := make([]string, len(wrong.Errors))
	for i, said := range wrong.Errors {
		out[i] = said
		found := unknownKey.FindStringSubmatch(said)
		if found == nil {
			out[i] = inWords(said)
			continue
		}
		out[i] = found[1] + ": there is no key " + found[2] + " here"
		if near := nearest(found[2], keysOf(reflect.TypeFor[File](), found[3])); near != "" {
			out[i] += ", did you mean " + near + "?"
		}
	}
	return strings.Join(out, "; ")
}

// wrongType is what the parser says of a value of another type, in words of YAML and Go.
var wrongType = regexp.MustCompile("^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (\\S+)$")

// inWords says what is wrong with the type of a value, in words of a person.
func inWords(said string) string {
	found := wrongType.FindStringSubmatch(said)
	if found == nil {
		return said
	}
	what := found[3]
	switch found[2] {
	case "seq":
		what = "a list"
	case "map":
		what = "keys with values"
	case "null":
		what = "nothing"
	}
	wanted := "keys with values, such as approvals: {require: writes}"
	switch kind := found[4]; {
	case kind == "time.Duration":
		wanted = "a duration such as 5m"
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		wanted = "a whole number"
	case strings.HasPrefix(kind, "float"):
		wanted = "a number"
	case kind == "bool":
		wanted = "true or false"
	case kind == "string":
		wanted = "a text"
	case strings.HasPrefix(kind, "[]"):
		wanted = "a list"
	}
	return found[1] + ": " + what + " stands where " + wanted + " belongs"
}

// keysOf are the keys of the type with a name, wherever below a type it is used.
func keysOf(in reflect.Type, name string) (keys []string) {
	switch in.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer:
		return keysOf(in.Elem(), name)
	case reflect.Struct:
	default:
		return nil
	}
	for field := range in.Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key == "" || key == "-" {
			continue
		}
		if in.String() == name {
			keys = append(keys, key)
		} else if below := keysOf(field.Type, name); below != nil {
			return below
		}
	}
	return keys
}

// nearest is the known key that differs in the fewest letters, "" where none is near.
func nearest(key string, known []string) (best string) {
	least := len(key)/3 + 2
	for _, candidate := range known {
		if d := spell.Distance(key, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best
}

// NearestVariable returns the variable of Variables that is spelt most like a name, or "".
func NearestVariable(name string) string { return nearest(name, Variables()) }
