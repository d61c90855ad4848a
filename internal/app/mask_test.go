package app_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regie-run/regie"
)

// TestOwnKeysStayHere: a key of this Regie that lies in a file under a harmless name reaches
// neither the model nor the data directory, by whatever tool it is read (spec 11.3).
func TestOwnKeysStayHere(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	const canary = "sk-OWN-CANARY-0123456789"
	m := newModel(t, replyWith("", runs("a", "cat conf.txt; head -c 9 conf.txt; tail -c +10 conf.txt", 20), call{"b", "files__read_file", `{"path":"conf.txt"}`},
		call{"c", "files__search_text", `{"query":"OWN"}`}), replyWith("ok"))
	u := newUndoing(t, m, map[string]string{"conf.txt": "key=" + canary + "\n"})
	_ = u.conn.Close()
	u.settings.APIKey = canary
	u.conn = u.connect()
	run := u.say(regie.NewID(), "look")
	view := u.round(u.conn, run.RoundID)
	for _, c := range view.Exchanges[0].Calls {
		if c.State != regie.CallSucceeded || !strings.Contains(c.Result, "[secret: api_key]") {
			t.Errorf("%s: %s %+v %s", c.Tool, c.State, c.Error, c.Result)
		}
	}
	_ = u.conn.Close()
	err := filepath.WalkDir(u.settings.DataDir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.Contains(name, "snapshots") { // of the files themselves
			return err
		}
		if data, err := os.ReadFile(name); err == nil && bytes.Contains(data, []byte("CANARY-0123")) {
			t.Errorf("the key is in %s", name)
		}
		return nil
	})
	fatal(t, err)
}

// TestDotenv_StaysHere: a key of the workspace's .env reaches neither the model nor the data
// directory, by whatever tool it is read; one that is written meanwhile is masked too.
func TestDotenv_StaysHere(t *testing.T) {
	t.Parallel()
	needsSandbox(t)
	const canary, later = "sk_live_DOTENV_CANARY_01", "DOTENV-CANARY-LATER-02"
	m := newModel(t, replyWith("", runs("a", "cat .env conf.txt; printf LATER_KEY=DOTENV-CANARY-LATER-%s 02 > .env.local; cat conf.txt", 20)),
		replyWith("", runs("b", "cat .env.local", 20), call{"c", "files__read_file", `{"path":"conf.txt"}`}, call{"d", "files__search_text", `{"query":"DOTENV"}`}), replyWith("ok"))
	u := newUndoing(t, m, map[string]string{".env": "STRIPE_KEY=" + canary + "\nHOST=localhost\n", "conf.txt": "key=" + canary + " at localhost\n"})
	run := u.say(regie.NewID(), "look")
	view := u.round(u.conn, run.RoundID)
	for _, exchange := range view.Exchanges {
		for _, c := range exchange.Calls {
			if c.State != regie.CallSucceeded || strings.Contains(c.Result, canary) || strings.Contains(c.Result, later) ||
				!strings.Contains(c.Result, "[secret: .env") {
				t.Errorf("%s: %s %+v %s", c.Tool, c.State, c.Error, c.Result)
			}
		}
	}
}
