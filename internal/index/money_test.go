package index

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/price"
	"github.com/regie-run/regie/internal/provider/providertest"
)

// TestMoney: under a budget nothing of unknown price is asked, and no more than the day holds.
func TestMoney(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	root, _, file := place(t, thick(100))
	x := openWith(t, root, file, s.URL, Money{Capped: true})
	e := embed(t, x)
	if e.Code != regie.CodePriceUnknown || e.Missing != 100 || len(s.Requests()) != 0 || e.Priced {
		t.Errorf("embedded %+v after %d requests", e, len(s.Requests()))
	}
	if a := find(t, x, Query{Text: "word1"}); a.Mode != Lexical || !strings.Contains(a.Reason.String(), "the price of the embedding model nomic-embed-text is unknown") || len(s.Requests()) != 0 {
		t.Errorf("%+v", a)
	}
	// a token costs a millionth; one batch may have so many, and has few
	money := Money{Known: true, Capped: true, Price: price.Price{Rates: price.Rates{Input: 1_000_000}}, PerDay: 19_300}
	x = openWith(t, root, file, s.URL, money)
	e = embed(t, x)
	if e.Code != regie.CodeOverBudget || e.Made == 0 || e.Missing == 0 || e.Cost != e.Tokens || e.Tokens != 7*e.Made {
		t.Errorf("embedded %+v", e)
	}
	var spent int64
	if err := x.db.read.QueryRowContext(t.Context(), "SELECT microusd FROM embedding_costs").Scan(&spent); err != nil || spent != e.Cost {
		t.Errorf("%d are counted, want %d, %v", spent, e.Cost, err)
	}
	if a := find(t, x, Query{Text: "word1 thing"}); a.Mode != Hybrid || a.Reason.IsZero() {
		t.Errorf("%+v", a)
	}
	// What was refused has cost nothing.
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
		format().Refuse(w, providertest.Scene{Status: http.StatusUnauthorized, Message: "no"})
		return true
	}
	money.PerDay *= 100
	x = openWith(t, root, file, s.URL, money)
	embed(t, x)
	if err := x.db.read.QueryRowContext(t.Context(), "SELECT microusd FROM embedding_costs").Scan(&spent); err != nil || spent != e.Cost {
		t.Errorf("%d are counted after a refusal, want %d, %v", spent, e.Cost, err)
	}
}

// TestMoneyLost: what nobody can use may have been paid for, so it is counted, and what is sent
// again has to fit into the day too.
func TestMoneyLost(t *testing.T) {
	s := providertest.NewEmbedServer(t, format())
	s.Answer = func(w http.ResponseWriter, _ *http.Request, request int, _ [][]float32) bool {
		if request < 3 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"embeddings":[]}`))
		}
		return request < 3
	}
	root, _, file := place(t, animals)
	most := int64(294) // tokens of one request, as its bytes bound them
	money := Money{Known: true, Capped: true, Price: price.Price{Rates: price.Rates{Input: 1_000_000}}, PerDay: 10 * most}
	x := openWith(t, root, file, s.URL, money)
	x.rest = func(context.Context, time.Duration) error { return nil }
	e := embed(t, x)
	spent := func() (n int64) {
		if err := x.db.read.QueryRowContext(t.Context(), "SELECT microusd FROM embedding_costs").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := spent(); e.Made != 3 || got <= 3*most || got != e.Cost || !e.Estimated {
		t.Errorf("%d are counted after three answers of no use to requests of up to %d: %+v", got, most, e)
	}
	// A day that does not hold another try ends it.
	s.Answer = func(w http.ResponseWriter, _ *http.Request, _ int, _ [][]float32) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"embeddings":[]}`))
		return true
	}
	root, _, file = place(t, animals)
	money.PerDay = most + most/2
	x = openWith(t, root, file, s.URL, money)
	x.rest = func(context.Context, time.Duration) error { return nil }
	before := len(s.Requests())
	if e := embed(t, x); e.Code != regie.CodeOverBudget || len(s.Requests()) != before+1 || spent() > money.PerDay {
		t.Errorf("%+v after %d requests, %d of %d", e, len(s.Requests())-before, spent(), money.PerDay)
	}
}
