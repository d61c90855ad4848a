package config

import (
	"cmp"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/regie-run/regie"
)

// sqliteWord selects the embedded store as the database.
const sqliteWord = "sqlite"

// placeDatabase decides where the store is. Lock, socket and audit key of a PostgreSQL database get
// a subdirectory of the data directory, so that an engine of another database is never mistaken for
// this one.
func (c *Config) placeDatabase(env func(string) string) error {
	if c.Database == "" && c.File.Database != "" {
		c.Database, c.Origin["database"] = c.File.Database, c.sourceOf("database")
	}
	if c.Database == "" || c.Database == sqliteWord {
		c.Database = ""
		return nil
	}
	u, err := url.Parse(c.Database)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" { // not quoted: it may hold a password
		return regie.Errorf(regie.CodeBadRequest,
			"the database (from %s) must be sqlite, or a URL such as postgres://user@host:5432/name",
			c.Origin["database"])
	}
	c.DataHome, c.DataDir = c.DataDir, filepath.Join(c.DataDir, "postgres-"+nameOf(u, env))
	return nil
}

// OwnDir is the directory that belongs to Regie with everything in it, the data of other engines
// too.
func (c *Config) OwnDir() string { return cmp.Or(c.DataHome, c.DataDir) }

// nameOf returns a short, stable name for an address and the environment variables that complete
// it. Two spellings of one server can give two names.
func nameOf(u *url.URL, env func(string) string) string {
	query := u.Query()
	sum := regie.HashOf([]byte(strings.Join([]string{
		cmp.Or(query.Get("host"), strings.ToLower(u.Hostname()), env("PGHOST")),
		cmp.Or(query.Get("port"), u.Port(), env("PGPORT"), "5432"),
		cmp.Or(query.Get("dbname"), strings.TrimPrefix(u.Path, "/"), env("PGDATABASE"), u.User.Username(),
			env("PGUSER")),
		cmp.Or(query.Get("search_path"), "regie"),
	}, "\x00")))
	return hex.EncodeToString(sum[:6])
}
