package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

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

// Embedded is what embedding did, and where it stands.
type Embedded struct {
	Model   string `json:"model,omitempty"` // empty where no embedder is configured
	Made    int64  `json:"made"`            // texts that were embedded
	Cut     int64  `json:"cut"`             // of those, texts of which the model took the beginning alone
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

// Missing is how many chunks the embedder has not been given yet; 0 where none is configured. It
// returns the codes of Open.
func (x *Index) Missing(ctx context.Context) (n int64, err error) {
	if x.config.Embedder == nil {
		return 0, nil
	}
	err = x.using(ctx, false, func(db *database) error {
		space, err := db.space(ctx, x.config.Embedder.Space())
		if err == nil {
			n, err = db.missing(ctx, space)
		}
		return err
	})
	return n, err
}

// Free reports whether embedding costs nothing.
func (x *Index) Free() bool { return x.config.Money.Known && x.config.Money.Price.Free() }

// Embed embeds the chunks that have no vector yet, the oldest first, batch by batch: what a batch
// brought is stored before the next is sent, so that a kill pays for one batch twice at most. Texts
// that were embedded before are not embedded again, wherever they stand now. It needs nobody's
// leave to be searched or updated meanwhile; what comes while it runs it embeds too. One runs at a
// time: where another one does, in whatever process, this one waits for it. A failing embedder is
// no error: Reason says what it said. progress may be nil, and is called on the caller's goroutine.
// It returns the context's error and the codes of Open.
func (x *Index) Embed(ctx context.Context, progress func(Progress)) (out Embedded, err error) {
	if x.config.Embedder == nil {
		return out, nil
	}
	unlock, err := lock(ctx, x.config.Path+".embed", waiting(progress))
	if err != nil {
		return out, explain(err, x.config.Path)
	}
	defer unlock()
	out.Model, out.Priced = x.config.Embedder.Model(), x.config.Money.Known
	e := &embedding{index: x, embedder: x.config.Embedder, out: &out, progress: progress}
	if err := affordable(e.embedder, &x.config.Money); err != nil {
		e.stop(err)
	} else if err := e.run(ctx); err != nil {
		return out, err
	}
	out.Missing, err = x.Missing(ctx)
	return out, err
}

// embedding is one Embed on its way. It belongs to one goroutine.
type embedding struct {
	index    *Index
	embedder provider.Embedder
	out      *Embedded
	progress func(Progress)
	total    int64
	done     int64
}

// space is a row of spaces; the zero space is one that nothing was embedded in.
type space struct {
	id, dimensions, upto int64
}

func (d *database) space(ctx context.Context, name string) (s space, err error) {
	err = d.read.QueryRowContext(ctx, "SELECT id, dimensions, upto FROM spaces WHERE name = ?",
		name).Scan(&s.id, &s.dimensions, &s.upto)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return s, err
}

// missing is how many chunks are newer than the last that was embedded.
func (d *database) missing(ctx context.Context, s space) (n int64, err error) {
	err = d.read.QueryRowContext(ctx, "SELECT count(*) FROM chunks WHERE id > ?", s.upto).Scan(&n)
	return n, err
}

// pending is a text that is to be embedded.
type pending struct {
	hash []byte
	text string
}

// round is a stretch of chunks, with those of their texts that have no vector.
type round struct {
	db    *database // where they were read
	space space
	upto  int64 // the last chunk of it
	texts []pending
	left  int64 // chunks behind it
}

// stretch is how many chunks are looked at at once.
const stretch = 1000

// stop says why the rest is missing.
func (e *embedding) stop(err error) { e.out.Reason, e.out.Code = reasonOf(err) }

// halted is why an embedder is not asked: our own reason, in a sentence.
type halted struct {
	code regie.Code
	why  regie.Sentence
}

// Error implements error.
func (h *halted) Error() string { return h.why.String() }

// reasonOf is an error of an embedder as a sentence, with its code.
func reasonOf(err error) (regie.Sentence, regie.Code) {
	var failed *provider.Error
	var held *halted
	switch {
	case errors.As(err, &held):
		return held.why, held.code
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

// run embeds stretch after stretch until nothing is missing, or the embedder does not go on.
func (e *embedding) run(ctx context.Context) error {
	for {
		var r round
		if err := e.index.using(ctx, false, func(db *database) (err error) {
			r, err = db.stretch(ctx, e.embedder.Space())
			return err
		}); err != nil {
			return err
		}
		e.total = e.done + int64(len(r.texts)) + r.left
		e.tell()
		if r.upto == r.space.upto {
			return e.tidy(ctx, r.space)
		}
		for len(r.texts) > 0 {
			n := e.batch(r.texts)
			made, err := e.send(ctx, r.texts[:n])
			if err == nil {
				err = e.keep(ctx, &r, r.texts[:n], made)
			}
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case isEmbedders(err):
				e.stop(err)
				return nil
			case err != nil:
				return err
			}
			r.texts = r.texts[n:]
			e.done += int64(n)
			e.tell()
		}
		if err := e.reach(ctx, &r); err != nil {
			return err
		}
	}
}

func (e *embedding) tell() {
	if e.progress != nil {
		e.progress(Progress{Embedding: true, Done: e.done, Total: max(e.done, e.total)})
	}
}

// stretch reads which texts are next.
func (d *database) stretch(ctx context.Context, name string) (r round, err error) {
	r.db = d
	if r.space, err = d.space(ctx, name); err != nil {
		return r, err
	}
	r.upto = r.space.upto
	// The texts of one stretch are read as they are at one moment.
	tx, err := d.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return r, err
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	rows, err := tx.QueryContext(ctx, `SELECT c.id, c.hash, c.text, EXISTS (SELECT 1 FROM embeddings e WHERE e.space = ? AND e.hash = c.hash)
		FROM chunks c WHERE c.id > ? ORDER BY c.id LIMIT ?`, r.space.id, r.space.upto, stretch)
	if err != nil {
		return r, err
	}
	defer rows.Close()
	seen := map[string]bool{}
	for rows.Next() {
		var p pending
		var there bool
		if err := rows.Scan(&r.upto, &p.hash, &p.text, &there); err != nil {
			return r, err
		}
		if !there && !seen[string(p.hash)] {
			seen[string(p.hash)] = true
			r.texts = append(r.texts, p)
		}
	}
	if err := rows.Err(); err != nil {
		return r, err
	}
	err = tx.QueryRowContext(ctx, "SELECT count(*) FROM chunks WHERE id > ?", r.upto).Scan(&r.left)
	return r, err
}

// batch is how many of the texts go into one request.
func (e *embedding) batch(texts []pending) (n int) {
	most, bytes := e.embedder.Batch()
	for size := 0; n < len(texts) && n < most; n++ {
		if size += len(texts[n].text); size > bytes && n > 0 {
			break
		}
	}
	return n
}

// keep stores what a batch brought: a vector for each text, or that the model cannot embed it.
func (e *embedding) keep(ctx context.Context, r *round, texts []pending, made *sent) error {
	dimensions := int64(made.dimensions())
	if r.space.dimensions != 0 && dimensions != 0 && dimensions != r.space.dimensions {
		if err := e.write(ctx, func(ctx context.Context, _ *database, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO meta (name, value) VALUES ('outdated', ?)",
				e.embedder.Space())
			return err
		}); err != nil {
			return err
		}
		return &provider.Error{Code: regie.CodeBadReply, Message: fmt.Sprintf(
			"the embedding model %s answers with vectors of %d dimensions where the index has %d: it is another model than it was; regie index --rebuild embeds anew",
			e.embedder.Model(), dimensions, r.space.dimensions)}
	}
	cost := e.count(made)
	return e.write(ctx, func(ctx context.Context, _ *database, tx *sql.Tx) (err error) {
		if r.space, err = inSpace(ctx, tx, e.embedder.Space(), dimensions); err != nil {
			return err
		}
		for i, p := range texts {
			if err := putVector(ctx, tx, r.space.id, p.hash, made.vectors[i]); err != nil {
				return err
			}
		}
		return spend(ctx, tx, cost-made.reserved)
	})
}

// putVector stores the vector of a text, or that it has none: nil.
func putVector(ctx context.Context, tx *sql.Tx, space int64, hash []byte, v []float32) error {
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
		_, err = tx.ExecContext(ctx, "INSERT INTO signs (id, space, signs) VALUES (?, ?, ?)", id, space,
			vector.Signs(v))
	}
	return err
}

