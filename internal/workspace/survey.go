package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
)

// Bounds of a survey (spec 12.5).
const (
	maxLinkText = 4096 // bytes of what a link says
	maxNamed    = 5    // names that stand for what was left out

	maxRepositories = 1000
)

// Stamp is the file system's data of a file, without opening it. Equal stamps mean equal content,
// except for a file written just when it was first read: see Settled.
type Stamp struct {
	Size         int64
	Mtime, Ctime int64 // nanoseconds since 1970; Ctime is 0 where the system has none
	Ino, Dev     uint64
}

// Settled reports whether every later write changes this stamp of a file read at began, in
// nanoseconds since 1970. Some file systems have clocks of two seconds, so a file written just
// before is not settled.
func (s Stamp) Settled(began int64) bool {
	const coarse = int64(2e9)
	return max(s.Mtime, s.Ctime) < began-coarse
}

// SurveyEntry is a directory, a regular file or a symbolic link, as a survey finds it.
type SurveyEntry struct {
	Path string      // without links
	Mode fs.FileMode // its type and its permission bits
	Stamp
	Target string // what a link says
	Born   int64  // when it was made, in nanoseconds since 1970; 0 where the system does not say
}

// Surveying configures a survey.
type Surveying struct {
	// Rules returns stored ignore files of a directory, which replace those on disk; with known
	// false those on disk count.
	Rules func(dir string) (rules Rules, known bool)
	// Known says of a path whether it is looked at even where an ignore file names it; nil: none
	// is.
	Known func(name string) bool
	// Skip is a directory, by its path without links, that is not looked at as if it were not
	// there; "" for none.
	Skip string
	// File is called with each regular file; open, which is good for this call only, opens that
	// very file for reading. Its error ends the survey.
	File func(e *SurveyEntry, open func() (*os.File, error)) error
}

// Surveyed is the result of a survey.
type Surveyed struct {
	// Entries are the directories (but the root), files and links; a directory precedes its
	// content.
	Entries []SurveyEntry
	// Rules are the ignore files that counted, by directory, "." for the root. Directories without
	// any are not in it.
	Rules map[string]Rules
	// Repositories lists skipped git places: entries named .git, and repositories under another
	// name. Of very many it has the first ones.
	Repositories []string
	// Blind lists places that were not looked at completely, because that failed or exceeded a
	// limit.
	Blind []string
	// Aside changes where something changes of what ignore files name, of special files, and of
	// what has a name that no path can have, though nothing of them is read.
	Aside regie.Hash
	// Left counts the entries that were left out.
	Left Left
}

// Left counts what a survey leaves out, with a few names of each kind.
type Left struct {
	Ignored int // files and directories that the ignore files name
	// Other counts special files, unreadable entries, names that no path can have, and places that
	// exceed a limit.
	Other int

	IgnoredNames, OtherNames []string
}

// Note counts a place, and keeps its name where there are few.
func (l *Left) Note(count *int, names *[]string, name string) {
	if *count++; len(*names) < maxNamed {
		*names = append(*names, name)
	}
}

// Survey looks at all that the workspace holds, follows no link, and leaves out .git and .regie of
// every directory, repositories that have another name, what is Regie's own (Keep), and what ignore
// files name (spec 8.2). Secrets are part of it: who surveys shows nothing of them. It starts no
// goroutine.
//
// It returns the context's cause where that ends, and the first error of File.
func (r *Root) Survey(ctx context.Context, how Surveying) (Surveyed, error) {
	h, err := newHandle(r.root)
	if err != nil {
		return Surveyed{}, r.explainError(err, ".")
	}
	s := &survey{how: how, out: Surveyed{Rules: map[string]Rules{}}, aside: sha256.New()}
	w := walker{
		ctx: ctx, prepare: s.prepareIgnores, wants: s.wantsEntry, take: s.takeFiles, enter: s.surveyDir,
		omit: s.noteOmitted,
	}
	err = w.walkDir(level{root: r, in: newOpened(h, ".")})
	s.aside.Sum(s.out.Aside[:0])
	return s.out, r.explainError(err, ".")
}

type survey struct {
	how   Surveying
	out   Surveyed
	aside hash.Hash
}

// prepareIgnores finds the ignore rules of a directory: those that are known, else those that are
// there.
func (s *survey) prepareIgnores(l *level) *ignores {
	var rules *Rules
	if s.how.Rules != nil {
		if said, known := s.how.Rules(l.in.path); known {
			rules = &said
		}
	}
	if rules == nil {
		rules = l.in.ignoreRules()
		if l.depth == 1 {
			rules[excludeRules] = l.in.readIgnore(excludeFile...)
		}
	}
	if l.repository {
		s.addRepository(l.in.path)
	}
	if slices.ContainsFunc(rules[:], func(file []byte) bool { return len(file) > 0 }) {
		s.out.Rules[l.in.path] = *rules
	}
	return l.ignores.inDirectory(path.Base(l.in.path), rules)
}

