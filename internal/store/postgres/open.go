package postgres

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store"
	"github.com/regie-run/regie/internal/store/sqlite"
)

const (
	// DefaultSchema is the schema of the tables, unless search_path in the URL names another one.
	DefaultSchema = "regie"
	// MinVersion is the oldest tested server, as server_version_num.
	MinVersion   = 150000
	writerCount  = 16
	readerCount  = 8
	connectAfter = 5 * time.Second
)

// Config sets up a store. URL and Dir are required.
type Config struct {
	// URL is the database's, postgres://user:password@host:port/name, with libpq's parameters.
	// search_path in it names the schema.
	URL string
	// Dir is the data directory. It holds audit.key, which must be the same for all processes of
	// one database.
	Dir    string
	Notify store.Notify                      // on the goroutine of the caller
	Gate   func(committed, wrote bool) error // as in sqlite.Config
	// Others sets up notifications between processes; unused where the store is opened for reading.
	Others Others
	// ReadOnly opens the store for reading: it makes and migrates nothing, and needs the key only
	// for Verify.
	ReadOnly bool
	// Migrations replaces the migrations of this program, in tests.
	Migrations fs.FS
	// MinVersion raises the constant of that name, in tests.
	MinVersion int
}

// Open opens the database, makes its schema where that is empty, and migrates it forward. It
// returns CodeDatabaseDown where no server answers, CodeNoPermission, CodeReadOnly for a standby,
// CodeNewerSchema, CodeSchemaTooOld, and CodeConflict for a server that is too old, or, read only,
// for an old schema. It returns CodeCorrupt for a missing or different audit key, and
// CodeBadRequest for an invalid URL.
func Open(ctx context.Context, cfg Config) (*sqlite.Store, error) {
	pools, err := parse(cfg.URL)
	if err != nil {
		return nil, err
	}
	schema := pools.ConnConfig.RuntimeParams["search_path"]
	key, known, err := prepare(ctx, pools.ConnConfig, cfg, schema)
	if err != nil {
		return nil, explain(err, pools.ConnConfig, schema)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pools)
	if err != nil {
		return nil, explain(err, pools.ConnConfig, schema)
	}
	reading := pools.ConnConfig.Copy()
	delete(reading.RuntimeParams, "statement_timeout") // a long log is read for as long as it takes
	reading.RuntimeParams["default_transaction_read_only"] = "on"
	read := stdlib.OpenDB(*reading)
	read.SetMaxOpenConns(readerCount)
	read.SetMaxIdleConns(readerCount)
	if cfg.ReadOnly {
		cfg.Others = Others{}
	}
	others := newFeed(pool, pools.ConnConfig, schema, cfg.Others)
	return sqlite.NewStore(sqlite.BackendConfig{
		Backend: &backend{pool: pool, feed: others}, Read: read,
		Translate: translate, Arguments: arguments,
		Dir: cfg.Dir, Key: key, Schema: known, Notify: others.beside(cfg.Notify), Gate: cfg.Gate, ReadOnly: cfg.ReadOnly,
	}), nil
}

// parse reads the URL and sets the parameters of each connection.
func parse(text string) (*pgxpool.Config, error) {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the database must be named by a URL such as postgres://user@host:5432/name")
	}
	c, err := pgxpool.ParseConfig(text)
	if err != nil { // the driver's words may hold the password
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the database URL cannot be read: write postgres://user:password@host:5432/name, with special characters percent-encoded")
	}
	if u, err := url.Parse(text); err != nil || !u.Query().Has("pool_max_conns") {
		c.MaxConns = writerCount
	}
	// with one connection, settle and the notifications would wait for the store's own transitions
	if c.MaxConns < 2 {
		return nil, regie.Errorf(regie.CodeBadRequest, "pool_max_conns in the database URL must be 2 or more")
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectAfter
	}
	// An engine that is stopped within a transition holds its session's log. These limits end that
	// within its lease, and within the wait of another one.
	for name, value := range map[string]string{
		"search_path": DefaultSchema, "application_name": "regie", "default_transaction_isolation": "read committed",
		"lock_timeout": "10s", "statement_timeout": "60s", "idle_in_transaction_session_timeout": "4s", "jit": "off",
		"client_min_messages": "warning",
		// The server notices a dead client, and frees its locks, within seconds.
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "tcp_user_timeout": "5000",
	} {
		if _, given := c.ConnConfig.RuntimeParams[name]; !given {
			c.ConnConfig.RuntimeParams[name] = value
		}
	}
	c.AfterConnect = acknowledge
	return c, refuseSettings(c.ConnConfig)
}

// schemaName matches the names that need no quotes, for the server and for River alike. River adds
// to the name, and PostgreSQL cuts names after 63 bytes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,45}$`)

// refuseSettings refuses settings of a URL that would fail only later, after the schema was made.
func refuseSettings(c *pgx.ConnConfig) error {
	schema := c.RuntimeParams["search_path"]
	switch {
	case !schemaName.MatchString(schema) || strings.HasPrefix(schema, "pg_"): // which the server keeps for itself
		return regie.Errorf(regie.CodeBadRequest,
			"search_path in the database URL must name one schema: small letters, digits and _, at most 46 of them, and not pg_ at the beginning")
	case c.RuntimeParams["options"] != "": // it could name another schema, unseen
		return regie.Errorf(regie.CodeBadRequest,
			"options (in the database URL, or PGOPTIONS) are not read: write each setting as a parameter of its own, such as search_path=regie")
	}
	return nil
}

// acknowledge turns synchronous_commit on, so that the server acknowledges commits only once they
// are on its disk (spec 11.1). From 17 on it also sets a transaction_timeout above every patience.
func acknowledge(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config(name, CASE name WHEN 'synchronous_commit' THEN 'on' ELSE '30s' END, false) FROM pg_settings
		WHERE name = 'synchronous_commit' AND setting = 'off' OR name = 'transaction_timeout' AND setting = '0'`)
	return err
}

// explain names the place, without the password.
func explain(err error, c *pgx.ConnConfig, schema string) error {
	var coded *regie.Error
	var state *pgconn.PgError
	place := c.Host + "/" + c.Database // in every language
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &state) && state.Code == "42501":
		return regie.Errorf(regie.CodeNoPermission,
			"the user %s may not use the schema %s of the database %s: CREATE SCHEMA %s AUTHORIZATION %s (%s)", c.User,
			schema, place, schema, c.User, state.Message)
	case errors.As(err, &state):
		text := sqlite.ExplainState(err)
		return regie.Errorf(regie.CodeOf(text), "%s: %v", place, text)
	}
	return regie.Errorf(regie.CodeDatabaseDown, "the database %s cannot be reached: is the server running there? (%v)",
		place, err)
}
