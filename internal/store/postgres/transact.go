package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/sqlite"
)

const (
	// patience bounds a transition or a read with all its tries, unless its caller has less. The
	// caller gets the error of a server that is down for longer.
	patience = 20 * time.Second
	// answerWithin is how long a read waits for an answer before it tries another connection: this
	// one's peer may be dead.
	answerWithin = 10 * time.Second
	// tries bounds the retries of colliding transitions. While a server is down, retries go on for
	// patience.
	tries = 12
	// collisions bounds the retries after a duplicate key: another transition may have been faster.
	// After these it is a conflict.
	collisions = 3
)

// backend is sqlite.Backend on one database.
type backend struct {
	pool *pgxpool.Pool
	feed *feed
}

// Transact implements sqlite.Backend. It retries transitions that PostgreSQL aborted because of
// each other, and those that a broken connection certainly undid. Where the connection broke in the
// commit, it asks the database for the outcome (settle). The caller's deadline counts, its
// cancellation does not.
func (b *backend) Transact(ctx context.Context, run func(sqlite.Statements) error) (wrote bool, err error) {
	until := time.Now().Add(patience)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	var last error // the error of the last try, where time is up during the next
	met, collided := 0, 0
	for try := 1; ; try++ {
		wrote, err = b.once(ctx, run)
		if isState(err, "23505") {
			collided++
		}
		if !away(err) {
			met++
		}
		freed := (errors.Is(err, errHeld) || isState(err, lockTimeout)) && b.endStalled(ctx)
		switch {
		case last != nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded):
			return false, last
		case err == nil, ctx.Err() != nil, !freed && !away(err) && !again(err), collided > collisions, met == tries:
			return wrote, err
		case broken(err), isState(err, readOnly): // the others of the pool have most likely met the same end
			b.pool.Reset()
		}
		last = err
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(pauseAfter(try)):
		}
	}
}

// Read implements sqlite.Backend. The caller's cancellation counts here, because a read changes
// nothing.
func (b *backend) Read(ctx context.Context, read func(context.Context) error) error {
	own, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error // the error of the last try, where time is up during the next
	for try := 1; ; try++ {
		answer, cancel := context.WithTimeout(own, answerWithin)
		err := read(answer)
		silent := answer.Err() != nil
		cancel()
		switch {
		case err == nil, errors.Is(context.Cause(ctx), context.Canceled):
			return err
		case own.Err() != nil && last != nil && errors.Is(err, context.DeadlineExceeded):
			return last
		case own.Err() != nil && ctx.Err() == nil && silent:
			return errSilent
		case own.Err() != nil:
			return err
		case !silent && !broken(err) && !isState(err, "53300"):
			return err
		case !silent:
			last = err
		}
		select {
		case <-own.Done():
		case <-time.After(pauseAfter(try)):
		}
	}
}

// errSilent is the error of a read without an answer.
var errSilent = regie.Errorf(regie.CodeDatabaseDown,
	"the database does not answer: nothing is lost, try again when it does")

// pauseAfter returns the random backoff before the next try, so that colliding transitions do not
// collide again.
func pauseAfter(try int) time.Duration {
	return time.Duration(rand.Int64N(int64(2*time.Millisecond) << min(try, 8)))
}

// once runs a transition once.
func (b *backend) once(ctx context.Context, run func(sqlite.Statements) error) (wrote bool, err error) {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release() // closes it unless it is idle; a second Release does nothing
	s := &statements{ctx: ctx, conn: conn.Conn(), held: map[int64]log{}}
	if err := run(s); err != nil {
		_ = s.rollback()
		if s.hurries && isState(err, lockTimeout) {
			err = errHeld
		}
		return false, err
	}
	wrote = s.writes
	sure, err := s.commit()
	switch {
	case err == nil:
		return wrote, nil
	case sure:
		_ = s.rollback()
		return false, err
	}
	_ = conn.Conn().Close(ctx)
	conn.Release() // many commits may have met the same end: asking takes a place in the pool, too
	done, unsettled := b.settle(ctx, s.proof)
	switch {
	case unsettled != nil:
		return false, regie.Errorf(regie.CodeDatabaseDown,
			"the connection to the database broke during a commit, and its outcome cannot be determined yet: check before you repeat it (%v; %v)", err, unsettled)
	case done:
		return wrote, nil
	}
	return false, errors.Join(errUndone, err)
}

