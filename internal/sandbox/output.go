package sandbox

// Excerpt keeps the head and the tail of its input, in bounded memory (spec 8.2). The zero Excerpt
// keeps nothing; one goroutine at a time uses it.
type Excerpt struct {
	head, ring []byte
	limit      int // of the head, and of the tail
	at         int // in ring: where the next byte goes, once it is full
	total      int64
}

// NewExcerpt returns an Excerpt that keeps limit bytes of each.
func NewExcerpt(limit int) *Excerpt { return &Excerpt{limit: limit} }

// Write implements io.Writer. It never fails.
func (e *Excerpt) Write(p []byte) (int, error) {
	n := len(p)
	e.total += int64(n)
	room := min(e.limit-len(e.head), n)
	e.head, p = append(e.head, p[:room]...), p[room:]
	if len(p) >= e.limit { // only its end is left
		e.ring, e.at = append(e.ring[:0], p[len(p)-e.limit:]...), 0
		return n, nil
	}
	grow := min(e.limit-len(e.ring), len(p))
	e.ring, p = append(e.ring, p[:grow]...), p[grow:]
	for len(p) > 0 {
		c := copy(e.ring[e.at:], p)
		e.at, p = (e.at+c)%e.limit, p[c:]
	}
	return n, nil
}

// Head returns the kept beginning. Without omission the tail follows it directly.
func (e *Excerpt) Head() []byte { return e.head }

// Tail returns the kept end, without the bytes of the head.
func (e *Excerpt) Tail() []byte {
	return append(append(make([]byte, 0, len(e.ring)), e.ring[e.at:]...), e.ring[:e.at]...)
}

// Total is how many bytes were written.
func (e *Excerpt) Total() int64 { return e.total }

// Omitted returns the number of bytes that neither head nor tail holds.
func (e *Excerpt) Omitted() int64 { return e.total - int64(len(e.head)) - int64(len(e.ring)) }
