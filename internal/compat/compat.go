package compat

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/dispatch"
)

// OnApproval says what becomes of a call that needs an approval while a client waits (decision 35).
type OnApproval string

// The policies: the model is told that it may not, or the round waits and the answer names the
// approval.
const (
	Deny OnApproval = "deny"
	Park OnApproval = "park"
)

// maxMessages bounds how many messages a request has.
const maxMessages = 4096

// HeaderSession names the session that a request continues, and in the answer the one that it was
// answered in.
const HeaderSession = "X-Regie-Session"

// headerIgnored lists the parameters of a request that have no effect on an agent.
const headerIgnored = "X-Regie-Ignored"

// Config sets up a Handler. Control and Workspace are required. Whoever mounts it has authenticated
// the caller.
type Config struct {
	Control dispatch.Control
	// Workspace is where sessions of clients live.
	Workspace func(ctx context.Context) (regie.Workspace, error)
	// OnApproval is what holds for tokens that say nothing; Deny where it is empty.
	OnApproval OnApproval
	// Status maps a code to HTTP; nil has those of httpread.Status and 500 for all else.
	Status func(code regie.Code) int
	// Translate renders an error's sentence in a language ("fr", "en"); nil leaves it English.
	Translate func(language string, err error) string
	// Keys remembers what came with which Idempotency-Key; nil: only the key of what begins a
	// session is held to its request, and none of what is passed on.
	Keys Keys
	// Base is as long as the server is there: what is with a provider may outlast its client, and
	// no longer than this. Nil is for ever.
	Base context.Context //nolint:containedctx // the server's own
	// Going counts what is with a provider for a key while its client hears no more; nil: nobody
	// waits for it.
	Going *sync.WaitGroup
	// Weigh estimates the tokens that an agent's model would be sent for a request, with all that
	// the agent adds; nil counts what the request says.
	Weigh func(ctx context.Context, in dispatch.RunRequest) (int, error)
	// Proxy passes requests for provider/model on; nil knows no such model.
	Proxy Proxy
	// KeepAlive is after how long of silence a stream says that it is alive; zero means 10 s.
	KeepAlive time.Duration
}

type server struct {
	Config
	working atWork
}

// policy is what the caller's token says of approvals, or the server's own word where it says
// nothing (decision 35).
func (s *server) policy(ctx context.Context) OnApproval {
	if caller := access.From(ctx); caller != nil && caller.Token.OnApproval != "" {
		return OnApproval(caller.Token.OnApproval)
	}
	return s.OnApproval
}

// Handler serves the endpoint below /v1/.
func Handler(c Config) http.Handler {
	if c.OnApproval == "" {
		c.OnApproval = Deny
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 10 * time.Second
	}
	if c.Base == nil {
		c.Base = context.Background()
	}
	if c.Going == nil {
		c.Going = new(sync.WaitGroup)
	}
	s := &server{Config: c, working: atWork{keys: map[regie.Hash]chan struct{}{}}}
	mux := http.NewServeMux()
	for _, at := range s.routes() {
		mux.HandleFunc(at.Method+" "+at.Path, s.strictly(at.params, at.serve))
	}
	mux.HandleFunc("/", s.missing(mux))
	return mux
}

// Route is an address of the endpoint, with what is to be said of it.
type Route struct {
	Method, Path, Summary string

	serve  http.HandlerFunc
	params []string // of its address, beside those of any
}

// Routes are what a Handler serves.
func Routes() []Route { return (&server{}).routes() }

func (s *server) routes() []Route {
	return []Route{
		{
			http.MethodGet, "/v1/models",
			"The agents, and models of providers as provider/model; in Anthropic's form, by pages, with the header anthropic-version", s.models, ofModels,
		},
		{http.MethodGet, "/v1/models/{id...}", "One of them", s.model, nil},
		{
			http.MethodPost, "/v1/chat/completions",
			"OpenAI's Chat Completions: ask an agent, streamed or not; provider/model is passed on to that provider",
			s.chat, nil,
		},
		{
			http.MethodPost, "/v1/responses",
			"OpenAI's Responses: ask an agent, streamed or not; provider/model is passed on to that provider",
			s.responses, nil,
		},
		{http.MethodGet, "/v1/responses/{id}", "A response that was made", s.response, ofResponse},
		{http.MethodDelete, "/v1/responses/{id}", "Remove the session of a response", s.forget, nil},
		{
			http.MethodPost, "/v1/messages",
			"Anthropic's Messages: ask an agent, streamed or not; provider/model is passed on to that provider",
			s.messages, nil,
		},
		{
			http.MethodPost, "/v1/messages/count_tokens", "An estimate of the tokens that an agent's model would be sent",
			s.countTokens, nil,
		},
	}
}

