package httpapi

import (
	"cmp"
	"encoding/base64"
	"fmt"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Page is a part of a list. Next is the cursor of the part behind it, empty at the end: it is
// opaque, and stays good however the list changes.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor,omitempty"`
}

// defaultPage is the default number of items of a page.
const defaultPage = 50

// nextPage returns how many items a page has, and makes limit one more than that.
func nextPage(limit *int) int {
	wanted := cmp.Or(*limit, defaultPage)
	*limit = wanted + 1
	return wanted
}

// cutPage cuts a page off a list that has one item more than the limit.
func cutPage[T any](list string, items []T, limit int, mark func(*T) store.Mark) Page[T] {
	if len(items) <= limit {
		return Page[T]{Items: append([]T{}, items...)} // a list that is never null
	}
	items = items[:limit]
	return Page[T]{Items: items, Next: store.Cursor(list, mark(&items[limit-1]))}
}

// threadCursor returns a cursor of a thread, which has sequence numbers instead of times: after
// one, or before the other.
func threadCursor(after, before int64) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "messages %d %d", after, before))
}

// parseThreadCursor reads what threadCursor wrote, and nothing else.
func parseThreadCursor(text string) (after, before int64, err error) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		_, err = fmt.Sscanf(string(data), "messages %d %d", &after, &before)
	}
	if err != nil || after < 0 || before < 0 || threadCursor(after, before) != text {
		return 0, 0, regie.Errorf(regie.CodeBadRequest, "the cursor does not belong to this list: start the list again")
	}
	return after, before, nil
}
