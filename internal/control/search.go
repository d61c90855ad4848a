package control

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/workspace"
)

// The bounds of a search (spec 11.3).
const (
	foundUsually = 20
	foundMost    = 100
	maxWanted    = 1000   // bytes that are looked for
	maxLooked    = 20_000 // messages that one request looks through
	findTime     = 10 * time.Second
	aroundFound  = 120 // bytes on each side
	clipFound    = 400 // bytes of a line
)

// Search looks through one workspace: what was said in its sessions, and its files (spec 8.3). It
// returns CodeBadRequest for nothing to look for, CodeNotFound for a workspace that is not there.
func (w *Workspaces) Search(ctx context.Context, in dispatch.SearchRequest) (dispatch.Found, error) {
	caller, err := w.authorize(ctx, "search")
	switch {
	case err != nil:
		return dispatch.Found{}, err
	case in.WorkspaceID.IsZero():
		return dispatch.Found{}, regie.Errorf(regie.CodeBadRequest,
			"the request names no workspace: GET /api/v1/workspaces lists them")
	case !caller.Sees(in.WorkspaceID):
		return dispatch.Found{}, notFound(in.WorkspaceID)
	}
	out := dispatch.Found{Messages: []dispatch.FoundMessage{}, Files: []dispatch.FoundFile{}}
	in.Limit = min(cmp.Or(in.Limit, foundUsually), foundMost)
	switch {
	case strings.TrimSpace(in.Text) == "":
		return out, regie.Errorf(regie.CodeBadRequest, "the query is empty: set q")
	case len(in.Text) > maxWanted:
		return out, regie.Errorf(regie.CodeBadRequest, "the query has %d bytes, at most %d are allowed",
			len(in.Text), maxWanted)
	}
	place, err := w.findWorkspace(ctx, in.WorkspaceID)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if in.In != dispatch.SearchFiles {
		if err := w.searchSaid(ctx, &in, &out); err != nil {
			return out, err
		}
	}
	if in.In == dispatch.SearchSessions {
		return out, nil
	}
	root, err := workspace.Open(place.Root)
	if err != nil {
		return out, err
	}
	defer root.Close()
	if in.Mode == dispatch.SearchSemantic {
		err = w.searchParts(ctx, place, root, &in, &out)
	} else {
		err = searchLines(ctx, root, &in, &out)
	}
	return out, err
}

// searchSaid looks through what was said. Where it has to stop before the end, Next says where it
// stood.
func (w *Workspaces) searchSaid(ctx context.Context, in *dispatch.SearchRequest, out *dispatch.Found) error {
	wanted, looked := strings.ToLower(in.Text), 0
	var at regie.ID
	err := w.Store.Said(ctx, in.WorkspaceID, in.Before, func(m store.SaidMessage) bool {
		if looked == maxLooked || len(out.Messages) == in.Limit {
			out.Next = at.String()
			return false
		}
		looked++
		at = m.ID
		if text, ok := around(textOf(&m.Message), wanted); ok {
			out.Messages = append(out.Messages, dispatch.FoundMessage{
				SessionID: m.SessionID, Session: m.Session, MessageID: m.ID, Seq: m.Seq,
				Sender: m.Sender, At: m.Time, Text: text,
			})
		}
		return true
	})
	if errors.Is(err, context.DeadlineExceeded) && looked > 0 {
		out.Next, err = at.String(), nil
	}
	return err
}

// textOf returns what a message says, as people read it.
func textOf(m *regie.Message) string {
	if m.AI != nil {
		return m.AI.Text()
	}
	return m.LinearText()
}

// around cuts the part of a text that holds what is wanted, in small letters.
func around(text, wanted string) (string, bool) {
	lower := strings.ToLower(text)
	at := strings.Index(lower, wanted)
	if at < 0 {
		return "", false
	}
	if len(lower) != len(text) { // letters that are longer than their small ones
		text = lower
	}
	from, to := max(0, at-aroundFound), min(len(text), at+len(wanted)+aroundFound)
	cut := strings.ToValidUTF8(text[from:to], "") // without halves of characters
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(text) {
		cut += "…"
	}
	return cut, true
}

// searchLines finds lines of files that hold a text.
func searchLines(ctx context.Context, root *workspace.Root, in *dispatch.SearchRequest, out *dispatch.Found) error {
	out.Mode = cmp.Or(in.Mode, dispatch.SearchExact)
	searched, err := root.Search(ctx, workspace.Query{
		Text: in.Text, Regex: in.Mode == dispatch.SearchRegex, CaseSensitive: in.Case, Path: cmp.Or(in.Under, "."),
		Most: in.Limit, Clip: clipFound,
	}, func(m workspace.Match) bool {
		out.Files = append(out.Files, dispatch.FoundFile{Path: m.Path, Start: m.Line, End: m.Line, Text: m.Text})
		return true
	})
	out.More = searched.More || searched.Stopped || searched.TooMany || searched.Clipped > 0
	if errors.Is(err, context.DeadlineExceeded) {
		out.More, err = true, nil
	}
	return err
}

// searchParts finds parts of files that are about something.
func (w *Workspaces) searchParts(ctx context.Context, place regie.Workspace, root *workspace.Root,
	in *dispatch.SearchRequest, out *dispatch.Found,
) error {
	under, err := root.Searchable(cmp.Or(in.Under, "."))
	if err != nil {
		return err
	}
	x, done, err := w.Indexes.Index(ctx, place.Root)
	if err != nil {
		return err
	}
	defer done()
	if _, _, err := x.Refresh(ctx, nil); err != nil { // what it knows is older then, and answers all the same
		out.More = true
	}
	answer, err := x.Search(ctx, index.Query{Text: in.Text, Limit: in.Limit, Under: under})
	if err != nil {
		return err
	}
	out.Mode, out.Reason = string(answer.Mode), answer.Reason
	for i := range answer.Hits {
		h := &answer.Hits[i]
		// what the index knows may be older than a rule
		if at, err := root.Place(h.Path); err != nil || at.Secret || at.Path != h.Path || root.Ignored(h.Path) {
			continue
		}
		out.Files = append(out.Files, dispatch.FoundFile{
			Path: h.Path, Start: h.Start, End: h.End, Symbol: h.Symbol,
			Text: h.Text, Score: h.Score,
		})
	}
	return nil
}
