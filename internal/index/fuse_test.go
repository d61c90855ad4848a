package index

import (
	"slices"
	"testing"
)

// TestFuse: what both lists have is before what one has; ties are by id.
func TestFuse(t *testing.T) {
	ids := func(list []ranked) (out []int64) {
		for _, r := range list {
			out = append(out, r.id)
		}
		return out
	}
	list := func(ids ...int64) (out []ranked) {
		for _, id := range ids {
			out = append(out, ranked{id: id})
		}
		return out
	}
	for _, c := range []struct {
		a, b  []ranked
		limit int
		want  []int64
	}{
		{list(1, 2, 3), list(3, 4), 10, []int64{3, 1, 2, 4}},
		{list(2), list(1), 10, []int64{1, 2}},
		{list(5, 6), nil, 1, []int64{5}},
		{nil, nil, 3, nil},
		{list(7, 8, 9), list(0, 8), 2, []int64{8, 7}},
		{list(1, 2), list(1, 2), 2, []int64{1, 2}},
	} {
		if got := ids(fuseRankings(c.limit, c.a, c.b)); !slices.Equal(got, c.want) {
			t.Errorf("%v and %v: %v, want %v", ids(c.a), ids(c.b), got, c.want)
		}
	}
}
