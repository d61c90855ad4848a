package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/plain"
)

// mostServed is how much a server gives at once.
const mostServed = 100

// searchServed is search in a workspace of a server's machine. Paths are those of the workspace.
func (c *command) searchServed(ctx context.Context, query, in string, f *searchFlags) error {
	conn, err := c.attach(ctx, app.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	found, root, err := c.askServer(ctx, conn, query, in, f)
	if err = errors.Join(err, conn.Close()); err != nil {
		return err
	}
	s := searching{command: c, flags: f, query: query, root: root, at: root, colour: coloured(c.stdout)}
	switch {
	case f.json:
		err = writeJSON(c.stdout, found)
	case f.exact || f.regex:
		err = s.servedLines(found)
	default:
		err = s.servedParts(found)
	}
	if err == nil && len(found.Files) == 0 {
		return exit{exitError}
	}
	return err
}

// askServer has the server look.
func (c *command) askServer(ctx context.Context, conn *app.Conn, query, in string,
	f *searchFlags,
) (found dispatch.Found, root string, err error) {
	dir := c.flags.Workspace
	if dir == "" {
		if dir, err = workingDirectory(); err != nil {
			return found, "", err
		}
	}
	place, err := conn.OpenWorkspace(ctx, dispatch.WorkspaceRequest{Path: dir, Here: f.here})
	if err != nil {
		return found, "", err
	}
	asked := dispatch.SearchRequest{
		WorkspaceID: place.ID, Text: query, In: dispatch.SearchFiles,
		Mode: dispatch.SearchSemantic, Limit: min(f.limit, mostServed), Under: in,
	}
	switch {
	case f.exact:
		asked.Mode, asked.Case = dispatch.SearchExact, !f.fold
	case f.regex:
		asked.Mode, asked.Case = dispatch.SearchRegex, !f.fold
	}
	found, err = conn.Search(ctx, asked)
	return found, place.Root, err
}

// servedLines prints the lines that a server found.
func (s *searching) servedLines(found dispatch.Found) error {
	highlight := s.highlighter()
	p := &painter{w: s.stdout}
	for i := range found.Files {
		m := &found.Files[i]
		p.line("%s: %s", s.tint(pathColour, s.link(m.Path, m.Start)), s.marked(m.Text, highlight(m.Text)))
	}
	switch {
	case p.err != nil:
	case found.More:
		fmt.Fprintln(s.stderr, s.text.T("lines found: %d, and there are more (--limit)", len(found.Files)))
	case len(found.Files) == 0:
		fmt.Fprintln(s.stderr, plain.Strip(s.text.T("nothing found")))
	}
	return p.err
}

// servedParts prints the parts of files that a server found.
func (s *searching) servedParts(found dispatch.Found) error {
	p := &painter{w: s.stdout}
	marks := app.Marks(s.query)
	answer := app.IndexAnswer{Mode: app.IndexMode(found.Mode), Reason: found.Reason}
	for i := range found.Files {
		f := &found.Files[i]
		answer.Hits = append(answer.Hits, app.IndexHit{
			Path: f.Path, Start: f.Start, End: f.End, Symbol: f.Symbol,
			Text: f.Text, Score: f.Score,
		})
		if i > 0 {
			p.line("")
		}
		s.part(p, &answer.Hits[i], marks)
	}
	if p.err == nil {
		s.said(&answer)
	}
	return p.err
}
