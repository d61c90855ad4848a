package compat

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/control"
)

// OnApproval says what becomes of a call that needs an approval while a client waits (decision 35).
type OnApproval string

// The policies: the model is told that it may not, or the round waits and the answer names the
// approval.
const (
	Deny OnApproval = "deny"
	Park OnApproval = "park"
)

// HeaderSession names the session that a request continues, and in the answer the one that it was
// answered in.
const HeaderSession = "X-Regie-Session"

// headerIgnored lists the parameters of a request that have no effect on an agent.
const headerIgnored = "X-Regie-Ignored"

// Config sets up a Handler. Service and Workspace are required. Whoever mounts it has authenticated
// the caller.
type Config struct {
	Service *control.Service
	// Workspace is where sessions of clients live.
	Workspace func(ctx context.Context) (regie.Workspace, error)
	// OnApproval is what holds for tokens that say nothing; Deny where it is empty.
	OnApproval OnApproval
	// Translate renders an error's sentence in a language ("fr", "en"); nil leaves it English.
	Translate func(language string, err error) string
	// Keys remembers what came with which Idempotency-Key; nil: only the key of what begins a
	// session is held to its request.
	Keys Keys
	// Proxy passes requests for provider/model on; nil knows no such model.
	Proxy Proxy
	// KeepAlive is after how long of silence a stream says that it is alive; zero means 10 s.
	KeepAlive time.Duration
}

type server struct{ Config }

// policy returns what the caller's token says of approvals, or the server's own setting where it
// says nothing (decision 35).
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
	s := &server{c}
	mux := http.NewServeMux()
	for _, at := range s.routes() {
		mux.HandleFunc(at.Method+" "+at.Path, func(w http.ResponseWriter, r *http.Request) {
			if err := checkQuery(r.URL.RawQuery, at.query); err != nil {
				s.fail(w, r, err)
				return
			}
			at.serve(w, r)
		})
	}
	mux.HandleFunc("/", s.refuseRoute(mux))
	return mux
}

// Route is an address of the endpoint, with what is to be said of it.
type Route struct {
	Method, Path, Summary string

	serve http.HandlerFunc
	query []string // parameters of its address, beside those of any
}

// Routes are what a Handler serves.
func Routes() []Route { return (&server{}).routes() }

func (s *server) routes() []Route {
	return []Route{
		{
			http.MethodGet, "/v1/models",
			"The agents, and models of providers as provider/model; in Anthropic's form with the header anthropic-version",
			s.models,
			[]string{"limit", "after_id", "before_id"},
		},
		{http.MethodGet, "/v1/models/{id...}", "One of them", s.model, nil},
		{
			http.MethodPost, "/v1/chat/completions",
			"OpenAI's Chat Completions: ask an agent, streamed or not; provider/model is passed on to that provider",
			s.serveAgent(APIChat, parseChat, newChatAnswer), nil,
		},
		{
			http.MethodPost, "/v1/responses",
			"OpenAI's Responses: ask an agent, streamed or not; provider/model is passed on to that provider",
			s.serveAgent(APIResponses, parseResponses, newResponsesAnswer), nil,
		},
		{
			http.MethodGet, "/v1/responses/{id}", "A response that was made", s.response,
			[]string{"include", "include[]", "include_obfuscation"},
		},
		{http.MethodDelete, "/v1/responses/{id}", "Remove the session of a response", s.removeResponse, nil},
		{
			http.MethodPost, "/v1/messages",
			"Anthropic's Messages: ask an agent, streamed or not; provider/model is passed on to that provider",
			s.serveAgent(APIMessages, parseMessages, newMessagesAnswer), nil,
		},
		{
			http.MethodPost, "/v1/messages/count_tokens", "An estimate of the tokens that an agent's model would be sent",
			s.countTokens, nil,
		},
	}
}

// checkQuery refuses parameters of an address that cannot be read or that nobody knows. Those of
// any address say which client asks, or which version of an API it means.
func checkQuery(query string, known []string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return refused("", "the parameters of the address cannot be read: write them as name=value, with & between them")
	}
	for name := range values {
		if !slices.Contains(known, name) && !slices.Contains([]string{"beta", "api-version", "client_version"}, name) {
			return refused(truncate(name), "there is no parameter %q here%s", truncate(name), "")
		}
	}
	return nil
}

// Refuse answers a request that does not come as far as the Handler, in the form that its client
// reads.
func Refuse(c Config) func(w http.ResponseWriter, r *http.Request, err error) {
	return (&server{c}).fail
}

// refuseRoute answers an address that is not there, or that takes other methods.
func (s *server) refuseRoute(mux *http.ServeMux) http.HandlerFunc {
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
			s.fail(w, r, regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
			return
		}
		w.Header().Set("Allow", strings.Join(takes, ", "))
		s.fail(w, r, regie.Errorf(regie.CodeNoMethod, "%s does not take %s", r.URL.Path, r.Method))
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v) // the client has gone
}

func truncate(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if runes := []rune(text); len(runes) > 80 {
		return string(runes[:79]) + "…"
	}
	return text
}
