package compat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/access"
	"github.com/regie-run/regie/internal/approval"
	"github.com/regie-run/regie/internal/control"
)

// HeaderSession names the session that a request continues, and in the answer the one that it was
// answered in.
const HeaderSession = "X-Regie-Session"

// headerIgnored lists the parameters of a request that have no effect on an agent.
const headerIgnored = "X-Regie-Ignored"

// Config sets up a Handler. Service and Workspace are required. The caller that mounts the Handler
// authenticates requests.
type Config struct {
	Service *control.Service
	// Workspace is where sessions of clients live.
	Workspace func(ctx context.Context) (regie.Workspace, error)
	// OnApproval decides about calls that need an approval (decision 35), for tokens without a
	// setting of their own. Either the model gets a refusal, or the round waits and the answer
	// names the approval. Empty: DenyAndGoOn.
	OnApproval approval.OnApproval
	// Translate renders an error's sentence in a language ("fr", "en"); nil leaves it English.
	Translate func(language string, err error) string
	// Proxy passes requests for provider/model on; nil knows no such model.
	Proxy Proxy
	// KeepAlive is after how long of silence a stream says that it is alive; zero means 10 s.
	KeepAlive time.Duration
}

type server struct{ Config }

// approvalPolicy returns the approval setting of the caller's token, or the server's default if the
// token has none (decision 35).
func (s *server) approvalPolicy(ctx context.Context) approval.OnApproval {
	if caller := access.From(ctx); caller != nil && caller.Token.OnApproval != "" {
		return approval.OnApproval(caller.Token.OnApproval)
	}
	return cmp.Or(s.OnApproval, approval.DenyAndGoOn)
}

// Handler serves the endpoint below /v1/.
func Handler(c Config) http.Handler {
	c.KeepAlive = cmp.Or(c.KeepAlive, 10*time.Second)
	s := &server{c}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", s.serveModels)
	mux.HandleFunc("GET /v1/models/{id...}", s.serveModel)
	mux.HandleFunc("POST /v1/chat/completions", s.serveAgent(APIChat, parseChat, newChatAnswer))
	mux.HandleFunc("POST /v1/responses", s.serveAgent(APIResponses, parseResponses, newResponsesAnswer))
	mux.HandleFunc("GET /v1/responses/{id}", s.serveResponse)
	mux.HandleFunc("DELETE /v1/responses/{id}", s.removeResponse)
	mux.HandleFunc("POST /v1/messages", s.serveAgent(APIMessages, parseMessages, newMessagesAnswer))
	mux.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.writeError(w, r, regie.Errorf(regie.CodeNotFound, "there is nothing at %s %s", r.Method, r.URL.Path))
	})
	return mux
}

// Refuse answers a request that does not come as far as the Handler, in the form that its client
// reads.
func Refuse(c Config) func(w http.ResponseWriter, r *http.Request, err error) {
	return (&server{c}).writeError
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
