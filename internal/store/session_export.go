package store

import (
	"time"

	"github.com/regie-run/regie"
)

// ExportFormat names the format of a SessionExport (docs/export.md). It changes when an older
// reader would be misled.
const ExportFormat = "regie-session-1"

// SessionExport is all data for checking a session (spec 10.3), described in docs/export.md.
type SessionExport struct {
	Format     string           `json:"format"`
	ExportedAt time.Time        `json:"exported_at"`
	Workspace  regie.Workspace  `json:"workspace"`
	Session    regie.Session    `json:"session"`
	Messages   []MessageView    `json:"messages"`
	Pending    []MessageView    `json:"pending,omitempty"`
	Rounds     []ExportedRound  `json:"rounds"`
	Approvals  []regie.Approval `json:"approvals"`
	Questions  []regie.Question `json:"questions"`
	Undos      []regie.Undo     `json:"undos,omitempty"`
	Log        ExportedLog      `json:"log"`
	Blobs      []ExportedBlob   `json:"blobs"`
}

// ExportedRound is a round with its model calls; the messages have their replies and calls.
type ExportedRound struct {
	regie.Round
	Exchanges []ExportedExchange `json:"exchanges"`
}

// ExportedExchange is a model call with its failed attempts.
type ExportedExchange struct {
	regie.Exchange
	Attempts []regie.Attempt `json:"attempts,omitempty"`
}

// ExportedLog is a whole log, row by row, byte by byte.
type ExportedLog struct {
	OwnerID regie.ID      `json:"owner_id"`
	Head    int64         `json:"head"`
	MAC     string        `json:"mac"` // of the last row, hexadecimal
	Events  []ExportedRow `json:"events"`
}

// ExportedRow is a row of a log. Body is the exact text that was hashed, as a string; null where it
// was erased.
type ExportedRow struct {
	Seq        int64           `json:"seq"`
	Type       regie.EventType `json:"type"`
	AtMicros   int64           `json:"at_us"` // microseconds since 1970 UTC, as the MAC binds it
	BodySHA256 regie.Hash      `json:"body_sha256"`
	MAC        string          `json:"mac"` // hexadecimal
	Body       *string         `json:"body"`
}

// ExportedBlob is content that the session references: an attachment, a whole result, a prompt
// level. Data is null where it was erased.
type ExportedBlob struct {
	Hash regie.Hash `json:"sha256"`
	Size int64      `json:"size"`
	Data []byte     `json:"data"` // base64
}
