package doctor

import (
	"context"
	"strconv"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/store/postgres"
)

// checkPostgres looks at a PostgreSQL, as the wiring found it.
func (x *exam) checkPostgres(ctx context.Context) {
	in := x.Shared(ctx)
	if in.Version == "" {
		x.explainUnreachable(&in)
		return
	}
	x.addFine("server", "PostgreSQL %s at %s answers after %s", in.Version, in.Place,
		shortDuration(in.Took)).setSubject(in.Place)
	if in.Fsync {
		x.addFine("fsync", "acknowledged data is on disk")
	} else {
		x.addFailure("fsync",
			"the server does not wait for its disk (fsync = off): a power cut loses what was acknowledged, or all of it").
			addFix("as an administrator of the database: ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()")
	}
	x.checkSchema(&in)
	if in.Key != nil {
		x.addError("key", in.Key).
			addFix("copy audit.key from the machine where the database was created, or from a backup, to %s", x.Config.DataDir)
	}
}

// explainUnreachable says why nothing can be told of the database.
func (x *exam) explainUnreachable(in *postgres.Inspection) {
	f := x.addError("server", in.Err).setSubject(in.Place)
	switch f.Code {
	case regie.CodeBadRequest:
		f.addFix("write the URL as postgres://user:password@host:5432/name, in REGIE_DATABASE, --database or regie.yaml")
	case regie.CodeNotFound:
		f.addFix("make the database with createdb, or correct its name in the URL")
	default:
		f.addFix("start the server at %s, open the way to it, or correct the user and password in the URL", in.Place)
	}
}

// checkSchema checks the schema and the user's rights there.
func (x *exam) checkSchema(in *postgres.Inspection) {
	have, want := strconv.FormatInt(in.Current, 10), strconv.FormatInt(in.Newest, 10)
	switch code := regie.CodeOf(in.Err); {
	case code == regie.CodeReadOnly:
		x.addError("writable", in.Err).
			addFix("name the primary in the URL, and leave default_transaction_read_only off")
	case code == regie.CodeNewerSchema, code == regie.CodeSchemaTooOld:
		x.addError("schema", in.Err).addFix("install the regie that wrote it")
	case in.Err != nil:
		x.addError("schema", in.Err).
			addFix("let the user %s use the schema %s, or name another one with search_path in the URL", in.User, in.Schema)
	case in.Current == 0:
		x.addFine("schema", "the schema %s does not exist yet, or is empty: the first run creates it", in.Schema)
	case in.Current < in.Newest:
		x.addWarning("schema", "schema %s; this version uses %s, and the next run migrates it: make a backup before",
			have, want).addCommand("pg_dump --schema=" + Quote(in.Schema) + " …")
	default:
		x.addFine("schema", "schema %s, current, %s in %s", have, formatSize(uint64(in.Size)), in.Schema)
	}
}
