package tui

import (
	"context"
	"slices"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
)

// maxOffers is how many things are offered together.
const maxOffers = 8

// offer is something that can take the place of the word at the cursor.
type offer struct {
	insert string // what is inserted
	about  string
}

// popup offers completions for the word at the cursor: a command at the beginning of the prompt, a
// file after an @. The zero value is closed.
type popup struct {
	offers []offer
	picked int  // -1: the written word is complete
	from   int  // where the word begins
	asks   bool // files are being looked for
}

func (p *popup) isShown() bool { return len(p.offers) > 0 }

// updateOffers offers what fits what was typed.
func (p *popup) updateOffers(m *model) {
	word, from := m.draft.wordAtCursor()
	p.from, p.picked = from, 0
	switch {
	case from == 0 && strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "//"):
		p.offers = nil
		for _, c := range m.SlashCommands() {
			if strings.HasPrefix(c.Name, word) {
				p.offers = append(p.offers, offer{c.Name, c.About})
			}
		}
		p.dropWritten(m, word)
	case strings.HasPrefix(word, "@"):
		name := strings.ToLower(strings.TrimLeft(word, `@"`))
		p.offers = slices.DeleteFunc(p.offers, func(o offer) bool { // until the files that fit are found
			return name == "" || !strings.Contains(strings.ToLower(o.insert), name)
		})
		p.dropWritten(m, word)
		p.fetchFiles(m, word)
	default:
		p.offers = nil
	}
}

// dropWritten removes the written word from the offers. It picks nothing if that word already names
// something.
func (p *popup) dropWritten(m *model, word string) {
	named := slices.ContainsFunc(chat.Mentions(word, m.Look), func(s regie.Segment) bool { return s.Enrichment != nil })
	left := slices.DeleteFunc(p.offers, func(o offer) bool { return o.insert == word })
	if named || len(left) < len(p.offers) {
		p.picked = -1
	}
	p.offers = left
}

// fetchFiles looks for files, one search at a time.
func (p *popup) fetchFiles(m *model, word string) {
	if p.asks {
		return
	}
	p.asks = true
	m.Do(chat.Beside, func(ctx context.Context) func() {
		var found []string
		in := dispatch.WorkspaceRequest{Path: m.Request.Root, Here: true}
		if place, err := m.Control.Workspaces.Open(ctx, in); err == nil {
			found = chat.FindFiles(ctx, m.Control.Workspaces.Query, place.ID, strings.TrimLeft(word, `@"`))
		}
		return func() {
			p.asks = false
			now, from := m.draft.wordAtCursor()
			switch {
			case !strings.HasPrefix(now, "@") || m.hasField():
			case now != word:
				p.fetchFiles(m, now)
			default:
				p.offers, p.picked, p.from = nil, 0, from
				for _, path := range found {
					p.offers = append(p.offers, offer{insert: chat.Mention(path)})
				}
				p.dropWritten(m, word)
			}
		}
	})
}

// handleKey obeys a key while something is offered, and reports whether it was one for that.
func (p *popup) handleKey(m *model, name string) bool {
	if !p.isShown() {
		return false
	}
	switch name {
	case "up", "ctrl+p":
		p.picked = (max(p.picked, 0) + len(p.offers) - 1) % len(p.offers)
	case "down", "ctrl+n":
		p.picked = (p.picked + 1) % len(p.offers)
	case "tab":
		p.acceptPick(m)
	case "enter":
		word, _ := m.draft.wordAtCursor()
		if p.picked < 0 {
			return false
		}
		p.acceptPick(m)
		return !strings.HasPrefix(word, "/") // Enter obeys the command that is offered
	case "esc":
		p.offers = nil
	default:
		return false
	}
	return true
}

// acceptPick replaces the word with the picked offer.
func (p *popup) acceptPick(m *model) {
	insert := p.offers[max(p.picked, 0)].insert
	m.draft.removeRunes(p.from, m.draft.at)
	m.draft.insertText(insert)
	if !strings.HasSuffix(insert, "/") {
		m.draft.insertText(" ")
	}
	p.offers = nil
}

// render returns as many offers as fit, around the picked one.
func (p *popup) render(m *model, width, most int) (out [][]span) {
	most = min(most, maxOffers, max(2, m.screen.height/3))
	from := min(max(0, p.picked-most/2), max(0, len(p.offers)-most))
	for i := from; i < min(len(p.offers), from+most); i++ {
		s, mark := style{}, "    "
		if i == p.picked {
			s, mark = style{fg: cyan, bold: true}, "  ▸ "
		}
		o := &p.offers[i]
		line := []span{{mark + truncateText(o.insert, width-8), s}}
		if o.about != "" {
			pad := strings.Repeat(" ", max(1, 14-len(o.insert)))
			line = append(line, span{pad + truncateText(o.about, width-24), style{faint: true}})
		}
		out = append(out, line)
	}
	return out
}
