package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/regie-run/regie/internal/httpread"
)

// page is a part of a list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next_cursor"`
}

// list reads a list to its end, or up to wanted items. From is a cursor that the caller knows.
func list[T any](ctx context.Context, c *Client, path string, filter any, wanted int) ([]T, error) {
	out := []T{}
	err := pages(ctx, c, path, filter, wanted, func(p page[T]) (string, int) {
		out = append(out, p.Items...)
		return p.Next, wanted - len(out)
	})
	return out, err
}

// all reads a list that has one page.
func all[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	var p page[T]
	err := c.call(ctx, http.MethodGet, path, nil, &p)
	return p.Items, err
}

// maxPage is the largest page that the client requests.
const maxPage = 500

// pages reads a list page by page, from a cursor that the caller may know. take handles each page
// and returns the next cursor, empty at the end, and the number of items still wanted.
func pages[P any](ctx context.Context, c *Client, path string, filter any, wanted int,
	take func(P) (next string, wanted int),
) error {
	query := httpread.Query(filter)
	for {
		var p P
		query.Set("limit", strconv.Itoa(min(wanted, maxPage)))
		if err := c.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &p); err != nil {
			return err
		}
		var next string
		if next, wanted = take(p); next == "" || wanted <= 0 {
			return nil
		}
		query.Set("cursor", next)
	}
}

// queryOf writes the parameters of a request.
func queryOf(request any) string { return httpread.Query(request).Encode() }
