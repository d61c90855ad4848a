package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/workspace"
)

const (
	defaultLimit = 10
	maxLimit     = 100
	maxAsked     = 64 // different terms of a question that are looked up

	// weights are those of BM25: a term in a path or in a name says more than one in the text.
	weights = "2.0, 4.0, 1.0"

	// fusion is the constant of reciprocal rank fusion, as its authors found it: the larger, the
	// less the first places count.
	fusion = 60
	// fused is how many of each list are fused at least.
	fused = 50
)

// ranked is a chunk by its id, with a score; more is better.
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
	if q.Under == "." {
		q.Under = ""
	}
	answer := Answer{Mode: Lexical, Reason: x.config.NoEmbedder}
	var vector []float32
	if x.config.Embedder != nil {
		if vector, answer.Reason = x.embedQuestion(ctx, q.Text); ctx.Err() != nil {
			return Answer{}, context.Cause(ctx)
		}
	}
	err := x.useDatabase(ctx, false, func(db *database) error {
		tx, err := db.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // all is of one moment
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it was only read
		return x.findHits(ctx, tx, q, vector, &answer)
	})
	if err != nil {
		return Answer{}, err
	}
	return answer, nil
}

// findHits finds the hits by words and, where the question has a vector, by that too.
func (x *Index) findHits(ctx context.Context, tx *sql.Tx, q Query, vector []float32, answer *Answer) error {
	lists, limit := [][]ranked{}, q.Limit
	if vector != nil {
		limit = max(fused, 2*q.Limit)
		nearest, why, err := x.nearestChunks(ctx, tx, q, vector, limit)
		if err != nil {
			return err
		}
		if why.IsZero() {
			answer.Mode, lists = Hybrid, append(lists, nearest)
		} else {
			answer.Reason, limit = why, q.Limit
		}
	}
	found, err := matchWords(ctx, tx, q, limit)
	if err != nil {
		return err
	}
	if answer.Mode == Hybrid {
		alone, missing, err := x.withoutVector(ctx, tx, found)
		if err != nil {
			return err
		}
		if missing > 0 {
			answer.Reason = regie.Say("%s parts of files are not embedded yet and are found by words only",
				strconv.FormatInt(missing, 10))
		}
		// A chunk without a vector counts in the list of vectors as it does in that of words.
		found = fuseRankings(q.Limit, append(lists, found, alone)...)
	}
	answer.Hits, err = readHits(ctx, tx, found)
	return err
}

// matchQuery ranks the best chunks that hold a term. It avoids ORDER BY rank: FTS5 would sort all
// matches, which takes half as long again.
const matchQuery = `SELECT t.id, -t.score, f.path FROM (
	SELECT rowid AS id, bm25(terms, ` + weights + `) AS score FROM terms WHERE terms MATCH ?2
	AND (?1 = '' OR rowid IN (SELECT c.id FROM chunks c JOIN files f ON f.id = c.file WHERE ` + underPath + `))
	ORDER BY score, rowid LIMIT ?3) t
	JOIN chunks c ON c.id = t.id JOIN files f ON f.id = c.file ORDER BY t.score, t.id`

// matchWords returns the chunks that hold words of a question, the best first.
func matchWords(ctx context.Context, tx *sql.Tx, q Query, limit int) ([]ranked, error) {
	terms := termsOfQuestion(q.Text)
	if len(terms) == 0 {
		return nil, nil
	}
	// A term is letters and digits, so nothing of it is syntax between quotes.
	rows, err := tx.QueryContext(ctx, matchQuery, q.Under, `"`+strings.Join(terms, `" OR "`)+`"`, max(candidates, limit))
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
	out := rankCandidates(found, terms)
	return out[:min(limit, len(out))], rows.Err()
}

// underPath is the condition that a file f is one, or lies below it; each is below "". No name
// sorts between a directory's with a slash and the same with the next character.
const underPath = "(?1 = '' OR f.path = ?1 OR f.path > ?1 || '/' AND f.path < ?1 || '0')"

// termsOfQuestion returns the terms by which a question is looked up.
func termsOfQuestion(text string) []string {
	s := newSplitter()
	s.splitTerms(text, true) // the answer may be in either language
	var terms, all []string
	for _, term := range s.order {
		if all = append(all, term); !stopWords[term] {
			terms = append(terms, term)
		}
	}
	if len(terms) == 0 {
		terms = all
	}
	return terms[:min(len(terms), maxAsked)]
}

// Mentions returns a function that reports whether a text holds a word of a query, as a search by
// words finds them: by their stems, in parts of names, and whole. It is used by one goroutine.
func Mentions(query string) func(text string) bool {
	asked, s := termsOfQuestion(query), newSplitter()
	return func(text string) bool {
		s.splitTerms(text, true)
		return slices.ContainsFunc(s.order, func(term string) bool { return slices.Contains(asked, term) })
	}
}

// withoutVector returns the list with id 0 in the place of each chunk that has a vector, and how
// many chunks of the index have not been embedded yet.
func (x *Index) withoutVector(ctx context.Context, tx *sql.Tx, list []ranked) (out []ranked, missing int64, err error) {
	s, err := readSpace(ctx, tx, x.config.Embedder.Space())
	if err == nil {
		missing, err = countMissing(ctx, tx, s)
	}
	if err != nil {
		return nil, 0, err
	}
	rows, err := tx.QueryContext(ctx, `SELECT j.key, c.id FROM json_each(?) j JOIN chunks c ON c.id = j.value
		LEFT JOIN embeddings e ON e.space = ? AND e.hash = c.hash WHERE e.vector IS NULL`, idList(list), s.id)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	out = make([]ranked, len(list))
	for rows.Next() {
		var place int
		var id int64
		if err := rows.Scan(&place, &id); err != nil {
			return nil, 0, err
		}
		out[place].id = id
	}
	return out, missing, rows.Err()
}

func idList(list []ranked) string {
	ids := make([]int64, len(list))
	for i, r := range list {
		ids[i] = r.id
	}
	out, _ := json.Marshal(ids) // numbers cannot fail
	return string(out)
}

// fuseRankings orders the chunks of several lists by the sum of 1/(fusion+place), which needs no
// measure that the lists share. Of two with the same sum the one with the smaller id is first. An
// id of 0 is no chunk.
func fuseRankings(limit int, lists ...[]ranked) []ranked {
	scores := map[int64]float64{}
	for _, list := range lists {
		for i, r := range list {
			if r.id != 0 {
				scores[r.id] += 1 / float64(fusion+i+1)
			}
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

func readHits(ctx context.Context, tx *sql.Tx, found []ranked) ([]Hit, error) {
	out := make([]Hit, len(found))
	for i, r := range found {
		h := &out[i]
		h.Score = r.score
		if err := tx.QueryRowContext(ctx, `SELECT f.path, c.first, c.last, c.symbol, c.text
			FROM chunks c JOIN files f ON f.id = c.file WHERE c.id = ?`, r.id).
			Scan(&h.Path, &h.Start, &h.End, &h.Symbol, &h.Text); err != nil {
			return nil, err
		}
	}
	return out, nil
}
