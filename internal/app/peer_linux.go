package app

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// isOwnPeer reports whether a connection to the private socket comes from this user's process, or
// from root's: the keys of providers are handed over on it.
func isOwnPeer(conn net.Conn) bool {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || failed != nil {
		return false
	}
	return peer.Uid == 0 || int(peer.Uid) == os.Getuid()
}
