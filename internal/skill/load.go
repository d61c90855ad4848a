package skill

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/sanitize"
)

// Origin is the owner of a skill.
type Origin string

// The origins.
const (
	OfWorkspace Origin = "workspace"
	OfUser      Origin = "user"
)

// The bounds of all skills together.
const (
	maxSkills  = 200 // of all places
	maxFiles   = 200 // of a skill that are named
	maxNotices = 100
	// MaxRead bounds a further file of a skill that is read, in bytes.
	MaxRead = 1 << 20
)

// Place is a directory of skill directories.
type Place struct {
	Origin Origin
	// Dir is the place as people find it: ".regie/skills", or an absolute path.
	Dir string
	// Files are what lies below, by paths relative to the place.
	Files []BundledFile
	// Odd are what lies there and is not read, with why.
	Odd map[string]regie.Code
	// Read reads a file by its path relative to the place, which is one of Files. It returns
	// CodeFileTooLarge beyond most bytes.
	Read func(name string, most int64) ([]byte, error)
	// Err is why nothing of the place is read; nil where it is.
	Err error
}

// Notice is something that people should know of a skill.
type Notice struct {
	Origin Origin `json:"origin"`
	// Dir is the skill's directory, or the place.
	Dir string `json:"dir"`
	// Refused says that what lies there is not used.
	Refused bool           `json:"refused"`
	Text    regie.Sentence `json:"-"`
	Err     error          `json:"-"` // in place of Text
}

// Set are the skills that an agent has, sorted by name.
type Set struct {
	Skills  []Skill
	Notices []Notice
}

// Load reads the skills of places, which are given in the order of their precedence: of two with
// one name the first is taken, and the other is a notice.
func Load(places []Place) Set {
	var out Set
	taken := map[string]string{}
	for i := range places {
		p := &places[i]
		if p.Err != nil {
			out.note(Notice{Origin: p.Origin, Dir: p.Dir, Refused: true, Err: p.Err})
			continue
		}
		for _, dir := range p.dirs() {
			at := path.Join(p.Dir, sanitize.Line(dir))
			s, err := p.load(dir, &out)
			switch {
			case err != nil:
				out.note(Notice{Origin: p.Origin, Dir: at, Refused: true, Err: err})
			case taken[s.Name] != "":
				out.note(Notice{
					Origin: p.Origin, Dir: at, Refused: true,
					Text: regie.Say("a skill of this name in %s is used instead", taken[s.Name]),
				})
			case len(out.Skills) >= maxSkills:
				out.note(Notice{
					Origin: p.Origin, Dir: p.Dir, Refused: true,
					Text: regie.Say("only the first %s skills are read; the others are left out", "200"),
				})
				return out.sorted()
			default:
				taken[s.Name] = at
				out.Skills = append(out.Skills, s)
			}
		}
	}
	return out.sorted()
}

func (s *Set) sorted() Set {
	slices.SortFunc(s.Skills, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return *s
}

func (s *Set) note(n Notice) {
	if len(s.Notices) < maxNotices {
		s.Notices = append(s.Notices, n)
	}
}

// dirs are the directories of a place that have a SKILL.md, or something else of that name, sorted.
func (p *Place) dirs() []string {
	var out []string
	add := func(name string) {
		if dir, base := path.Split(name); base == FileName && strings.Count(dir, "/") == 1 {
			out = append(out, strings.TrimSuffix(dir, "/"))
		} else if !strings.Contains(name, "/") && p.Odd[name] == regie.CodePathOutside {
			// a link where a skill might be
			out = append(out, name)
		}
	}
	for _, f := range p.Files {
		add(f.Path)
	}
	for name := range p.Odd {
		add(name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// load reads the skill in a directory of the place.
func (p *Place) load(dir string, set *Set) (Skill, error) {
	for _, name := range []string{dir, path.Join(dir, FileName)} {
		if why, odd := p.Odd[name]; odd {
			return Skill{}, unread(why, path.Join(p.Dir, sanitize.Line(name)))
		}
	}
	data, err := p.Read(path.Join(dir, FileName), MaxFile)
	if err != nil {
		return Skill{}, err
	}
	s, notes, err := Parse(dir, data)
	if err != nil {
		return s, err
	}
	s.Origin, s.Dir, s.place, s.below = p.Origin, path.Join(p.Dir, dir), p, dir
	for _, note := range notes {
		set.note(Notice{Origin: p.Origin, Dir: s.Dir, Text: note})
	}
	for _, f := range p.Files {
		below, inside := strings.CutPrefix(f.Path, dir+"/")
		if inside && below != FileName && len(s.Files) < maxFiles {
			s.Files = append(s.Files, BundledFile{Path: below, Size: f.Size})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Odd)) {
		if strings.HasPrefix(name, dir+"/") {
			set.note(Notice{Origin: p.Origin, Dir: s.Dir, Err: unread(p.Odd[name], sanitize.Line(name))})
		}
	}
	return s, nil
}

// unread says why something of a skill is not read.
func unread(why regie.Code, name string) error {
	switch why {
	case regie.CodePathOutside:
		return regie.Errorf(why, "%s is a link, and links are not followed here", name)
	case regie.CodeSpecialFile:
		return regie.Errorf(why, "%s is not a regular file", name)
	case regie.CodePathProtected:
		return regie.Errorf(why, "%s may contain a secret and is not read", name)
	default:
		return regie.Errorf(why, "%s cannot be read", name)
	}
}

// Find returns a skill by its name.
func (s *Set) Find(name string) (*Skill, bool) {
	i, ok := slices.BinarySearchFunc(s.Skills, name, func(k Skill, name string) int {
		return strings.Compare(k.Name, name)
	})
	if !ok {
		return nil, false
	}
	return &s.Skills[i], true
}

// Read reads a further file of the skill, by its path in the skill's directory. It returns
// CodeFileNotFound for any path that is no file of the skill, and the codes of Place.Read.
func (s *Skill) Read(name string) ([]byte, error) {
	clean := path.Clean(strings.ReplaceAll(name, "\\", "/"))
	if clean == FileName {
		return []byte(s.Body), nil
	}
	wanted := path.Join(s.below, clean)
	if !strings.HasPrefix(wanted, s.below+"/") || !slices.ContainsFunc(s.place.Files,
		func(f BundledFile) bool { return f.Path == wanted }) {
		return nil, regie.Errorf(regie.CodeFileNotFound, "the skill %s has no file %q",
			s.Name, sanitize.Line(sanitize.Clip(name, 200)))
	}
	return s.place.Read(wanted, MaxRead)
}
