package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index/vector"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider"
)

// Money is what embedding costs and may cost (decision 29).
type Money struct {
	Price price.Price
	Known bool // what it costs is known
	// Capped says that a budget is in force: then an embedder of unknown price is not asked.
	Capped bool
	// PerDay is what embedding for this workspace may cost in a day (UTC), in millionths of a US
	// dollar; 0 does not bound it. What rounds spend is counted elsewhere, and not here.
	PerDay int64
}

// Embedded is the result of an embedding run and the state of the index after it.
type Embedded struct {
	Model   string `json:"model,omitempty"` // empty where no embedder is configured
	Made    int64  `json:"made"`            // texts that were embedded
	Cut     int64  `json:"cut"`             // of those, texts that the model truncated
	Refused int64  `json:"refused"`         // texts that the model cannot embed
	Missing int64  `json:"missing"`         // chunks that have not been embedded yet
	Tokens  int64  `json:"tokens"`
	// Estimated says that the server counted no tokens; they, and the cost, are our estimate.
	Estimated bool `json:"estimated,omitempty"`
	// Cost is in millionths of a US dollar; it means nothing unless Priced.
	Cost   int64 `json:"cost_microusd"`
	Priced bool  `json:"priced"`
	// Reason says why chunks are missing.
	Reason regie.Sentence `json:"reason,omitzero"`
	// Code is that of the reason, where it is an error's.
	Code regie.Code `json:"code,omitempty"`
}

// Missing returns how many chunks the embedder has not been given yet; 0 where none is configured.
// It returns the codes of Open.
func (x *Index) Missing(ctx context.Context) (n int64, err error) {
	if x.config.Embedder == nil {
		return 0, nil
	}
	err = x.useDatabase(ctx, false, func(db *database) error {
		s, err := readSpace(ctx, db.read, x.config.Embedder.Space())
		if err == nil {
			n, err = countMissing(ctx, db.read, s)
		}
		return err
	})
	return n, err
}

// Free reports whether embedding costs nothing.
func (x *Index) Free() bool { return x.config.Money.Known && x.config.Money.Price.Free() }