// addRepository notes one.
func (s *survey) addRepository(name string) {
	if len(s.out.Repositories) < maxRepositories {
		s.out.Repositories = append(s.out.Repositories, name)
	}
}

// wantsEntry reports whether an entry is surveyed, and counts it where it is there and is not.
func (s *survey) wantsEntry(l *level, entry fs.DirEntry) bool {
	name, left := entry.Name(), &s.out.Left
	full := l.entryPath(name)
	switch {
	case name == ".git":
		s.addRepository(full)
		return false
	case l.protectionOf(name) == Internal, isTemp(name), full == s.how.Skip, l.root.own.contain(full):
		return false
	case l.ignores.Ignored(name, entry.IsDir()) && (s.how.Known == nil || !s.how.Known(full)):
		if entry.IsDir() {
			full += "/"
		}
		return s.addLeftOut(l, name, full, &left.Ignored, &left.IgnoredNames)
	}
	clean, err := Clean(full)
	t := entry.Type()
	if err != nil || clean != full || t != 0 && t != fs.ModeDir && t != fs.ModeSymlink && t != fs.ModeIrregular {
		return s.addLeftOut(l, name, full, &left.Other, &left.OtherNames)
	}
	return true
}

// addLeftOut notes a place that is left out, by what the file system says of it, and counts it. Of
// a device or a pipe that is what it is alone: others write to it.
func (s *survey) addLeftOut(l *level, name, full string, count *int, names *[]string) (wanted bool) {
	s.out.Left.Note(count, names, full)
	e, err := l.in.lookUp(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	switch {
	case e.Mode.IsDir():
		e.Size, e.Ctime = 0, 0 // they say no more than its other time
	case e.Mode.Type() != 0 && e.Mode.Type() != fs.ModeSymlink:
		e.Stamp = Stamp{}
	}
	fmt.Fprintf(s.aside, "%q %v %v\n", full, e.Mode.Type(), e.Stamp)
	return false
}

// takeFiles surveys files and links.
func (s *survey) takeFiles(l *level, names []string) error {
	for _, name := range names {
		e, there := s.lookUp(l, name)
		if !there {
			continue
		}
		switch e.Mode.Type() {
		case fs.ModeSymlink:
			var err error
			if e.Target, err = l.in.readLink(name); err != nil || len(e.Target) > maxLinkText {
				s.noteUnreadable(e.Path)
				continue
			}
		case 0:
			if s.how.File != nil {
				if err := s.how.File(&e, func() (f *os.File, err error) {
					f, _, err = l.in.openFile(name)
					return f, err
				}); err != nil {
					return err
				}
			}
		case fs.ModeDir: // it was none a moment ago
			s.noteUnreadable(e.Path)
			continue
		default:
			s.noteOther(e.Path)
			continue
		}
		s.out.Entries = append(s.out.Entries, e)
	}
	return nil
}

// surveyDir surveys a directory itself.
func (s *survey) surveyDir(l *level, name string) (bool, error) {
	e, there := s.lookUp(l, name)
	switch {
	case !there:
		return false, nil
	case !e.Mode.IsDir(): // it was one a moment ago
		s.noteUnreadable(e.Path)
		return false, nil
	}
	s.out.Entries = append(s.out.Entries, e)
	return true, nil
}

// lookUp describes an entry that is still there.
func (s *survey) lookUp(l *level, name string) (e SurveyEntry, there bool) {
	e, err := l.in.lookUp(name)
	e.Path = l.entryPath(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.noteUnreadable(e.Path)
	}
	return e, err == nil
}

func (s *survey) noteOmitted(name string, _ omission, _ error) error {
	s.noteUnreadable(name)
	return nil
}

func (s *survey) noteOther(name string) {
	s.out.Left.Note(&s.out.Left.Other, &s.out.Left.OtherNames, name)
}

func (s *survey) noteUnreadable(name string) {
	s.noteOther(name)
	s.out.Blind = append(s.out.Blind, name)
}

// isTemp reports whether a name is one that Regie gives for a moment to what takes a file's place:
// those of other calls come and go.
func isTemp(name string) bool {
	id, ok := strings.CutPrefix(name, ".regie-")
	if !ok {
		return false
	}
	id, ok = strings.CutSuffix(id, ".tmp")
	if !ok || len(id) < 36 {
		return false
	}
	_, err := regie.ParseID(id[:36])
	return err == nil
}
