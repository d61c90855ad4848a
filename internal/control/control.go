// Package control is Regie's service: what every surface can do, in one type per noun
// (docs/design.md). The caller is in the context. Each method begins with authorize, and a table
// there says who may do what.
package control

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/engine"
	"github.com/regie-run/regie/internal/index"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/cache"
	"github.com/regie-run/regie/internal/snapshot"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
	"github.com/regie-run/regie/internal/tool"
	"github.com/regie-run/regie/internal/undo"
)

// Config is what a Service works with. Every field is required but those that say otherwise.
type Config struct {
	Store      *sqlite.Store
	Dispatcher *dispatch.Dispatcher
	Engine     *engine.Engine
	Undoer     *undo.Undoer
	Snapshots  *snapshot.Store
	Cache      *cache.Cache
	// Present is what is known of people being there; nil: nothing.
	Present *dispatch.Present
	// TestChannel sends a test notification to a channel of the settings, or to all for "".
	TestChannel func(ctx context.Context, name string) ([]store.Delivery, error)
	Projects    Projects
	Indexes     Indexes
	// Settings are those of this process, and Private the paths of files of settings, among which
	// no workspace lies.
	Settings config.Config
	Private  []string
	// Owner returns the user of this installation, made the first time; UserName is the name of the
	// person who runs this process.
	Owner    func(ctx context.Context) (regie.User, error)
	UserName string
	Tools    func(ctx context.Context) *tool.Registry
	// Models returns the provider of a name under a pin, SettingsOf the settings that it was made
	// of: those of this process, or of a client that brought its own (AddProvider; decision 54).
	// SettingsOf returns nil where neither has them. Codec returns what writes that provider's
	// requests and sends none. ListModels asks each what it has.
	Models      func(name string, pin regie.Hash) (provider.Provider, error)
	SettingsOf  func(name string, pin regie.Hash) *config.Config
	AddProvider func(in config.ClientProvider) (added bool, err error)
	Codec       func(name string, pin regie.Hash) (provider.Provider, error)
	ListModels  func(ctx context.Context) ([]dispatch.ProviderModels, error)
	// TryProvider asks a provider whether it answers and has a model, or which one it has for "".
	// untested is why it could not be asked. Examine is regie doctor for this engine.
	TryProvider func(ctx context.Context, p config.Provider, model string) (
		tried config.Provider, found string, untested, err error)
	Examine func(ctx context.Context) []dispatch.Check
	// ReadOnly runs nothing; with StoreOnly it takes answers all the same.
	ReadOnly, StoreOnly bool
}

// Projects is what workspaces hold for agents, at this moment.
type Projects interface {
	// Settings returns a workspace's own file, Agent an agent as it works there, AgentFiles the
	// agents of its files, which it has where a person trusts them, Zone the time zone of agents.
	Settings(root string) (config.Project, error)
	Agent(root, name string, agent config.Agent) config.Agent
	AgentFiles(root string) []AgentFile
	Zone(root string) string
	ServerNames(root string) []string
	// Look looks at the content for agents and the decision about it, Trust decides about the
	// content with this hash, Distrust withdraws.
	Look(root string) (WorkspaceTrust, error)
	Trust(root string, shown regie.Hash, by string) error
	Distrust(root string) error
	// Level2 is level 2 of the prompts of a run that begins, and what people read of its document
	// where that was not read, or not all of it.
	Level2(root string, limits regie.Limits, french bool) (text string, notice regie.Sentence, err error)
	// Scope adds the skills' tool, ToolsIn the tools of the workspace's MCP servers too.
	Scope(root string, base *tool.Registry) *tool.Registry
	ToolsIn(ctx context.Context, root string, base *tool.Registry) *tool.Registry
}

// Indexes are the indexes of workspaces; the caller of Index calls done.
type Indexes interface {
	Index(ctx context.Context, root string) (x *index.Index, done func(), err error)
}

