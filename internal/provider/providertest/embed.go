package providertest

import (
	"encoding/json"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/gemini"
	"github.com/regie-run/regie/internal/provider/ollama"
	"github.com/regie-run/regie/internal/provider/openai"
	"github.com/regie-run/regie/internal/provider/providertest/strict"
)

// EmbedFormat is a wire format of embeddings with what speaks it on either side.
type EmbedFormat struct {
	// Name names the type or vendor, Model the requested model; Path is the path below the server's
	// address.
	Name, Model, Path string
	// Open makes the embedder under test, with as many dimensions as the server has.
	Open func(address string, idle time.Duration) (provider.Embedder, error)
	// Counts says that answers tell the tokens.
	Counts   bool
	path     string
	validate func(body []byte) error
	texts    func(body []byte) (texts []string, task string)
	answer   func(vectors [][]float32, tokens int) string
	failure  func(s *Scene) string
	// before is the model's prefix of a document and a query, task the name of the purpose in the
	// request.
	before, task map[provider.Purpose]string
	// tooLong is how the server refuses a text that its model does not hold.
	tooLong Scene
}

// EmbedFormats are those of the codecs that embed, each vendor's in its own way.
func EmbedFormats() []EmbedFormat {
	const model = "nomic-embed-text"
	nomic := map[provider.Purpose]string{provider.ForDocument: "search_document: ", provider.ForQuery: "search_query: "}
	out := []EmbedFormat{
		{
			Name: "ollama", Model: model, path: "/api/embed", Counts: true, before: nomic,
			validate: strict.OllamaEmbed,
			texts:    inputTexts, answer: ollamaVectors, failure: nativeFailure,
			tooLong: Scene{Status: http.StatusBadRequest, Message: "the input length exceeds the context length"},
			Open: func(address string, idle time.Duration) (provider.Embedder, error) {
				p, err := ollama.New(ollama.Config{Name: "ollama", BaseURL: address, APIKey: "sk-canary", Idle: idle})
				return embedderOf(p, err, model, 0)
			},
		},
	}
	for model, task := range map[string]map[provider.Purpose]string{
		"gemini-embedding-001": {provider.ForDocument: "RETRIEVAL_DOCUMENT", provider.ForQuery: "RETRIEVAL_QUERY"},
		"gemini-embedding-2":   nil,
	} {
		f := EmbedFormat{
			Name: "gemini", Model: model, path: "/v1beta/models/" + model + ":batchEmbedContents", task: task,
			texts: geminiTexts, answer: geminiVectors(task == nil), failure: geminiFailure,
			Counts: task == nil, validate: func(body []byte) error { return strict.GeminiEmbed(model, body) },
			tooLong: Scene{
				Status: http.StatusBadRequest, Kind: "INVALID_ARGUMENT",
				Message: "The input token count exceeds the maximum number of tokens allowed",
			},
			Open: func(address string, idle time.Duration) (provider.Embedder, error) {
				p, err := gemini.New(gemini.Config{Name: "gemini", BaseURL: address, APIKey: "sk-canary", Idle: idle})
				return embedderOf(p, err, model, EmbedDimensions)
			},
		}
		if task == nil {
			f.before = map[provider.Purpose]string{
				provider.ForDocument: "title: none | text: ",
				provider.ForQuery:    "task: search result | query: ",
			}
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b EmbedFormat) int { return strings.Compare(a.Model, b.Model) })
	for _, vendor := range []string{"", "openai", "mistral", "openrouter", "vllm", "lmstudio", "llamacpp"} {
		failure := chatFailure
		if v, ok := framings[vendor]; ok {
			failure = func(s *Scene) string { return object(v.failure(s)) }
		}
		dimensions := EmbedDimensions
		f := EmbedFormat{
			Name: vendor, Model: model, Path: "/v1", path: "/v1/embeddings", Counts: true, before: nomic,
			texts: inputTexts, answer: openAIVectors, failure: failure,
			validate: func(body []byte) error { return strict.ChatEmbed(vendor, body) },
			tooLong: Scene{
				Status:  http.StatusBadRequest,
				Message: "This model's maximum context length is 8192 tokens, however you requested 9000 tokens",
			},
		}
		switch vendor {
		case "llamacpp":
			f.tooLong = Scene{
				Status:  http.StatusInternalServerError,
				Message: "input (992 tokens) is too large to process. increase the physical batch size (current batch size: 512)",
			}
			dimensions = 0
		case "lmstudio":
			dimensions = 0
		}
		f.Open = func(address string, idle time.Duration) (provider.Embedder, error) {
			p, err := openai.New(openai.Config{
				Name: vendor, Vendor: vendor, BaseURL: address + "/v1",
				APIKey: "sk-canary", Idle: idle,
			})
			return embedderOf(p, err, model, dimensions)
		}
		out = append(out, f)
	}
	return out
}

func embedderOf(p provider.Embeds, err error, model string, dimensions int) (provider.Embedder, error) {
	if err != nil {
		return nil, err
	}
	return p.Embedder(model, dimensions)
}

