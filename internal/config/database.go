package config

import (
	"cmp"
	"encoding/hex"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/regie-run/regie"
)

// sqliteWord is what names the embedded store where a database is asked for.
const sqliteWord = "sqlite"

// placeDatabase settles where the store is. What the processes of one database keep on a machine,
// lock, socket and audit key, stands in a directory of its own in the data directory: an engine of
// the embedded store, or of another database, is never taken for this one's.
func (c *Config) placeDatabase(env func(string) string) error {
	if c.Database == "" && c.File.Database != "" {
		c.Database, c.Origin["database"] = c.File.Database, c.from("database")
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

// OwnDir is the directory that is Regie's own: whatever lies in it is, also that of other engines.
func (c *Config) OwnDir() string { return cmp.Or(c.DataHome, c.DataDir) }

// nameOf is short and the same for whatever leads to the same tables by the same name of the
// server, whoever asks. What the URL leaves out is found where the driver finds it. Two names of
// one server stay two: what a name leads to may change, and localhost need not be 127.0.0.1.
func nameOf(u *url.URL, env func(string) string) string {
	query := u.Query()
	port := cmp.Or(query.Get("port"), u.Port(), env("PGPORT"), "5432")
	var servers []string
	for server := range strings.SplitSeq(cmp.Or(query.Get("host"), u.Host, env("PGHOST")), ",") {
		servers = append(servers, serverOf(server, port))
	}
	user := cmp.Or(query.Get("user"), u.User.Username(), env("PGUSER"))
	database := cmp.Or(query.Get("dbname"), strings.TrimPrefix(u.Path, "/"), env("PGDATABASE"), user)
	sum := regie.HashOf([]byte(strings.Join([]string{
		strings.Join(servers, ","), database,
		cmp.Or(query.Get("search_path"), "regie"),
	}, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// serverOf is a server as one name, with its port; a directory is that of its socket.
func serverOf(server, port string) string {
	host, own, err := net.SplitHostPort(server)
	if err != nil {
		host, own = strings.Trim(server, "[]"), ""
	}
	if !strings.HasPrefix(host, "/") {
		host = strings.ToLower(host)
	}
	return net.JoinHostPort(host, cmp.Or(own, port))
}
