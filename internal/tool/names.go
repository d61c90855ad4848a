package tool

import (
	"cmp"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/spell"
)

const (
	maxWireName      = 64
	maxCanonicalName = 200
)

var (
	wireUnsafe = regexp.MustCompile(`[^a-zA-Z0-9_-]`)
	// canonicalName allows dots in the operation, because the names of MCP tools may have them.
	canonicalName = regexp.MustCompile(`^[a-zA-Z0-9_-]+\.[a-zA-Z0-9_.-]+$`)
	// aliasName has no dot, so that an alias is never taken for a canonical name.
	aliasName  = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	hashedName = regexp.MustCompile(`_[0-9a-f]{16}$`)
)

// WireName is the name of a tool on the wire, toolkit__operation (decision 27): at most 64
// characters that APIs accept. A name that cannot be mapped back, because it is too long, has other
// characters or "__" in its toolkit, ends in a hash of the original. So names never collide, even
// those of MCP servers, and a name is the same in every registry.
func WireName(canonical string) string {
	toolkit, operation, _ := strings.Cut(canonical, ".")
	name := toolkit + "__" + operation
	head, tail, _ := strings.Cut(name, "__")
	if len(name) <= maxWireName && head == toolkit && tail == operation && !wireUnsafe.MatchString(name) &&
		!hashedName.MatchString(name) {
		return name
	}
	hash := regie.HashOf([]byte(canonical))
	name = wireUnsafe.ReplaceAllString(name, "_")
	return name[:min(len(name), maxWireName-17)] + "_" + hex.EncodeToString(hash[:8])
}

// WireName returns the name of a tool on the wire in a request with these tools. A client's tool
// keeps its own name, also one that only the thread has, unless a tool of the registry has that
// name.
func (r *Registry) WireName(canonical string) string {
	if e := cmp.Or(r.byName[canonical], r.outside[canonical]); e != nil {
		return e.wire
	}
	if own := clientName(canonical); own != "" && r.findEntry(own) == nil {
		return own
	}
	return WireName(canonical)
}

// clientName returns a client's own name of its tool; empty where that is no wire name, or the tool
// is not a client's.
func clientName(canonical string) string {
	own, is := strings.CutPrefix(canonical, regie.ToolkitClient+".")
	if !is || own == "" || len(own) > maxWireName || wireUnsafe.MatchString(own) {
		return ""
	}
	return own
}

// findEntry looks a tool up by what a model wrote: the wire name, the canonical one, which alone
// has a dot, or an alias. A client's tool is also found by its name with the toolkit, which older
// threads may quote.
func (r *Registry) findEntry(name string) *entry {
	if e := r.byWire[name]; e != nil {
		return e
	}
	if e := r.byName[name]; e != nil {
		return e
	}
	if own, is := strings.CutPrefix(name, regie.ToolkitClient+"__"); is && r.byAlias[name] == nil {
		return r.byName[regie.ToolkitClient+"."+own]
	}
	return r.byAlias[name]
}

// findOutside returns the canonical name of a tool outside of the agent's scopes, by what a model
// wrote; empty for any other name.
func (r *Registry) findOutside(name string) string {
	for canonical, e := range r.outside {
		if name == canonical || name == e.wire || slices.Contains(e.definition.Aliases, name) {
			return canonical
		}
	}
	return ""
}

// Find returns the definition of the tool that a model means by any of its names (decision 27).
func (r *Registry) Find(name string) (regie.ToolDefinition, bool) {
	if e := r.findEntry(name); e != nil {
		return e.definition, true
	}
	return regie.ToolDefinition{}, false
}

// Nearest returns up to three wire names of tools that look like name, best first (spec 4.2).
func (r *Registry) Nearest(name string) []string {
	names := make([]string, len(r.sorted))
	for i, e := range r.sorted {
		names[i] = e.wire
	}
	return nearestNames(name, names)
}

// LooksMisspelt reports whether a toolkit's name differs from that of one that is there in a letter
// or two.
func (r *Registry) LooksMisspelt(toolkit string) bool {
	return slices.ContainsFunc(r.sorted, func(e *entry) bool {
		return spell.Distance(toolkit, toolkitOf(e.definition.Name)) <= min(2, len(toolkit)/3)
	})
}

// CheckPatterns returns CodeBadPattern, with the names that look like it, for a pattern that
// matches no tool. A toolkit that is away for now may have any.
func (r *Registry) CheckPatterns(patterns []string) error {
	for _, pattern := range patterns {
		matches := func(e *entry) bool {
			ok, err := path.Match(pattern, e.definition.Name)
			return ok && err == nil
		}
		if slices.ContainsFunc(r.sorted, matches) || r.Away(pattern) != nil {
			continue
		}
		var names []string
		for _, e := range r.sorted {
			wire := strings.Replace(e.definition.Name, ".", "__", 1)
			if kit := toolkitOf(e.definition.Name) + "__*"; !slices.Contains(names, kit) {
				names = append(names, kit)
			}
			names = append(names, wire)
		}
		names = nearestNames(pattern, names)
		for i := range names {
			names[i] = strings.Replace(names[i], "__", ".", 1)
		}
		if len(names) == 0 {
			return regie.Errorf(regie.CodeBadPattern, "%q matches no tool: regie tools lists them", pattern)
		}
		return regie.Errorf(regie.CodeBadPattern, "%q matches no tool: did you mean %s?", pattern,
			strings.Join(names, ", "))
	}
	return nil
}

// nearestNames returns up to three candidates within half of name's length, best first.
func nearestNames(name string, candidates []string) []string {
	type scored struct {
		name string
		cost int
	}
	var found []scored
	wanted := strings.Replace(strings.ToLower(sanitize.Clip(name, maxWireName)), ".", "__", 1)
	for _, candidate := range candidates {
		candidate := sanitize.Clip(candidate, maxWireName)
		cost := spell.Distance(wanted, strings.ToLower(candidate))
		if _, operation, ok := strings.Cut(candidate, "__"); ok { // read_file for files__read_file
			cost = min(cost, spell.Distance(wanted, strings.ToLower(operation)))
		}
		if len(wanted) >= 3 && strings.Contains(strings.ToLower(candidate), wanted) { // start for start_line
			cost = min(cost, 1)
		}
		if cost <= max(2, len(wanted)/2) {
			found = append(found, scored{candidate, cost})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return a.cost - b.cost })
	var out []string
	for _, s := range found[:min(3, len(found))] {
		out = append(out, s.name)
	}
	return out
}
