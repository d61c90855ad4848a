package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/chat"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/store"
)

// webCommands are the slash commands of the terminal that mean something on a page.
var webCommands = []string{
	"/help", "/new", "/agent", "/model", "/mode", "/fork", "/undo", "/steer", "/pause", "/resume", "/stop", "/close",
}

// obeyCommand carries out the slash command that a message begins with, and returns the page to
// show then. It returns "" for a message that is to be sent, which it may have changed.
func obeyCommand(v *visit, in *dispatch.RunRequest, root string, isNew bool) (to string, err error) {
	if !strings.HasPrefix(in.Text, "/") {
		return "", nil
	}
	if strings.HasPrefix(in.Text, "//") {
		in.Text = in.Text[1:]
		return "", nil
	}
	word, rest, _ := strings.Cut(in.Text, " ")
	rest = strings.TrimSpace(rest)
	page := "/chats/" + in.SessionID.String()
	if isNew {
		page = "/chats/new"
	}
	switch word {
	case "/help":
		return "/more", nil
	case "/new":
		return "/chats/new", nil
	case "/agent":
		return "/chats/new?agent=" + url.QueryEscape(rest), nil
	case "/model":
		return page + "?model=" + url.QueryEscape(rest), nil
	}
	if !isNew && slices.Contains(webCommands, word) {
		return obeyInChat(v, in, word, rest, page)
	}
	for _, own := range v.site.Commands(v.text, root) {
		if "/"+own.Name == word {
			in.Text = own.Expand(rest)
			return "", nil
		}
	}
	return "", regie.Errorf(regie.CodeBadRequest,
		"there is no %s here: type / to see the commands; to send a message that begins with a slash, write two", word)
}

// obeyInChat carries out the commands that are about the chat.
func obeyInChat(v *visit, in *dispatch.RunRequest, word, rest, page string) (to string, err error) {
	ctx, sessions, rounds := v.r.Context(), v.site.Service.Sessions, v.site.Service.Rounds
	switch word {
	case "/steer":
		in.Text, in.WhenBusy = rest, store.Steer
		return "", nil
	case "/fork":
		return fork(v, in.SessionID, "")
	case "/undo":
		return page + "/undo", nil
	case "/mode":
		err = sessions.SetMode(ctx, dispatch.SessionChange{SessionID: in.SessionID, ApprovalMode: regie.Mode(rest)})
	case "/stop":
		_, err = sessions.Stop(ctx, in.SessionID)
	case "/close":
		err = sessions.Close(ctx, in.SessionID)
	default:
		var round regie.ID
		if round, err = newestRound(v, in.SessionID); err == nil && word == "/pause" {
			err = rounds.Pause(ctx, round)
		} else if err == nil {
			err = rounds.Resume(ctx, round)
		}
	}
	return page, err
}

// leadTo answers a form that leads to another page, which the page's module opens.
func (v *visit) leadTo(page string) error {
	if !v.byScript() {
		return v.done(page)
	}
	return writeJSON(v, map[string]string{"to": page})
}

func writeJSON(v *visit, value any) error {
	v.w.Header().Set("Content-Type", "application/json")
	v.w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(v.w).Encode(value) // the client has gone if this fails
	return nil
}

// mentionFiles makes segments of a message that names files of its workspace with @.
func mentionFiles(v *visit, in *dispatch.RunRequest, root string) {
	look := v.site.Look(root)
	segments := chat.Mentions(in.Text, func(path string) (regie.EnrichmentBlock, bool) {
		if filepath.IsAbs(path) {
			return regie.EnrichmentBlock{}, false
		}
		block, there := look(path)
		return block, there && !block.NamesImage()
	})
	if segments != nil {
		in.Text, in.Segments = "", segments
	}
}

