package index

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/index/posting"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	defaultLimit = 10
	maxLimit     = 100
	maxAsked     = 64 // different terms of a question that are looked up
)

// ranked is a chunk by its id, with a score of which more is better.
type ranked struct {
	id    int64
	score float64
}

// Search answers a query from the index as the last Update left it (spec 8.3). No text makes it
// fail; one without a word finds nothing. It returns CodePathInvalid or CodePathOutside for Under,
// the context's error, and the codes of Open.
func (x *Index) Search(ctx context.Context, q Query) (Answer, error) {
	if q.Limit <= 0 {
		q.Limit = defaultLimit
	}
	q.Limit = min(q.Limit, maxLimit)
	if q.Under != "" {
		under, err := workspace.Clean(q.Under)
		if err != nil {
			return Answer{}, err
		}
		q.Under = under
	}
	answer := Answer{Mode: Lexical, Reason: x.config.NoEmbedder, Hits: []Hit{}}
	var asked []float32
	if x.config.Embedder != nil {
		var why regie.Sentence
		if asked, why = x.question(ctx, q.Text); ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
		answer.Reason = why
	}
	for try := 0; ; try++ {
		lost, err := x.search(ctx, q, asked, &answer)
		if !lost || err != nil {
			return answer, err
		}
		if try == maxTries {
			return Answer{}, regie.Errorf(regie.CodeConflict,
				"the index is being deleted while it is searched: try again")
		}
		if _, err := x.Update(ctx, nil); err != nil {
			return Answer{}, err
		}
	}
}

// search answers a query once. lost says that the answer is of another index than the one that this
// process brought up to date: that one was deleted since, and the new one may be empty, so that
// what it does not hold tells nothing.
func (x *Index) search(ctx context.Context, q Query, asked []float32, answer *Answer) (lost bool, err error) {
	err = x.using(ctx, false, func(db *database) error {
		upTo := x.upTo.Load()
		lost = upTo != nil && upTo != db
		// One reader, so that what the ids mean is what they meant.
		tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it was only read
		found, err := x.find(ctx, tx, db, q, asked, answer)
		if err != nil {
			return err
		}
		answer.Hits, err = hits(ctx, tx, db, found)
		return err
	})
	return lost, err
}

// lexical is the chunks that hold words of a question, the best first.
func (x *Index) lexical(ctx context.Context, tx *sql.Tx, db *database, q Query, limit int) ([]ranked, error) {
	terms := termsOfQuestion(q.Text)
	if len(terms) == 0 {
		return nil, nil
	}
	view, err := x.words.view(ctx, tx, db)
	if err != nil {
		return nil, err
	}
	var allowed func(string) bool
	if q.Under != "" && q.Under != "." {
		below := q.Under + "/"
		allowed = func(path string) bool { return path == q.Under || strings.HasPrefix(path, below) }
	}
	best, err := view.Search(ctx, terms, max(candidates, limit), allowed,
		func(pages []posting.Page, each func(posting.Page, []byte) error) error {
			return fetchPages(ctx, tx, db, pages, each)
		})
	if err != nil {
		return nil, err
	}
	found := make([]candidate, len(best))
	for i, f := range best {
		found[i] = candidate{ranked{f.ID, f.Score}, f.Path}
	}
	out := rank(found, terms)
	return out[:min(limit, len(out))], nil
}

// termsOfQuestion are the terms by which a question is looked up.
func termsOfQuestion(text string) []string {
	s := newSplitter()
	s.gather(text, true) // nobody knows in which language the answer is written
	var terms, all []string
	for _, t := range s.order {
		if all = append(all, t.text); !stopWords[t.text] {
			terms = append(terms, t.text)
		}
	}
	if len(terms) == 0 {
		terms = all
	}
	return terms[:min(len(terms), maxAsked)]
}

// hits reads chunks.
func hits(ctx context.Context, tx *sql.Tx, db *database, found []ranked) ([]Hit, error) {
	out := []Hit{}
	stmt := tx.StmtContext(ctx, db.asks.hit) //nolint:sqlclosecheck // it goes with its connections
	for _, r := range found {
		h := Hit{Score: r.score}
		err := stmt.QueryRowContext(ctx, r.id).Scan(&h.Path, &h.Start, &h.End, &h.Symbol, &h.Text)
		if errors.Is(err, sql.ErrNoRows) { // one transaction has found it, and does not have it
			err = posting.ErrDamaged
		}
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}
