package web

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
)

// completeMessage expands the workspace's command that a message is, makes segments of the files
// that it names with @, and sets the model that its form names: NAME, or PROVIDER/NAME.
func completeMessage(v *visit, in *dispatch.RunRequest, root string) error {
	word, rest, _ := strings.Cut(in.Text, " ")
	for _, own := range v.site.Commands(v.text, root) {
		if "/"+own.Name == word {
			in.Text = own.Expand(strings.TrimSpace(rest))
			break
		}
	}
	look := v.site.Look(root)
	segments := chat.Mentions(in.Text, func(path string) (block regie.EnrichmentBlock, there bool) {
		if !filepath.IsAbs(path) { // a client's own pictures may lie there
			block, there = look(path)
		}
		return block, there && !block.NamesImage()
	})
	if segments != nil {
		in.Text, in.Segments = "", segments
	}
	in.Model = v.field("model")
	providers, err := v.site.Service.Catalog.Providers(v.r.Context())
	if provider, model, found := strings.Cut(in.Model, "/"); found &&
		slices.ContainsFunc(providers, func(p dispatch.ProviderView) bool { return p.Name == provider }) {
		in.Provider, in.Model = provider, model
	}
	return err
}

// offer completes a word of the composer.
type offer struct {
	Insert string `json:"insert"`
	About  string `json:"about,omitempty"`
}

const (
	shownOffers = 30
	// modelsWithin is how long the providers have to list their models.
	modelsWithin = 6 * time.Second
)

// listOffers lists what completes a word of the composer: files behind @, models behind /model,
// else the workspace's commands.
func listOffers(v *visit) error {
	query, service := v.r.URL.Query(), v.site.Service
	place, err := findPlace(v, query.Get("workspace"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(v.r.Context(), modelsWithin)
	defer cancel()
	offers := []offer{}
	word, model, isModel := strings.Cut(query.Get("word"), " ")
	switch {
	case strings.HasPrefix(query.Get("word"), "@"):
		for _, path := range chat.FindFiles(ctx, service.Workspaces.Query, place.ID, strings.TrimLeft(query.Get("word"), `@"`)) {
			offers = append(offers, offer{Insert: chat.Mention(path)})
		}
	case isModel && word == "/model":
		providers, err := service.Catalog.Models(ctx)
		if err != nil {
			return err
		}
		for i := range providers {
			for _, m := range providers[i].Models {
				if name := providers[i].Name + "/" + m.Name; (m.Tools || !m.Embeds) && strings.Contains(name, model) {
					offers = append(offers, offer{Insert: "/model " + sanitize.Line(name)})
				}
			}
		}
	default:
		for _, own := range v.site.Commands(v.text, place.Root) {
			if strings.HasPrefix("/"+own.Name, query.Get("word")) {
				offers = append(offers, offer{"/" + own.Name, sanitize.Line(own.About)})
			}
		}
	}
	v.writeJSON(http.StatusOK, "application/json", offers[:min(len(offers), shownOffers)])
	return nil
}

// findPlace returns a workspace that the caller sees.
func findPlace(v *visit, id string) (regie.Workspace, error) {
	places, err := v.site.Service.Workspaces.List(v.r.Context())
	at := slices.IndexFunc(places, func(w regie.Workspace) bool { return w.ID.String() == id })
	if at >= 0 {
		return places[at], nil
	}
	if err == nil {
		err = regie.Errorf(regie.CodeNotFound, "there is no workspace %s here", id)
	}
	return regie.Workspace{}, err
}