// chooseModel sets the model that a form names: NAME, or PROVIDER/NAME.
func chooseModel(v *visit, in *dispatch.RunRequest) error {
	chosen := v.field("model")
	if chosen == "" {
		return nil
	}
	providers, err := v.site.Service.Catalog.Providers(v.r.Context())
	in.Model = chosen
	if provider, model, found := strings.Cut(chosen, "/"); found &&
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

// listOffers lists what completes a word of the composer: a file behind @, or a command with its
// argument.
func listOffers(v *visit) error {
	query := v.r.URL.Query()
	workspace, err := regie.ParseID(query.Get("workspace"))
	if err != nil {
		return err
	}
	root, err := workspaceRoot(v, workspace)
	if err != nil {
		return err
	}
	word := query.Get("word")
	command, argument, hasArgument := strings.Cut(word, " ")
	var offers []offer
	switch {
	case strings.HasPrefix(word, "@"):
		query := v.site.Service.Workspaces.Query
		for _, path := range chat.FindFiles(v.r.Context(), query, workspace, strings.TrimLeft(word, `@"`)) {
			offers = append(offers, offer{Insert: chat.Mention(path)})
		}
		argument = ""
	case !hasArgument:
		offers = offerCommands(v, root)
		argument = word
	case command == "/model":
		offers, err = offerModels(v, root)
	case command == "/agent":
		offers, err = offerAgents(v, root)
	case command == "/mode":
		for _, mode := range modeChoices(v.text, "") {
			offers = append(offers, offer{"/mode " + string(mode.Mode), mode.About})
		}
	}
	if err != nil {
		return err
	}
	argument = strings.ToLower(strings.TrimSpace(argument))
	offers = slices.DeleteFunc(offers, func(o offer) bool {
		return !strings.Contains(strings.ToLower(o.Insert), argument)
	})
	return writeJSON(v, append([]offer{}, offers[:min(len(offers), shownOffers)]...))
}

// workspaceRoot returns the directory of a workspace that the caller sees.
func workspaceRoot(v *visit, id regie.ID) (string, error) {
	places, err := v.site.Service.Workspaces.List(v.r.Context())
	if err != nil {
		return "", err
	}
	for i := range places {
		if places[i].ID == id {
			return places[i].Root, nil
		}
	}
	return "", regie.Errorf(regie.CodeNotFound, "there is no workspace %s here", id)
}

func offerCommands(v *visit, root string) (offers []offer) {
	for _, c := range chat.SlashCommands(v.text) {
		if slices.Contains(webCommands, c.Name) {
			offers = append(offers, offer{c.Name, c.About})
		}
	}
	for _, own := range v.site.Commands(v.text, root) {
		offers = append(offers, offer{"/" + own.Name, sanitize.Line(own.About)})
	}
	return offers
}

func offerAgents(v *visit, root string) (offers []offer, err error) {
	agents, err := v.site.Service.Agents.List(v.r.Context(), dispatch.AgentFilter{Root: root})
	for i := range agents {
		if a := &agents[i]; a.Problem == "" {
			about := cmp.Or(sanitize.Line(a.Description), sanitize.Line(a.Model))
			offers = append(offers, offer{"/agent " + sanitize.Line(a.Name), about})
		}
	}
	return offers, err
}

// offerModels asks the providers; those that do not answer in time are left out.
func offerModels(v *visit, root string) (offers []offer, err error) {
	ctx, cancel := context.WithTimeout(v.r.Context(), modelsWithin)
	defer cancel()
	add := func(provider, model string) {
		one := offer{Insert: sanitize.Line("/model " + strings.TrimPrefix(provider+"/"+model, "/"))}
		if model != "" && !slices.Contains(offers, one) {
			offers = append(offers, one)
		}
	}
	agents, err := v.site.Service.Agents.List(ctx, dispatch.AgentFilter{Root: root})
	if err != nil {
		return nil, err
	}
	for i := range agents {
		add(agents[i].Provider, agents[i].Model)
	}
	providers, err := v.site.Service.Catalog.Models(ctx)
	for i := range providers {
		for j := range providers[i].Models {
			if m := &providers[i].Models[j]; m.Tools || !m.Embeds {
				add(providers[i].Name, m.Name)
			}
		}
	}
	return offers, err
}
