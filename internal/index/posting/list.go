package posting

import (
	"encoding/binary"
	"errors"
)

// ErrDamaged says that bytes are not what this package has written.
var ErrDamaged = errors.New("the lists of terms are damaged")

// A list is: how many chunks it has, then blocks. A chunk is how far it lies behind the one before,
// less one, and a bit that says that a weight follows, less two: else it is 1. The head of a block
// is how far it reaches, beyond the one before, and its bytes; a list of one block has none.

// blockSize is how many chunks of a list stand in a block. A block in which nothing is looked for
// is passed over.
const blockSize = 128

// list makes a list.
type list struct {
	n      int
	next   uint32 // the smallest number that may come
	start  uint32 // what that was at the beginning of the block under way
	blocks []byte
	open   []byte // the block under way
}

// add notes a chunk, whose number is larger than those before, and the weight of the term in it,
// which is at least 1.
func (l *list) add(chunk, weight uint32) {
	if l.n > 0 && l.n%blockSize == 0 {
		l.head()
	}
	value := uint64(chunk-l.next) << 1
	if weight > 1 {
		l.open = binary.AppendUvarint(l.open, value|1)
		l.open = binary.AppendUvarint(l.open, uint64(weight-2))
	} else {
		l.open = binary.AppendUvarint(l.open, value)
	}
	l.next = chunk + 1
	l.n++
}

// head ends a block.
func (l *list) head() {
	l.blocks = binary.AppendUvarint(l.blocks, uint64(l.next-l.start))
	l.blocks = binary.AppendUvarint(l.blocks, uint64(len(l.open)))
	l.blocks = append(l.blocks, l.open...)
	l.open, l.start = l.open[:0], l.next
}

// bytes ends the list and appends it.
func (l *list) bytes(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(l.n))
	if l.n > blockSize {
		l.head()
		return append(to, l.blocks...)
	}
	return append(to, l.open...)
}

// reset makes the list empty again.
func (l *list) reset() { *l = list{blocks: l.blocks[:0], open: l.open[:0]} }

// block is a part of a list, decoded.
type block struct {
	n               int
	chunks, weights [blockSize]uint32
}

// cursor reads a list.
type cursor struct {
	n, left int // chunks: all, and those that were not read
	data    []byte
	next    uint32
	most    uint32 // chunks of the segment
	bad     bool   // it is not what was written
}

// read begins to read a list of a segment with so many chunks.
func read(data []byte, most uint32) (cursor, error) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(most) {
		return cursor{}, ErrDamaged
	}
	return cursor{n: int(n), left: int(n), data: data[size:], most: most}, nil
}

// err is ErrDamaged where the list has turned out to be.
func (c *cursor) err() error {
	if c.bad {
		return ErrDamaged
	}
	return nil
}

// block decodes the next block that reaches to some chunk. It reports false where there is none, or
// where the list is damaged.
func (c *cursor) block(b *block, chunk uint32) bool {
	for c.left > 0 && !c.bad {
		c.bad = true
		n, body := min(c.left, blockSize), c.data
		reach := c.most
		if c.n > blockSize {
			span, at := binary.Uvarint(body)
			if at <= 0 || span > uint64(c.most-c.next) {
				return false
			}
			size, more := binary.Uvarint(body[at:])
			if more <= 0 || size > uint64(len(body)-at-more) {
				return false
			}
			body = body[at+more:]
			c.data, body = body[size:], body[:size]
			if reach = c.next + uint32(span); reach <= chunk {
				c.next = reach
				c.left -= n
				c.bad = false
				continue
			}
		}
		if !b.decode(body, n, uint64(c.next), uint64(reach)) {
			return false
		}
		c.next = reach
		c.left -= n
		c.bad = false
		return true
	}
	return false
}

// decode reads n chunks, whose numbers lie from next to below reach.
func (b *block) decode(data []byte, n int, next, reach uint64) bool {
	at := 0
	for i := range n {
		if at >= len(data) {
			return false
		}
		value := uint64(data[at])
		at++
		if value >= 0x80 {
			var size int
			if value, size = binary.Uvarint(data[at-1:]); size <= 0 || value>>1 >= reach {
				return false
			}
			at += size - 1
		}
		next += value >> 1
		weight := uint32(1)
		if value&1 != 0 {
			more, size := binary.Uvarint(data[at:])
			if size <= 0 || more >= maxWeight {
				return false
			}
			at += size
			weight = uint32(more) + 2
		}
		b.chunks[i], b.weights[i] = uint32(next), weight
		next++
	}
	b.n = n
	return at == len(data) && next <= reach
}

// maxWeight is more than a term can have in a chunk.
const maxWeight = 1 << 24
