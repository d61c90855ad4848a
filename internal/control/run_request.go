package control

import (
	"cmp"
	"context"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/sanitize"
	"github.com/regie-run/regie/internal/toolkit/shell"
)

// fillRequest settles what a request leaves open of the workspace, the agent and the model: that of
// its session, else of its agent, else of this engine's settings. unnamed says that its session has
// no name yet.
func (r *Rounds) fillRequest(ctx context.Context, in *dispatch.RunRequest) (
	agent foundAgent, unnamed bool, err error,
) {
	var session regie.Session
	complete := in.Root != "" && in.Provider != "" && in.Model != "" && r.isConfigured(in.Agent)
	if !in.SessionID.IsZero() && !complete {
		if session, err = r.placeRequest(ctx, in); err != nil {
			return agent, false, err
		}
	}
	unnamed = !session.ID.IsZero() && session.Name == ""
	in.Agent = cmp.Or(in.Agent, session.Agent, MainAgent)
	version := 0
	if in.Agent == session.Agent {
		version = session.AgentVersion
	}
	if agent, err = r.findAgent(ctx, in.Root, in.Agent, version); err != nil {
		return agent, false, err
	}
	switch {
	case in.ModelDefault && in.Agent != MainAgent, in.Provider == "" && in.Model == "" && session.Provider == "":
		given := cmp.Or(in.Provider, r.Settings.Provider)
		in.Provider, in.Model = r.Settings.AgentModel(&agent.Agent, given, in.Model)
		if in.Provider != given { // those of the caller's provider
			in.Settings = regie.Hash{}
		}
	case in.Provider == "" && in.Model == "":
		in.Provider, in.Model = session.Provider, session.Model
	case in.Provider == "" && session.Provider != "":
		in.Provider = session.Provider
	}
	if in.Provider == "" || in.Provider == r.Settings.Provider {
		in.Provider, in.Model = r.Settings.Provider, cmp.Or(in.Model, r.Settings.Model)
	}
	if in.Provider == "" || in.Model == "" {
		return agent, false, cmp.Or(r.Settings.RequireModel(),
			error(regie.Errorf(regie.CodeNoModel, "the request names no model of the provider %s", in.Provider)))
	}
	if !complete || in.ModelDefault && in.Settings.IsZero() {
		in.Settings = cmp.Or(in.Settings, r.pinOf(in.Provider))
	}
	return agent, unnamed, r.checkNames(in)
}

// placeRequest settles the workspace of a request by its session, which it returns; a zero one
// where it is not there yet.
func (r *Rounds) placeRequest(ctx context.Context, in *dispatch.RunRequest) (regie.Session, error) {
	session, place, err := r.Store.Session(ctx, in.SessionID)
	switch {
	case err == nil && in.Root == "" && !in.WorkspaceID.IsZero() && in.WorkspaceID != place.ID:
		return session, regie.Errorf(regie.CodeNotFound, "there is no session %s in the workspace %s",
			in.SessionID, in.WorkspaceID)
	case regie.CodeOf(err) == regie.CodeNotFound:
		if place, err = r.namedWorkspace(ctx, in); err != nil {
			return session, err
		}
	case err != nil:
		return session, err
	}
	if in.Root == "" {
		in.Root, in.FoundBy = place.Root, place.FoundBy
	}
	return session, nil
}

// checkNames refuses a provider that this engine cannot use. It replaces a size that the provider
// maps by the model's name.
func (r *Rounds) checkNames(in *dispatch.RunRequest) error {
	if in.Provider != "" {
		if err := r.sameModel(in); err != nil { // which also says why a provider is not there
			return err
		}
		if err := checkProvider(r.settingsOf(in), in.Provider); err != nil {
			return err
		}
	}
	in.Model = r.settingsOf(in).ModelOf(in.Provider, in.Model)
	return nil
}

// pinOf returns the fingerprint of this engine's settings of a provider; zero for the demo, which
// is the same everywhere.
func (c *core) pinOf(provider string) regie.Hash {
	if provider == config.ProviderDemo {
		return regie.Hash{}
	}
	return c.Settings.FingerprintOf(provider)
}

