package providertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/anthropic"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/ollama"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
	"github.com/regie-run/regie/internal/provider/responses"
)

// Scene is the answer of a scripted server to one request, in any format.
type Scene struct {
	Thinking string
	// Signature comes with the thinking if the format has signatures.
	Signature string
	Text      []string // each is a piece of the stream
	Calls     []provider.Call
	// Input and Output are the tokens of the whole prompt and of the reply; CacheRead is the part
	// of the prompt that was cached.
	Input, Output, CacheRead int64
	// Reason is the end of the reply in the words of Chat Completions (stop, tool_calls, length);
	// empty follows from the rest.
	Reason string
	// Status, if not 0, refuses the request with Message, and with Kind if the format has one.
	Status        int
	Kind, Message string
	RetryAfter    string
	// InBand reports Kind and Message in the stream, after Text.
	InBand bool
	// Cut ends the connection before the end of the reply.
	Cut bool
	// Silent sends nothing after Text, until the client disconnects.
	Silent bool
	// Pause is waited before each piece.
	Pause time.Duration
}

// Format is a wire format with what speaks it on either side.
type Format struct {
	Name string
	// Path is the path below the server's address, for people.
	Path string
	// Open makes the provider under test.
	Open func(address string, idle time.Duration) (provider.Provider, error)
	// Validate is the strict validator of a request.
	Validate func(body []byte) error
	kind     string
	chat     string
	stream   func(s *Scene) []string // the pieces of a stream; the last one ends it
	failure  func(s *Scene) string   // the body of an error
	inBand   func(s *Scene) string
	models   func(w http.ResponseWriter, r *http.Request, names []string) bool
	// HasCache and HasKinds say whether the format reports cached tokens and kinds of errors.
	HasCache, HasKinds bool
	// WholeCalls says that a call comes in one piece.
	WholeCalls bool
	// NoTools and NoThinking name abilities that the vendor's models lack.
	NoTools, NoThinking bool
	// Vendor says that the format is a vendor's own way with another one.
	Vendor bool
}

// Formats are those of the codecs that speak over HTTP.
func Formats() []Format {
	return []Format{
		{
			Name: "openai", Path: "/v1", chat: "/v1/chat/completions", kind: "text/event-stream",
			stream: chatStream, failure: chatFailure,
			inBand: func(s *Scene) string { return "data: " + chatFailure(s) + "\n\n" }, models: chatModels,
			Validate: strict.Chat, HasCache: true, HasKinds: true,
			Open: func(address string, idle time.Duration) (provider.Provider, error) {
				return openai.New(openai.Config{
					Name: "openai", BaseURL: address + "/v1",
					APIKey: "sk-canary", Idle: idle,
				})
			},
		},
		{
			Name: "anthropic", chat: "/v1/messages", kind: "text/event-stream",
			stream: messagesStream, failure: messagesFailure,
			inBand:   func(s *Scene) string { return "event: error\ndata: " + messagesFailure(s) + "\n\n" },
			models:   messagesModels,
			Validate: strict.Anthropic, HasCache: true, HasKinds: true,
			Open: func(address string, idle time.Duration) (provider.Provider, error) {
				return anthropic.New(anthropic.Config{
					Name: "anthropic", BaseURL: address,
					APIKey: "sk-canary", Idle: idle,
				})
			},
		},
		{
			Name: "ollama", chat: "/api/chat", kind: "application/x-ndjson",
			stream: nativeStream, failure: nativeFailure,
			inBand: func(s *Scene) string { return nativeFailure(s) + "\n" }, models: nativeModels,
			Validate: strict.Ollama, WholeCalls: true,
			Open: func(address string, idle time.Duration) (provider.Provider, error) {
				return ollama.New(ollama.Config{Name: "ollama", BaseURL: address, APIKey: "sk-canary", Idle: idle})
			},
		},
		{
			Name: "gemini", chat: "/v1beta/models/scripted:streamGenerateContent", kind: "text/event-stream",
			stream: geminiStream, failure: geminiFailure,
			inBand: func(s *Scene) string { return "data: " + geminiFailure(s) + "\n\n" }, models: geminiModels,
			HasCache: true, WholeCalls: true,
			Validate: func(body []byte) error { return strict.Gemini("scripted", body) },
			Open: func(address string, idle time.Duration) (provider.Provider, error) {
				return gemini.New(gemini.Config{
					Name: "gemini", BaseURL: address + "/v1beta/",
					APIKey: "sk-canary", Idle: idle,
				})
			},
		},
		{
			Name: "responses", Path: "/v1", chat: "/v1/responses", kind: "text/event-stream",
			stream: responsesStream, failure: chatFailure,
			inBand: responsesInBand, models: chatModels, Validate: strict.Responses,
			HasCache: true, HasKinds: true,
			Open: func(address string, idle time.Duration) (provider.Provider, error) {
				return responses.New(responses.Config{
					Name: "responses", BaseURL: address + "/v1",
					APIKey: "sk-canary", Idle: idle,
				})
			},
		},
	}
}

