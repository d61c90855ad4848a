package storetest

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// Refuser returns the address of a server that refuses every PostgreSQL connection with the error
// of a state (SQLSTATE), as a real server does before it authenticates.
func Refuser(t *testing.T, state, message string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	var fields []byte
	for _, field := range []string{"SFATAL", "VFATAL", "C" + state, "M" + message} {
		fields = append(append(fields, field...), 0)
	}
	fields = append(fields, 0)
	refusal := append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(fields)+4)), fields...)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			head := make([]byte, 4)
			if _, err := io.ReadFull(client, head); err == nil {
				if _, err = io.CopyN(io.Discard, client, int64(binary.BigEndian.Uint32(head))-4); err == nil {
					_, _ = client.Write(refusal)
				}
			}
			_ = client.Close()
		}
	}()
	return listener.Addr().String()
}
