package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

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
	maxFindFile  = 8 << 20
	listTime     = 5 * time.Second // that a provider has to list its models
)

// Search implements dispatch.Searching.
func (l *local) Search(ctx context.Context, in dispatch.SearchRequest) (dispatch.Found, error) {
	out := dispatch.Found{Messages: []dispatch.FoundMessage{}, Files: []dispatch.FoundFile{}}
	in.Limit = min(cmp.Or(in.Limit, foundUsually), foundMost)
	switch {
	case strings.TrimSpace(in.Text) == "":
		return out, regie.Errorf(regie.CodeBadRequest, "there is nothing to look for: q is empty")
	case len(in.Text) > maxWanted:
		return out, regie.Errorf(regie.CodeBadRequest, "what is looked for has %d bytes, at most %d are allowed",
			len(in.Text), maxWanted)
	}
	place, err := l.workspace(ctx, in.WorkspaceID)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	if in.In != dispatch.SearchFiles {
		if err := l.searchSaid(ctx, &in, &out); err != nil {
			return out, err
		}
	}
	switch {
	case in.In == dispatch.SearchSessions:
		return out, nil
	case in.Mode == dispatch.SearchSemantic:
		err = l.searchParts(ctx, place, &in, &out)
	default:
		err = searchLines(ctx, place, &in, &out)
	}
	return out, err
}

// searchSaid looks through what was said. Where it has to stop before the end, Next says where it
// stood.
func (l *local) searchSaid(ctx context.Context, in *dispatch.SearchRequest, out *dispatch.Found) error {
	wanted, looked := strings.ToLower(in.Text), 0
	var at regie.ID
	err := l.store.Said(ctx, in.WorkspaceID, in.Before, func(m store.SaidMessage) bool {
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

// textOf is what a message says, as people read it.
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
	if len(lower) != len(text) { // capitals that are longer than their small letters: the places are not the same
		text = lower
	}
	from, to := max(0, at-aroundFound), min(len(text), at+len(wanted)+aroundFound)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	cut := text[from:to]
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(text) {
		cut += "…"
	}
	return cut, true
}

// searchLines finds lines of files that hold a text.
func searchLines(ctx context.Context, place regie.Workspace, in *dispatch.SearchRequest, out *dispatch.Found) error {
	out.Mode = cmp.Or(in.Mode, dispatch.SearchExact)
	searched, err := SearchText(ctx, place.Root, TextQuery{
		Text: in.Text, Regex: in.Mode == dispatch.SearchRegex, CaseSensitive: in.Case, Path: cmp.Or(in.Under, "."),
		Most: in.Limit, Clip: clipFound, MaxFile: maxFindFile,
	}, func(m TextMatch) bool {
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
func (l *local) searchParts(ctx context.Context, place regie.Workspace,
	in *dispatch.SearchRequest, out *dispatch.Found,
) error {
	if l.indexes == nil {
		return errRunsNothing
	}
	root, err := workspace.Open(place.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	under, err := root.Searchable(cmp.Or(in.Under, "."))
	if err != nil {
		return err
	}
	x, done, err := l.indexes.Index(ctx, place.Root)
	if err != nil {
		return err
	}
	defer done()
	if _, _, err := x.Refresh(ctx, nil); err != nil { // what it knows is older then, and answers all the same
		out.More = true
	}
	searching := ctx
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		searching, cancel = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
	}
	answer, err := x.Search(searching, index.Query{Text: in.Text, Limit: in.Limit, Under: under})
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

// Models implements dispatch.Searching.
func (l *local) Models(ctx context.Context) ([]dispatch.ProviderModels, error) {
	out := []dispatch.ProviderModels{}
	for _, p := range ListModels(ctx, l.config, listTime) {
		view := dispatch.ProviderModels{
			Name: p.Name, Type: cmp.Or(p.Type, p.Name), Chosen: p.Chosen, Reachable: p.Reachable, Code: p.Code,
			Error: p.Error, Sizes: p.Sizes, Models: []dispatch.ModelView{},
		}
		if p.Failure != nil {
			view.Said = regie.SentenceOf(p.Failure)
		}
		for i := range p.Models {
			m := &p.Models[i]
			model := dispatch.ModelView{
				Name: m.Name, Chosen: m.Chosen, Tools: m.Tools, Thinking: m.Thinking, Embeds: m.Embeds,
				ContextTokens: m.ContextTokens, MaxOutput: m.MaxOutput,
			}
			if m.Price.Known {
				model.Price = &dispatch.ModelPrice{
					Input: m.Price.Input, CachedInput: m.Price.CachedInput, CacheWrite: m.Price.CacheWrite,
					Output: m.Price.Output, UpTo: m.Price.UpTo,
				}
			}
			view.Models = append(view.Models, model)
		}
		out = append(out, view)
	}
	if has := func(p dispatch.ProviderModels) bool { return p.Name == l.config.Provider }; l.config.Provider != "" &&
		!slices.ContainsFunc(out, has) {
		out = append(out, dispatch.ProviderModels{ // one that needs no settings: the demo, a recording
			Name: l.config.Provider, Type: l.config.Provider, Chosen: true, Reachable: true,
			Models: []dispatch.ModelView{{
				Name: l.config.Model, Chosen: true, Tools: true,
				Price: &dispatch.ModelPrice{},
			}},
		})
	}
	return out, ctx.Err()
}

// ServedModels are the models of a server's providers as those of this machine are told.
func ServedModels(list []dispatch.ProviderModels) (out []ProviderInfo) {
	for _, p := range list {
		info := ProviderInfo{
			Name: p.Name, Type: p.Type, Chosen: p.Chosen, Reachable: p.Reachable, Code: p.Code,
			Error: p.Error, Said: p.Said, Sizes: p.Sizes, HasKey: p.Reachable,
		}
		for i := range p.Models {
			m := &p.Models[i]
			model := ModelInfo{
				Name: m.Name, Tools: m.Tools, Thinking: m.Thinking, Embeds: m.Embeds, ContextTokens: m.ContextTokens,
				MaxOutput: m.MaxOutput, Chosen: m.Chosen,
			}
			if m.Price != nil {
				model.Price = Price{
					Known: true, Input: m.Price.Input, CachedInput: m.Price.CachedInput, CacheWrite: m.Price.CacheWrite,
					Output: m.Price.Output, UpTo: m.Price.UpTo,
				}
			}
			info.Models = append(info.Models, model)
		}
		out = append(out, info)
	}
	return out
}
