package main

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/regie-run/regie/internal/store/storetest"
)

// TestPostgresScripts runs the program on a PostgreSQL: what people read where it cannot be used,
// and a run over an outage.
func TestPostgresScripts(t *testing.T) {
	t.Parallel()
	storetest.Postgres(t) // or it is skipped
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/postgres",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			address, crowded := storetest.Postgres(t), storetest.Postgres(t)
			proxy, proxied := storetest.NewProxy(t, address)
			env.Values["proxy"] = proxy // the script's own: they run at the same time
			server := httptest.NewServer(outage(proxy))
			env.Defer(server.Close)
			u, err := url.Parse(crowded)
			if err != nil {
				return err
			}
			for name, value := range map[string]string{
				"HOME": env.WorkDir + "/home", "REGIE_DATA_DIR": env.WorkDir + "/data", "REGIE_LANG": "en", "OLLAMA_HOST": "127.0.0.1:1",
				"POSTGRES": address, "CROWDED": crowded, "CROWDED_SCHEMA": u.Query().Get("search_path"), "PROXIED": proxied, "AWAY": server.URL + "/v1",
				"WRONG_PASSWORD": "postgres://ada:sekret@" + storetest.Refuser(t, "28P01", `password authentication failed for user "ada"`) + "/x?sslmode=disable",
				"FULL":           "postgres://ada:sekret@" + storetest.Refuser(t, "53300", "sorry, too many clients already") + "/x?sslmode=disable",
				"NO_DATABASE":    "postgres://ada:sekret@" + storetest.Refuser(t, "3D000", `database "x" does not exist`) + "/x?sslmode=disable",
			} {
				env.Setenv(name, value)
			}
			return os.Mkdir(env.WorkDir+"/home", 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"sql":   func(_ *testscript.TestScript, _ bool, args []string) { storetest.PostgresExec(t, args[0], args[1]) },
			"otherkey": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(filepath.WalkDir(args[0], func(path string, entry fs.DirEntry, err error) error {
					if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), "postgres-") {
						err = os.WriteFile(filepath.Join(path, "audit.key"), bytes.Repeat([]byte{7}, 32), 0o600)
					}
					return err
				}))
			},
			"proxy": func(ts *testscript.TestScript, _ bool, args []string) {
				proxy, ok := ts.Value("proxy").(*storetest.Proxy)
				switch {
				case !ok:
					ts.Fatalf("the script has no proxy")
				case args[0] == "down":
					proxy.Down()
				default:
					proxy.Up()
				}
			},
		},
	})
}

// outage is a model server; the first time that it is asked the database goes away.
func outage(proxy *storetest.Proxy) http.HandlerFunc {
	var asked atomic.Bool
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost && asked.CompareAndSwap(false, true) {
			proxy.Down()
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Here I am.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}
