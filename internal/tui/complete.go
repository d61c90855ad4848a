package tui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// maxOffers is how many things are offered together.
const maxOffers = 8

// offer is something that can take the place of the word at the cursor.
type offer struct {
	insert string // what is inserted
	about  string
}

// popup offers what the word at the cursor may become: a command at the beginning of the prompt, a
// file behind an @. The zero value is closed.
type popup struct {
	offers []offer
	picked int    // -1: what is written is whole as it stands
	chosen bool   // an arrow key has picked it
	from   int    // where the word begins
	file   string // what was asked for behind an @
	asks   bool   // files are being looked for
	wanted bool   // files are to be looked for
	quiet  string // the word at which the person closed it
}

func (p *popup) shown() bool { return len(p.offers) > 0 }

// follow offers what fits what was typed.
func (p *popup) follow(m *model) {
	word, from := m.draft.word()
	if word != "" && word == p.quiet {
		return
	}
	switch {
	case from == 0 && strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "//"):
		*p = popup{from: from}
		for _, c := range chat.SlashCommands(m.Text) {
			if strings.HasPrefix(c.Name, word) {
				p.offers = append(p.offers, offer{c.Name, c.About})
			}
		}
		p.without(word)
	case strings.HasPrefix(word, "@"):
		p.from, p.wanted, p.picked, p.chosen = from, true, 0, false
		p.file = strings.TrimPrefix(strings.TrimPrefix(word, "@"), `"`)
		p.offers = slices.DeleteFunc(p.offers, func(o offer) bool { // until the files that fit are found
			return p.file == "" || !strings.Contains(strings.ToLower(o.insert), strings.ToLower(p.file))
		})
	default:
		*p = popup{}
	}
}

// without takes what is written already from the offers, and picks nothing then.
func (p *popup) without(word string) {
	if i := slices.IndexFunc(p.offers, func(o offer) bool { return o.insert == word }); i >= 0 {
		p.offers, p.picked = slices.Delete(p.offers, i, i+1), -1
	}
}

// open offers what there is, when the person asks for it.
func (p *popup) open(m *model) {
	p.quiet = ""
	p.follow(m)
}

// names reports whether a word names something as it stands.
func (m *model) names(word string) bool {
	return slices.ContainsFunc(chat.Mentions(word, m.Look), func(s regie.Segment) bool { return s.Enrichment != nil })
}

// fetch looks for files, one search at a time.
func (p *popup) fetch(m *model) {
	if !p.wanted || p.asks {
		return
	}
	p.wanted, p.asks = false, true
	name := p.file
	m.Do(chat.Beside, func(ctx context.Context) func() {
		found := files(ctx, m.Control, m.Request.Root, name)
		return func() {
			p := &m.popup
			p.asks = false
			word, from := m.draft.word()
			if !strings.HasPrefix(word, "@") || m.hasField() {
				return
			}
			if now := strings.TrimPrefix(strings.TrimPrefix(word, "@"), `"`); now != name {
				p.wanted = true
				p.fetch(m)
				return
			}
			was := *p
			p.offers, p.picked, p.chosen, p.from = nil, 0, false, from
			for _, path := range found {
				insert := "@" + path
				if strings.ContainsAny(path, " \t") {
					insert = `@"` + path + `"`
				}
				p.offers = append(p.offers, offer{insert: insert})
			}
			if p.without(word); m.names(word) {
				p.picked = -1
			}
			if was.chosen {
				if i := slices.Index(p.offers, was.offers[was.picked]); i >= 0 {
					p.picked, p.chosen = i, true
				}
			}
		}
	})
}

