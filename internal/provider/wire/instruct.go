package wire

import (
	"strings"

	"github.com/regie-run/regie/internal/provider"
)

// instructions are the prefixes that embedding models expect, from their makers' cards. A model
// finds less without its prefix, and no error reports that. A model not in the list needs none, or
// its needs are unknown.
var instructions = []struct {
	// family is how the model's name begins, without its maker and in small letters.
	family, query, document string
}{
	{"nomic-embed-text", "search_query: ", "search_document: "},
	{"mxbai-embed", passages, ""},
	{"snowflake-arctic-embed2", "query: ", ""}, // as Ollama calls the second generation
	{"snowflake-arctic-embed-l-v2", "query: ", ""},
	{"snowflake-arctic-embed-m-v2", "query: ", ""},
	{"snowflake-arctic-embed", passages, ""},
	{"bge-m3", "", ""},
	{"bge-small-en", passages, ""},
	{"bge-base-en", passages, ""},
	{"bge-large-en", passages, ""},
	{"multilingual-e5-large-instruct", webSearch + "\nQuery: ", ""},
	{"multilingual-e5", "query: ", "passage: "},
	{"e5-", "query: ", "passage: "},
	{"qwen3-embedding", webSearch + "\nQuery:", ""},
	{"embeddinggemma", "task: search result | query: ", "title: none | text: "},
	{"gemini-embedding-2", "task: search result | query: ", "title: none | text: "},
}

const (
	passages  = "Represent this sentence for searching relevant passages: "
	webSearch = "Instruct: Given a web search query, retrieve relevant passages that answer the query"
)

// Instruction returns the prefix of a text for a model on any server; it may be empty.
func Instruction(model string, purpose provider.Purpose) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	// as LM Studio calls what embeds: text-embedding-nomic-embed-text-v1.5
	name = strings.TrimPrefix(name, "text-embedding-")
	for i := range instructions {
		if in := &instructions[i]; strings.HasPrefix(name, in.family) {
			if purpose == provider.ForQuery {
				return in.query
			}
			return in.document
		}
	}
	return ""
}
