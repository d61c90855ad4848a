package trust

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/regie-run/regie"
)

// Record is a person's decision that the content of a workspace is trusted.
type Record struct {
	Root   string        `json:"root"`
	Number uint64        `json:"directory"` // of the directory, as workspace.Root.Identity has it
	Made   int64         `json:"directory_made_ns"`
	SHA256 regie.Hash    `json:"sha256"`
	At     time.Time     `json:"trusted_at"`
	By     string        `json:"trusted_by"`
	Files  []ContentFile `json:"files"`
}

// maxRecord bounds the file of a record, in bytes.
const maxRecord = 16 << 20

// Store keeps decisions below a directory. Its methods may be called from any goroutine and
// process: the last decision about a workspace holds.
type Store struct{ dir string }

// NewStore returns the decisions that are kept in a data directory. It makes nothing.
func NewStore(dataDir string) *Store { return &Store{filepath.Join(dataDir, "trust")} }

// Inside reports whether the decisions lie in a workspace: then the authors of its files could
// forge them, so they do not count.
func (s *Store) Inside(root string) bool {
	data := filepath.Dir(s.dir)
	if resolved, err := filepath.EvalSymlinks(data); err == nil {
		data = resolved
	}
	return data == root || strings.HasPrefix(data, strings.TrimSuffix(root,
		string(filepath.Separator))+string(filepath.Separator))
}

func (s *Store) file(root string) string {
	name := regie.HashOf([]byte(root))
	return filepath.Join(s.dir, hex.EncodeToString(name[:16])+".json")
}

// State is the trust in a workspace.
type State string

// The states.
const (
	Untrusted State = "untrusted" // nobody has decided
	Trusted   State = "trusted"
	Outdated  State = "changed" // other content than was trusted
	Elsewhere State = "other_directory"
)

// Standing is the trust in a workspace, with its evidence.
type Standing struct {
	State State
	// Record is the decision, nil without one.
	Record *Record
	// Changes say how the content differs from it.
	Changes []ContentChange
	// Err is why a decision that is there could not be read; then it does not count.
	Err error
}

// Standing compares what is there with what was decided.
func (s *Store) Standing(root string, c *Content) Standing {
	if s.Inside(root) {
		return Standing{State: Untrusted}
	}
	record, err := s.read(s.file(root))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Standing{State: Untrusted}
	case err != nil:
		return Standing{State: Untrusted, Err: err}
	case record.Root != root:
		return Standing{State: Untrusted}
	}
	out := Standing{State: Trusted, Record: record, Changes: diff(record.Files, c.Files)}
	switch {
	case c.Err != nil || len(out.Changes) > 0:
		out.State = Outdated
	case record.Number != c.Number || record.Made != c.Made:
		out.State = Elsewhere
	}
	return out
}

// read reads a record strictly.
func (s *Store) read(name string) (*Record, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, err
	}
	var r Record
	if err := jsonv2.Unmarshal(data, &r, jsonv2.RejectUnknownMembers(true)); err != nil ||
		r.SHA256 != hashOf(r.Files) || r.Root == "" {
		return nil, regie.Errorf(regie.CodeCorrupt,
			"%s is damaged and ignored: trust the workspace again with regie trust", name)
	}
	return &r, nil
}

// Trust stores a decision about exactly this content. It returns CodeConflict where the data
// directory lies in the workspace, the content's own error, and CodeNoPermission or CodeDiskFull
// where the decision cannot be kept.
func (s *Store) Trust(root string, c *Content, by string, at time.Time) error {
	if s.Inside(root) {
		return regie.Errorf(regie.CodeConflict,
			"the data directory is inside the workspace: anyone who writes files there could make this decision. Choose another one with REGIE_DATA_DIR")
	}
	if c.Err != nil {
		return c.Err
	}
	r := Record{
		Root: root, Number: c.Number, Made: c.Made, SHA256: c.Hash(),
		At: at.UTC().Truncate(time.Second), By: by, Files: c.Files,
	}
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return regie.Errorf(regie.CodeInternal, "the decision cannot be written: %v", err)
	}
	return s.explain(s.write(s.file(root), append(data, '\n')))
}

func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return regie.Errorf(regie.CodeDiskFull, "the disk is full: the decision cannot be stored in %s", s.dir)
	}
	return regie.Errorf(regie.CodeNoPermission, "the decision cannot be stored in %s: %v", s.dir, err)
}

// write replaces a file as a whole: a crash leaves the old or the new one.
func (s *Store) write(name string, data []byte) (err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(s.dir, ".new-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = io.Copy(f, bytes.NewReader(data))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return err
	}
	return s.sync()
}

// sync makes the names in the directory safe.
func (s *Store) sync() error {
	d, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // some file systems cannot, and need not
	return d.Close()
}

// Revoke revokes a decision. It returns CodeNotFound without one.
func (s *Store) Revoke(root string) error {
	err := os.Remove(s.file(root))
	if errors.Is(err, fs.ErrNotExist) {
		return regie.Errorf(regie.CodeNotFound, "%s is not trusted, so there is nothing to withdraw", root)
	}
	if err == nil {
		err = s.sync()
	}
	return s.explain(err)
}

// List returns all decisions, by directory, and how many cannot be read.
func (s *Store) List() (records []Record, damaged int, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, regie.Errorf(regie.CodeNoPermission, "%s cannot be read: %v", s.dir, err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		r, err := s.read(filepath.Join(s.dir, e.Name()))
		if err != nil || filepath.Base(s.file(r.Root)) != e.Name() {
			damaged++
			continue
		}
		records = append(records, *r)
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Root, b.Root) })
	return records, damaged, nil
}
