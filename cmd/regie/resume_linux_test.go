package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/regie-run/regie"
	"github.com/regie-run/regie/internal/app"
	"github.com/regie-run/regie/internal/config"
	"github.com/regie-run/regie/internal/dispatch"
	"github.com/regie-run/regie/internal/i18n"
	"github.com/regie-run/regie/internal/store"
)

// TestResumeShowsAll resumes a run that goes on, and ends, before anybody listens: what it did is
// shown all the same.
func TestResumeShowsAll(t *testing.T) {
	asked, again := make(chan struct{}), make(chan struct{})
	s := newStage(t, reply("I write.", wanted{"a", "a.txt", "one\n"}), func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-again:
			reply("And once more.", wanted{"b", "b.txt", "two\n"})(w, r)
		default:
			close(asked)
			<-r.Context().Done()
		}
	}, reply("Written."))
	first := s.regie("run", "--allow", "files.write_file", "write two files")
	<-asked
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.ends(-1)
	close(again)

	t.Chdir(s.work(""))
	for _, pair := range s.env {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	t.Setenv("HOME", t.TempDir())
	var shown bytes.Buffer
	env := &environment{text: i18n.New("en"), stdin: os.Stdin, stdout: io.Discard, stderr: &shown, level: new(slog.LevelVar)}
	var err error
	if env.config, err = config.Load(os.Getenv, env.flags); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	before, err := readStore(ctx, env, func(conn *app.Conn) (store.RoundView, error) {
		return findRun(ctx, env, conn.Client, false, "last")
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := env.connect(ctx, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ended(ctx, t, conn, before.Round.ID.String())
	err = followRun(ctx, env, conn, runFlags{resume: "last", deadline: time.Now().Add(forever)}, dispatch.RunRequest{}, &before, nil)
	if err != nil {
		t.Error(err)
	}
	if got := shown.String(); strings.Contains(got, "a.txt") || strings.Count(got, "✓ files.write_file b.txt") != 1 || strings.Contains(got, "has ended already") {
		t.Errorf("of what was done before the death nothing is told again, and of all else each once:\n%s", got)
	}
}

// ended waits for the end of a run that goes on in this process.
func ended(ctx context.Context, t *testing.T, conn *app.Conn, round string) {
	t.Helper()
	id, err := regie.ParseID(round)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Wait(ctx, id); err != nil {
		t.Fatal(err)
	}
	if view, err := conn.Get(ctx, id); err != nil || view.Round.State != regie.RoundEnded {
		t.Fatalf("the run is %s, %v", view.Round.State, err)
	}
}