// EmbedDimensions are those of the vectors of an EmbedServer.
const EmbedDimensions = 64

// EmbedServer is a scripted server of embeddings over real HTTP. Texts with common words get near
// vectors, so search results are predictable. Requests must pass the strict validator of the
// format.
type EmbedServer struct {
	*httptest.Server
	// Answer replaces the server's own answer to a request if it returns true. Requests count from
	// 0.
	Answer func(w http.ResponseWriter, r *http.Request, request int, vectors [][]float32) bool
	// Meaning is the vector of a text as it comes; nil is the function of that name.
	Meaning func(text string) []float32
	// Longest is the longest text in bytes that the model holds; 0 bounds it not.
	Longest int

	t        *testing.T
	format   *EmbedFormat
	mu       sync.Mutex
	requests [][]string
	tasks    []string
	header   http.Header
}

// NewEmbedServer starts a server that ends with the test.
func NewEmbedServer(t *testing.T, format *EmbedFormat) *EmbedServer {
	t.Helper()
	s := &EmbedServer{t: t, format: format}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// Requests are the texts of each request, as they came.
func (s *EmbedServer) Requests() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP implements http.Handler.
func (s *EmbedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.URL.Path != s.format.path {
		http.NotFound(w, r)
		return
	}
	if err := s.format.validate(body); err != nil {
		s.t.Errorf("a request that no strict server takes: %v\n%s", err, body)
	}
	texts, task := s.format.texts(body)
	s.mu.Lock()
	number := len(s.requests)
	s.requests, s.tasks, s.header = append(s.requests, texts), append(s.tasks, task), r.Header.Clone()
	s.mu.Unlock()
	vectors := make([][]float32, len(texts))
	meaning := s.Meaning
	if meaning == nil {
		meaning = Meaning
	}
	for i, text := range texts {
		vectors[i] = meaning(text)
	}
	if s.Answer != nil && s.Answer(w, r, number, vectors) {
		return
	}
	if s.Longest > 0 && slices.ContainsFunc(texts, func(text string) bool { return len(text) > s.Longest }) {
		s.format.Refuse(w, s.format.tooLong)
		return
	}
	s.format.Reply(w, vectors)
}

// Reply answers with vectors.
func (f *EmbedFormat) Reply(w http.ResponseWriter, vectors [][]float32) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, f.answer(vectors, 7*len(vectors)))
}

// Refuse answers with the error of a scene.
func (f *EmbedFormat) Refuse(w http.ResponseWriter, scene Scene) {
	w.Header().Set("Content-Type", "application/json")
	if scene.RetryAfter != "" {
		w.Header().Set("Retry-After", scene.RetryAfter)
	}
	w.WriteHeader(scene.Status)
	_, _ = io.WriteString(w, f.failure(&scene))
}

// Meaning is the vector of a text: the sum of one for each of its words, which has a length other
// than 1.
func Meaning(text string) []float32 {
	out := make([]float32, EmbedDimensions)
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for _, word := range append(words, "") {
		h := fnv.New64a()
		_, _ = io.WriteString(h, word)
		dice := rand.New(rand.NewPCG(h.Sum64(), 1))
		for i := range out {
			out[i] += float32(dice.NormFloat64())
		}
	}
	return out
}

func inputTexts(body []byte) (texts []string, task string) {
	var in struct {
		Input []string `json:"input"`
	}
	_ = json.Unmarshal(body, &in) // the validator has read it
	return in.Input, ""
}

func geminiTexts(body []byte) (texts []string, task string) {
	var in struct {
		Requests []struct {
			Content struct {
				Parts []struct {
					Text string `json:"text"`
				} `json:"parts"`
			} `json:"content"`
			Task string `json:"taskType"`
		} `json:"requests"`
	}
	_ = json.Unmarshal(body, &in) // the validator has read it
	for i := range in.Requests {
		texts, task = append(texts, in.Requests[i].Content.Parts[0].Text), in.Requests[i].Task
	}
	return texts, task
}

func ollamaVectors(vectors [][]float32, tokens int) string {
	return object(fields{
		"model": "nomic-embed-text", "embeddings": vectors, "total_duration": 14143917,
		"load_duration": 1019500, "prompt_eval_count": tokens,
	})
}

func geminiVectors(counts bool) func(vectors [][]float32, tokens int) string {
	return func(vectors [][]float32, tokens int) string {
		list := []any{}
		for _, v := range vectors {
			list = append(list, fields{"values": v})
		}
		answer := fields{"embeddings": list}
		if counts {
			answer["usageMetadata"] = fields{"promptTokenCount": tokens}
		}
		return object(answer)
	}
}

// openAIVectors answers in reverse order, with the index of each.
func openAIVectors(vectors [][]float32, tokens int) string {
	data := []any{}
	for i, v := range slices.Backward(vectors) {
		data = append(data, fields{"object": "embedding", "index": i, "embedding": v})
	}
	return object(fields{
		"object": "list", "data": data, "model": "m",
		"usage": fields{"prompt_tokens": tokens, "total_tokens": tokens},
	})
}
