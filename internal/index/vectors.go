package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index/vector"
	"github.com/regie-run/regie/internal/provider"
)

const (
	questionTime = 10 * time.Second // that a search waits for an embedder: a model may have to be loaded
)

// questions has not every search wait for an embedder that is silent.
type questions struct {
	mu      sync.Mutex
	breaker provider.Breaker
}

// embedQuestion returns the vector of a question, or the reason for its absence.
func (x *Index) embedQuestion(ctx context.Context, text string) ([]float32, regie.Sentence) {
	if strings.TrimSpace(text) == "" {
		return nil, regie.Sentence{}
	}
	if err := checkAffordable(x.config.Embedder, &x.config.Money); err != nil {
		why, _ := reasonOf(err)
		return nil, why
	}
	q := &x.asked
	q.mu.Lock()
	allowed, trial := q.breaker.Enter(time.Now(), regie.ID{}, false)
	q.mu.Unlock()
	if !allowed {
		return nil, regie.Say("the embedder failed several times and is tried again later")
	}
	inner, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	made, err := x.config.Embedder.Embed(inner, provider.ForQuery, []string{text})
	outcome := provider.OutcomeOf(err)
	if err != nil && ctx.Err() == nil && inner.Err() != nil { // it is silent
		err, outcome = context.DeadlineExceeded, provider.Failed
	}
	q.mu.Lock()
	q.breaker.Leave(time.Now(), regie.ID{}, trial, outcome, 0)
	q.mu.Unlock()
	if err != nil {
		why, _ := reasonOf(err)
		return nil, why
	}
	return made.Vectors[0], regie.Sentence{}
}

// vectorCache holds the signs of a space's vectors. It reads them at the first search, and then
// only new ones.
type vectorCache struct {
	mu    sync.RWMutex
	token string // of the vectors when they were read, see the table meta
	space space
	last  int64 // the newest id
	set   *vector.Set
}

// loadVectors reads new vectors into the set, which is nil without any. The caller holds mu while
// it uses the set.
func (v *vectorCache) loadVectors(ctx context.Context, tx *sql.Tx, name string) error {
	token, err := metaValue(ctx, tx, "vectors")
	if err != nil {
		return err
	}
	now, err := readSpace(ctx, tx, name)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.set == nil || v.token != token || v.space.id != now.id || v.space.dimensions != now.dimensions {
		v.token, v.space, v.last, v.set = token, now, 0, vector.New(int(max(1, now.dimensions)))
	}
	rows, err := tx.QueryContext(ctx, "SELECT id, signs FROM signs WHERE id > ? AND space = ? ORDER BY id", v.last, now.id)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var signs sql.RawBytes
		if err := rows.Scan(&v.last, &signs); err != nil {
			return err
		}
		v.set.Add(v.last, signs)
	}
	return rows.Err()
}

// nearestChunks returns the chunks with the texts nearest to a question, the nearest first; why
// says why the search has no vectors.
func (x *Index) nearestChunks(ctx context.Context, tx *sql.Tx, q Query, asked []float32, limit int,
) (found []ranked, why regie.Sentence, err error) {
	v := &x.vectors
	if err := v.loadVectors(ctx, tx, x.config.Embedder.Space()); err != nil {
		return nil, why, err
	}
	keep, err := vectorsUnder(ctx, tx, q.Under, x.config.Embedder.Space())
	if err != nil {
		return nil, why, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	switch {
	case v.set.Len() == 0:
		return nil, regie.Say("no file is embedded yet: run regie index"), nil
	case v.set.Dimensions() != len(asked):
		return nil, regie.Say("the files were embedded with another embedding model"), nil
	}
	near, err := v.set.Search(asked, limit, keep, func(ids []int64, each func(int64, []byte)) error {
		slices.Sort(ids) // as they lie in the file
		return readVectors(ctx, tx, ids, each)
	})
	if err != nil {
		return nil, why, err
	}
	found, err = chunksOf(ctx, tx, q.Under, near, limit)
	return found, why, err
}

// vectorsUnder returns which vectors belong to texts below a path; nil is all.
func vectorsUnder(ctx context.Context, tx *sql.Tx, under, space string) (func(id int64) bool, error) {
	if under == "" {
		return nil, nil
	}
	rows, err := tx.QueryContext(ctx, `SELECT e.id FROM files f JOIN chunks c ON c.file = f.id
		JOIN embeddings e ON e.hash = c.hash JOIN spaces s ON s.id = e.space
		WHERE s.name = ?2 AND `+underPath, under, space)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids := map[int64]bool{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids[id] = true
	}
	return func(id int64) bool { return ids[id] }, rows.Err()
}

func readVectors(ctx context.Context, tx *sql.Tx, ids []int64, each func(int64, []byte)) error {
	list, _ := json.Marshal(ids) // numbers cannot fail
	rows, err := tx.QueryContext(ctx,
		"SELECT e.id, e.vector FROM json_each(?) j JOIN embeddings e ON e.id = j.value", string(list))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var encoded sql.RawBytes
		if err := rows.Scan(&id, &encoded); err != nil {
			return err
		}
		each(id, encoded)
	}
	return rows.Err()
}

// chunksOf returns the chunks that have the texts of vectors, in their order; several chunks may
// have one text, and one that went has none.
func chunksOf(ctx context.Context, tx *sql.Tx, under string, near []vector.Near, limit int) ([]ranked, error) {
	list := make([]ranked, len(near))
	scores := map[int64]float64{}
	for i, n := range near {
		list[i].id, scores[n.ID] = n.ID, n.Score
	}
	rows, err := tx.QueryContext(ctx, `SELECT e.id, c.id FROM json_each(?2) j JOIN embeddings e ON e.id = j.value
		JOIN chunks c ON c.hash = e.hash JOIN files f ON f.id = c.file WHERE `+underPath, under, idList(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []ranked
	for rows.Next() {
		var r ranked
		var of int64
		if err := rows.Scan(&of, &r.id); err != nil {
			return nil, err
		}
		r.score = scores[of]
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	return out[:min(limit, len(out))], rows.Err()
}

// space is a row of spaces; the zero space holds nothing yet.
type space struct {
	id, dimensions, upto int64
}

func readSpace(ctx context.Context, from querier, name string) (s space, err error) {
	err = from.QueryRowContext(ctx, "SELECT id, dimensions, upto FROM spaces WHERE name = ?",
		name).Scan(&s.id, &s.dimensions, &s.upto)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return s, err
}

// countMissing returns how many chunks are newer than the last that was embedded.
func countMissing(ctx context.Context, from querier, s space) (n int64, err error) {
	err = from.QueryRowContext(ctx, "SELECT count(*) FROM chunks WHERE id > ?", s.upto).Scan(&n)
	return n, err
}
