package postgres

import (
	"context"
	"net"
	"strconv"
	"time"
)

const (
	// silence is how long either end of a connection is silent until the other one asks whether it
	// is still there, and unanswered how long what was sent may stay without an acknowledgement:
	// shorter than a lease, so that a connection that leads nowhere is given up before it costs
	// one.
	silence    = 5 * time.Second
	asksEvery  = 2 * time.Second
	asks       = 3
	unanswered = 5 * time.Second
)

// dial connects as the driver does, but notices that the other end is gone: without that the kernel
// goes on trying for a quarter of an hour.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silence, Interval: asksEvery, Count: asks},
		ControlContext:  giveUpUnanswered,
	}
	return d.DialContext(ctx, network, address)
}

// serverNotices are the settings by which the server notices the same of this end.
var serverNotices = map[string]string{
	"tcp_keepalives_idle": seconds(silence), "tcp_keepalives_interval": seconds(asksEvery),
	"tcp_keepalives_count": strconv.Itoa(asks),
	"tcp_user_timeout":     strconv.FormatInt(unanswered.Milliseconds(), 10),
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
