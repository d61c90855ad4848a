package dispatch

import (
	"time"

	"github.com/regie-run/regie"
)

// Where a search looks, and how.
const (
	SearchSessions = "sessions"
	SearchFiles    = "files"
	SearchExact    = "exact"    // this very text, whatever its capitals
	SearchRegex    = "regex"    // of files: lines that an expression of RE2 matches, whatever its capitals
	SearchSemantic = "semantic" // of files: by words and their stems, and by meaning where an embedder is configured
)

// SearchRequest is what is looked for.
type SearchRequest struct {
	WorkspaceID regie.ID `query:"workspace" doc:"The id of the workspace."`
	Text        string   `query:"q" doc:"What is looked for."`
	In          string   `query:"in" enum:"all sessions files" doc:"Where: all (the default), sessions or files."`
	Mode        string   `query:"mode" enum:"exact regex semantic" doc:"How files are searched: exact, this very text whatever its capitals (the default), regex, an expression of RE2, or semantic, by words, their stems, and by meaning where an embedder is configured. What was said is searched by exact text."`
	Case        bool     `query:"case" doc:"Capitals count, in files."`
	Under       string   `query:"under" doc:"A directory or a file of the workspace to look in; all of it where it is left out."`
	Limit       int      `query:"limit" min:"1" max:"100" doc:"How many of each at most; 20 where it is left out."`
	Before      regie.ID `query:"cursor" doc:"next_cursor of the answer before: goes on with what was said."`
}

// Found is what a search found.
type Found struct {
	// Messages are what was said, the newest first. Next goes on behind them: there may be more.
	Messages []FoundMessage `json:"messages"`
	Next     string         `json:"next_cursor,omitempty"`
	// Files are parts of files, by Mode: lines that hold the text in the order of the tree, or what
	// answers it best first. More says that there are others, or that not everything was looked
	// through.
	Files []FoundFile `json:"files"`
	More  bool        `json:"more_files,omitempty"`
	// Mode is how files were searched: exact, regex, lexical or hybrid; Reason says why not by
	// meaning, where that was to be expected.
	Mode   string         `json:"mode,omitempty"`
	Reason regie.Sentence `json:"reason,omitzero"`
}

// FoundMessage is a message that holds what was looked for.
type FoundMessage struct {
	SessionID regie.ID     `json:"session_id"`
	Session   string       `json:"session"` // its name
	MessageID regie.ID     `json:"message_id"`
	Seq       int64        `json:"seq"`
	Sender    regie.Sender `json:"sender"`
	At        time.Time    `json:"at"`
	// Text is the part of it around the first place.
	Text string `json:"text"`
}

// FoundFile is a part of a file.
type FoundFile struct {
	Path   string  `json:"path"`
	Start  int     `json:"start"` // lines, from 1
	End    int     `json:"end"`
	Symbol string  `json:"symbol,omitempty"` // the declaration or the headings that it stands under
	Text   string  `json:"text"`
	Score  float64 `json:"score,omitempty"` // larger is better; it means nothing beyond one answer
}

// ProviderModels is a configured provider with the models that it has.
type ProviderModels struct {
	Name   string `json:"provider_id"`
	Type   string `json:"type"`
	Chosen bool   `json:"chosen,omitempty"` // answers where nothing else is said
	// Reachable says that it has answered; Code and Error are why not, Said is that as it is
	// translated.
	Reachable bool           `json:"reachable"`
	Code      regie.Code     `json:"code,omitempty"`
	Error     string         `json:"error,omitempty"`
	Said      regie.Sentence `json:"said,omitzero"`
	// Sizes are the other names of models: small, medium, large and what files say.
	Sizes  map[string]string `json:"sizes,omitempty"`
	Models []ModelView       `json:"models"`
}

// ModelView is a model with what it can do and what it costs.
type ModelView struct {
	Name          string `json:"name"`
	Chosen        bool   `json:"chosen,omitempty"`
	Tools         bool   `json:"tools"`
	Thinking      bool   `json:"thinking"`
	Embeds        bool   `json:"embeds,omitempty"`
	ContextTokens int    `json:"context_tokens,omitempty"` // left out where nobody knows
	MaxOutput     int    `json:"max_output,omitempty"`     // tokens; left out where nobody knows
	// Price is in millionths of a US dollar for a million tokens; absent where it is unknown, which
	// differs from 0 (spec 6.3).
	Price *ModelPrice `json:"price,omitempty"`
}

// ModelPrice is what a model costs.
type ModelPrice struct {
	Input       int64 `json:"input_microusd"`
	CachedInput int64 `json:"cached_input_microusd"`
	CacheWrite  int64 `json:"cache_write_microusd"`
	Output      int64 `json:"output_microusd"`
	// UpTo is the largest prompt that the price is for, in tokens; 0 bounds it not.
	UpTo int64 `json:"up_to_tokens,omitempty"`
}
