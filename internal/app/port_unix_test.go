//go:build unix

package app_test

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// reserve is an address of this machine where nothing answers until listen is called: it is bound
// all the while, so that nobody else gets it.
func reserve(t *testing.T) (address string, listen func() net.Listener) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	fatal(t, err)
	socket := os.NewFile(uintptr(fd), "reserved")
	t.Cleanup(func() { _ = socket.Close() })
	name, err := unix.Getsockname(fd)
	bound, ok := name.(*unix.SockaddrInet4)
	if err != nil || !ok {
		t.Fatal(name, err)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(bound.Addr), uint16(bound.Port)).String(), func() net.Listener {
		t.Helper()
		fatal(t, unix.Listen(fd, 16))
		listener, err := net.FileListener(socket)
		fatal(t, err)
		return listener
	}
}
