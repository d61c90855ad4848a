package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/plain"
	"github.com/regie-run/regie/internal/text"
)

type indexFlags struct{ here, rebuild, json bool }

// indexCommand brings the index of a workspace up to date (spec 8.3).
func (c *command) indexCommand() *cobra.Command {
	var f indexFlags
	cmd := &cobra.Command{
		Use: "index", Args: usage(cobra.NoArgs),
		Short: c.text.T("Bring the index of this workspace's files up to date, for searches by meaning and by words"),
		Long:  c.text.T("Bring the index of this workspace's files up to date. Only files that are new or have changed are read; each search does the same before it looks, so this is for large workspaces, or to see what is not in the index.\n\nWhat ignore files name, what may hold a secret, what is no text or very large is left out. The index lies in the data directory and can be deleted at any time."),
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.index(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.rebuild, "rebuild", false, c.text.T("throw the index away and make it anew"))
	flags.BoolVar(&f.here, "here", false,
		c.text.T("allow the home directory, / or a directory of the system as the workspace"))
	flags.BoolVar(&f.json, "json", false, c.text.T("print JSON"))
	return cmd
}

func (c *command) index(ctx context.Context, f indexFlags) error {
	root, err := c.directory(f.here)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, endings()...)
	defer stop()
	x, err := app.OpenIndex(ctx, c.config, root)
	if err != nil {
		return err
	}
	bar := &indexBar{w: c.stderr, text: c.text, moves: isTerminal(c.stderr) &&
		os.Getenv("TERM") != "dumb", next: time.Now().Add(barEvery)}
	update := x.Update
	if f.rebuild {
		update = x.Rebuild
	}
	done, err := update(ctx, bar.show)
	var embedded app.IndexEmbedded
	if err == nil {
		embedded, err = x.Embed(ctx, bar.show)
	}
	bar.clear()
	err = errors.Join(err, x.Close())
	switch {
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(c.stderr, "regie: "+c.text.T(
			"stopped: what was indexed so far stays, and the next time goes on from there"))
		return exit{exitInterrupted}
	case err != nil:
		return err
	case f.json:
		return writeJSON(c.stdout, struct {
			Root string `json:"root"`
			app.IndexSummary
			Embedded app.IndexEmbedded `json:"embedded,omitzero"`
		}{root, done, embedded})
	}
	if err := c.indexed(root, &done); err != nil {
		return err
	}
	return c.embedded(&embedded)
}

// embedded says what came of the embedding, where an embedder is configured.
func (c *command) embedded(e *app.IndexEmbedded) error {
	p := &printer{w: c.stdout}
	if e.Model != "" {
		cost := c.text.T("of unknown price")
		if e.Priced {
			cost = c.text.T("$%s", regie.Dollars(e.Cost))
		}
		tokens := strconv.FormatInt(e.Tokens, 10)
		if e.Estimated {
			tokens = "≈ " + tokens
		}
		p.line("%s", c.text.T("embedded with %s: %d texts  tokens: %s  cost: %s", e.Model, e.Made, tokens, cost))
		if e.Cost > 0 {
			p.line("%s",
				c.text.T("what embedding costs is no part of what runs have spent; of the budgets those of a day bound it, by themselves"))
		}
	}
	if e.Cut > 0 {
		p.line("%s", c.text.T("too long for the model, embedded by their beginning: %d", e.Cut))
	}
	if e.Refused > 0 {
		p.line("%s", c.text.T("the model cannot embed, found by their words alone: %d", e.Refused))
	}
	switch {
	case !e.Reason.IsZero() && e.Missing > 0:
		p.line("%s", plain.Strip(c.text.T("not embedded yet, found by their words alone: %d (%s)",
			e.Missing, c.text.Sentence(e.Reason))))
	case !e.Reason.IsZero():
		p.line("%s", plain.Strip(c.text.Sentence(e.Reason)))
	}
	return p.err
}

