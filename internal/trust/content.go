package trust

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// The places in a workspace with files that instruct or configure agents.
const (
	// Dir holds only files that people write (decision 32).
	Dir = ".regie"
	// ConfigFile is the project's layer of the settings (spec 13).
	ConfigFile = Dir + "/regie.yaml"
	// AgentsDir holds agents, each a Markdown file (decision 66).
	AgentsDir = Dir + "/agents"
	// ServersFile names MCP servers, as several programs read it.
	ServersFile = ".mcp.json"
	// CommandsDir holds slash commands.
	CommandsDir = Dir + "/commands"
	// SkillsDir and SharedSkillsDir hold agent skills: Regie's own, and those that several programs
	// read.
	SkillsDir       = Dir + "/skills"
	SharedSkillsDir = ".agents/skills"
)

// The bounds of what can be trusted: a person cannot have read more.
const (
	maxEntries = 2000
	maxDepth   = 12
	maxBytes   = 16 << 20
	maxOne     = 4 << 20
	maxServers = 256 << 10 // of ServersFile
)

// ContentFile is a file of the content.
type ContentFile struct {
	Path   string     `json:"path"` // in the workspace
	Size   int64      `json:"bytes"`
	SHA256 regie.Hash `json:"sha256"`

	data []byte
}

// Content is what would become active in a workspace.
type Content struct {
	Files []ContentFile // sorted by path
	// Odd are what lies there and is not read, with why: links, FIFOs, what may hold a secret.
	Odd map[string]regie.Code
	// Err is why nothing of it can be trusted: it is too large to read, or unreadable.
	Err error
	// Number and Made are those of the directory, as workspace.Root.Identity has them.
	Number uint64
	Made   int64
}

// Look reads the content of a workspace. What cannot be read is in it; nothing is an error.
func Look(root *workspace.Root) Content {
	c := Content{Odd: map[string]regie.Code{}}
	left := int64(maxBytes)
	for _, dir := range []string{SharedSkillsDir, Dir} {
		entries, err := root.Tree(dir, workspace.TreeBounds{
			Entries: maxEntries,
			Depth:   maxDepth, File: maxOne, Files: left,
		})
		switch regie.CodeOf(err) {
		case "":
		case regie.CodePathOutside, regie.CodeNotADirectory: // there is something, and it is no place for such files
			c.Odd[dir] = regie.CodeOf(err)
			continue
		default:
			c.Files, c.Err = nil, err
			return c
		}
		for _, e := range entries {
			if e.Why != "" {
				c.Odd[e.Path] = e.Why
				continue
			}
			left -= e.Size
			c.Files = append(c.Files, ContentFile{
				Path: e.Path, Size: e.Size, SHA256: regie.HashOf(e.Data), data: e.Data,
			})
		}
	}
	switch data, err := root.ReadPlain(ServersFile, maxServers); regie.CodeOf(err) {
	case "":
		if err == nil {
			c.Files = append(c.Files, ContentFile{
				Path: ServersFile, Size: int64(len(data)),
				SHA256: regie.HashOf(data), data: data,
			})
		}
	case regie.CodeFileNotFound:
	default:
		c.Odd[ServersFile] = regie.CodeOf(err)
	}
	slices.SortFunc(c.Files, func(a, b ContentFile) int { return strings.Compare(a.Path, b.Path) })
	c.Number, c.Made, c.Err = root.Identity()
	return c
}

// Empty reports whether there is nothing that could become active.
func (c *Content) Empty() bool { return len(c.Files) == 0 && c.Err == nil }

// Hash is the SHA-256 over all paths and their contents.
func (c *Content) Hash() regie.Hash { return hashOf(c.Files) }

func hashOf(files []ContentFile) regie.Hash {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%q %s\n", f.Path, hex.EncodeToString(f.SHA256[:]))
	}
	return regie.HashOf([]byte(b.String()))
}

// Data returns the bytes of a file as Look read them.
func (c *Content) Data(name string) ([]byte, bool) {
	i, ok := slices.BinarySearchFunc(c.Files, name, func(f ContentFile, name string) int {
		return strings.Compare(f.Path, name)
	})
	if !ok {
		return nil, false
	}
	return c.Files[i].data, true
}

// Below returns the files and what is odd below a directory, by their paths in it.
func (c *Content) Below(dir string) (files []ContentFile, odd map[string]regie.Code) {
	odd = map[string]regie.Code{}
	for _, f := range c.Files {
		if below, inside := strings.CutPrefix(f.Path, dir+"/"); inside {
			files = append(files, ContentFile{Path: below, Size: f.Size, SHA256: f.SHA256})
		}
	}
	for name, why := range c.Odd {
		if below, inside := strings.CutPrefix(name, dir+"/"); inside {
			odd[below] = why
		}
	}
	return files, odd
}

// ContentChange is how a file differs from what was trusted.
type ContentChange struct {
	Path string     `json:"path"`
	What ChangeKind `json:"change"`
}

// ChangeKind says what became of a file.
type ChangeKind string

// The kinds of changes.
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed"
	Removed ChangeKind = "removed"
)

// Mark is how a kind is shown in a list.
func (k ChangeKind) Mark() string {
	return map[ChangeKind]string{Added: "+", Changed: "~", Removed: "-"}[k]
}

// diff says how files differ from those that were trusted, by path; both are sorted.
func diff(before, now []ContentFile) (out []ContentChange) {
	was := map[string]regie.Hash{}
	for _, f := range before {
		was[f.Path] = f.SHA256
	}
	for _, f := range now {
		hash, known := was[f.Path]
		switch {
		case !known:
			out = append(out, ContentChange{f.Path, Added})
		case hash != f.SHA256:
			out = append(out, ContentChange{f.Path, Changed})
		}
		delete(was, f.Path)
	}
	for name := range was {
		out = append(out, ContentChange{path.Clean(name), Removed})
	}
	slices.SortFunc(out, func(a, b ContentChange) int { return strings.Compare(a.Path, b.Path) })
	return out
}
