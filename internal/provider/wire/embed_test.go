package wire_test

import (
	"testing"

	"github.com/regie-run/regie/internal/provider"
	"github.com/regie-run/regie/internal/provider/wire"
)

// TestInstruction: a model is known by its family, whoever serves it and however its version is
// called.
func TestInstruction(t *testing.T) {
	for model, want := range map[string][2]string{
		"nomic-embed-text":                        {"search_query: ", "search_document: "},
		"nomic-embed-text:v1.5":                   {"search_query: ", "search_document: "},
		"nomic-ai/nomic-embed-text-v1.5":          {"search_query: ", "search_document: "},
		"text-embedding-nomic-embed-text-v1.5":    {"search_query: ", "search_document: "},
		"text-embedding-3-small":                  {},
		"mistral-embed":                           {},
		"BAAI/bge-m3":                             {},
		"BAAI/bge-base-en-v1.5":                   {"Represent this sentence for searching relevant passages: ", ""},
		"intfloat/multilingual-e5-small":          {"query: ", "passage: "},
		"Qwen/Qwen3-Embedding-0.6B":               {"Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:", ""},
		"snowflake-arctic-embed2:568m":            {"query: ", ""},
		"snowflake-arctic-embed:22m":              {"Represent this sentence for searching relevant passages: ", ""},
		"gemini-embedding-001":                    {},
		"models/gemini-embedding-2":               {"task: search result | query: ", "title: none | text: "},
		"google/embeddinggemma-300m":              {"task: search result | query: ", "title: none | text: "},
		"intfloat/multilingual-e5-large-instruct": {"Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ", ""},
	} {
		if got := [2]string{wire.Instruction(model, provider.ForQuery), wire.Instruction(model, provider.ForDocument)}; got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}