// Embed embeds the chunks that have no vector yet, the oldest first. It stores each batch before it
// sends the next, so a kill pays for at most one batch twice. It embeds no text twice. Other
// goroutines may search and update meanwhile; Embed includes the chunks that they add. One Embed
// runs at a time, across processes. A failing embedder is no error: Reason says why. progress may
// be nil; Embed calls it on the caller's goroutine. Embed returns the context's error and the codes
// of Open.
func (x *Index) Embed(ctx context.Context, progress func(Progress)) (out Embedded, err error) {
	if x.config.Embedder == nil {
		return out, nil
	}
	unlock, err := lockFile(ctx, x.config.Path+".embed")
	if err != nil {
		return out, explainError(err, x.config.Path)
	}
	defer unlock()
	out.Model, out.Priced = x.config.Embedder.Model(), x.config.Money.Known
	e := &embedding{index: x, embedder: x.config.Embedder, out: &out, progress: progress}
	if err = checkAffordable(e.embedder, &x.config.Money); err == nil {
		err = e.embedAll(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case isEmbedders(err):
		out.Reason, out.Code = reasonOf(err)
	case err != nil:
		return out, err
	}
	out.Missing, err = x.Missing(ctx)
	return out, err
}

// embedding is one Embed under way. It belongs to one goroutine.
type embedding struct {
	index    *Index
	embedder provider.Embedder
	out      *Embedded
	progress func(Progress)
	done     int64
}

// pending is a text that has no vector.
type pending struct {
	hash []byte
	text string
}

// batch is a run of chunks, with those of their texts that have no vector.
type batch struct {
	generation string // of the words that they were read from
	space      space
	upto       int64 // the last chunk
	texts      []pending
	left       int64 // chunks behind it
}

// batchChunks is how many chunks a batch has at most; those that need no vector count too.
const batchChunks = 1000

// refusal is our own reason not to ask an embedder.
type refusal struct {
	code regie.Code
	why  regie.Sentence
}

// Error implements error.
func (r *refusal) Error() string { return r.why.String() }

// reasonOf returns an error of an embedder as a sentence, with its code.
func reasonOf(err error) (regie.Sentence, regie.Code) {
	var failed *provider.Error
	var refused *refusal
	switch {
	case errors.As(err, &refused):
		return refused.why, refused.code
	case errors.As(err, &failed) && failed.Code == regie.CodeProviderOffline:
		return regie.Say("the embedder cannot be reached: %s", failed.Message), failed.Code
	case errors.As(err, &failed):
		return regie.Say("the embedder failed: %s", failed.Message), failed.Code
	case errors.Is(err, context.DeadlineExceeded):
		return regie.Say("the embedder did not answer in time"), regie.CodeTimeout
	default:
		return regie.Say("the embedder failed: %s", err.Error()), provider.CodeOf(err)
	}
}

// embedAll embeds batch after batch until nothing is missing.
func (e *embedding) embedAll(ctx context.Context) error {
	for {
		var b batch
		if err := e.index.useDatabase(ctx, false, func(db *database) (err error) {
			b, err = e.readBatch(ctx, db)
			return err
		}); err != nil {
			return err
		}
		if e.progress != nil {
			e.progress(Progress{Embedding: true, Done: e.done, Total: e.done + int64(len(b.texts)) + b.left})
		}
		if b.upto == b.space.upto {
			return e.removeUnused(ctx, b.space)
		}
		made, err := e.sendBatch(ctx, b.texts)
		if err == nil {
			err = e.storeBatch(ctx, &b, made)
		}
		if err != nil {
			return err
		}
		e.done += int64(len(b.texts))
	}
}

// readBatch reads which texts are next, as many as one request takes.
func (e *embedding) readBatch(ctx context.Context, db *database) (b batch, err error) {
	tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // all is of one moment
	if err != nil {
		return b, err
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	if b.generation, err = metaValue(ctx, tx, "generation"); err != nil {
		return b, err
	}
	if b.space, err = readSpace(ctx, tx, e.embedder.Space()); err != nil {
		return b, err
	}
	b.upto = b.space.upto
	rows, err := tx.QueryContext(ctx, `SELECT c.id, c.hash, c.text,
		EXISTS (SELECT 1 FROM embeddings e WHERE e.space = ? AND e.hash = c.hash)
		FROM chunks c WHERE c.id > ? ORDER BY c.id LIMIT ?`, b.space.id, b.space.upto, batchChunks)
	if err != nil {
		return b, err
	}
	defer rows.Close()
	most, bytes := e.embedder.Batch()
	seen := map[string]bool{}
	for rows.Next() {
		var p pending
		var id int64
		var there bool
		if err := rows.Scan(&id, &p.hash, &p.text, &there); err != nil {
			return b, err
		}
		if !there && !seen[string(p.hash)] {
			bytes -= len(p.text)
			if len(b.texts) == most || bytes < 0 && len(b.texts) > 0 {
				break
			}
			seen[string(p.hash)] = true
			b.texts = append(b.texts, p)
		}
		b.upto = id
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return b, err
	}
	b.left, err = countMissing(ctx, tx, space{upto: b.upto})
	return b, err
}

// storeBatch stores the result of a batch: a vector for each text, or a mark that the model cannot
// embed it. It notes that the batch is done, unless the words were rebuilt meanwhile: then other
// chunks have its numbers.
func (e *embedding) storeBatch(ctx context.Context, b *batch, made *sent) error {
	dimensions := int64(made.vectorSize())
	if b.space.dimensions != 0 && dimensions != 0 && dimensions != b.space.dimensions {
		if err := e.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE spaces SET outdated = 1 WHERE name = ?", e.embedder.Space())
			return err
		}); err != nil {
			return err
		}
		return &provider.Error{Code: regie.CodeBadReply, Message: fmt.Sprintf(
			"the embedding model %s answers with vectors of %d dimensions where the index has %d: it is another model than it was; regie index --rebuild embeds anew",
			e.embedder.Model(), dimensions, b.space.dimensions)}
	}
	cost := e.countBatch(made)
	return e.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		generation, err := metaValue(ctx, tx, "generation")
		if err != nil {
			return err
		}
		upto := b.upto
		if generation != b.generation {
			upto = 0
		}
		id, err := ensureSpace(ctx, tx, e.embedder.Space(), dimensions, upto)
		if err != nil {
			return err
		}
		for i, p := range b.texts {
			if err := storeVector(ctx, tx, id, p.hash, made.vectors[i]); err != nil {
				return err
			}
		}
		return addSpent(ctx, tx, cost-made.reserved)
	})
}