// reach notes that a stretch is done. In an index that was made anew meanwhile other chunks have
// its numbers: there the next stretch begins at the first.
func (e *embedding) reach(ctx context.Context, r *round) error {
	return e.write(ctx, func(ctx context.Context, db *database, tx *sql.Tx) error {
		if db != r.db {
			return nil
		}
		space, err := inSpace(ctx, tx, e.embedder.Space(), 0)
		if err == nil {
			_, err = tx.ExecContext(ctx, "UPDATE spaces SET upto = max(upto, ?) WHERE id = ?", r.upto, space.id)
		}
		return err
	})
}

// inSpace finds or makes a space.
func inSpace(ctx context.Context, tx *sql.Tx, name string, dimensions int64) (s space, err error) {
	err = tx.QueryRowContext(ctx, `INSERT INTO spaces (name, dimensions, upto) VALUES (?1, ?2, 0)
		ON CONFLICT (name) DO UPDATE SET dimensions = CASE WHEN dimensions = 0 THEN ?2 ELSE dimensions END RETURNING id, dimensions, upto`, name, dimensions).
		Scan(&s.id, &s.dimensions, &s.upto)
	return s, err
}

// write makes one short transaction under the writers' lock. What it is given has been paid for, so
// nothing but a failure keeps it from being stored.
func (e *embedding) write(ctx context.Context, fn func(ctx context.Context, db *database, tx *sql.Tx) error) error {
	kept := context.WithoutCancel(ctx)
	unlock, err := lock(kept, e.index.config.Path, nil)
	if err != nil {
		return explain(err, e.index.config.Path)
	}
	defer unlock()
	return e.index.using(kept, true, func(db *database) error {
		tx, err := db.write.BeginTx(kept, nil)
		if err != nil {
			return err
		}
		if err := fn(kept, db, tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

// orphans is how many vectors without a chunk are kept for texts that come back, beside as many as
// there are with one. maxSpaces is of how many embedders vectors are kept, those that were used
// last: a person who goes to and fro between two pays for each once.
const (
	orphans   = 1000
	maxSpaces = 3
)

// usedName is the row of meta that says when a space was used last, in seconds since 1970.
const usedName = "'used ' || s.id"

// tidy removes what is no longer of use once all chunks have a vector: those of embedders that were
// not used for long, and of texts that went too long ago.
func (e *embedding) tidy(ctx context.Context, s space) error {
	if s.id == 0 {
		return nil
	}
	var newest, others, all, used int64
	if err := e.index.using(ctx, false, func(db *database) error {
		return db.read.QueryRowContext(ctx, `SELECT coalesce((SELECT s.id FROM spaces s JOIN meta m ON m.name = `+usedName+` ORDER BY m.value DESC, s.id DESC LIMIT 1), 0),
			(SELECT count(*) FROM spaces WHERE id <> ?1), (SELECT count(*) FROM embeddings), (SELECT count(DISTINCT hash) FROM chunks)`, s.id).Scan(&newest, &others, &all, &used)
	}); err != nil || (others == 0 || newest == s.id) && others < maxSpaces && all <= (others+1)*2*used+orphans {
		return err
	}
	return e.write(ctx, func(ctx context.Context, _ *database, tx *sql.Tx) error {
		for _, statement := range []string{
			`INSERT INTO meta (name, value) SELECT ` + usedName + `, max(unixepoch(), 1 + coalesce((SELECT max(value) FROM meta WHERE name LIKE 'used %'), 0)) FROM spaces s WHERE s.id = ?1
				ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
			`DELETE FROM embeddings WHERE space IN (SELECT s.id FROM spaces s LEFT JOIN meta m ON m.name = ` + usedName + ` WHERE s.id <> ?1
				ORDER BY coalesce(m.value, 0) DESC, s.id DESC LIMIT -1 OFFSET ?2)`,
			`DELETE FROM spaces WHERE id <> ?1 AND id IN (SELECT s.id FROM spaces s LEFT JOIN meta m ON m.name = ` + usedName + ` WHERE s.id <> ?1
				ORDER BY coalesce(m.value, 0) DESC, s.id DESC LIMIT -1 OFFSET ?2)`,
			"DELETE FROM meta WHERE name LIKE 'used %' AND NOT EXISTS (SELECT 1 FROM spaces s WHERE " + usedName +
				" = meta.name)",
		} {
			if _, err := tx.ExecContext(ctx, statement, s.id, maxSpaces-1); err != nil {
				return err
			}
		}
		if all > (others+1)*2*used+orphans {
			if _, err := tx.ExecContext(ctx,
				"DELETE FROM embeddings WHERE NOT EXISTS (SELECT 1 FROM chunks c WHERE c.hash = embeddings.hash)"); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM signs WHERE id NOT IN (SELECT id FROM embeddings)")
		return err
	})
}
