package openai_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/openai"
)

// TestNoEmbedder: who has no embeddings, or cannot shorten them, is told so before anybody is
// asked.
func TestNoEmbedder(t *testing.T) {
	for _, vendor := range append(openai.Vendors(), "", "somebody") {
		p, err := openai.New(openai.Config{Name: "lab", Vendor: vendor, BaseURL: "http://127.0.0.1:1/v1"})
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Embedder("m", 0)
		none := vendor == "groq" || vendor == "deepseek" || vendor == "perplexity"
		if none != (regie.CodeOf(err) == regie.CodeBadRequest) || !none && (err != nil || !strings.Contains(e.Space(), "m")) {
			t.Errorf("%q: %v", vendor, err)
			continue
		}
		if none {
			continue
		}
		if texts, bytes := e.Batch(); texts < 1 || bytes < 1024 {
			t.Errorf("%q: batches of %d texts and %d bytes", vendor, texts, bytes)
		}
		_, err = p.Embedder("m", 64)
		if fixed := vendor == "lmstudio" || vendor == "llamacpp"; fixed != (regie.CodeOf(err) == regie.CodeBadRequest) {
			t.Errorf("%q, shortened: %v", vendor, err)
		}
		if _, err = p.Embedder(" ", 0); regie.CodeOf(err) != regie.CodeNoModel {
			t.Errorf("%q, no model: %v", vendor, err)
		}
		if _, err = p.Embedder("m", -1); err == nil {
			t.Errorf("%q, less than no dimensions: taken", vendor)
		}
	}
}

// TestSpace: vectors of one model at a vendor are the same wherever the vendor is reached; those of
// servers of one's own are not.
func TestSpace(t *testing.T) {
	space := func(vendor, address, model string, dimensions int) string {
		p, err := openai.New(openai.Config{Name: "lab", Vendor: vendor, BaseURL: address})
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Embedder(model, dimensions)
		if err != nil {
			t.Fatal(err)
		}
		return e.Space()
	}
	base := space("openai", "https://a/v1", "m", 0)
	if space("openai", "https://b/v1", "m", 0) != base || space("openai", "https://a/v1", "m", 64) == base || space("openai", "https://a/v1", "n", 0) == base {
		t.Error(base)
	}
	if space("vllm", "http://a/v1", "m", 0) == space("vllm", "http://b/v1", "m", 0) || space("", "http://a/v1", "m", 0) == space("", "http://b/v1", "m", 0) {
		t.Error("two servers of one's own have one space")
	}
}

// TestEmbeddingErrorUnder200: routers report what went wrong behind them under status 200.
func TestEmbeddingErrorUnder200(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"error":{"message":"No endpoints found for m","code":404}}`))
	}))
	defer server.Close()
	p, err := openai.New(openai.Config{Name: "lab", Vendor: "openrouter", BaseURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Embedder("m", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Embed(t.Context(), provider.ForQuery, []string{"a"}); provider.CodeOf(err) != regie.CodeProviderRejected || !strings.Contains(err.Error(), "No endpoints found") {
		t.Error(err)
	}
}
