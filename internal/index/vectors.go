package index

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index/vector"
	"github.com/regie-run/regie/internal/provider"
)

// askTime bounds how long a search waits for the vector of its question: a model may have to be
// loaded first.
const askTime = 10 * time.Second

// maxAsks is how many questions are remembered with their vectors.
const maxAsks = 64

// asks are the newest questions and their vectors: who asks again waits for nobody and pays
// nothing.
type asks struct {
	mu      sync.Mutex
	breaker provider.Breaker // an embedder that is silent is not waited for by every search
	texts   []string
	vectors [][]float32
	failed  string // the text that could not be embedded last, when and why
	at      time.Time
	why     regie.Sentence
}

// Ask has a question embedded, so that a Search for it right after asks nobody. It returns why that
// cannot be done, which includes that there is no embedder.
func (x *Index) Ask(ctx context.Context, text string) (why regie.Sentence) {
	if x.config.Embedder == nil {
		return regie.Say("no embedder is configured")
	}
	_, why = x.question(ctx, text)
	return why
}

// askAgain is for how long a question that could not be embedded is not asked again.
const askAgain = 5 * time.Second

// question embeds what is asked; where that cannot be done it says why.
func (x *Index) question(ctx context.Context, text string) ([]float32, regie.Sentence) {
	e := x.config.Embedder
	if strings.TrimSpace(text) == "" {
		return nil, regie.Sentence{}
	}
	if err := affordable(e, &x.config.Money); err != nil {
		why, _ := reasonOf(err)
		return nil, why
	}
	x.asks.mu.Lock()
	for i, asked := range x.asks.texts {
		if asked == text {
			v := x.asks.vectors[i]
			x.asks.mu.Unlock()
			return v, regie.Sentence{}
		}
	}
	if x.asks.failed == text && time.Since(x.asks.at) < askAgain {
		why := x.asks.why
		x.asks.mu.Unlock()
		return nil, why
	}
	allowed, trial := x.asks.breaker.Enter(time.Now(), regie.ID{}, false)
	x.asks.mu.Unlock()
	if !allowed {
		return nil, regie.Say("the embedder has failed several times and is left alone for a while")
	}
	inner, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	made, err := e.Embed(inner, provider.ForQuery, []string{text})
	outcome := provider.OutcomeOf(err)
	if err != nil && ctx.Err() == nil && inner.Err() != nil { // it is silent
		err, outcome = context.DeadlineExceeded, provider.Failed
	}
	x.asks.mu.Lock()
	defer x.asks.mu.Unlock()
	x.asks.breaker.Leave(time.Now(), regie.ID{}, trial, outcome, 0)
	if err != nil {
		why, _ := reasonOf(err)
		if ctx.Err() == nil {
			x.asks.failed, x.asks.at, x.asks.why = text, time.Now(), why
		}
		return nil, why
	}
	if len(x.asks.texts) == maxAsks {
		x.asks.texts, x.asks.vectors = x.asks.texts[1:], x.asks.vectors[1:]
	}
	x.asks.texts, x.asks.vectors = append(x.asks.texts, text), append(x.asks.vectors, made.Vectors[0])
	return made.Vectors[0], regie.Sentence{}
}

// vectors are the signs of what was embedded, read when they are first needed and kept in step from
// then on.
type vectors struct {
	mu    sync.RWMutex
	of    *database // where they were read
	space space
	last  int64 // the newest of them
	set   *vector.Set
}

