package postgres

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/sqlite"
)

// statements runs one transition on one connection. It queues statements without a result, and
// sends them in one batch with the next statement that has one, or with the commit. So a transition
// costs one round trip for each result it reads, and one for the commit.
type statements struct {
	ctx    context.Context //nolint:containedctx // of the transition whose statements these are
	conn   conn
	queue  []queued
	begun  bool
	writes bool
	// hurries has the transition fail, instead of a retry, where another one holds its log.
	hurries bool
	held    map[int64]log
	proof   proof
	err     error // of the first failed statement; later ones do not run
}

// conn is a connection that sends batches.
type conn interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// queued is a statement to be sent.
type queued struct {
	query   string
	args    []any
	refused error                       // where it must change exactly one row
	read    func([]driver.Value) error  // gets its rows
	count   func(tag pgconn.CommandTag) // gets the number of changed rows
}

// log is the end of a held log.
type log struct {
	seq int64
	mac []byte
}

// proof is a row that exists only after the commit: the last row of a held log, or a row of
// commits.
type proof struct {
	chain, seq int64
	mac        []byte
	id         regie.ID
}

// refusedState is the SQLSTATE of must_be_one.
const refusedState = "RG001"

// Queue implements sqlite.Statements.
func (s *statements) Queue(refused error, query string, args []any) {
	s.writes = true
	text := translate(query)
	if refused != nil {
		text = "WITH changed AS (" + text + " RETURNING 1) SELECT must_be_one(count(*)) FROM changed"
	}
	s.add(queued{query: text, refused: refused}, args)
}

func (s *statements) add(q queued, args []any) {
	var err error
	if q.args, err = arguments(args); err != nil && s.err == nil {
		s.err = err
	}
	s.queue = append(s.queue, q)
}

// Count implements sqlite.Statements.
func (s *statements) Count(query string, args []any) (n int64, err error) {
	s.add(queued{query: translate(query), count: func(tag pgconn.CommandTag) { n = tag.RowsAffected() }}, args)
	err = s.flush()
	s.writes = s.writes || n > 0
	return n, err
}

// Rows implements sqlite.Statements.
func (s *statements) Rows(query string, args []any) (rows [][]driver.Value, err error) {
	s.add(queued{query: translate(query), read: func(row []driver.Value) error {
		rows = append(rows, row)
		return nil
	}}, args)
	return rows, s.flush()
}

// Wrote implements sqlite.Statements.
func (s *statements) Wrote(chain, seq int64, mac []byte) {
	if _, ok := s.held[chain]; ok {
		s.proof = proof{chain: chain, seq: seq, mac: append([]byte(nil), mac...)}
	}
}

// flush sends the queued statements, in one round trip.
func (s *statements) flush() error {
	if s.err != nil || len(s.queue) == 0 {
		return s.err
	}
	batch := &pgx.Batch{}
	begins := !s.begun
	if begins {
		batch.Queue("BEGIN")
		s.begun = true
	}
	queue := s.queue
	s.queue = nil
	for _, q := range queue {
		batch.Queue(q.query, q.args...)
	}
	results := s.conn.SendBatch(s.ctx, batch)
	if begins {
		_, s.err = results.Exec()
	}
	for i := 0; i < len(queue) && s.err == nil; i++ {
		s.err = queue[i].answer(results)
	}
	if err := results.Close(); err != nil && s.err == nil {
		s.err = err
	}
	return s.err
}

// answer reads the result of a statement.
func (q *queued) answer(results pgx.BatchResults) error {
	if q.read == nil {
		tag, err := results.Exec()
		var state *pgconn.PgError
		if errors.As(err, &state) && state.Code == refusedState && q.refused != nil {
			return q.refused
		}
		if err == nil && q.count != nil {
			q.count(tag)
		}
		return err
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		decoded, err := rows.Values()
		if err != nil {
			return err
		}
		row := make([]driver.Value, len(decoded))
		for i := range decoded {
			if row[i], err = value(decoded[i]); err != nil {
				return err
			}
		}
		if err := q.read(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// commit sends the queued statements, and ends the transaction, in one round trip. sure says that
// after an error nothing is committed for certain.
func (s *statements) commit() (sure bool, err error) {
	if s.err != nil {
		return true, s.err
	}
	if !s.writes {
		return true, s.rollback()
	}
	if s.proof.mac == nil {
		s.proof.id = regie.NewID()
		s.add(queued{query: "INSERT INTO commits (id) VALUES ($1)"}, []any{s.proof.id})
	}
	s.add(queued{query: "COMMIT"}, nil)
	err = s.flush()
	var state *pgconn.PgError
	if errors.As(err, &state) && state.SeverityUnlocalized == "ERROR" {
		return true, err
	}
	var coded *regie.Error
	return err == nil || errors.As(err, &coded), err
}

// rollback ends an uncommitted transaction. A connection that fails to do so is not used again.
func (s *statements) rollback() error {
	if !s.begun {
		return nil
	}
	s.err, s.queue = nil, nil
	s.add(queued{query: "ROLLBACK"}, nil)
	return s.flush()
}

var _ sqlite.Statements = (*statements)(nil)