// Refuse answers a request that does not come as far as the Handler, in the form that whoever asks
// reads.
func Refuse(c Config) func(w http.ResponseWriter, r *http.Request, err error) {
	return (&server{Config: c}).fail
}

// missing answers where nothing is, or only by other methods.
func (s *server) missing(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var takes []string
		for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPost} {
			other := r.Clone(r.Context())
			other.Method = method
			if _, pattern := mux.Handler(other); pattern != "/" {
				takes = append(takes, method)
			}
		}
		if len(takes) == 0 {
			s.fail(w, r, &problem{
				status: http.StatusNotFound, kind: kindInvalid,
				err: regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path),
			})
			return
		}
		w.Header().Set("Allow", strings.Join(takes, ", "))
		s.fail(w, r, &problem{
			status: http.StatusMethodNotAllowed, kind: kindInvalid,
			err: regie.Errorf(regie.CodeNoMethod, "%s does not take %s", r.URL.Path, r.Method),
		})
	}
}

// opens reports whether a session is there for who asks: one that their token did not begin is,
// where the token has the scope for what they want of it.
func opens(ctx context.Context, session *regie.Session, scope regie.TokenScope) bool {
	caller := access.From(ctx)
	return caller == nil || caller.Has(scope) || caller.Began(session)
}

// model is one line of the list of models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// listed are the models that a client can ask for in its own format.
func (s *server) listed(r *http.Request) ([]model, error) {
	ctx, api := r.Context(), APIChat
	if speaksMessages(r) {
		api = APIMessages
	}
	agents, err := s.Control.Agents(ctx)
	if err != nil {
		return nil, err
	}
	out := []model{}
	for _, a := range agents {
		out = append(out, model{ID: a.Name, Object: "model", OwnedBy: "regie"})
	}
	if s.Proxy != nil {
		for _, name := range s.Proxy.Models(ctx, api) {
			provider, _, _ := strings.Cut(name, "/")
			out = append(out, model{ID: name, Object: "model", OwnedBy: provider})
		}
	}
	return out, nil
}

func (s *server) models(w http.ResponseWriter, r *http.Request) {
	list, err := s.listed(r)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case speaksMessages(r):
		page, err := anthropicModels(list, r.URL.Query())
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.write(w, page)
	default:
		s.write(w, map[string]any{"object": "list", "data": list})
	}
}

func (s *server) model(w http.ResponseWriter, r *http.Request) {
	list, err := s.listed(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	id := r.PathValue("id")
	provider, _, _ := strings.Cut(id, "/")
	found := model{ID: id, Object: "model", OwnedBy: provider}
	at := slices.IndexFunc(list, func(m model) bool { return m.ID == id })
	switch {
	case at >= 0:
		found = list[at]
	case !s.proxies(id):
		s.fail(w, r, noModel(id))
		return
	}
	if speaksMessages(r) {
		s.write(w, anthropicModel(found))
		return
	}
	s.write(w, found)
}

// agent reports whether a model is an agent.
func (s *server) agent(ctx context.Context, name string) error {
	agents, err := s.Control.Agents(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(agents, func(a dispatch.AgentView) bool { return a.Name == name }) {
		return noModel(name)
	}
	return nil
}

func noModel(name string) error {
	return &problem{
		status: http.StatusNotFound, kind: kindInvalid, code: "model_not_found", param: "model",
		err: regie.Errorf(regie.CodeNotFound,
			"there is no agent %q here, and no provider of that name: GET /v1/models lists what there is", clip(name)),
	}
}

func (s *server) write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // the client has gone
}

func clip(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:79]) + "…"
	}
	return text
}
