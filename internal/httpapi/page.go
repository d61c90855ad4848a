package httpapi

import "github.com/regie-run/regie/internal/store"

// Page is a part of a list. Next is the cursor of the part behind it, empty at the end: it is opaque, and stays good however the list changes.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor,omitempty"`
}

// defaultPage is how many items a page has where nobody says.
const defaultPage = 50

// paged cuts a page off the items of a list, of which one more than wanted was asked for.
func paged[T any](list string, items []T, limit int, mark func(*T) store.Mark) Page[T] {
	if len(items) <= limit {
		return Page[T]{Items: items}
	}
	items = items[:limit]
	return Page[T]{Items: items, Next: store.Cursor(list, mark(&items[limit-1]))}
}