// core is what the nouns share.
type core struct {
	Config
	mu         sync.Mutex
	workspaces map[string]regie.Workspace // by root; rows never change
	levels     map[string]regie.Hash      // stored prompt levels
}

// Service is the service of one engine. Its methods may be called from any goroutine.
type Service struct {
	Agents      *Agents
	Attachments *Attachments
	Sessions    *Sessions
	Rounds      *Rounds
	Approvals   *Approvals
	Rules       *Rules
	Workspaces  *Workspaces
	Catalog     *Catalog
	Undos       *Undos
	Events      *Events
	Cache       *Cache
	Limits      *Limits
	Users       *Users
	Tokens      *Tokens
	Presence    *PresenceService
	Visits      *Visits
	Stats       *Stats
	Automations *Automations
	// Notifications are the channels of the settings and what they deliver.
	Notifications *Notifications
}

// New returns a service.
func New(config Config) *Service {
	c := &core{Config: config, workspaces: map[string]regie.Workspace{}, levels: map[string]regie.Hash{}}
	rounds := &Rounds{c}
	return &Service{
		Agents: &Agents{c}, Attachments: &Attachments{c}, Sessions: &Sessions{c}, Rounds: rounds,
		Approvals: &Approvals{c}, Rules: &Rules{c},
		Workspaces: &Workspaces{c}, Catalog: &Catalog{core: c}, Undos: &Undos{c}, Events: &Events{c},
		Cache: &Cache{c}, Limits: &Limits{c}, Users: &Users{c}, Tokens: &Tokens{core: c},
		Presence: &PresenceService{c}, Stats: &Stats{c}, Notifications: &Notifications{c},
		Automations: &Automations{core: c, rounds: rounds},
		Visits: &Visits{
			core: c, rounds: rounds, widgets: map[string]*rate.Limiter{}, visitors: map[regie.ID]*rate.Limiter{},
		},
	}
}

// Serve connects the service to the server that runs: setupLink returns a link that lets one
// browser in, onRevoke ends what revoked tokens have open.
func (s *Service) Serve(setupLink func() string, onRevoke func()) {
	s.Tokens.server.Store(&tokenServer{setupLink, onRevoke})
}

var errRunsNothing = regie.Errorf(regie.CodeConflict, "this engine only reads")

// author is the caller's name in logs; said is the person for whom a client says it asks.
func (c *core) author(caller *access.Caller, said string) string {
	return cmp.Or(caller.By(said), c.UserName)
}

// visible are the workspaces that the caller sees.
func (c *core) visible(ctx context.Context, caller *access.Caller) ([]regie.Workspace, error) {
	all, err := c.Store.Workspaces(ctx)
	return slices.DeleteFunc(all, func(w regie.Workspace) bool { return !caller.Sees(w.ID) }), err
}

// root returns the root that a request is about: the one that it names, else that of an id that it
// names, else the only one that the caller sees. For a caller who sees everything it is as it was
// named: "" is all of them.
func (c *core) root(ctx context.Context, caller *access.Caller, named string, ids ...regie.ID) (string, error) {
	if !caller.Restricted() {
		return named, nil
	}
	places, err := c.visible(ctx, caller)
	places = slices.DeleteFunc(places, func(w regie.Workspace) bool {
		return w.Root == "" || named != "" && w.Root != named // an empty root would be all of them
	})
	if ids = given(ids...); err == nil && len(places) > 1 && len(ids) > 0 {
		var in regie.ID
		in, err = c.Store.WorkspaceOf(ctx, ids[0])
		places = slices.DeleteFunc(places, func(w regie.Workspace) bool { return w.ID != in })
	}
	switch {
	case err != nil:
		return "", err
	case len(places) == 0:
		return "", regie.Errorf(regie.CodeNotFound, "there is no workspace at %s here", named)
	case len(places) > 1:
		return "", regie.Errorf(regie.CodeBadRequest, "name a workspace")
	}
	return places[0].Root, nil
}