// storeVector stores the vector of a text, or that it has none: nil.
func storeVector(ctx context.Context, tx *sql.Tx, space int64, hash []byte, v []float32) error {
	var encoded []byte
	if v != nil {
		encoded = vector.Encode(v)
	}
	var id int64
	err := tx.QueryRowContext(ctx,
		"INSERT INTO embeddings (space, hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
		space, hash, encoded).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) { // it is there already
		return nil
	}
	if err == nil && v != nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO signs (id, space, signs) VALUES (?, ?, ?)", id, space, vector.Signs(v))
	}
	return err
}

// ensureSpace returns the id of a space, made where it is missing, and notes how far it has come.
func ensureSpace(ctx context.Context, tx *sql.Tx, name string, dimensions, upto int64) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `INSERT INTO spaces (name, dimensions, upto, used, outdated)
		VALUES (?1, ?2, ?3, 0, 0)
		ON CONFLICT (name) DO UPDATE SET dimensions = max(dimensions, ?2), upto = max(upto, ?3) RETURNING id`,
		name, dimensions, upto).Scan(&id)
	return id, err
}

// writeTx makes one short transaction under the writers' lock. Its content has been paid for, so
// the end of ctx does not keep it from being stored.
func (e *embedding) writeTx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	unlock, err := lockFile(ctx, e.index.config.Path)
	if err != nil {
		return explainError(err, e.index.config.Path)
	}
	defer unlock()
	return e.index.useDatabase(ctx, true, func(db *database) error {
		return inTransaction(ctx, db.write, func(tx *sql.Tx) error { return fn(ctx, tx) })
	})
}

// The index keeps maxOrphans vectors of removed texts plus as many as it has live ones, because
// texts come back. It keeps the vectors of the maxSpaces embedders used last: a person who
// alternates between two pays for each once.
const (
	maxOrphans = 1000
	maxSpaces  = 3
)

// removeUnused marks an embedder as used, and removes unused vectors once all chunks have one.
func (e *embedding) removeUnused(ctx context.Context, s space) error {
	if s.id == 0 || e.done == 0 {
		return nil
	}
	const crowded = `(SELECT count(*) FROM embeddings) > ?3 +
		2 * (SELECT count(*) FROM spaces) * (SELECT count(DISTINCT hash) FROM chunks)`
	return e.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, strings.Join([]string{
			"UPDATE spaces SET used = 1 + (SELECT max(used) FROM spaces) WHERE id = ?1",
			"DELETE FROM spaces WHERE id NOT IN (SELECT id FROM spaces ORDER BY used DESC LIMIT ?2)",
			"DELETE FROM embeddings WHERE " + crowded + " AND hash NOT IN (SELECT hash FROM chunks)",
			"UPDATE meta SET value = hex(randomblob(8)) WHERE name = 'vectors'",
		}, ";"), s.id, maxSpaces, maxOrphans)
		return err
	})
}
