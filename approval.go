package regie

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
)

// MaxDiff bounds the diff of a preview in bytes (spec 4.4).
const MaxDiff = 64 << 10

// Preview is what a person sees before a call is approved: the verbaliser's part of spec 4.2 and of
// a ValidationContext (spec 4.4). The sentences of one that tool.DescribeCall made, and its diff,
// hold nothing that acts on a terminal or hides from a reader. Names and values in Preconditions
// and Scopes are data to compare with: a surface shows the sentences, not those.
type Preview struct {
	// Sentence says what the call will do.
	Sentence Sentence `json:"sentence"`
	// Diff is a unified diff, or a text where there is nothing to compare; at most MaxDiff bytes,
	// with a marker where it is shortened.
	Diff string `json:"diff,omitempty"`
	// Warnings are what a person should know and would not see in the diff.
	Warnings []Sentence `json:"warnings,omitempty"`
	// Once says that only this very call can be allowed: then there are no scopes, because no
	// standing rule would ever hold for such a call.
	Once bool `json:"once,omitempty"`
	// Preconditions are what the preview was made from; an approval binds them (decision 20).
	Preconditions []Precondition `json:"preconditions,omitempty"`
	// Scopes are proposed for "allow for this session" and "always allow", the narrowest first. The
	// first one is the default: exactly these arguments (decision 20).
	Scopes []Scope `json:"scopes,omitempty"`
}

// Named reports whether the arguments of a call name each file that the preview was made from
// letter by letter. Where a link leads to one they do not: a scope, which compares letters, cannot
// know where such a call goes.
func (p Preview) Named(arguments map[string]any) bool {
	for _, condition := range p.Preconditions {
		named := condition.Kind != PreconditionFile && condition.Kind != PreconditionPlace
		for _, value := range arguments {
			text, ok := value.(string)
			named = named || ok && path.Clean(text) == condition.Name
		}
		if !named {
			return false
		}
	}
	return true
}

// PreconditionKind says what a precondition is about (decision 20).
type PreconditionKind string

// PreconditionFile is the content of a file: Name is its path in the workspace without links, Hash
// the SHA-256 of its bytes.
const PreconditionFile PreconditionKind = "file"

// PreconditionPlace is where a path leads: Name is the path in the workspace without links. It has
// no hash: what lies there is not shown.
const PreconditionPlace PreconditionKind = "place"

// PreconditionSandbox is what a command runs under: Name is its tier, with "+network" where it may
// reach others. It has no hash.
const PreconditionSandbox PreconditionKind = "sandbox"

// Precondition is a state of the world that a preview showed. When it is gone the approval does not
// hold (decision 20).
type Precondition struct {
	Kind PreconditionKind `json:"kind"`
	Name string           `json:"name"`
	// Hash is what it must be; zero means that it must not exist.
	Hash Hash `json:"hash,omitzero"`
}

// ScopeKind says how a scope compares (decision 20).
type ScopeKind string

// The kinds of scopes.
const (
	ScopeExact ScopeKind = "exact" // the field is the value, letter by letter; without a field, the call's signature is
	ScopeUnder ScopeKind = "under" // the field is a path below the value
	ScopeAny   ScopeKind = "any"   // every call of the tool
	ScopeArgv  ScopeKind = "argv"  // the call runs a literal command that the value holds (CommandsValue)
	ScopeURL   ScopeKind = "url"   // the field is the address in the value, or one below it where it ends in a slash
)

// Scope is what an answer for a session, or for always, covers (spec 4.4, decision 20). It is
// matched against parsed arguments, never against text.
type Scope struct {
	// Tool is the canonical name of the one tool that the scope is about.
	Tool string `json:"tool"`
	// Field is the argument that is compared; with ScopeExact and no field it is all of them.
	Field string    `json:"field,omitempty"`
	Kind  ScopeKind `json:"kind"`
	// Value is what the field is compared with: a clean relative path for ScopeUnder, an address as
	// PlainURL writes it for ScopeURL, the signature's digits for all arguments.
	Value string `json:"value,omitempty"`
	// Sentence says it in words.
	Sentence Sentence `json:"sentence"`
}

