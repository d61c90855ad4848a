package index

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strconv"

	"github.com/regie-run/regie"
)

const (
	// fusion is the constant of reciprocal rank fusion, as its authors found it: the larger, the
	// less the first places count.
	fusion = 60
	// fused is how many of each list are fused at least.
	fused = 50
)

// fuse orders what lists have in common and each alone by the sum of 1/(fusion+rank), which needs
// no measure that both have. Of two with the same sum the one with the smaller id is first. A place
// with the id 0 is nobody's.
func fuse(limit int, lists ...[]ranked) []ranked {
	scores := map[int64]float64{}
	for _, list := range lists {
		for i, r := range list {
			if r.id == 0 {
				continue
			}
			scores[r.id] += 1 / float64(fusion+i+1)
		}
	}
	out := make([]ranked, 0, len(scores))
	for id, score := range scores {
		out = append(out, ranked{id, score})
	}
	slices.SortFunc(out, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id))
	})
	return out[:min(limit, len(out))]
}

// find is the chunks that answer a query, by words and, where the question has a vector, by that
// too.
func (x *Index) find(ctx context.Context, tx *sql.Tx, db *database, q Query, asked []float32,
	answer *Answer,
) ([]ranked, error) {
	if asked == nil {
		return x.lexical(ctx, tx, db, q, q.Limit)
	}
	most := max(fused, 2*q.Limit)
	byVector, why, err := x.nearest(ctx, tx, db, q, asked, most)
	if err != nil {
		return nil, err
	}
	if !why.IsZero() {
		answer.Reason = why
		return x.lexical(ctx, tx, db, q, q.Limit)
	}
	byWords, err := x.lexical(ctx, tx, db, q, most)
	if err != nil {
		return nil, err
	}
	answer.Mode = Hybrid
	have, err := x.embedded(ctx, tx, db)
	if err != nil {
		return nil, err
	}
	if have.missing > 0 {
		answer.Reason = regie.Say("%s parts of files are not embedded yet and are found by their words alone",
			strconv.FormatInt(have.missing, 10))
	}
	// What has no vector could not be in the other list: it counts there as it does here.
	alone, err := have.without(ctx, tx, byWords)
	return fuse(q.Limit, byWords, byVector, alone), err
}

// embedded says which chunks have a vector.
type embedded struct {
	space, upto int64
	missing     int64 // chunks behind upto
	refused     bool  // there are texts that the model cannot embed
}

func (x *Index) embedded(ctx context.Context, tx *sql.Tx, db *database) (e embedded, err error) {
	err = tx.StmtContext(ctx, db.asks.embedded).QueryRowContext(ctx, //nolint:sqlclosecheck // it goes with its connections
		x.config.Embedder.Space()).
		Scan(&e.space, &e.upto, &e.missing, &e.refused)
	return e, err
}

// without is a list with only those chunks in their places that have no vector.
func (e *embedded) without(ctx context.Context, tx *sql.Tx, list []ranked) ([]ranked, error) {
	ids, places := []int64{}, map[int64]int{}
	for i, r := range list {
		if r.id > e.upto || e.refused {
			ids, places[r.id] = append(ids, r.id), i
		}
	}
	out := make([]ranked, len(list))
	if len(ids) == 0 {
		return out, nil
	}
	query := `SELECT c.id FROM chunks c WHERE c.id IN (` + join(ids) + //nolint:gosec // numbers alone are put in
		`) AND NOT EXISTS (` +
		`SELECT 1 FROM embeddings e WHERE e.space = ? AND e.hash = c.hash AND e.vector IS NOT NULL)`
	rows, err := tx.QueryContext(ctx, query, e.space)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out[places[id]].id = id
	}
	return out, rows.Err()
}
