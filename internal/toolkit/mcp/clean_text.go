package mcp

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/regie-run/regie/internal/sanitize"
)

// hidden is what a secret is replaced by.
const hidden = "[hidden]"

// cleanText makes text of a server's words: without what a reader does not see and a model reads
// all the same (control characters, bidirectional marks, tags), at most n bytes. Line breaks and
// tabs stay; what is not UTF-8 becomes U+FFFD.
func cleanText(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if sanitize.Hidden(r) {
			return -1
		}
		return r
	}, sanitize.Clip(s, 4*n))
	return sanitize.Clip(strings.TrimSpace(s), n)
}

// hideSecrets hides the configuration's secrets in a text.
func hideSecrets(s string, secrets []string) string {
	for _, secret := range secrets {
		s = strings.ReplaceAll(s, secret, hidden)
	}
	return s
}

// tail keeps the end of what is written to it, for errors to quote. It may be used from many
// goroutines.
type tail struct {
	mu   sync.Mutex
	data []byte
	cut  bool
}

const (
	maxTail  = 16 << 10 // bytes that are kept
	maxQuote = 600      // bytes that an error shows
)

// Write implements io.Writer and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > maxTail {
		p, t.cut = p[len(p)-maxTail:], true
	}
	if over := len(t.data) + len(p) - maxTail; over > 0 {
		t.data, t.cut = append(t.data[:0], t.data[over:]...), true
	}
	t.data = append(t.data, p...)
	return n, nil
}

// lastLines returns the last lines, clean and without the secrets; "" where nothing was written.
func (t *tail) lastLines(secrets []string) string {
	t.mu.Lock()
	whole, cut := string(t.data), t.cut
	t.mu.Unlock()
	if _, rest, ok := strings.Cut(whole, "\n"); cut && ok {
		whole = rest // the first line has lost its beginning, and with it what a secret is recognised by
	}
	text := cleanText(hideSecrets(strings.ToValidUTF8(whole, ""), secrets), maxTail)
	if len(text) <= maxQuote {
		return text
	}
	text = text[len(text)-maxQuote:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "…" + text
}
