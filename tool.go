package regie

import (
	"encoding/json"
	"time"
)

// Risk says when an action asks (spec 4.2).
type Risk string

// The risks.
const (
	RiskInternal Risk = "internal" // confirm writes and deletes only
	RiskExternal Risk = "external" // always confirm
)

// ToolDefinition describes a tool to the model and to the pipeline (spec 4.2).
type ToolDefinition struct {
	// Name is the canonical name, toolkit.operation (decision 27).
	Name string `json:"name"`
	// Aliases are other names that a model may write (decision 27): those of spec 4.1, such as
	// TOOL_DATA.
	Aliases     []string        `json:"aliases,omitempty"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema
	Kind        CallKind        `json:"kind"`
	Class       EffectClass     `json:"class"`
	Risk        Risk            `json:"risk"`
	// Role is set for the few tools that steer the loop.
	Role ToolRole `json:"role,omitempty"`
	// Cacheable lets a repeated query of a round return the earlier result (decision 9); reads of
	// files never are.
	Cacheable bool `json:"cacheable,omitempty"`
	// Polling says that the model repeats the query until something happens: an unchanged answer is
	// no sign of a loop (decision 30).
	Polling bool `json:"polling,omitempty"`
	// ParallelSafe lets the call run in parallel with its parallel-safe neighbours (decision 23).
	ParallelSafe bool `json:"parallel_safe"`
	// Local says that a query only reads local data, such as files or the store: it may run before
	// its reply is stored (decision 4 demands a commit before effects, and such a query has none).
	Local bool `json:"-"`
	// Timeout bounds one attempt; zero means 10 s (spec 4.3).
	Timeout time.Duration `json:"-"`
	// MaxResult bounds what the model sees of a result, in bytes; zero means 32 KiB. The whole is
	// kept in the store.
	MaxResult int `json:"-"`
}
