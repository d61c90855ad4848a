package app

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// serverLog gives a log what net/http says of its own accord, which would else stand as raw lines
// on the terminal of whoever serves.
func serverLog(to *slog.Logger) *log.Logger { return log.New(lines{to}, "", 0) }

type lines struct{ to *slog.Logger }

// Write implements io.Writer. What clients do wrong with TLS, or leave in the middle of it, is for
// who looks for it; a panic is a bug of ours.
func (l lines) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	switch {
	case bytes.HasPrefix(line, []byte("http: TLS handshake error")):
		level = slog.LevelDebug
	case bytes.HasPrefix(line, []byte("http: panic")), bytes.HasPrefix(line, []byte("http2: panic")):
		level = slog.LevelError
	}
	l.to.Log(context.Background(), level, "the HTTP server has something to say", "said", string(bytes.TrimSpace(line)))
	return len(line), nil
}
