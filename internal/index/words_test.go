package index

import (
	"database/sql"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/regie-run/regie/internal/index/posting"
)

// spelling is a chunk as its text and its place say that it has to be found.
type spelling struct {
	Path   string
	Length int
	Terms  map[string]int
}

// spellings are those of all chunks of a file.
func spellings(t *testing.T, tx *sql.Tx) map[int64]*spelling {
	t.Helper()
	rows, err := tx.QueryContext(t.Context(), "SELECT c.id, f.path, c.symbol, c.text FROM chunks c JOIN files f ON f.id = c.file")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out, splitter := map[int64]*spelling{}, newSplitter()
	for rows.Next() {
		var id int64
		var path, symbol, text string
		if err := rows.Scan(&id, &path, &symbol, &text); err != nil {
			t.Fatal(err)
		}
		s := &spelling{Path: path, Terms: map[string]int{}}
		terms, length := splitter.chunk(path, symbol, text)
		for _, term := range terms {
			if s.Terms[term.Text] != 0 {
				t.Errorf("%s has %s twice", path, term.Text)
			}
			s.Terms[term.Text] = term.Weight
		}
		s.Length = length
		out[id] = s
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkTerms holds what the segments say against the chunks that there are.
func checkTerms(t *testing.T, db *sql.DB) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // it was only read
	view, err := new(words).view(t.Context(), tx, &database{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]*spelling{}
	view.Each(func(id int64, path string, length int) { got[id] = &spelling{path, length, map[string]int{}} })
	err = view.EachTerm(func(pages []posting.Page, each func(posting.Page, []byte) error) error {
		return fetchPages(t.Context(), tx, pages, each)
	}, func(id int64, term string, weight int) { got[id].Terms[term] += weight })
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(spellings(t, tx), got); diff != "" {
		t.Errorf("the terms are not those of the chunks (-want +got):\n%.3000s", diff)
	}
}
