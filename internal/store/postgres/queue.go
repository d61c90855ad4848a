package postgres

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/regie-run/regie"
)

// A transition inserts the jobs of the state that it writes, among its statements. So they cost no
// round trip and exist exactly if the state does. A job only names a place to look at. A job of
// kind "round" is unique while it waits to be fetched. The transition that adds to it locks it, so
// that no process fetches it before the commit.
const (
	roundJob = `INSERT INTO river_job (args, kind, max_attempts, scheduled_at, unique_key, unique_states)
		VALUES (jsonb_build_object('round', $1::uuid), 'round', 5, clock_timestamp() + $2::bigint * interval '1 microsecond', uuid_send($1::uuid), B'00000001')
		ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND unique_states IS NOT NULL AND river_job_state_in_bitmask(unique_states, state)
		DO UPDATE SET scheduled_at = least(river_job.scheduled_at, excluded.scheduled_at)`
	// A job that is due soon is stored as available: River's scheduler looks only every 5 s. River
	// does the same with retries.
	deadlineJob = `INSERT INTO river_job (args, kind, max_attempts, state, scheduled_at)
		SELECT jsonb_build_object('at', $1::bigint), 'deadline', 25,
			(CASE WHEN due < clock_timestamp() + interval '10 seconds' THEN 'available' ELSE 'scheduled' END)::river_job_state, due
		FROM (SELECT to_timestamp($1::bigint / 1e6)) AS d (due)`
)

// NeedsHolder implements sqlite.Statements.
func (s *statements) NeedsHolder(round regie.ID, after time.Duration) {
	s.writes = true
	s.add(queued{query: roundJob}, []any{round, after.Microseconds()})
}

// Deadline implements sqlite.Statements.
func (s *statements) Deadline(at time.Time) {
	s.writes = true
	s.add(queued{query: deadlineJob}, []any{at.UnixMicro()})
}

// roundArgs name a round that needs a holder; deadlineArgs the waits that expire by a time, in
// microseconds.
type (
	roundArgs struct {
		Round regie.ID `json:"round"`
	}
	deadlineArgs struct {
		At int64 `json:"at"`
	}
)

// Kind implements river.JobArgs.
func (roundArgs) Kind() string { return "round" }

// Kind implements river.JobArgs.
func (deadlineArgs) Kind() string { return "deadline" }

const (
	queueConns   = 2
	queueWorkers = 32
	// fetchCooldown and fetchPoll are measured: a job starts 2 ms after its insert, and at most
	// fetchPoll later.
	fetchCooldown, fetchPoll = 5 * time.Millisecond, 50 * time.Millisecond
	jobTimeout, jobRescue    = 30 * time.Second, time.Minute
	doneJobsFor              = time.Hour
	// queueStops bounds how long running jobs may still take, and queueEnds how long River may,
	// once they are cancelled.
	queueStops, queueEnds = 3 * time.Second, time.Second
)

// Queue runs jobs in this process (River), on connections of its own. It is dispatch.Queue.
type Queue struct {
	url string
	log *slog.Logger

	mu     sync.Mutex
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// NewQueue returns the queue of the database and schema of url, which a store has migrated before.
// log gets a line where it does not stop in time; nil discards it.
func NewQueue(url string, log *slog.Logger) *Queue {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Queue{url: url, log: log}
}

// Start begins to run jobs, as dispatch.Queue requires.
func (q *Queue) Start(ctx context.Context, round func(context.Context, regie.ID),
	overdue func(context.Context) time.Time,
) error {
	pools, err := parse(q.url)
	if err != nil {
		return err
	}
	pools.MaxConns = queueConns
	schema := pools.ConnConfig.RuntimeParams["search_path"]
	pool, err := pgxpool.NewWithConfig(ctx, pools)
	if err != nil {
		return explain(err, pools.ConnConfig, schema)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[roundArgs]) error {
		round(ctx, job.Args.Round)
		return nil
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[deadlineArgs]) error {
		next := overdue(ctx)
		switch wait := time.Until(next); {
		case next.IsZero() || next.UnixMicro() > job.Args.At:
			return nil
		case wait > 0: // the server's clock is not this machine's: here the deadline is still ahead
			return river.JobSnooze(max(wait, 10*time.Millisecond))
		default: // another transition holds its session
			return river.JobSnooze(time.Second)
		}
	}))
	// The logger is discarded: River repeats several times a second that a server is down, and no
	// job is lost.
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema: schema, Logger: slog.New(slog.DiscardHandler), Workers: workers, Queues: map[string]river.QueueConfig{
			river.QueueDefault: {MaxWorkers: queueWorkers},
		},
		FetchCooldown: fetchCooldown, FetchPollInterval: fetchPoll, PollOnly: true,
		JobTimeout: jobTimeout, RescueStuckJobsAfter: jobRescue, CompletedJobRetentionPeriod: doneJobsFor,
	})
	if err == nil {
		err = client.Start(context.WithoutCancel(ctx))
	}
	if err != nil {
		pool.Close()
		return explain(err, pools.ConnConfig, schema)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pool, q.client = pool, client
	return nil
}

// Parked does nothing: the deadline's job was stored with it.
func (q *Queue) Parked() {}

// Stop ends the queue; running jobs may finish.
func (q *Queue) Stop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.client == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), queueStops)
	defer cancel()
	if q.client.Stop(ctx) != nil {
		again, cancel := context.WithTimeout(context.Background(), queueEnds)
		defer cancel()
		if err := q.client.StopAndCancel(again); err != nil {
			q.log.Warn("the queue of jobs did not come to its end in time", "error", err)
		}
	}
	q.pool.Close()
	q.client = nil
}

// migrateJobs brings River's tables forward, in the store's schema.
func migrateJobs(ctx context.Context, c *pgx.ConnConfig, schema string) (err error) {
	pools, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	pools.ConnConfig, pools.MaxConns = c.Copy(), 2
	pool, err := pgxpool.NewWithConfig(ctx, pools)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{
		Schema: schema,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	// One transaction per step: PostgreSQL cannot use a new enum value in the transaction that adds
	// it.
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