// Matches reports whether a call lies within the scope: a call of that tool with that signature
// (decision 8) and those arguments. It looks at nothing else, so a path that leads elsewhere
// through a link is compared as it is written. What cannot be compared does not match: a field that
// is missing or no text, an absolute path, one with "..".
func (s Scope) Matches(tool string, signature Hash, arguments map[string]any) bool {
	if tool == "" || tool != s.Tool {
		return false
	}
	value, isText := arguments[s.Field].(string)
	switch {
	case s.Kind == ScopeAny:
		return s.Field == "" && s.Value == ""
	case s.Kind == ScopeExact && s.Field == "":
		return !signature.IsZero() && signature.String() == s.Value
	case !isText:
		return false
	case s.Kind == ScopeExact:
		return value == s.Value
	case s.Kind == ScopeArgv:
		return s.Field == FieldCommand && value != "" && slices.Contains(s.commands(), value)
	case s.Kind == ScopeURL:
		plain, ok := PlainURL(value)
		return ok && (plain == s.Value || strings.HasSuffix(s.Value, "/") && strings.HasPrefix(plain, s.Value))
	case s.Kind == ScopeUnder:
		dir := cleanPath(s.Value)
		return dir != "" && dir != "." && dir == s.Value && strings.HasPrefix(cleanPath(value), dir+"/")
	default:
		return false
	}
}

// FieldCommand is the argument under which a scope finds the literal command of a call. No call has
// an argument of this name: it is what the arguments were parsed to.
const FieldCommand = "argv"

// Command is a call that runs one program with arguments that mean what their letters say, without
// a shell (spec 4.4): the only form of a command that rules can match.
type Command struct {
	Argv []string `json:"argv"`
	Dir  string   `json:"cwd"` // where it starts: a clean path in the workspace, "." for its top
	// Network says that it can reach other machines: with it, it is another command.
	Network bool `json:"network,omitempty"`
}

// String is the form that scopes compare.
func (c Command) String() string {
	data, err := json.Marshal(c)
	if err != nil || len(c.Argv) == 0 { // of text alone it does not fail
		return ""
	}
	return string(data)
}

// CommandsValue is the value of a scope about these commands: one, or a list of them.
func CommandsValue(commands []Command) string {
	var list []string
	for _, c := range commands {
		if said := c.String(); !slices.Contains(list, said) {
			list = append(list, said)
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return "[" + strings.Join(list, ",") + "]"
}

// commands are the commands of a scope of the kind ScopeArgv.
func (s Scope) commands() []string {
	var list []json.RawMessage
	if json.Unmarshal([]byte(s.Value), &list) != nil {
		return []string{s.Value}
	}
	out := make([]string, len(list))
	for i := range list {
		out[i] = string(list[i])
	}
	return out
}

// PlainURL returns an http address in the one form that scopes compare: scheme and host in small
// letters, no default port, a path, no fragment. An address that servers read in different ways has
// none: one with a user, an odd host or port, "..", or an escaped slash, backslash or dot in its
// path.
func PlainURL(text string) (plain string, ok bool) {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Opaque != "" || u.Hostname() == "" || strings.HasSuffix(u.Hostname(), ".") ||
		strings.HasSuffix(u.Host, ":") || strings.HasPrefix(u.Port(), "0") {
		return "", false
	}
	host, path := strings.ToLower(u.Host), cmp.Or(u.EscapedPath(), "/")
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	default:
		return "", false
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(path[1:], "/"), "/") {
		lower := strings.ToLower(part)
		if part == "." || part == ".." || part == "" && path != "/" || strings.Contains(lower, "%2e") ||
			strings.Contains(lower, "%2f") || strings.Contains(lower, "%5c") {
			return "", false
		}
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return u.Scheme + "://" + host + path, true
}

// cleanPath returns the shortest form of a relative path, and "" for a path that no scope may
// match. A path with ".." never matches: behind a link it leads elsewhere.
func cleanPath(name string) string {
	if name == "" || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") ||
		strings.ContainsAny(name, "\\\x00") {
		return ""
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return ""
		}
	}
	return path.Clean(name)
}
