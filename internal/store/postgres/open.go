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
	// DefaultSchema is where the tables are unless the URL names another schema by search_path.
	DefaultSchema = "regie"
	// MinVersion is the oldest server that the store is tried on, as server_version_num.
	MinVersion   = 150000
	writerCount  = 16
	readerCount  = 8
	connectAfter = 5 * time.Second
)

// Config sets up a store. URL and Dir are required.
type Config struct {
	// URL is that of the database, postgres://user:password@host:port/name; what libpq knows in one
	// is known here too. search_path in it names the schema.
	URL string
	// Dir is the data directory: it holds audit.key, which all processes of one database need the
	// same of.
	Dir    string
	Notify store.Notify                      // on the goroutine of the caller
	Gate   func(committed, wrote bool) error // as sqlite.Config has it
	// Others exchanges notifications of commits; unused in a store for reading.
	Others Others
	// ReadOnly opens the store for reading: it makes and migrates nothing, and needs no key but for
	// Verify.
	ReadOnly bool
	// Migrations replaces the migrations of this program: for tests of the next one.
	Migrations fs.FS
	// MinVersion refuses older servers than the constant of that name does.
	MinVersion int
}

// Open opens the database, makes its schema where it is empty, and migrates it forward. It returns
// CodeDatabaseDown without a server, CodeNoPermission, CodeReadOnly for a standby, CodeNewerSchema,
// CodeSchemaTooOld, CodeConflict for a server that is too old, or, read only, for an old schema;
// CodeCorrupt for a missing or different audit key; CodeBadRequest for an invalid URL.
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

// parse parses the URL and sets the parameters of each connection.
func parse(text string) (*pgxpool.Config, error) {
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the database must be named by a URL such as postgres://user@host:5432/name")
	}
	c, err := pgxpool.ParseConfig(text)
	if err != nil { // the driver's words may hold the password
		return nil, regie.Errorf(regie.CodeBadRequest,
			"the database URL cannot be read: write postgres://user:password@host:5432/name, with what is special in it percent-encoded")
	}
	if u, err := url.Parse(text); err != nil || !u.Query().Has("pool_max_conns") {
		c.MaxConns = writerCount
	}
	// a store that asks what became of a commit, or tells the others, would wait for its own
	// transitions
	if c.MaxConns < 2 {
		return nil, regie.Errorf(regie.CodeBadRequest, "pool_max_conns in the database URL must be 2 or more")
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = connectAfter
	}
	// An engine that is stopped within a transition holds its session's log: not for longer than
	// its lease, and than another one waits for it.
	for name, value := range map[string]string{
		"search_path": DefaultSchema, "application_name": "regie", "default_transaction_isolation": "read committed",
		"lock_timeout": "10s", "statement_timeout": "60s", "idle_in_transaction_session_timeout": "4s", "jit": "off",
		"client_min_messages": "warning",
		// The server notices a dead client, and frees what it holds, within seconds.
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "tcp_user_timeout": "5000",
	} {
		if _, given := c.ConnConfig.RuntimeParams[name]; !given {
			c.ConnConfig.RuntimeParams[name] = value
		}
	}
	c.AfterConnect = acknowledge
	return c, refuseSettings(c.ConnConfig)
}

// schemaName is what is the same word to the server, to the jobs' library and in a statement,
// whether or not it is quoted. The library adds to it, and names end after 63 bytes.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,45}$`)

// refuseSettings names what in a URL would fail only half-way, when the schema is made already.
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

// acknowledge has a server that would acknowledge commits before they are on its disk wait for it
// (spec 11.1), and one that can (17 or newer) end a transaction that outlasts everybody's patience.
func acknowledge(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config(name, CASE name WHEN 'synchronous_commit' THEN 'on' ELSE '30s' END, false) FROM pg_settings
		WHERE name = 'synchronous_commit' AND setting = 'off' OR name = 'transaction_timeout' AND setting = '0'`)
	return err
}

// explain says where, without the password.
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
