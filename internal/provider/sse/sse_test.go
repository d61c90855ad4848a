package sse_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/regie-run/regie/internal/provider/sse"
)

func all(in io.Reader, limit int) (out []string, err error) {
	r := sse.NewEvents(in, limit)
	for {
		event, err := r.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(event))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for name, c := range map[string]struct {
		in   string
		want string
	}{
		"events":              {"data: a\n\nevent: e\ndata: b\n\n", "a,b"},
		"lines joined":        {"data: a\ndata: b\n\n", "a\nb"},
		"carriage returns":    {"data: a\r\n\r\ndata:b\r\n\r\n", "a,b"},
		"comments, unknown":   {": hi\n\nid: 1\nretry: 5\ndata: a\n\n:\n\n", "a"},
		"byte order mark":     {"\xef\xbb\xbfdata: a\n\n", "a"},
		"a name without data": {"event: e\n\ndata: a\n\n", "a"},
		"a long line":         {"data: " + long + "\n\n", "" + long},
		"cut in an event":     {"data: a\n\ndata: b\n", "a"},
		"cut in a line":       {"data: a\n\ndata: b", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				got, err := all(in, 1<<20)
				if !errors.Is(err, io.EOF) || strings.Join(got, ",") != c.want {
					t.Errorf("got %.100q (%v), want %.100q", got, err, c.want)
				}
			}
		})
	}
	if _, err := all(strings.NewReader("data: "+long+"\n\n"), 1000); !errors.Is(err, sse.ErrTooLong) {
		t.Errorf("an event over the limit: %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: b\n\n: c\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err1 := all(bytes.NewReader(data), 1<<10)
		pieces, err2 := all(iotest.OneByteReader(bytes.NewReader(data)), 1<<10)
		if strings.Join(whole, "\x01") != strings.Join(pieces, "\x01") || errors.Is(err1, io.EOF) != errors.Is(err2, io.EOF) {
			t.Errorf("%q (%v) whole, %q (%v) in pieces", whole, err1, pieces, err2)
		}
	})
}