// errHeld is the error of a transition that hurries, where another one holds its log.
var errHeld = regie.Errorf(regie.CodeDatabaseLocked,
	"another operation has locked the log of this session for too long: try again")

// errUndone marks a transition with a commit that certainly failed.
var errUndone = errors.New("the commit was not done")

// settle finds out whether a commit succeeded, after its connection broke. It first waits for that
// transaction to end, on the rows it has locked.
func (b *backend) settle(ctx context.Context, p proof) (done bool, err error) {
	for try := 1; ; try++ {
		done, err = b.ask(ctx, p)
		if err == nil || ctx.Err() != nil {
			return done, err
		}
		b.pool.Reset()
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ask looks for the proof of a commit.
func (b *backend) ask(ctx context.Context, p proof) (done bool, err error) {
	tx, err := b.pool.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if p.mac == nil { // a second row of the same key waits for the first one's transaction
		tag, err := tx.Exec(ctx, "INSERT INTO commits (id) VALUES ($1) ON CONFLICT DO NOTHING", p.id[:])
		return err == nil && tag.RowsAffected() == 0, err
	}
	if _, err := tx.Exec(ctx, "SELECT n FROM chains WHERE n = $1 FOR NO KEY UPDATE", p.chain); err != nil {
		return false, err
	}
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM events WHERE chain = $1 AND seq = $2 AND mac = $3)",
		p.chain, p.seq, p.mac).Scan(&done)
	return done, err
}

// again reports whether a failed transition has left nothing behind and a retry may succeed.
func again(err error) bool {
	return errors.Is(err, sqlite.ErrNotHeld) || errors.Is(err, errUndone) ||
		isState(err, "40001", "40P01", "23505", lockTimeout)
}

// lockTimeout is the SQLSTATE of a lock that another transaction holds for too long.
const lockTimeout = "55P03"

// readOnly is the SQLSTATE of a server that takes no writes: during a failover, some connections
// still lead to the former primary.
const readOnly = "25006"

// away reports whether no working server can be reached for now: it is down, has no connection
// left, or takes no writes.
func away(err error) bool { return broken(err) || isState(err, "53300", readOnly) }

func isState(err error, states ...string) bool {
	var state *pgconn.PgError
	if !errors.As(err, &state) {
		return false
	}
	return slices.Contains(states, state.Code)
}

// broken reports whether the connection to the server broke, before the commit.
func broken(err error) bool {
	var coded *regie.Error
	var state *pgconn.PgError
	var network net.Error
	switch {
	case err == nil, errors.As(err, &coded), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &state):
		// Ended by an administrator, a crash, or an idle timeout, or starting up; or, from a
		// pooler, all of class 08.
		return slices.Contains([]string{"57P01", "57P02", "57P03", "57P05", "25P03", "25P04"}, state.Code) ||
			strings.HasPrefix(state.Code, "08")
	}
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) ||
		errors.Is(err, driver.ErrBadConn) || pgconn.SafeToRetry(err)
}

// Explain implements sqlite.Backend.
func (b *backend) Explain(err error) error {
	var coded *regie.Error
	switch {
	case errors.As(err, &coded):
		return coded
	case err.Error() == "closed pool": // the pool has no error value for it
		return errClosed
	}
	return sqlite.ExplainState(err)
}

var errClosed = regie.Errorf(regie.CodeEngineGone, "the engine has stopped")

// Close implements sqlite.Backend; it waits for the transitions under way.
func (b *backend) Close() error {
	b.feed.close()
	b.pool.Close()
	return nil
}
