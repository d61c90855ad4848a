package engine

import "testing"

// TestChooseSmaller bounds the summaries of one step, and asks for none after one that failed.
func TestChooseSmaller(t *testing.T) {
	const few, some, many = 0, maxCompactions, 2 * maxCompactions
	for _, c := range []struct {
		compactions         int
		gaveUp              bool
		drops, cuts, beyond bool
		want                smallerBy
	}{
		{few, false, false, true, false, summarise},
		{few, false, true, true, true, summarise},
		{few, false, false, false, false, sendAll},
		{few, false, false, false, true, leaveOut},
		{few, true, false, true, false, sendAll},
		{few, true, false, true, true, leaveOut},
		{few, true, true, true, false, summarise},
		{some - 1, false, false, true, true, summarise},
		{some, false, false, true, false, sendAll},
		{some, false, false, true, true, leaveOut},
		{some, false, true, false, true, summarise},
		{many - 1, false, false, true, true, leaveOut},
		{many, false, true, true, false, sendAll},
		{many, false, true, true, true, giveIn},
		{many, true, false, false, true, giveIn},
	} {
		size := contextSize{compactions: c.compactions, gaveUp: c.gaveUp}
		if got := size.chooseSmaller(c.drops, c.cuts, c.beyond); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
