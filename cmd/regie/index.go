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

// newIndexCommand brings the index of a workspace up to date (spec 8.3).
func newIndexCommand(env *environment) *cobra.Command {
	var here, rebuild, asJSON bool
	cmd := &cobra.Command{
		Use: "index", Args: arguments(0, 0),
		Short: env.T("Bring the index of this workspace's files up to date, for searches by meaning and by words"),
		Long:  env.T("Bring the index of this workspace's files up to date. Only files that are new or have changed are read; each search does the same before it looks, so this is for large workspaces, or to see what is not in the index.\n\nWhat ignore files name, what may hold a secret, what is no text or very large is left out. The index lies in the data directory and can be deleted at any time."),
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := env.localWorkspace(here)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals()...)
			defer stop()
			done, embedded, err := updateIndex(ctx, env, root, rebuild)
			switch {
			case errors.Is(err, context.Canceled):
				fmt.Fprintln(env.stderr, "regie: "+env.T(
					"stopped: what was indexed so far stays, and the next time goes on from there"))
				return exit{exitInterrupted}
			case err != nil:
				return err
			case asJSON:
				return writeJSON(env.stdout, struct {
					Root string `json:"root"`
					app.IndexSummary
					Embedded app.IndexEmbedded `json:"embedded,omitzero"`
				}{root, done, embedded})
			}
			p := env.printer()
			printIndexed(p, root, &done)
			printEmbedded(p, &embedded)
			return p.err
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, env.T("throw the index away and make it anew"))
	addHereFlag(env, cmd, &here)
	addJSONFlag(env, cmd, &asJSON)
	return cmd
}

// updateIndex updates or rebuilds the index of a workspace, and embeds what is new.
func updateIndex(ctx context.Context, env *environment, root string, rebuild bool) (
	done app.IndexSummary, embedded app.IndexEmbedded, err error,
) {
	x, err := app.OpenIndex(ctx, env.config, root)
	if err != nil {
		return done, embedded, err
	}
	bar, update := newIndexBar(env), x.Update
	if rebuild {
		update = x.Rebuild
	}
	if done, err = update(ctx, bar.show); err == nil {
		embedded, err = x.Embed(ctx, bar.show)
	}
	bar.clear()
	return done, embedded, errors.Join(err, x.Close())
}

// printEmbedded prints the result of embedding, where an embedder is configured.
func printEmbedded(p *printer, e *app.IndexEmbedded) {
	if e.Model != "" {
		cost := p.text.T("of unknown price")
		if e.Priced {
			cost = p.text.T("$%s", regie.Dollars(e.Cost))
		}
		tokens := strconv.FormatInt(e.Tokens, 10)
		if e.Estimated {
			tokens = "≈ " + tokens
		}
		p.textf("", "embedded with %s: %d texts  tokens: %s  cost: %s", e.Model, e.Made, tokens, cost)
		if e.Cost > 0 {
			p.textf("", "what embedding costs is no part of what runs have spent; of the budgets those of a day bound it, by themselves")
		}
	}
	if e.Cut > 0 {
		p.textf("", "too long for the model, embedded by their beginning: %d", e.Cut)
	}
	if e.Refused > 0 {
		p.textf("", "the model cannot embed, found by their words alone: %d", e.Refused)
	}
	switch {
	case !e.Reason.IsZero() && e.Missing > 0:
		p.textf("", "not embedded yet, found by their words alone: %d (%s)", e.Missing, p.text.Sentence(e.Reason))
	case !e.Reason.IsZero():
		p.line("%s", p.text.Sentence(e.Reason))
	}
}

// printIndexed prints what an update read, and what is not in the index.
func printIndexed(p *printer, root string, s *app.IndexSummary) {
	p.textf("", "index of %s", root)
	p.textf("", "files: %d  chunks: %d", s.Files, s.Chunks)
	p.textf("", "read: %d (%s)  changed: %d  removed: %d  time: %s", s.Read, amount(p.text, s.Bytes),
		s.Changed, s.Removed, s.Took.Round(time.Millisecond))
	var left []string
	count := func(n int64, said string) {
		if n > 0 {
			left = append(left, said)
		}
	}
	t := p.text
	count(s.Skipped["ignored"], t.T("named by ignore files: %d", s.Skipped["ignored"]))
	count(s.Skipped["secret"], t.T("may hold a secret: %d", s.Skipped["secret"]))
	count(s.Skipped["binary"], t.T("no text: %d", s.Skipped["binary"]))
	count(s.Skipped["large"], t.T("very large: %d", s.Skipped["large"]))
	count(s.Skipped["long lines"], t.T("written by a program, in lines without end: %d", s.Skipped["long lines"]))
	count(s.Skipped["name"], t.T("a name that no tool could use: %d", s.Skipped["name"]))
	count(s.Skipped["system"], t.T("directories of the system, such as /proc: %d", s.Skipped["system"]))
	count(s.Skipped["unreadable"], t.T("cannot be read: %d", s.Skipped["unreadable"]))
	if len(left) > 0 {
		p.textf("", "not in the index: %s", strings.Join(left, ", "))
	}
	if s.Skipped["beyond"] > 0 {
		p.textf("", "the workspace has more files, or deeper directories, than are looked at")
	}
}

// amount formats a number of bytes.
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

const barWidth = 30

// indexBar shows the progress of an update on a terminal.
type indexBar struct {
	w     io.Writer
	text  *text.Printer
	moves bool
	drawn bool
}

func newIndexBar(env *environment) *indexBar {
	return &indexBar{w: env.stderr, text: env.text, moves: isTerminal(env.stderr) && os.Getenv("TERM") != "dumb"}
}

func (b *indexBar) show(p app.IndexProgress) {
	if p.Total == 0 || !b.moves {
		return
	}
	line := b.text.T("%d of %d files, %s", p.Done, p.Total, amount(b.text, p.Bytes))
	if p.Embedding {
		line = b.text.T("%d of %d texts embedded", p.Done, p.Total)
	}
	full := int(barWidth * p.Done / p.Total)
	if p.Walking { // there may be more to come
		full = min(full, barWidth-1)
	}
	b.write("["+strings.Repeat("█", full)+strings.Repeat("·", barWidth-full)+"] ", line)
}

// write draws over the bar, or writes a line without a terminal.
func (b *indexBar) write(bar, line string) {
	if b.moves {
		fmt.Fprint(b.w, "\r\x1b[K"+bar+plain.Strip(line))
		b.drawn = true
	} else {
		fmt.Fprintln(b.w, plain.Strip(line))
	}
}

// clear removes the bar.
func (b *indexBar) clear() {
	if b.drawn {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