// settingsOf returns the settings of a request's provider: those of its pin where a client brought
// them, else the engine's own.
func (c *core) settingsOf(in *dispatch.RunRequest) *config.Config {
	if in.Settings.IsZero() || in.Settings == c.Settings.FingerprintOf(in.Provider) {
		return &c.Settings
	}
	return cmp.Or(c.SettingsOf(in.Provider, in.Settings), &c.Settings)
}

// sameModel returns CodeConflict where the settings that a request is pinned to are neither this
// engine's nor brought by a client.
func (r *Rounds) sameModel(in *dispatch.RunRequest) error {
	if in.Settings.IsZero() || r.SettingsOf(in.Provider, in.Settings) != nil {
		return nil
	}
	return regie.Errorf(regie.CodeConflict,
		"the engine that holds %s does not have these settings of the provider %s: run regie with them, or leave them out", r.Settings.DataDir, in.Provider)
}

// checkProvider returns CodeNotFound for one that is not configured.
func checkProvider(settings *config.Config, name string) error {
	if _, configured := settings.Named(name); !configured && name != config.ProviderDemo {
		return regie.Errorf(regie.CodeNotFound,
			"there is no provider %q here: regie models lists those that are configured", sanitize.Line(name))
	}
	return nil
}

// namedWorkspace returns the workspace that a request for a new session names.
func (r *Rounds) namedWorkspace(ctx context.Context, in *dispatch.RunRequest) (regie.Workspace, error) {
	switch {
	case in.Root != "":
		return regie.Workspace{Root: in.Root, FoundBy: in.FoundBy}, nil
	case in.WorkspaceID.IsZero():
		return regie.Workspace{}, regie.Errorf(regie.CodeBadRequest,
			"the request names neither an existing session nor a workspace")
	default:
		return r.findWorkspace(ctx, in.WorkspaceID)
	}
}

// typed returns the text to store for a request: its message, or the person's command behind its
// mark.
func typed(in *dispatch.RunRequest) string {
	if in.Command != "" {
		return regie.CommandMark + in.Command
	}
	return in.Text
}

// validCommand checks a person's own command (spec 10.1). It is never mended, as texts are: what is
// run has to be what was given.
func validCommand(in *dispatch.RunRequest) error {
	if in.Command == "" {
		return nil
	}
	in.Command = strings.TrimSpace(in.Command)
	switch {
	case storable(in.Command) != in.Command:
		return regie.Errorf(regie.CodeBadRequest,
			"the command contains U+0000 or invalid characters: remove them")
	case in.Text != "" || len(in.Segments) > 0 || answersCalls(in) || len(in.History) > 0:
		return regie.Errorf(regie.CodeBadRequest,
			"a command is sent alone: send other text as its own message")
	case in.Command == "":
		return regie.Errorf(regie.CodeBadRequest, "the command is empty: write it after the !, as !git status")
	case strings.HasPrefix(in.Command, regie.CommandMark):
		return regie.Errorf(regie.CodeBadRequest,
			"!! does not repeat a command here: write the command itself; to send a message that begins with !, put a space before it")
	case len(in.Command) > shell.MaxCommand:
		return regie.Errorf(regie.CodeBadRequest,
			"the command has %d bytes, at most %d are allowed: put it into a file and run that",
			len(in.Command), shell.MaxCommand)
	default:
		return nil
	}
}

// ofPerson refuses a person's command in an unattended session and as an answer. asks says that the
// session waits for an answer.
func ofPerson(in *dispatch.RunRequest, asks bool) error {
	switch {
	case in.Command == "":
		return nil
	case in.Type != regie.SessionChat:
		return regie.Errorf(regie.CodeBadRequest, "commands are given in chats: this session is of type %s",
			string(in.Type))
	case asks:
		return regie.Errorf(regie.CodeRoundInProgress,
			"the run waits for your answer: give that first, or interrupt the run; a command is not queued")
	default:
		return nil
	}
}