// indexed says what came of it.
func (c *command) indexed(root string, s *app.IndexSummary) error {
	p := &printer{w: c.stdout}
	p.line("%s", c.text.T("index of %s", root))
	p.line("%s", c.text.T("files: %d  chunks: %d", s.Files, s.Chunks))
	p.line("%s", c.text.T("read: %d (%s)  changed: %d  removed: %d  time: %s", s.Read, amount(c.text, s.Bytes),
		s.Changed, s.Removed, s.Took.Round(time.Millisecond)))
	var left []string
	skipped := func(why app.IndexSkip, said func(n int64) string) {
		if n := s.Skipped[why]; n > 0 {
			left = append(left, said(n))
		}
	}
	skipped("ignored", func(n int64) string { return c.text.T("named by ignore files: %d", n) })
	skipped("secret", func(n int64) string { return c.text.T("may hold a secret: %d", n) })
	skipped("binary", func(n int64) string { return c.text.T("no text: %d", n) })
	skipped("large", func(n int64) string { return c.text.T("very large: %d", n) })
	skipped("long lines", func(n int64) string { return c.text.T("written by a program, in lines without end: %d", n) })
	skipped("name", func(n int64) string { return c.text.T("a name that no tool could use: %d", n) })
	skipped("system", func(n int64) string { return c.text.T("directories of the system, such as /proc: %d", n) })
	skipped("unreadable", func(n int64) string { return c.text.T("cannot be read: %d", n) })
	if len(left) > 0 {
		p.line("%s", c.text.T("not in the index: %s", strings.Join(left, ", ")))
	}
	if s.Skipped["beyond"] > 0 {
		p.line("%s", c.text.T("the workspace has more files, or deeper directories, than are looked at"))
	}
	return p.err
}

// amount writes a number of bytes for people.
func amount(t *text.Printer, bytes int64) string {
	const units = 3
	size, unit := float64(bytes), 0
	for size >= 1000 && unit < units {
		size, unit = size/1024, unit+1
	}
	whole, part, _ := strings.Cut(fmt.Sprintf("%.1f", size), ".")
	switch unit {
	case 0:
		return t.T("%d B", bytes)
	case 1:
		return t.T("%s.%s KiB", whole, part)
	case 2:
		return t.T("%s.%s MiB", whole, part)
	default:
		return t.T("%s.%s GiB", whole, part)
	}
}

const (
	barWidth = 30
	barEvery = 5 * time.Second // between two lines where nothing can move
)

// indexBar shows how far an update has come: a bar on a terminal, elsewhere a line now and then.
type indexBar struct {
	w     io.Writer
	text  *text.Printer
	moves bool
	drawn bool
	next  time.Time // of a line
}

func (b *indexBar) show(p app.IndexProgress) {
	if p.Waits {
		b.waits()
		return
	}
	if p.Total == 0 {
		return
	}
	line := b.text.T("%d of %d files, %s", p.Done, p.Total, amount(b.text, p.Bytes))
	if p.Embedding {
		line = b.text.T("%d of %d texts embedded", p.Done, p.Total)
	}
	if !b.moves {
		if now := time.Now(); now.After(b.next) {
			b.next = now.Add(barEvery)
			fmt.Fprintln(b.w, plain.Strip(b.text.T("indexing: %s", line)))
		}
		return
	}
	full := int(barWidth * p.Done / p.Total)
	if p.Walking { // there may be more to come
		full = min(full, barWidth-1)
	}
	fmt.Fprintf(b.w, "\r\x1b[K[%s%s] %s", strings.Repeat("█", full),
		strings.Repeat("·", barWidth-full), plain.Strip(line))
	b.drawn = true
}

// waits says why nothing moves.
func (b *indexBar) waits() {
	line := plain.Strip(b.text.T("waiting: another regie works on the index of this workspace"))
	if !b.moves {
		fmt.Fprintln(b.w, line)
		return
	}
	fmt.Fprint(b.w, "\r\x1b[K"+line)
	b.drawn = true
}

// clear takes the bar away.
func (b *indexBar) clear() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
