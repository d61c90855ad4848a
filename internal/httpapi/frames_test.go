package httpapi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// wsFrame is a masked frame of a client that holds so many zeros, and announces so many bytes.
func wsFrame(opcode byte, announced uint64, holds int) []byte {
	out := []byte{0x80 | opcode, 0x80}
	switch {
	case announced < 126:
		out[1] |= byte(announced)
	case announced < 1<<16:
		out[1] |= 126
		out = binary.BigEndian.AppendUint16(out, uint16(announced))
	default:
		out[1] |= 127
		out = binary.BigEndian.AppendUint64(out, announced)
	}
	return append(out, make([]byte, 4+holds)...)
}

// TestFrames: whatever pieces they come in, frames are read as they are, up to the head of one that
// announces too much.
func TestFrames(t *testing.T) {
	good := bytes.Join([][]byte{wsFrame(1, 3, 3), wsFrame(9, 0, 0), wsFrame(1, 300, 300), wsFrame(2, maxWord, maxWord)}, nil)
	for name, c := range map[string]struct {
		behind []byte
		ends   error
	}{
		"nothing":      {nil, io.EOF},
		"one too many": {wsFrame(1, maxWord+1, maxWord+1), errLargeFrame},
		"2^40":         {wsFrame(1, 1<<40, 10), errLargeFrame},
		"2^63":         {wsFrame(1, 1<<63, 10), errLargeFrame},
	} {
		for _, piece := range []int{1, 7, 512, 1 << 20} {
			ours, theirs := net.Pipe()
			go func() {
				for rest := append(bytes.Clone(good), c.behind...); len(rest) > 0; {
					n, err := theirs.Write(rest[:min(piece, len(rest))])
					if err != nil {
						return
					}
					rest = rest[n:]
				}
				_ = theirs.Close()
			}()
			f := newFramed(ours)
			var got []byte
			var err error
			for err == nil {
				into := make([]byte, 512)
				var n int
				n, err = f.Read(into)
				got = append(got, into[:n]...)
			}
			_ = ours.Close()
			if !errors.Is(err, c.ends) || !bytes.HasPrefix(got, good) || len(got) > len(good)+14 {
				t.Errorf("%s in pieces of %d: %d bytes of %d, then %v", name, piece, len(got), len(good), err)
			}
			if c.ends == errLargeFrame { //nolint:errorlint // the table's
				if _, err := f.Read(make([]byte, 1)); !errors.Is(err, errLargeFrame) {
					t.Errorf("%s: behind it is read %v", name, err)
				}
			}
		}
	}
}

// TestFlood: who sends more frames than anybody has use for is read slowly, and one who rests may
// send many at once again.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		f := newFramed(ours)
		go func() {
			for into := make([]byte, readBuffer); ; {
				if _, err := f.Read(into); err != nil {
					return
				}
			}
		}()
		send := func(frames int) time.Duration {
			start := time.Now()
			if _, err := theirs.Write(bytes.Repeat(wsFrame(9, 0, 0), frames)); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		if took := send(burst); took > 0 {
			t.Errorf("what may come at once took %s", took)
		}
		if took := send(1000); took < 9*time.Second {
			t.Errorf("a flood of 1000 took %s", took)
		}
		time.Sleep(time.Minute)
		if took := send(burst); took > 0 {
			t.Errorf("after a rest it took %s", took)
		}
		_ = theirs.Close()
	})
}
