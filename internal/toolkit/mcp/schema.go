package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie/internal/sanitize"
)

const (
	maxSchema = 64 << 10 // bytes of one tool's schema
	maxNested = 64       // levels within it, references followed
	maxPasses = 100      // over a schema whose parts contain each other; two are enough for all that was ever seen
	// maxWork bounds how many rules one value can be held against when references are followed.
	// Definitions that name each other twice double with each level: a page of them is more than a
	// computer ever checks.
	maxWork = 20_000
)

// cleanSchema makes of what a server says its tool takes a schema that is safe to check arguments
// with, and to show to a model. What cannot be made safe is an error. The result is always the same
// for the same schema, as the tool's hash is one of it.
func cleanSchema(raw any) (json.RawMessage, error) {
	data, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	if len(data) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, at most %d are taken", len(data), maxSchema)
	}
	var root any
	if err := json.Unmarshal(data, &root); err != nil { // a copy of our own
		return nil, err
	}
	object, ok := root.(map[string]any)
	if !ok || object["type"] != "object" {
		return nil, fmt.Errorf("its schema is not one of an object")
	}
	delete(object, "$id") // only a base for references to elsewhere, which are refused
	for range maxPasses {
		w := &walk{root: root, state: map[string]*visit{}}
		work, _, err := w.cleanNode("", root, 0)
		switch {
		case err != nil:
			return nil, err
		case w.cut:
			continue // what was counted before the cut is not what it is now
		case work > maxWork:
			return nil, fmt.Errorf("its schema refers to its parts too often to be checked")
		}
		return json.Marshal(root)
	}
	return nil, fmt.Errorf("its schema refers to itself in too many ways")
}

// walk looks at each part of a schema once, in a fixed order.
type walk struct {
	root  any
	state map[string]*visit // by JSON pointer
	cut   bool              // a reference was taken out
}

type visit struct {
	done bool
	work int // rules below, references followed
}

// cleanNode cleans a part and returns its work, and whether it contains a part in progress: then
// the reference that led here closes a circle. Every object and list counts as a part, under any
// keyword: that may find too much in a schema that quotes another, and never too little.
func (w *walk) cleanNode(at string, value any, depth int) (work int, circle bool, err error) {
	if depth > maxNested {
		return 0, false, fmt.Errorf("its schema is nested deeper than %d levels", maxNested)
	}
	if v := w.state[at]; v != nil {
		return v.work, !v.done, nil
	}
	v := &visit{}
	w.state[at] = v
	work = 1
	add := func(below int, back bool, problem error) {
		work, circle, err = min(work+below, maxWork+1), circle || back, problem
	}
	switch value := value.(type) {
	case map[string]any:
		if err := cleanObject(value); err != nil {
			return 0, false, err
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if add(w.cleanNode(at+"/"+escapeKey(key), value[key], depth+1)); err != nil {
				return 0, false, err
			}
		}
		if ref, ok := value["$ref"].(string); ok {
			below, back, err := w.followRef(ref, depth)
			if err != nil {
				return 0, false, err
			}
			if back {
				// Checking a schema that contains itself may never end. The model still sees the
				// first level, and the server checks the rest itself.
				delete(value, "$ref")
				w.cut = true
			}
			work = min(work+below, maxWork+1)
		}
	case []any:
		for i, part := range value {
			if add(w.cleanNode(at+"/"+strconv.Itoa(i), part, depth+1)); err != nil {
				return 0, false, err
			}
		}
	}
	v.done, v.work = true, work
	return work, circle, nil
}

// followRef returns the work behind a reference, and whether it leads back to a part that contains
// the reference.
func (w *walk) followRef(ref string, depth int) (work int, back bool, err error) {
	pointer, local := strings.CutPrefix(ref, "#")
	if pointer, err = url.PathUnescape(pointer); err != nil || !local || pointer != "" && pointer[0] != '/' {
		return 0, false, fmt.Errorf("its schema refers to %q, and only #/… within itself is followed", sanitize.Clip(ref, 100))
	}
	target, at := w.root, ""
	for _, step := range strings.Split(pointer, "/")[1:] {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var next any
		switch value := target.(type) {
		case map[string]any:
			next = value[key]
		case []any:
			if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(value) {
				next, key = value[i], strconv.Itoa(i)
			}
		}
		if next == nil {
			return 0, false, fmt.Errorf("its schema refers to %q, which is not there", sanitize.Clip(ref, 100))
		}
		target, at = next, at+"/"+escapeKey(key)
	}
	return w.cleanNode(at, target, depth+1)
}

// escapeKey makes a key a step of a JSON pointer (RFC 6901).
func escapeKey(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// cleanObject cleans one object of a schema: no ways to refer that are not followed here, no
// patterns that cannot be checked, no hidden text.
func cleanObject(schema map[string]any) error {
	for _, keyword := range []string{
		"$id", "$anchor", "$dynamicRef", "$dynamicAnchor",
		"$recursiveRef", "$recursiveAnchor",
	} {
		if _, ok := schema[keyword].(string); ok {
			return fmt.Errorf("its schema uses %s, which is not supported", keyword)
		}
	}
	if pattern, ok := schema["pattern"].(string); ok {
		if _, err := regexp.Compile(pattern); err != nil {
			delete(schema, "pattern") // of another dialect: the server checks it itself
		}
	}
	if patterns, ok := schema["patternProperties"].(map[string]any); ok {
		for pattern := range patterns {
			if _, err := regexp.Compile(pattern); err != nil {
				delete(schema, "patternProperties")
				delete(schema, "additionalProperties") // what is additional depends on them
				break
			}
		}
	}
	for _, keyword := range []string{"title", "description", "$comment"} {
		if text, ok := schema[keyword].(string); ok {
			schema[keyword] = cleanText(text, maxDescription)
		}
	}
	return nil
}
