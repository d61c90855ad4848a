package doctor

import (
	"context"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/postgres"
)

// shared looks at a PostgreSQL, as the wiring found it.
func (x *exam) shared(ctx context.Context) {
	in := x.Shared(ctx)
	if in.Version == "" {
		x.unreachable(&in)
		return
	}
	x.fine("server", "PostgreSQL %s at %s answers after %s", in.Version, in.Place, short(in.Took)).about(in.Place)
	if in.Fsync {
		x.fine("fsync", "what is acknowledged is on its disk")
	} else {
		x.fail("fsync",
			"the server does not wait for its disk (fsync = off): a power cut loses what was acknowledged, or all of it").
			fix("as an administrator of the database: ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()")
	}
	x.tables(&in)
	if in.Key != nil {
		x.cause("key", in.Key).
			fix("copy audit.key from the machine where the database was begun, or from a backup, to %s", x.Config.DataDir)
	}
}

// unreachable says why nothing can be told of the database.
func (x *exam) unreachable(in *postgres.Inspection) {
	f := x.cause("server", in.Err).about(in.Place)
	switch f.Code {
	case regie.CodeBadRequest:
		f.fix("write the URL as postgres://user:password@host:5432/name, in REGIE_DATABASE, --database or regie.yaml")
	case regie.CodeNotFound:
		f.fix("make the database with createdb, or correct its name in the URL")
	default:
		f.fix("start the server at %s, open the way to it, or correct the user and password in the URL", in.Place)
	}
}

// tables looks at the schema and at what the user may do there.
func (x *exam) tables(in *postgres.Inspection) {
	have, want := strconv.FormatInt(in.Current, 10), strconv.FormatInt(in.Newest, 10)
	switch code := regie.CodeOf(in.Err); {
	case code == regie.CodeReadOnly:
		x.cause("writable", in.Err).
			fix("name the primary in the URL, and leave default_transaction_read_only off")
	case code == regie.CodeNewerSchema, code == regie.CodeSchemaTooOld:
		x.cause("schema", in.Err).fix("install the regie that wrote it")
	case in.Err != nil:
		x.cause("schema", in.Err).
			fix("let the user %s use the schema %s, or name another one with search_path in the URL", in.User, in.Schema)
	case in.Current == 0:
		x.fine("schema", "the schema %s is not there yet, or empty: the first run makes it", in.Schema)
	case in.Current < in.Newest:
		x.warn("schema", "schema %s; this program writes %s, and the next run brings it there: make a backup before",
			have, want).run("pg_dump --schema=" + Quote(in.Schema) + " …")
	default:
		x.fine("schema", "schema %s, this program's, %s in %s", have, size(uint64(in.Size)), in.Schema)
	}
}
