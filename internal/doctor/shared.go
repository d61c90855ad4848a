package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/postgres"
)

const (
	// skewed is how much the clocks of an engine and of its database may differ before approvals
	// expire for one and not for the other.
	skewed = 5 * time.Second
	// far is where every answer of the database costs more than all the rest of an exchange.
	far = 200 * time.Millisecond
)

// shared looks at a PostgreSQL, as whoever asked it found it.
func (x *exam) shared(ctx context.Context) {
	check, cancel := context.WithTimeout(ctx, x.CheckTime)
	defer cancel()
	in := x.Shared(check)
	x.newest = in.LastEvent
	if in.Version == "" {
		x.unreachable(&in)
		return
	}
	x.fine("server", "PostgreSQL %s at %s answers after %s", in.Version, in.Place, short(in.Took)).about(in.Place)
	if in.Took > far {
		x.warn("distance", "%s is far away: each step of a run waits for it several times",
			in.Place).fix("run the engine on a machine near the database")
	}
	switch {
	case in.Number < in.Oldest:
		f := x.fail("version", "PostgreSQL %s is too old", in.Version)
		f.Code = regie.CodeConflict
		f.fix("move the database to PostgreSQL %s or newer", strconv.Itoa(in.Oldest/10000))
	case in.Standby:
		f := x.fail("writable", "%s is a standby, which takes no writes", in.Place)
		f.Code = regie.CodeReadOnly
		f.fix("name the primary in the URL, or all servers with target_session_attrs=read-write")
	case in.ReadOnly:
		f := x.fail("writable", "the database takes no writes from %s (default_transaction_read_only)", in.User)
		f.Code = regie.CodeReadOnly
		f.fix("ALTER ROLE %s SET default_transaction_read_only = off, or take it out of the URL", in.User)
	}
	x.keeping(&in)
	x.connections(&in)
	x.apart(&in)
	x.tables(&in)
	if in.Key != nil {
		x.cause("key",
			in.Key).fix("copy audit.key from the machine where the database was begun, or from a backup, to %s",
			x.Config.DataDir)
	}
	if in.Engines > 0 {
		x.fine("engines", "%s engines have a lease on it", strconv.Itoa(in.Engines))
	}
}

// unreachable says why nothing can be told of the database.
func (x *exam) unreachable(in *postgres.Inspection) {
	f := x.cause("server", in.Err).about(in.Place)
	switch f.Code {
	case regie.CodeBadRequest:
		f.fix("write the URL as postgres://user:password@host:5432/name, in REGIE_DATABASE, --database or regie.yaml")
	case regie.CodeNoPermission:
		f.fix("correct the user or the password in the URL; what the server allows stands in its pg_hba.conf")
	case regie.CodeNotFound:
		f.fix("make the database with createdb, or correct its name in the URL")
	default:
		f.fix("start the server at %s, open the way to it, or correct the URL", in.Place)
	}
}

// keeping looks whether what the server acknowledges is on its disk (spec 11.1).
func (x *exam) keeping(in *postgres.Inspection) {
	if !in.Fsync {
		x.fail("fsync",
			"the server does not wait for its disk (fsync = off): a power cut loses what was acknowledged, or all of it").
			fix("as an administrator of the database: ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()")
	}
	if !in.Pages {
		x.warn("fsync", "the server does not keep whole pages (full_page_writes = off): a power cut can tear one").
			fix("as an administrator of the database: ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()")
	}
	if in.SyncCommit == "off" { // which the store's own connections switch on
		x.warn("commit",
			"the server acknowledges commits before they are on its disk (synchronous_commit = off); Regie's own wait for it all the same").
			fix("leave it to the programs that want it: ALTER SYSTEM RESET synchronous_commit; SELECT pg_reload_conf()")
	} else if in.Fsync {
		x.fine("commit", "what is acknowledged is on its disk (synchronous_commit = %s)", in.SyncCommit)
	}
}

// connections compares what the server takes with what engines may ask for.
func (x *exam) connections(in *postgres.Inspection) {
	limit, used, pool := strconv.Itoa(in.Limit), strconv.Itoa(in.Used), strconv.Itoa(in.Pool)
	switch {
	case in.Limit < in.Pool:
		x.fail("connections", "the server lets %s have %s connections, and one engine may take %s", in.User, limit,
			pool).
			fix("raise max_connections, or let the engine take fewer writers: pool_max_conns=4 in the URL")
	case in.Limit-in.Used < in.Pool && in.Engines == 0:
		x.warn("connections", "%s of %s connections are taken, and one engine may take %s", used, limit, pool).
			fix("raise max_connections, or let the engine take fewer writers: pool_max_conns=4 in the URL")
	default:
		x.fine("connections", "%s of %s connections are taken; one engine takes at most %s", used, limit, pool)
	}
}

// apart compares the clocks: leases go by the database's, deadlines of people by each engine's.
func (x *exam) apart(in *postgres.Inspection) {
	skew := in.Skew.Abs()
	switch {
	case skew-in.SkewMay > skewed:
		x.fail("clock",
			"the clock of the database and this machine's are %s apart: what expires for one engine does not for another", short(skew)).
			run("sudo timedatectl set-ntp true").fix("and the same on the machine of the database")
	default:
		x.fine("clock", "its clock is this machine's, within %s", short(max(skew, in.SkewMay)))
	}
}

// tables looks at the schema and at what the user may do there.
func (x *exam) tables(in *postgres.Inspection) {
	have, want := strconv.FormatInt(in.Current, 10), strconv.FormatInt(in.Newest, 10)
	switch {
	case in.Err != nil:
		f := x.cause("schema", in.Err)
		f.fix("let the user %s use the schema %s, or name another one with search_path in the URL", in.User, in.Schema)
	case !in.There && !in.MayMake:
		f := x.fail("schema", "the schema %s is not there, and %s may not make it", in.Schema, in.User)
		f.Code = regie.CodeNoPermission
		f.fix("as an administrator of the database: CREATE SCHEMA %s AUTHORIZATION %s", in.Schema, in.User)
	case !in.There:
		x.fine("schema", "the schema %s is not there yet: the first run makes it", in.Schema)
	case in.Foreign != nil:
		x.cause("schema", in.Foreign).fix("name an empty schema with search_path in the URL")
	case in.Unfit != nil:
		x.cause("schema", in.Unfit).fix("install the regie that wrote it")
	case len(in.Missing) > 0:
		f := x.fail("rights", "%s may not read and write all tables of %s: %s", in.User, in.Schema,
			strings.Join(in.Missing, ", "))
		f.Code = regie.CodeNoPermission
		f.fix("as an administrator of the database: GRANT ALL ON ALL TABLES IN SCHEMA %s TO %s", in.Schema, in.User)
	case in.Current == 0:
		x.fine("schema", "the schema %s is empty: the first run fills it", in.Schema)
	case in.Current < in.Newest:
		x.warn("schema", "schema %s; this program writes %s, and the next run brings it there: make a backup before",
			have, want).run("pg_dump --schema=" + quote(in.Schema) + " …")
	default:
		x.fine("schema", "schema %s, this program's, %s in %s", have, size(uint64(in.Size)), in.Schema)
	}
}
