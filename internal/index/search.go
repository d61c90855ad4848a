package index

import (
	"context"
	"database/sql"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	defaultLimit = 10
	maxLimit     = 100
	maxAsked     = 64 // different terms of a question that are looked up
)

// The weights of BM25: a term in a path or in a name says more than one in the text.
const weights = "2.0, 4.0, 1.0"

// ranked is a chunk by its id, with a score of which more is better.
type ranked struct {
	id    int64
	score float64
}

// Search answers a query from the index as the last Update left it (spec 8.3). No text makes it fail; one without a word finds nothing. It returns
// CodePathInvalid or CodePathOutside for Under, the context's error, and the codes of Open.
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
	err := x.using(ctx, false, func(db *database) error {
		// One reader, so that what the ids mean is what they meant.
		tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it was only read
		found, err := x.find(ctx, tx, db, q, asked, &answer)
		if err != nil {
			return err
		}
		answer.Hits, err = hits(ctx, tx, found)
		return err
	})
	return answer, err
}

// lexical is the chunks that hold words of a question, the best first.
func lexical(ctx context.Context, tx *sql.Tx, q Query, limit int) ([]ranked, error) {
	terms := termsOfQuestion(q.Text)
	if len(terms) == 0 {
		return nil, nil
	}
	// A term is letters and digits, so nothing of it is syntax between quotes.
	query, args := "SELECT rowid AS id, -bm25(terms, "+weights+") AS score FROM terms WHERE terms MATCH ?", []any{`"` + strings.Join(terms, `" OR "`) + `"`}
	if q.Under != "" && q.Under != "." {
		// No name sorts between a directory's with a slash and the same with the next character.
		query += " AND rowid IN (SELECT c.id FROM chunks c JOIN files f ON f.id = c.file WHERE f.path = ? OR f.path > ? AND f.path < ?)"
		args = append(args, q.Under, q.Under+"/", q.Under+"0")
	}
	query = "SELECT t.id, t.score, f.path FROM (" + query + " ORDER BY score DESC, rowid LIMIT ?) t JOIN chunks c ON c.id = t.id JOIN files f ON f.id = c.file ORDER BY t.score DESC, t.id"
	rows, err := tx.QueryContext(ctx, query, append(args, max(candidates, limit))...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []candidate
	for rows.Next() {
		var c candidate
		if err := rows.Scan(&c.id, &c.score, &c.path); err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
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
func hits(ctx context.Context, tx *sql.Tx, found []ranked) ([]Hit, error) {
	out := []Hit{}
	stmt, err := tx.PrepareContext(ctx, "SELECT f.path, c.first, c.last, c.symbol, c.text FROM chunks c JOIN files f ON f.id = c.file WHERE c.id = ?")
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	for _, r := range found {
		h := Hit{Score: r.score}
		if err := stmt.QueryRowContext(ctx, r.id).Scan(&h.Path, &h.Start, &h.End, &h.Symbol, &h.Text); err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}
