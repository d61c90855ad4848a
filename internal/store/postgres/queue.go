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

// The transition that changes a state inserts its jobs, among its statements, so that they cost no
// round trip and exist exactly if the state does. They only say where to look. A waiting job of
// kind "round" is kept once; adding to it locks it, so that it is not fetched before that commit.
const (
	roundJob = `INSERT INTO river_job (args, kind, max_attempts, scheduled_at, unique_key, unique_states)
		VALUES (jsonb_build_object('round', $1::uuid), 'round', 5, clock_timestamp() + $2::bigint * interval '1 microsecond', uuid_send($1::uuid), B'00000001')
		ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND unique_states IS NOT NULL AND river_job_state_in_bitmask(unique_states, state)
		DO UPDATE SET scheduled_at = least(river_job.scheduled_at, excluded.scheduled_at)`
	// A job that is due soon need not be made available by River's scheduler, which looks every 5
	// s; River does so itself with retries.
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

// roundArgs are those of a job that brings a process to a round; deadlineArgs, to the waits that
// are over by a time, in microseconds.
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
	// fetchCooldown and fetchPoll are as measured: a job starts 2 ms after it is there, and at most
	// fetchPoll later.
	fetchCooldown, fetchPoll = 5 * time.Millisecond, 50 * time.Millisecond
	jobTimeout, jobRescue    = 30 * time.Second, time.Minute
	doneJobsFor              = time.Hour
	// queueStops is what jobs that are under way may still take, and queueEnds what River may, once
	// they are cancelled.
	queueStops, queueEnds = 3 * time.Second, time.Second
)

// Queue brings jobs to this process (River), on connections of its own. It is dispatch.Queue.
type Queue struct {
	url string
	log *slog.Logger

	mu     sync.Mutex
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// NewQueue returns the queue of the database and schema that url names, which a store has migrated
// when it starts. log gets a line where it does not stop in time; nil discards it.
func NewQueue(url string, log *slog.Logger) *Queue {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Queue{url: url, log: log}
}

// Start begins to work jobs, as dispatch.Queue has it.
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
		default: // somebody holds what it belongs to
			return river.JobSnooze(time.Second)
		}
	}))
	// While a server is away River says so several times in a second, and nothing is lost by it.
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

// Stop ends the work; jobs that are under way may come to their end.
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

// migrateJobs brings River's tables forward, in the schema of the others.
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
	// one transaction each: a new value of an enumeration cannot be used in the transaction that
	// adds it
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}
