package snapshot

import (
	"bytes"
	"encoding/gob"
	"io/fs"
	"maps"
	"slices"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

// node is an entry of a workspace as it was secured.
type node struct {
	workspace.SurveyEntry
	Hash regie.Hash // of its content, where that is held; zero for what is no regular file
	Read int64      // when it was read, nanoseconds since 1970
}

// isHeld reports whether the content from before is there to be put back.
func (n *node) isHeld() bool {
	return n.Mode.IsRegular() && !n.Hash.IsZero() || n.Mode.Type() == fs.ModeSymlink
}

// tree is the content of a workspace at one moment.
type tree struct {
	nodes []node
	rules map[string]workspace.Rules
	git   regie.Hash // of what changes with each commit
	aside regie.Hash // of what is left out
	// blind are the places that could not be read completely.
	blind []string
	paths map[string]*node
	// repositories are those of the workspace. They are not kept: they matter in the comparison
	// that is made right away.
	repositories []string
}

// byPath finds the nodes by their paths.
func (t *tree) byPath() map[string]*node {
	if t.paths == nil {
		t.paths = make(map[string]*node, len(t.nodes))
		for i := range t.nodes {
			t.paths[t.nodes[i].Path] = &t.nodes[i]
		}
	}
	return t.paths
}

// equalTo reports whether two trees are the same in every respect.
func (t *tree) equalTo(other *tree) bool {
	return t.git == other.git && t.aside == other.aside && slices.Equal(t.blind, other.blind) &&
		slices.Equal(t.nodes, other.nodes) && maps.EqualFunc(t.rules, other.rules, func(a, b workspace.Rules) bool {
		return slices.EqualFunc(a[:], b[:], bytes.Equal)
	})
}

// magic begins each tree's file, and names its form.
const magic = "regie tree 6\n"

// form is a tree as its file holds it.
type form struct {
	Nodes      []node
	Dirs       []string // those with ignore files, sorted
	Rules      []workspace.Rules
	Git, Aside regie.Hash
	Blind      []string
}

// encodeTree writes a tree; the same tree always gives the same bytes.
func (t *tree) encodeTree() []byte {
	out := form{
		Nodes: t.nodes, Dirs: slices.Sorted(maps.Keys(t.rules)), Git: t.git, Aside: t.aside, Blind: t.blind,
	}
	for _, dir := range out.Dirs {
		out.Rules = append(out.Rules, t.rules[dir])
	}
	data := bytes.NewBufferString(magic)
	_ = gob.NewEncoder(data).Encode(out) // it fails for other types only
	return data.Bytes()
}

// decodeTree reads a tree. It returns CodeCorrupt for what encode has not written.
func decodeTree(data []byte) (*tree, error) {
	rest, ours := bytes.CutPrefix(data, []byte(magic))
	from := bytes.NewReader(rest)
	var in form
	if !ours || gob.NewDecoder(from).Decode(&in) != nil || from.Len() > 0 || len(in.Dirs) != len(in.Rules) {
		return nil, errTree
	}
	t := &tree{nodes: in.Nodes, rules: map[string]workspace.Rules{}, git: in.Git, aside: in.Aside, blind: in.Blind}
	for i, dir := range in.Dirs {
		t.rules[dir] = in.Rules[i]
	}
	return t, nil
}

var errTree = regie.Errorf(regie.CodeCorrupt, "the record of the workspace before the command cannot be read")
