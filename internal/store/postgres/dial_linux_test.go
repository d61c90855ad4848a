package postgres

import (
	"net"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/regie-run/regie/internal/store/storetest"
)

// TestNotices looks at both ends of a connection for what has them notice that the other one is
// gone.
func TestNotices(t *testing.T) {
	pools, err := parse(storetest.Postgres(t) + "&sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), pools.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tcp, ok := conn.PgConn().Conn().(*net.TCPConn)
	if !ok {
		t.Fatalf("connected by %T", conn.PgConn().Conn())
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var unanswered, idle int
	if err := raw.Control(func(fd uintptr) {
		unanswered, idle = option(t, fd, unix.TCP_USER_TIMEOUT), option(t, fd, unix.TCP_KEEPIDLE)
	}); err != nil {
		t.Fatal(err)
	}
	if unanswered != 5000 || idle != 5 {
		t.Errorf("here: given up after %d ms, asked after %d s", unanswered, idle)
	}
	var server string
	if err := conn.QueryRow(t.Context(), "SELECT concat_ws(' ', current_setting('tcp_keepalives_idle'), current_setting('tcp_user_timeout'))").Scan(&server); err != nil || server != "5 5s" && server != "5 5000" {
		t.Errorf("there: %q, %v", server, err)
	}
}

func option(t *testing.T, fd uintptr, name int) int {
	t.Helper()
	n, err := syscall.GetsockoptInt(int(fd), unix.IPPROTO_TCP, name)
	if err != nil {
		t.Error(err)
	}
	return n
}
