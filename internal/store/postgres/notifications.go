package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
)

// Others sets up the notifications between the processes of one database: which logs have grown
// (spec 11.1). The zero value neither sends nor receives.
type Others struct {
	// Holder is this process's name in leases. The process sends while another holder's lease is
	// valid; empty never sends.
	Holder string
	// Heard is called, on one goroutine, when another process has made the log of a session grow.
	// Missed is called after a reconnect, when any log may have grown. Neither may block. A process
	// without Heard does not listen.
	Heard  func(session regie.ID)
	Missed func()
}

const (
	// tellEvery is the least time between two sends: later commits go with the next one.
	tellEvery = 5 * time.Millisecond
	// tellLast bounds the last send of a store that closes.
	tellLast = 2 * time.Second
	// listenPing is how long a connection may be silent before it is pinged, and pingPatience how
	// long it has to answer.
	listenPing, pingPatience = 5 * time.Second, 5 * time.Second
	relistenMost             = 2 * time.Second
)

// feed sends and receives the notifications of a store. Its two goroutines end with close.
//
// It sends after the commit, not in it: PostgreSQL serializes the commits of transactions that
// notify, each with its own write to the disk (docs/design.md has the figures). So a process that
// dies in between sends nothing; readers of a log poll it now and then anyway.
type feed struct {
	pool    *pgxpool.Pool
	conn    *pgx.ConnConfig
	channel string
	self    string // prefix of this process's payloads
	others  Others

	mu     sync.Mutex
	untold map[regie.ID]struct{}
	wake   chan struct{}   // holds one token at most
	lives  context.Context //nolint:containedctx // of both goroutines, from newFeed to close
	end    func()
	group  sync.WaitGroup
}

func newFeed(pool *pgxpool.Pool, conn *pgx.ConnConfig, schema string, others Others) *feed {
	if others.Missed == nil {
		others.Missed = func() {}
	}
	var self [8]byte
	_, _ = rand.Read(self[:]) // never fails
	f := &feed{
		pool: pool, conn: conn.Copy(), channel: channelOf(schema),
		self: hex.EncodeToString(self[:]), others: others,
		untold: map[regie.ID]struct{}{}, wake: make(chan struct{}, 1),
	}
	f.conn.RuntimeParams["statement_timeout"] = "0"
	f.lives, f.end = context.WithCancel(context.Background())
	if others.Holder != "" {
		f.group.Go(f.telling)
	}
	if others.Heard != nil {
		f.group.Go(f.listening)
	}
	return f
}

// channelOf returns the channel of a schema, as a hash: the schema's name could be too long.
func channelOf(schema string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(schema))
	return fmt.Sprintf("regie_%016x", h.Sum64())
}

// close sends the remaining notifications, and ends both goroutines. It may be called again.
func (f *feed) close() {
	f.end()
	f.group.Wait()
}

// beside wraps a Notify so that the other processes are notified too. It never blocks.
func (f *feed) beside(notify store.Notify) store.Notify {
	return func(session regie.ID, added []regie.Event) {
		if notify != nil {
			notify(session, added)
		}
		if f.others.Holder == "" {
			return
		}
		f.mu.Lock()
		f.untold[session] = struct{}{}
		f.mu.Unlock()
		f.ring()
	}
}

func (f *feed) ring() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) telling() {
	for {
		ended := false
		select {
		case <-f.wake:
		case <-f.lives.Done():
			ended = true
		}
		pause := tellEvery
		if f.tell() != nil {
			pause = relistenMost
			f.ring()
		}
		if ended {
			return
		}
		select {
		case <-time.After(pause):
		case <-f.lives.Done():
		}
	}
}

// tellOthers sends only while another process has a lease.
const tellOthers = `SELECT count(pg_notify($1, payload)) FROM unnest($2::text[]) payload
	WHERE EXISTS (SELECT 1 FROM holders WHERE name <> $3 AND until > clock_timestamp())`

// tell sends the pending notifications, and keeps those that it cannot send.
func (f *feed) tell() error {
	f.mu.Lock()
	untold := f.untold
	f.untold = map[regie.ID]struct{}{}
	f.mu.Unlock()
	var payloads []string
	for session := range untold {
		payloads = append(payloads, f.self+" "+session.String())
	}
	if len(payloads) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellLast)
	defer cancel()
	_, err := f.pool.Exec(ctx, tellOthers, f.channel, payloads, f.others.Holder)
	if err != nil {
		f.mu.Lock()
		maps.Copy(f.untold, untold)
		f.mu.Unlock()
	}
	return err
}

func (f *feed) listening() {
	pause := time.Duration(0) // the first new connection follows at once
	for f.lives.Err() == nil {
		if f.listen() {
			pause = 0
		}
		select {
		case <-time.After(pause):
		case <-f.lives.Done():
		}
		pause = min(relistenMost, max(50*time.Millisecond, 2*pause))
	}
}

// listen receives notifications on one connection until that ends, and reports whether it began.
// Earlier notifications are missed.
func (f *feed) listen() (began bool) {
	ctx := f.lives
	conn, err := pgx.ConnectConfig(ctx, f.conn)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, "LISTEN "+f.channel); err != nil {
		return false
	}
	f.others.Missed()
	for {
		waits, cancel := context.WithTimeout(ctx, listenPing)
		said, err := conn.WaitForNotification(waits)
		silent := waits.Err() != nil
		cancel()
		switch {
		case err == nil:
			f.hear(said.Payload)
		case ctx.Err() == nil && silent && !conn.IsClosed(): // silence may also mean a dead peer
			asks, cancel := context.WithTimeout(ctx, pingPatience)
			err = conn.Ping(asks)
			cancel()
			if err != nil {
				return true
			}
		default:
			return true
		}
	}
}

// hear handles a notification of another process.
func (f *feed) hear(payload string) {
	self, told, _ := strings.Cut(payload, " ")
	if self == f.self {
		return
	}
	session, err := regie.ParseID(told)
	if err != nil { // from a newer program
		f.others.Missed()
		return
	}
	f.others.Heard(session)
}
