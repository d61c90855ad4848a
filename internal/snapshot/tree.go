package snapshot

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"maps"
	"math"
	"os"
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

// held reports whether the content from before is there to be put back.
func (n *node) held() bool {
	return n.Mode.IsRegular() && !n.Hash.IsZero() || n.Mode.Type() == fs.ModeSymlink
}

// tree is what a workspace held at a moment.
type tree struct {
	nodes []node
	rules map[string]workspace.Rules
	git   workspace.Stamp // of what changes with each commit
	// blind are the places of which not all could be looked at, special and odd how many files
	// there were that are left out for what they are, or for their names.
	blind        []string
	special, odd int
	// aside are the places that are left out; not all of them with more. Nothing is known of them
	// in a tree of an earlier form.
	aside       []workspace.Aside
	more, aware bool
	paths       map[string]*node
	// born are when entries were made that the tree before did not have. They are not kept: they
	// matter in the comparison that is made right away.
	born map[string]int64
	// repositories are those of the workspace. They are not kept, for the same reason.
	repositories []string
	inodes       map[[2]uint64]*node // what is no directory, by device and number
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

// equal reports whether two trees are the same in every respect.
func (t *tree) equal(other *tree) bool {
	if t.git != other.git || t.special != other.special || t.odd != other.odd || !slices.Equal(t.blind, other.blind) ||
		!slices.Equal(t.nodes, other.nodes) ||
		t.more != other.more || t.aware != other.aware || !slices.Equal(t.aside, other.aside) {
		return false
	}
	return maps.EqualFunc(t.rules, other.rules, func(a, b workspace.Rules) bool {
		return slices.EqualFunc(a[:], b[:], bytes.Equal)
	})
}

// magic begins each tree's file, and names its form. Those before had no owners, and nothing of
// what is left out: what a version of then secured is still undone.
const (
	magic      = "regie tree 4\n"
	magicThird = "regie tree 3\n"
	magicFirst = "regie tree 2\n"
)

// encode writes a tree; the same tree always gives the same bytes.
func (t *tree) encode() []byte {
	out := make([]byte, 0, 128*len(t.nodes)+1024)
	out = append(out, magic...)
	out = binary.AppendUvarint(out, uint64(len(t.nodes)))
	for i := range t.nodes {
		n := &t.nodes[i]
		out = text(out, n.Path)
		out = binary.AppendUvarint(out, uint64(n.Mode))
		out = stamp(out, &n.Stamp)
		out = binary.AppendUvarint(binary.AppendUvarint(out, n.Links), uint64(n.Owner))
		switch n.Mode.Type() {
		case fs.ModeSymlink:
			out = text(out, n.Target)
		case 0:
			out = append(out, n.Hash[:]...)
			out = binary.AppendVarint(out, n.Read)
		}
	}
	out = stamp(out, &t.git)
	out = binary.AppendUvarint(binary.AppendUvarint(out, uint64(t.special)), uint64(t.odd))
	out = binary.AppendUvarint(out, uint64(len(t.blind)))
	for _, place := range t.blind {
		out = text(out, place)
	}
	dirs := make([]string, 0, len(t.rules))
	for dir := range t.rules {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	out = binary.AppendUvarint(out, uint64(len(dirs)))
	for _, dir := range dirs {
		rules := t.rules[dir]
		out = text(out, dir)
		for _, file := range rules {
			out = text(out, string(file))
		}
	}
	more := uint64(0)
	if t.more {
		more = 1
	}
	out = binary.AppendUvarint(binary.AppendUvarint(out, more), uint64(len(t.aside)))
	for i := range t.aside {
		out = text(out, t.aside[i].Path)
		out = binary.AppendUvarint(out, uint64(t.aside[i].Mode))
		out = stamp(out, &t.aside[i].Stamp)
	}
	return out
}

func text(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

func stamp(out []byte, s *workspace.Stamp) []byte {
	out = binary.AppendVarint(out, s.Size)
	out = binary.AppendVarint(out, s.Mtime)
	out = binary.AppendVarint(out, s.Ctime)
	out = binary.AppendUvarint(out, s.Ino)
	return binary.AppendUvarint(out, s.Dev)
}

// decode reads a tree. It returns CodeCorrupt for what encode has not written.
func decode(data []byte) (*tree, error) {
	r := &reader{data: data}
	form := string(r.take(len(magic)))
	if form != magic && form != magicThird && form != magicFirst {
		return nil, errTree
	}
	t := &tree{rules: map[string]workspace.Rules{}}
	count := r.count(10)
	t.nodes = make([]node, 0, count)
	for range count {
		var n node
		n.Path, n.Mode = r.text(), fs.FileMode(r.number())
		n.Stamp, n.Links = r.stamp(), r.number()
		if form != magicFirst {
			n.Owner = uint32(min(r.number(), math.MaxUint32))
		} else {
			n.Owner = uint32(os.Geteuid())
		}
		switch n.Mode.Type() {
		case fs.ModeSymlink:
			n.Target = r.text()
		case 0:
			copy(n.Hash[:], r.take(len(n.Hash)))
			n.Read = r.signed()
		}
		t.nodes = append(t.nodes, n)
	}
	t.git = r.stamp()
	t.special, t.odd = int(min(r.number(), math.MaxInt32)), int(min(r.number(), math.MaxInt32))
	for range r.count(1) {
		t.blind = append(t.blind, r.text())
	}
	for range r.count(5) {
		dir := r.text()
		var rules workspace.Rules
		for i := range rules {
			rules[i] = []byte(r.text())
		}
		t.rules[dir] = rules
	}
	if form == magic {
		t.aware, t.more = true, r.number() > 0
		for range r.count(7) {
			t.aside = append(t.aside, workspace.Aside{Path: r.text(), Mode: fs.FileMode(r.number()), Stamp: r.stamp()})
		}
	}
	if r.bad || len(r.data) > 0 {
		return nil, errTree
	}
	return t, nil
}

var errTree = regie.Errorf(regie.CodeCorrupt, "what was noted of the workspace before the command cannot be read")

// reader reads what encode wrote; after the first thing that does not fit it gives nothing more.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.data) {
		r.bad = true
		return nil
	}
	out := r.data[:n]
	r.data = r.data[n:]
	return out
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.data)
	r.take(max(n, -1))
	if n <= 0 {
		r.bad = true
		return 0
	}
	return v
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.data)
	r.take(max(n, -1))
	if n <= 0 {
		r.bad = true
		return 0
	}
	return v
}

// count reads how many things follow, each of at least so many bytes.
func (r *reader) count(least int) int {
	n := r.number()
	if n > uint64(len(r.data)/least) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.data)) {
		r.bad = true
		return ""
	}
	return string(r.take(int(n)))
}

func (r *reader) stamp() workspace.Stamp {
	return workspace.Stamp{Size: r.signed(), Mtime: r.signed(), Ctime: r.signed(), Ino: r.number(), Dev: r.number()}
}