// files are paths of the workspace that hold a name, the shortest first, as far as the engine lists
// them.
func files(ctx context.Context, control chat.Control, root, name string) []string {
	if strings.ContainsAny(name, "*?[]{}\\") {
		return nil
	}
	place, err := control.OpenWorkspace(ctx, dispatch.WorkspaceRequest{Path: root, Here: true})
	if err != nil {
		return nil
	}
	dir, base := "", name
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		dir, base = name[:i], name[i+1:]
	}
	anyCase := folded(base)
	arguments := map[string]any{"pattern": "**/*" + anyCase + "*"}
	if name == "" {
		arguments = map[string]any{}
	}
	if dir != "" {
		arguments = map[string]any{"path": dir, "pattern": anyCase + "*"}
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		return nil
	}
	result, err := control.Query(ctx, dispatch.QueryRequest{
		WorkspaceID: place.ID,
		Tool:        "files.list_files", Arguments: data,
	})
	if err != nil {
		return nil
	}
	return paths(result.Content, base)
}

// maxFolded bounds a pattern of folded letters: what is longer is looked for as it is written.
const maxFolded = 200

// folded is a pattern of a part of a name in whatever capitals.
func folded(base string) string {
	var b strings.Builder
	for _, r := range base {
		if lower, upper := unicode.ToLower(r), unicode.ToUpper(r); lower != upper {
			b.WriteString("[" + string(lower) + string(upper) + "]")
		} else {
			b.WriteRune(r)
		}
	}
	if b.Len() > maxFolded {
		return base
	}
	return b.String()
}

// paths reads a listing of files.
func paths(listing, base string) []string {
	var first, rest []string
	for line := range strings.SplitSeq(listing, "\n") {
		name, _, file := strings.Cut(line, "\t")
		// a note, or a name that cannot be typed
		if !file && !strings.HasSuffix(name, "/") || strings.HasPrefix(name, `"`) || plain.Count(name) > 0 {
			continue
		}
		last := strings.TrimSuffix(name, "/")
		if strings.HasPrefix(strings.ToLower(last[strings.LastIndexByte(last, '/')+1:]), strings.ToLower(base)) {
			first = append(first, name)
		} else {
			rest = append(rest, name)
		}
	}
	first = append(first, rest...)
	return first[:min(len(first), 50)]
}

// key obeys a key while something is offered, and reports whether it was one for that.
func (p *popup) key(m *model, name string) bool {
	if !p.shown() {
		return false
	}
	switch name {
	case "up", "ctrl+p":
		p.picked, p.chosen = (max(p.picked, 0)+len(p.offers)-1)%len(p.offers), true
	case "down", "ctrl+n":
		p.picked, p.chosen = (p.picked+1)%len(p.offers), true
	case "tab":
		p.accept(m)
	case "enter":
		word, _ := m.draft.word()
		if p.picked < 0 || !p.chosen && m.names(word) { // nobody chose another one
			return false
		}
		if strings.HasPrefix(word, "/") { // Enter obeys the command that is offered
			p.accept(m)
			return false
		}
		p.accept(m)
	case "esc":
		word, _ := m.draft.word()
		*p = popup{quiet: word}
	default:
		return false
	}
	return true
}

// accept puts what is picked in the place of the word.
func (p *popup) accept(m *model) {
	insert := p.offers[max(p.picked, 0)].insert
	m.draft.remove(p.from, m.draft.at)
	m.draft.insert(insert)
	if !strings.HasSuffix(insert, "/") {
		m.draft.insert(" ")
	}
	*p = popup{}
}

// view is as much of what is offered as fits into so many lines, around what is picked.
func (p *popup) view(m *model, width, most int) [][]span {
	most = min(most, maxOffers, max(2, m.screen.height/3))
	from := min(max(0, p.picked-most/2), max(0, len(p.offers)-most))
	var out [][]span
	for i := from; i < min(len(p.offers), from+most); i++ {
		s, mark := style{}, "  "
		if i == p.picked {
			s, mark = style{fg: cyan, bold: true}, "▸ "
		}
		name := p.offers[i].insert
		line := []span{{"  " + mark + cut(name, width-8), s}}
		if p.offers[i].about != "" {
			pad := strings.Repeat(" ", max(1, 14-len(name)))
			line = append(line, span{pad + cut(p.offers[i].about, width-24), style{faint: true}})
		}
		out = append(out, line)
	}
	return out
}