// sync reads what came since the last time, and returns the newest vector that the transaction
// knows. The caller holds no lock.
func (v *vectors) sync(ctx context.Context, tx *sql.Tx, db *database, name string) (newest int64, err error) {
	var now space
	err = tx.StmtContext(ctx, db.asks.space).QueryRowContext(ctx, //nolint:sqlclosecheck // it goes with its connections
		name).
		Scan(&now.id, &now.dimensions, &newest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	v.mu.RLock()
	same := v.of == db && v.space == now && v.set != nil && v.last >= newest
	v.mu.RUnlock()
	if same || now.dimensions == 0 {
		return newest, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of != db || v.space != now || v.set == nil {
		v.of, v.space, v.last, v.set = db, now, 0, vector.New(int(now.dimensions))
	}
	rows, err := tx.QueryContext(ctx, "SELECT id, signs FROM signs WHERE id > ? AND space = ? ORDER BY id", v.last,
		now.id)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var signs sql.RawBytes
		var id int64
		if err := rows.Scan(&id, &signs); err != nil {
			return 0, err
		}
		v.set.Put(id, signs)
		v.last = id
	}
	if err := rows.Err(); err != nil {
		return 0, err
	}
	v.last = max(v.last, newest) // of those that have no vector nothing is kept
	return newest, nil
}

// forget drops what is no longer there. What is newer than the transaction that missed it has not
// gone: it had not come yet.
func (v *vectors) forget(db *database, gone []int64, newest int64) {
	if len(gone) == 0 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range gone {
		if v.of == db && id <= newest {
			v.set.Remove(id)
		}
	}
}

// nearest is the chunks whose texts lie nearest to a question, the nearest first; why says what
// keeps them from being found.
func (x *Index) nearest(ctx context.Context, tx *sql.Tx, db *database, q Query, asked []float32,
	limit int,
) (found []ranked, why regie.Sentence, err error) {
	v := &x.vectors
	newest, err := v.sync(ctx, tx, db, x.config.Embedder.Space())
	if err != nil {
		return nil, why, err
	}
	keep, err := within(ctx, tx, q.Under, x.config.Embedder.Space())
	if err != nil {
		return nil, why, err
	}
	v.mu.RLock()
	set, of := v.set, v.of
	if set == nil || of != db || set.Len() == 0 {
		v.mu.RUnlock()
		return nil, regie.Say("no file has been embedded yet: regie index does it"), nil
	}
	if set.Dimensions() != len(asked) {
		v.mu.RUnlock()
		return nil, regie.Say("the embedding model is another one than the files were embedded with"), nil
	}
	near, gone, err := set.Search(asked, limit, keep, func(ids []int64,
		each func(int64, []byte),
	) error {
		return fetch(ctx, tx, db, ids, each)
	})
	v.mu.RUnlock()
	if err != nil {
		return nil, why, err
	}
	v.forget(db, gone, newest)
	found, err = chunksOf(ctx, tx, db, q.Under, near, limit)
	return found, why, err
}

// within is which vectors belong to texts below a path; nil is all.
func within(ctx context.Context, tx *sql.Tx, under, space string) (func(id int64) bool, error) {
	if under == "" || under == "." {
		return nil, nil
	}
	rows, err := tx.QueryContext(ctx, `SELECT e.id FROM files f JOIN chunks c ON c.file = f.id JOIN embeddings e ON e.hash = c.hash JOIN spaces s ON s.id = e.space
		WHERE s.name = ? AND (f.path = ? OR f.path > ? AND f.path < ?)`, space, under, under+"/", under+"0")
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

// fetch reads vectors.
func fetch(ctx context.Context, tx *sql.Tx, db *database, ids []int64, each func(int64, []byte)) error {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	rows, err := tx.StmtContext(ctx, db.asks.vectors).QueryContext(ctx, //nolint:sqlclosecheck // it goes with its connections
		"["+join(ids)+"]")
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

func join(ids []int64) string {
	var out strings.Builder
	for i, id := range ids {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.FormatInt(id, 10))
	}
	return out.String()
}

// chunksOf is the chunks that have the texts of vectors, in their order; several chunks may have
// one text. A text that no chunk has any more is passed over.
func chunksOf(ctx context.Context, tx *sql.Tx, db *database, under string, near []vector.Near,
	limit int,
) ([]ranked, error) {
	ids, scores := make([]int64, len(near)), make(map[int64]float64, len(near))
	for i, n := range near {
		ids[i], scores[n.ID] = n.ID, n.Score
	}
	var rows *sql.Rows
	var err error
	if under == "" || under == "." {
		rows, err = tx.StmtContext(ctx, db.asks.chunks).QueryContext(ctx, //nolint:sqlclosecheck // it goes with its connections
			"["+join(ids)+"]")
	} else {
		rows, err = tx.QueryContext(ctx, `SELECT e.id, c.id FROM json_each(?) j JOIN embeddings e ON e.id = j.value JOIN chunks c ON c.hash = e.hash
			JOIN files f ON f.id = c.file WHERE f.path = ? OR f.path > ? AND f.path < ?`, "["+join(ids)+"]", under, under+"/", under+"0")
	}
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
