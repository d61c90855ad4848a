package httpapi

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"golang.org/x/time/rate"
)

const (
	// burst is how many frames a client may send at once on a WebSocket: all of its subscriptions,
	// and their ends. framesPerSecond is what it may send in the long run; whoever sends more is
	// read no faster.
	burst           = 2*maxSubscriptions + 64
	framesPerSecond = 100
)

// errLargeFrame is read from a connection on which a frame is announced that holds more than any
// word.
var errLargeFrame = errors.New("a frame is larger than any word")

// framed is the connection of a WebSocket, whose frames it looks at as they come in: one that
// announces more than may come ends it at once, where the library would wait for all that it may
// hold, and a flood of them, pings and empty ones too, is read slowly.
type framed struct {
	net.Conn

	head [14]byte // of the frame that begins, as far as it is there
	have int      // bytes of it
	left int64    // bytes of the frame's payload that have not come yet

	frames *rate.Limiter
	err    error // nothing is read behind this
}

func newFramed(conn net.Conn) *framed {
	return &framed{Conn: conn, frames: rate.NewLimiter(framesPerSecond, burst)}
}

// Read implements net.Conn.
func (f *framed) Read(into []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.Conn.Read(into)
	if good := f.look(into[:n]); good < n {
		return good, f.err
	}
	return n, err
}

// look follows the frames in what was read, and returns how much of it may be read on: less than
// all where f.err is set.
func (f *framed) look(data []byte) (good int) {
	for at := 0; at < len(data); {
		if skip := min(f.left, int64(len(data)-at)); skip > 0 {
			at, f.left = at+int(skip), f.left-skip
			continue
		}
		f.head[f.have] = data[at]
		f.have, at = f.have+1, at+1
		length, whole := f.length()
		if !whole {
			continue
		}
		if f.have = 0; length > maxWord { // a control frame has less, and is the library's to refuse
			f.err = errLargeFrame
			return at - 1
		}
		f.left = int64(length)
		// at most 1/framesPerSecond for each frame of a small buffer: whoever closes the connection
		// is not held up
		time.Sleep(f.frames.Reserve().Delay())
	}
	return len(data)
}

// length is what a frame's head announces, once all of that has come.
func (f *framed) length() (length uint64, whole bool) {
	if f.have < 2 {
		return 0, false
	}
	need, short := 2, f.head[1]&0x7f
	switch short {
	case 126:
		need, length = 4, uint64(binary.BigEndian.Uint16(f.head[2:]))
	case 127:
		need, length = 10, binary.BigEndian.Uint64(f.head[2:])
	default:
		length = uint64(short)
	}
	if masked := f.head[1]&0x80 != 0; masked {
		need += 4
	}
	return length, f.have == need
}