// Server is a scripted model server over real HTTP. It is stateless: the number of replies in the
// thread selects the scene, and the last one repeats. Requests must pass the strict validator of
// the format.
type Server struct {
	*httptest.Server
	Models []string // what it has

	t        *testing.T
	format   *Format
	scenes   []Scene
	mu       sync.Mutex
	requests [][]byte
	headers  []http.Header
}

// NewServer starts a server that ends with the test.
func NewServer(t *testing.T, format *Format, scenes ...Scene) *Server {
	t.Helper()
	s := &Server{t: t, format: format, scenes: scenes, Models: []string{"scripted"}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Requests returns the bodies of the requests.
func (s *Server) Requests() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte{}, s.requests...)
}

// Header is that of the newest request.
func (s *Server) Header() http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.headers) == 0 {
		return http.Header{}
	}
	return s.headers[len(s.headers)-1]
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if r.URL.Path != s.format.chat {
		if !s.format.models(w, r, s.Models) {
			http.NotFound(w, r)
		}
		return
	}
	if err := s.format.Validate(body); err != nil {
		s.t.Errorf("a prompt that no strict server takes: %v\n%s", err, body)
	}
	s.mu.Lock()
	s.requests, s.headers = append(s.requests, body), append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	step := min(replies(body), len(s.scenes)-1)
	s.format.play(w, r, &s.scenes[step])
}

// replies counts the model's own turns in a request, without the fillers of a codec. In Responses
// consecutive items make one turn.
func replies(body []byte) (n int) {
	var request struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Contents []struct {
			Role string `json:"role"`
		} `json:"contents"`
		Input []struct {
			Type, Role string
		} `json:"input"`
	}
	_ = json.Unmarshal(body, &request) // the validator has read it
	for _, m := range request.Messages {
		if m.Role == "assistant" && string(m.Content) != `"`+openai.Noted+`"` {
			n++
		}
	}
	for _, c := range request.Contents {
		if c.Role == "model" {
			n++
		}
	}
	speaks := false
	for _, item := range request.Input {
		before := speaks
		if speaks = item.Role == "assistant" || item.Type == "reasoning" ||
			item.Type == "function_call"; speaks && !before {
			n++
		}
	}
	return n
}

func (f *Format) play(w http.ResponseWriter, r *http.Request, s *Scene) {
	if s.RetryAfter != "" {
		w.Header().Set("Retry-After", s.RetryAfter)
	}
	if s.Status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(s.Status)
		_, _ = io.WriteString(w, f.failure(s))
		return
	}
	w.Header().Set("Content-Type", f.kind)
	pieces := f.stream(s)
	end := len(pieces)
	if s.Cut || s.InBand || s.Silent {
		end--
	}
	for _, piece := range pieces[:end] {
		if s.Pause > 0 {
			select {
			case <-time.After(s.Pause):
			case <-r.Context().Done():
			}
		}
		_, _ = io.WriteString(w, piece)
		_ = http.NewResponseController(w).Flush()
	}
	switch {
	case s.InBand:
		_, _ = io.WriteString(w, f.inBand(s))
	case s.Silent:
		<-r.Context().Done()
	case s.Cut:
		panic(http.ErrAbortHandler) // the connection breaks, it is not closed in good order
	}
}

// Whole returns a scene as one text, as sent over the wire.
func (f *Format) Whole(s Scene) string { return strings.Join(f.stream(&s), "") }

// Serve answers one request with a text as it is, cut wherever the text is.
func (f *Format) Serve(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != f.chat {
			f.models(w, r, []string{"scripted"})
			return
		}
		w.Header().Set("Content-Type", f.kind)
		_, _ = io.WriteString(w, text)
	}
}

// Play answers one request with a scene, for servers that choose theirs themselves.
func (f *Format) Play(w http.ResponseWriter, r *http.Request, s Scene) { f.play(w, r, &s) }

func object(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("a scene that is no JSON: %v", err))
	}
	return string(data)
}
