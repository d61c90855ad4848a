package web

import (
	"context"
	"strconv"
	"strings"

	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// searchPage shows the hits of a search, by chats and by workspaces.
type searchPage struct {
	*frame
	Query         string
	Said, InFiles []*foundGroup
	More          bool // that is not shown
}

type foundGroup struct {
	Name, Link string
	Lines      []foundLine
}

type foundLine struct {
	Link, Place string
	Parts       []markedPart
}

// markedPart is a part of a line; Hit marks the searched text.
type markedPart struct {
	Text string
	Hit  bool
}

// searchedWorkspaces bounds how many workspaces one search looks through.
const searchedWorkspaces = 20

// loadSearch searches the chats and files of all workspaces.
func loadSearch(ctx context.Context, v *visit) (*searchPage, error) {
	page := &searchPage{
		frame: v.newFrame("search", v.text.T("Search")), Query: strings.TrimSpace(v.r.URL.Query().Get("q")),
	}
	workspaces, err := v.site.Service.Workspaces.List(ctx)
	if err == nil {
		err = v.fillFrame(page.frame)
	}
	if err != nil || page.Query == "" {
		return page, err
	}
	page.More = len(workspaces) > searchedWorkspaces
	for _, place := range workspaces[:min(len(workspaces), searchedWorkspaces)] {
		in := dispatch.SearchRequest{WorkspaceID: place.ID, Text: page.Query}
		found, err := v.site.Service.Workspaces.Search(ctx, in)
		if err != nil { // its directory may be gone; its chats are found
			page.Problem = v.text.Error(err)
		}
		page.add(v, sanitize.Line(place.Name), &found)
	}
	return page, nil
}

// add adds the hits of a workspace.
func (p *searchPage) add(v *visit, workspace string, found *dispatch.Found) {
	chats := map[string]*foundGroup{}
	for i := range found.Messages {
		m := &found.Messages[i]
		link, seq := "/chats/"+m.SessionID.String(), strconv.FormatInt(m.Seq, 10)
		if chats[link] == nil {
			chats[link] = &foundGroup{Name: v.sessionName(m.Session), Link: link}
			p.Said = append(p.Said, chats[link])
		}
		chats[link].Lines = append(chats[link].Lines, foundLine{
			Link: link + "?from=" + seq + "#m-" + seq, Place: formatClock(m.At),
			Parts: markParts(m.Text, p.Query),
		})
	}
	files := &foundGroup{Name: workspace}
	for i := range found.Files {
		f := &found.Files[i]
		files.Lines = append(files.Lines, foundLine{
			Place: sanitize.Line(f.Path) + ":" + strconv.Itoa(f.Start), Parts: markParts(f.Text, p.Query),
		})
	}
	if len(files.Lines) > 0 {
		p.InFiles = append(p.InFiles, files)
	}
	p.More = p.More || found.More || found.Next != ""
}

// markParts cuts a line at the places of a text, ignoring case.
func markParts(text, wanted string) (parts []markedPart) {
	text, wanted = sanitize.Line(text), strings.ToLower(wanted)
	for lower := strings.ToLower(text); len(lower) == len(text); lower = lower[len(lower)-len(text):] {
		at := strings.Index(lower, wanted)
		if at < 0 || wanted == "" {
			break
		}
		parts = append(parts, markedPart{text[:at], false}, markedPart{text[at : at+len(wanted)], true})
		text = text[at+len(wanted):]
	}
	return append(parts, markedPart{text, false})
}
